#!/usr/bin/env bash
# Starts the vLLM rollout server (`swift rollout`) that GRPO training fetches its completions from.
#
#   bash scripts/rollout.sh [RECIPE.yaml] [flags of swift rollout]
#
# Hardware: the GPUs that the training on this machine leaves free, unless ROLLOUT_GPUS names others (rollout.yaml); without
# a GPU, one CPU core and 2 GiB (rollout_cpu.yaml). Flags override the recipe.
# Variables: MODEL (hub id or folder), HOST (127.0.0.1, where no other machine reaches the server: it has no password),
# PORT (8000), ROLLOUT_GPUS, DRY_RUN=1 (print the command and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
exec swift-rlvr rollout "$@"
