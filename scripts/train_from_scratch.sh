#!/usr/bin/env bash
# GRPO without ms-swift or TRL, with this package's own trainer (plugin/swift_rlvr/grpo), in one process on one device.
# At the end the trained model is loaded again and asked one question.
#
#   bash scripts/train_from_scratch.sh [RECIPE.yaml] [flags of swift-rlvr train]
#   bash scripts/train_from_scratch.sh scripts/configs/countdown_scratch.yaml --max_steps 20
#
# Hardware: one GPU of 24 GB, the first visible one: the GSM8K recipe (gsm8k_scratch.yaml), whose file of short rows is
# made first. Without a GPU, Countdown with the tiny model (countdown_scratch_cpu.yaml), a few minutes on two CPU cores.
# Flags override the recipe; `swift-rlvr train --trainer scratch --help` lists them.
# Variables: MODEL, DATASET, OUTPUT, USE_HF=1 (datasets by name from Hugging Face, not ModelScope), DRY_RUN=1 (print the
# commands and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

recipe=countdown_scratch_cpu
if have_gpu; then
  recipe=gsm8k_scratch
  gpus=$(visible_gpus)
  export CUDA_VISIBLE_DEVICES=${gpus%%,*}
fi
read_recipe "$recipe" MODEL=model DATASET=dataset OUTPUT=output_dir USE_HF=use_hf -- "$@"

PREPARED=output/gsm8k_1024.jsonl
PREPARE=()
if [ "$(setting dataset)" = "gsm8k:$PREPARED" ] && [ ! -e "$PREPARED" ]; then
  PREPARE=(swift-rlvr dataset prepare gsm8k --model "$(setting model)" --max-prompt-tokens 300 --max-answer-tokens 200
    --rows 1024 --out "$PREPARED")
  case $(setting use_hf) in 1 | [Tt]rue) PREPARE+=(--use-hf) ;; esac
fi

if [ -n "${DRY_RUN:-}" ]; then
  [ ${#PREPARE[@]} = 0 ] || print_command "${PREPARE[@]}"
  print_command swift-rlvr train "$CONFIG" "${FLAGS[@]}"
  exit 0
fi
ensure_environment
[ ${#PREPARE[@]} = 0 ] || "${PREPARE[@]}"
exec swift-rlvr train "$CONFIG" "${FLAGS[@]}"
