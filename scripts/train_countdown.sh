#!/usr/bin/env bash
# GRPO on Countdown with ms-swift: starts the rollout server, waits for it, trains with ZeRO-3, and stops the server.
#
#   bash scripts/train_countdown.sh [RECIPE.yaml] [flags of swift rlhf]
#   bash scripts/train_countdown.sh --learning_rate 1e-6 --beta 0.04
#
# Hardware: with GPUs, the Countdown experiment (countdown_3gpu.yaml): the server on the last visible GPU, training on
# the others, made for 3 GPUs of 80 GB. Without a GPU, the same two programs on two CPU cores with the tiny model
# (countdown_cpu.yaml). Flags override the recipe.
# Variables: MODEL, DATASET, OUTPUT, HOST and PORT of the server, SYNC_PORT (51216, carries the weights to it),
# ROLLOUT_GPU, TRAIN_GPUS, PROCESSES (without a GPU), SERVER_LOG, SERVER_TIMEOUT (seconds), START_SERVER=0 (use a server
# that already runs on HOST:PORT), WANDB_API_KEY (report to wandb), DRY_RUN=1 (print the commands and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

recipe=countdown_cpu
PROCESSES=${PROCESSES:-2}
if have_gpu; then
  recipe=countdown_3gpu
  gpus=$(visible_gpus)
  ROLLOUT_GPU=${ROLLOUT_GPU:-${gpus##*,}}
  if [ "${START_SERVER:-1}" = 1 ]; then
    [[ $gpus == *,* ]] || die "one GPU is visible ($gpus), two or more are needed: one for the server, the others for training"
    TRAIN_GPUS=${TRAIN_GPUS:-${gpus%,*}}
  fi
  export CUDA_VISIBLE_DEVICES=${TRAIN_GPUS:-$gpus}
  PROCESSES=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | wc -l)
fi
read_recipe "$recipe" MODEL=model DATASET=dataset OUTPUT=output_dir HOST=vllm_server_host PORT=vllm_server_port \
  SYNC_PORT=vllm_server_group_port -- "$@"
MODEL=$(setting model) HOST=$(setting vllm_server_host) PORT=$(setting vllm_server_port)
OUTPUT=$(setting output_dir)
SERVER_COMMAND=(
  env MODEL="$MODEL" HOST="$HOST" PORT="$PORT" ROLLOUT_GPU="${ROLLOUT_GPU:-}" CUDA_VISIBLE_DEVICES="${ROLLOUT_GPU:-}"
  bash scripts/rollout.sh
)

# A wrong path would show only after the server's start.
file=$(setting dataset)
file=${file#*:} file=${file%#*}
[[ $file != *.jsonl || -f $file ]] || die "the dataset $file does not exist (relative paths count from $ROOT)"

if [ -n "${DRY_RUN:-}" ]; then
  [ "${START_SERVER:-1}" = 0 ] || "${SERVER_COMMAND[@]}"
  print_command env NPROC_PER_NODE="$PROCESSES" "${SWIFT[@]}" rlhf "$CONFIG" "${FLAGS[@]}"
  exit 0
fi
ensure_environment

SERVER=
if [ "${START_SERVER:-1}" = 1 ]; then
  for port in "$PORT" "$(setting vllm_server_group_port)"; do
    port_is_free "$port" || die "port $port on $HOST is in use: set PORT and SYNC_PORT to free ones"
  done
  SERVER_LOG=${SERVER_LOG:-$OUTPUT/server.log}
  mkdir -p "$(dirname "$SERVER_LOG")"
  say "starting the rollout server for $MODEL on $HOST:$PORT (log: $SERVER_LOG)"
  start_group "${SERVER_COMMAND[@]}" >"$SERVER_LOG" 2>&1
  SERVER=$GROUP
fi
wait_for_server "$HOST" "$PORT" "$SERVER" "${SERVER_LOG:-}"

say "training: $PROCESSES processes, results in $OUTPUT"
start_group env NPROC_PER_NODE="$PROCESSES" "${SWIFT[@]}" rlhf "$CONFIG" "${FLAGS[@]}"
TRAINER=$GROUP
status=0
# Whichever of the two ends first decides: a trainer without a server would wait for ever.
wait -n $SERVER "$TRAINER" || status=$?
if kill -0 "$TRAINER" 2>/dev/null; then
  tail -n 25 "$SERVER_LOG" >&2
  die "the rollout server ended during training (exit status $status); its log is $SERVER_LOG"
fi
wait "$TRAINER" || die "training failed (exit status $?); the server's log is ${SERVER_LOG:-where you started it}"
say "trained: $OUTPUT"
