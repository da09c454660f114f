#!/usr/bin/env bash
# Samples completions for held-out Countdown tasks from a model and prints success, format and mean length.
#
#   bash scripts/evaluate.sh MODEL OUT [further flags of swift-rlvr evaluate]
#
# MODEL is a checkpoint folder or a hub id; OUT is the folder for the graded completions and the summary.
# Hardware: one GPU, or one CPU core for the tiny model. Settings (environment): DATA (a JSONL file with nums and
# target; default: the held-out tasks that fit the hardware, without a GPU the first 400), MAX_COMPLETION (in tokens).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
[ $# -ge 2 ] || die "two arguments are needed: bash scripts/evaluate.sh MODEL OUT (see --help)"
ensure_environment
args=()
if have_gpu; then
  DATA=${DATA:-$ROOT/datasets/countdown/test.jsonl}
else
  DATA=${DATA:-$ROOT/datasets/countdown/tiny_test.jsonl}
  MAX_COMPLETION=${MAX_COMPLETION:-320}
  args=(--rows 400 --batch-size 200)  # 400 tasks: +-0.05 on success, in half a minute
fi
exec swift-rlvr evaluate "$1" --data "$DATA" --out "$2" --max-new-tokens "${MAX_COMPLETION:-1024}" "${args[@]}" "${@:3}"
