#!/usr/bin/env bash
# Starts the vLLM rollout server (`swift rollout`) that GRPO training fetches its completions from.
#
#   bash scripts/rollout.sh [RECIPE.yaml] [flags of swift rollout]
#
# Hardware: one GPU, the last visible one unless ROLLOUT_GPU names another (rollout.yaml); without a GPU, one CPU core
# and 2 GiB (rollout_cpu.yaml). Flags override the recipe.
# Variables: MODEL (hub id or folder), HOST (127.0.0.1, where no other machine reaches the server: it has no password),
# PORT (8000), ROLLOUT_GPU, DRY_RUN=1 (print the command and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

recipe=rollout_cpu
if have_gpu; then
  recipe=rollout
  gpus=$(visible_gpus)
  export CUDA_VISIBLE_DEVICES=${ROLLOUT_GPU:-${gpus##*,}}
fi
read_recipe "$recipe" MODEL=model HOST=host PORT=port -- "$@"

if [ -n "${DRY_RUN:-}" ]; then
  print_command "${SWIFT[@]}" rollout "$CONFIG" "${FLAGS[@]}"
  exit 0
fi
ensure_environment
port=$(setting port)
port_is_free "$port" || die "port $port on $(setting host) is in use: set PORT to a free one"
await_port "$port"
exec "${SWIFT[@]}" rollout "$CONFIG" "${FLAGS[@]}"
