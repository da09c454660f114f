#!/usr/bin/env bash
# Asks a model a question, or a Countdown task whose answer is graded, and shows the answer as it is written. Without a
# question it holds a conversation, which an empty line or Ctrl-D ends.
#
#   bash scripts/chat.sh MODEL [QUESTION] [further flags of swift-rlvr chat]
#   bash scripts/chat.sh output/quickstart/run/checkpoint-60 --nums "3 5 7" --target 22
#
# MODEL is a folder that any trainer here has left, a checkpoint or a hub id. The system prompt is that of its training.
# Hardware: one GPU, or a CPU for the tiny model. Settings (environment): MAX_COMPLETION (200, in tokens), TEMPERATURE
# (0.7; 0 is greedy), SEED.

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
[ $# -ge 1 ] || die "a model is needed: bash scripts/chat.sh MODEL [QUESTION] (see --help)"
ensure_environment
args=(--max-new-tokens "${MAX_COMPLETION:-200}" --temperature "${TEMPERATURE:-0.7}" --seed "${SEED:-0}")
exec swift-rlvr chat "${args[@]}" "$@"
