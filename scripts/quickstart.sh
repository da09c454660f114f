#!/usr/bin/env bash
# From a fresh clone to a result: installs the packages, evaluates a model on held-out tasks, trains it with GRPO (rollout
# server and ZeRO-3), evaluates it again, and writes a page with curves, tables and all completions.
#
#   bash scripts/quickstart.sh [flags of swift rlhf]
#   bash scripts/quickstart.sh --max_steps 5      a shorter training
#   bash scripts/quickstart.sh smollm2            a language model instead of the tiny one
#
# Hardware: without a GPU, two CPU cores and 8 GiB, about ten minutes in all. With GPUs it trains the same tiny model, which
# comes with the repository, on this machine's real topology: a single GPU samples and trains; of several, half serve and
# half train. At the end it prints the command of the run that fits this hardware.
# smollm2: SmolLM2-135M-Instruct on sums of one-digit numbers, about half an hour and 18 GiB, on the CPU. It is first
# trained on right answers (cold_start.sh), because without that no completion is right.
# Variables: OUTPUT (output/quickstart, output/smollm2), and those of train_countdown.sh. Set CUDA_VISIBLE_DEVICES= to use
# the CPU.

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

if [ "${1-}" = smollm2 ]; then
  shift
  have_gpu && die "smollm2 has a recipe for a CPU alone: CUDA_VISIBLE_DEVICES= bash scripts/quickstart.sh smollm2"
  NAME=smollm2 RECIPE=scripts/configs/smollm2_cpu.yaml HELD_OUT=$SUMS:test#400 LENGTH=64 SAMPLES=1
  export OUTPUT=${OUTPUT:-output/smollm2}
  export MODEL=${MODEL:-$OUTPUT/cold_start/checkpoint-50}
else
  NAME=tiny RECIPE=tiny HELD_OUT=datasets/countdown/tiny_test.jsonl#400 LENGTH=512 SAMPLES=4
  MODEL=${MODEL:-plugin/swift_rlvr/share/tiny_model/weights}
fi
OUT=${OUTPUT:-output/quickstart}
RUN=$OUT/run
[ ! -e "$RUN" ] || [ "${RESUME:-0}" = 1 ] || die "$RUN exists: move it away, or set OUTPUT to another folder"
ensure_environment
export OUTPUT=$RUN
COLD_START=(env INSTALL=0 MODEL=smollm2 OUTPUT="$OUT/cold_start" bash scripts/cold_start.sh --max_steps 50)
if [ "${DRY_RUN:-0}" = 1 ]; then
  [ "$NAME" = tiny ] || "${COLD_START[@]}"
  exec swift-rlvr train "$RECIPE" "$@"
fi

# evaluate MODEL NAME: 400 tasks. The tiny model writes 4 completions of each, since one of each may show success 0.345
# where six seeds have 0.262 in the mean: +-0.025. smollm2 takes as long for one of each, +-0.05.
evaluate() {
  run_group swift-rlvr evaluate "$1" --dataset "$HELD_OUT" --batch_size 400 --num_generations "$SAMPLES" \
    --max_completion_length "$LENGTH" --out "$OUT/$2"
}

if [ "$NAME" = smollm2 ] && [ ! -e "$MODEL" ]; then
  say "cold start: smollm2 on held-out tasks"
  evaluate smollm2 untrained
  run_group "${COLD_START[@]}"
fi
# What would stop the training is said before the first evaluation, not after it.
checked=$(MODEL=$MODEL swift-rlvr doctor "$RECIPE" "$@") || { echo "$checked" >&2; die "nothing was started"; }
say "1/4 before GRPO: $MODEL on held-out tasks"
evaluate "$MODEL" before
say "2/4 GRPO"
run_group env MODEL="$MODEL" swift-rlvr train "$RECIPE" "$@"
CHECKPOINT=$(ls -d "$RUN"/checkpoint-* | sort -V | tail -n 1)
say "3/4 after GRPO: $CHECKPOINT on the same tasks"
evaluate "$CHECKPOINT" after
say "4/4 results"
[ ! -e "$OUT/untrained" ] || swift-rlvr compare "$OUT/untrained" "$OUT/before"
swift-rlvr compare "$OUT/before" "$OUT/after" --out "$OUT/comparison.json"
swift-rlvr report "$RUN" --out "$OUT" --comparison "$OUT/comparison.json"
cat <<TEXT
Curves and completions:   $OUT/report.html (open it in a browser)
The curves as a picture:  $OUT/curves.png
Trained model:            $CHECKPOINT
Took $((SECONDS / 60)) min $((SECONDS % 60)) s.
TEXT
if have_gpu; then
  say "the Countdown experiment on this machine: bash scripts/train_countdown.sh"
  DRY_RUN=1 OUTPUT= MODEL= swift-rlvr train countdown
fi
