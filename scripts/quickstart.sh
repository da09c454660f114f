#!/usr/bin/env bash
# From a fresh clone to a result: installs, evaluates a model on held-out Countdown tasks, trains it with GRPO (rollout
# server and ZeRO-3), evaluates it again, and writes a table, the curves and some completions.
#
#   bash scripts/quickstart.sh [flags of swift rlhf]
#   bash scripts/quickstart.sh --max_steps 5      a shorter training
#
# Hardware: without a GPU, two CPU cores and 8 GiB: the real programs with a tiny model, 10 to 20 minutes in all.
# With GPUs it prints how to start the Countdown experiment; QUICKSTART=tiny runs the tiny one on the CPU all the same.
# Variables: OUTPUT (output/quickstart), PORT (8000), SYNC_PORT (51216) and the others of train_countdown.sh.

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

if have_gpu && [ "${QUICKSTART:-}" != tiny ]; then
  cat <<TEXT
This machine has GPUs ($(visible_gpus)). Two ways on:
  bash scripts/train_countdown.sh             the Countdown experiment: Qwen2.5-3B-Instruct, two or more GPUs of 80 GB,
                                              hours to days; downloads the model and 50,000 tasks
  QUICKSTART=tiny bash scripts/quickstart.sh  the tiny run on the CPU, a quarter of an hour
TEXT
  exit 0
fi
if have_gpu; then export CUDA_VISIBLE_DEVICES= VENV=$ROOT/.venv-cpu; fi

OUT=${OUTPUT:-output/quickstart}
RUN=$OUT/run
[ ! -e "$RUN" ] || die "$RUN exists: move it away, or set OUTPUT to another folder"
ensure_environment
port_is_free "${PORT:-8000}" || die "port ${PORT:-8000} on 127.0.0.1 is in use: set PORT to a free one"
port_is_free "${SYNC_PORT:-51216}" || die "port ${SYNC_PORT:-51216} on 127.0.0.1 is in use: set SYNC_PORT"

# evaluate MODEL NAME: 400 tasks, +-0.05 on success, in half a minute.
evaluate() {
  run_group swift-rlvr evaluate "$1" --data datasets/countdown/tiny_test.jsonl --rows 400 --batch-size 200 \
    --max-new-tokens 320 --out "$OUT/$2"
}

MODEL=${MODEL:-plugin/swift_rlvr/tiny_model/weights}
say "1/4 before training: $MODEL on held-out tasks"
evaluate "$MODEL" before
say "2/4 GRPO"
run_group env MODEL="$MODEL" OUTPUT="$RUN" STOP_SECONDS=20 bash scripts/train_countdown.sh --add_version false "$@"
CHECKPOINT=$(ls -d "$RUN"/checkpoint-* | sort -V | tail -n 1)
say "3/4 after training: $CHECKPOINT on the same tasks"
evaluate "$CHECKPOINT" after
say "4/4 results"
swift-rlvr compare "$OUT/before" "$OUT/after" --out "$OUT/comparison.json"
swift-rlvr report "$RUN" --out "$OUT" --comparison "$OUT/comparison.json"
cat <<TEXT
The curves:               $OUT/curves.png
Early and late texts:     $OUT/report.md
Trained model:            $CHECKPOINT
All training completions: $RUN/completions.jsonl
Took $((SECONDS / 60)) min $((SECONDS % 60)) s.
TEXT
