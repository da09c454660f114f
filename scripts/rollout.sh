#!/usr/bin/env bash
# Starts the vLLM rollout server (`swift rollout`) that GRPO training fetches its completions from.
#
#   bash scripts/rollout.sh [further flags of swift rollout]
#
# Hardware: one GPU, the last visible one unless ROLLOUT_GPU names another; without a GPU, one CPU core and 2 GiB.
# Settings (environment): MODEL (hub id or folder), HOST (127.0.0.1: nobody else can reach it; the server has no
# password), PORT (8000), ROLLOUT_GPU, DRY_RUN=1 (print the command and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

HOST=${HOST:-127.0.0.1}
PORT=${PORT:-8000}
if have_gpu; then
  gpus=$(visible_gpus)
  export CUDA_VISIBLE_DEVICES=${ROLLOUT_GPU:-${gpus##*,}}
  args=(--model "${MODEL:-Qwen/Qwen2.5-3B-Instruct}")
else
  args=(
    --model "${MODEL:-$TINY_MODEL}" --model_type qwen2 --template qwen2_5
    --torch_dtype float32 --vllm_enforce_eager true --vllm_max_model_len 512
  )
fi
args+=(--host "$HOST" --port "$PORT" "$@")

if [ -n "${DRY_RUN:-}" ]; then
  echo "${CUDA_VISIBLE_DEVICES:+CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES }swift rollout $(printf '%q ' "${args[@]}")"
  exit 0
fi
ensure_environment
port_is_free "$PORT" || die "port $PORT on $HOST is in use: set PORT to a free one"
await_port "$PORT"
exec "${SWIFT[@]}" rollout "${args[@]}"
