#!/usr/bin/env bash
# From a fresh clone to a result: installs, evaluates a model on held-out Countdown tasks, trains it with GRPO (rollout
# server and ZeRO-3), evaluates it again, and writes a page with the curves, tables and all completions.
#
#   bash scripts/quickstart.sh [flags of swift rlhf]
#   bash scripts/quickstart.sh --max_steps 5      a shorter training
#
# Hardware: without a GPU, two CPU cores and 8 GiB, about ten minutes in all. With GPUs, the same tiny model, which comes
# with the repository, through this machine's real topology: one GPU samples and trains; of several, half serve and half
# train. Afterwards it names the command of the run that fits this hardware.
# Variables: OUTPUT (output/quickstart), and those of train_countdown.sh; CUDA_VISIBLE_DEVICES= runs it on the CPU.

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

OUT=${OUTPUT:-output/quickstart}
RUN=$OUT/run
[ ! -e "$RUN" ] || [ "${RESUME:-0}" = 1 ] || die "$RUN exists: move it away, or set OUTPUT to another folder"
ensure_environment
export OUTPUT=$RUN
if [ "${DRY_RUN:-0}" = 1 ]; then exec swift-rlvr train tiny "$@"; fi

# evaluate MODEL NAME: 400 tasks, +-0.05 on success, in half a minute.
evaluate() {
  run_group swift-rlvr evaluate "$1" --dataset datasets/countdown/tiny_test.jsonl#400 --batch_size 400 \
    --max_completion_length 320 --out "$OUT/$2"
}

# What would stop the training is said before the first evaluation, not after it.
checked=$(swift-rlvr doctor tiny "$@") || { echo "$checked" >&2; die "nothing was started"; }
MODEL=${MODEL:-plugin/swift_rlvr/tiny_model/weights}
say "1/4 before training: $MODEL on held-out tasks"
evaluate "$MODEL" before
say "2/4 GRPO"
run_group env MODEL="$MODEL" swift-rlvr train tiny "$@"
CHECKPOINT=$(ls -d "$RUN"/checkpoint-* | sort -V | tail -n 1)
say "3/4 after training: $CHECKPOINT on the same tasks"
evaluate "$CHECKPOINT" after
say "4/4 results"
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
