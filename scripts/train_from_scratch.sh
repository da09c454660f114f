#!/usr/bin/env bash
# GRPO without ms-swift or TRL, with this package's own trainer (plugin/swift_rlvr/grpo), in one process on one device.
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
GSM8K=output/gsm8k_1024.jsonl
case ${1-} in *.yaml | *.yml) ;; *)
  if have_gpu && [ ! -e "$GSM8K" ] && [ -z "${DATASET-}" ] && [ "${DRY_RUN:-0}" != 1 ] && [[ " $* " != *" --dataset"* ]]; then
    swift-rlvr dataset prepare gsm8k --model "${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}" --max_prompt_tokens 300 \
      --max_answer_tokens 200 --rows 1024 --out "$GSM8K" ${USE_HF:+--use_hf}
  fi ;;
esac
exec swift-rlvr train scratch "$@"
