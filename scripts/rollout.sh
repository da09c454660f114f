#!/usr/bin/env bash
# Starts the vLLM rollout server (`swift rollout`), which samples the completions for GRPO training.
#
#   bash scripts/rollout.sh [RECIPE.yaml] [flags of swift rollout]
#
# Hardware: the last visible GPU, or those of ROLLOUT_GPUS with one worker each (rollout.yaml); without a GPU, one CPU core
# and 2 GiB (rollout_cpu.yaml). Flags override the recipe. If GPUs share a model (--vllm_tensor_parallel_size), set
# --vllm_data_parallel_size too.
# Variables: MODEL (hub id or folder), HOST (127.0.0.1: other machines cannot reach the server, which has no password),
# PORT (8000), ROLLOUT_GPUS, DRY_RUN=1 (print the command and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment

RECIPE=scripts/configs/rollout_cpu.yaml
VARIABLES=()
FLAGS=(${MODEL:+--model "$MODEL"} ${HOST:+--host "$HOST"} ${PORT:+--port "$PORT"} ${USE_HF:+--use_hf "$USE_HF"})
if have_gpu; then
  RECIPE=scripts/configs/rollout.yaml
  GPUS=$(visible_gpus)
  GPUS=${ROLLOUT_GPUS:-${GPUS##*,}}  # the training on this machine takes the first ones
  COMMAS=${GPUS//[^,]/}
  VARIABLES=(CUDA_DEVICE_ORDER=PCI_BUS_ID "CUDA_VISIBLE_DEVICES=$GPUS")
  [ -z "$COMMAS" ] || FLAGS+=(--vllm_data_parallel_size $((${#COMMAS} + 1)))
fi
case ${1-} in *.yaml | *.yml) RECIPE=$1; shift ;; esac
[ -r "$RECIPE" ] || die "cannot read $RECIPE"
COMMAND=("${VARIABLES[@]}" python -m swift_rlvr.training.ms_swift rollout "$RECIPE" "${FLAGS[@]}" "$@")
if [ "${DRY_RUN:-0}" != 1 ]; then exec env "${COMMAND[@]}"; fi
printf '%q ' "${COMMAND[@]}"
echo
