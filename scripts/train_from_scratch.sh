#!/usr/bin/env bash
# GRPO without ms-swift or TRL, with this package's own trainer (plugin/swift_rlvr/grpo), in one process on one device.
# At the end the trained model is loaded again and asked one question.
#
#   bash scripts/train_from_scratch.sh [RECIPE.yaml] [flags of swift-rlvr train]
#   bash scripts/train_from_scratch.sh --dataset countdown#1024 --reward_funcs countdown format --reward_weights 1 1
#
# Hardware: one GPU of 24 GB, the first visible one: the GSM8K recipe (gsm8k_scratch.yaml), whose file of short rows is
# made first. Without a GPU, Countdown with the tiny model (countdown_scratch_cpu.yaml), a few minutes on two CPU cores.
# Flags override the recipe; `swift-rlvr train --trainer scratch --help` lists them.
# Variables: MODEL, DATASET, OUTPUT, USE_HF=1 (datasets by name from Hugging Face, not ModelScope), DRY_RUN=1 (print the
# command and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
exec swift-rlvr train scratch "$@"
