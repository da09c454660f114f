#!/usr/bin/env bash
# GRPO on Countdown: starts the rollout server, waits for it, trains with ZeRO-3, and stops the server at the end.
#
#   bash scripts/train_countdown.sh [further flags of swift rlhf]
#
# Hardware: with GPUs, the tutorial's run: Qwen2.5-3B-Instruct, the server on the last visible GPU, training on the
# others (made for 3 GPUs of 80 GB). Without a GPU, the same two programs on two CPU cores with the tiny model.
# Settings (environment): MODEL, DATASET, OUTPUT, REWARDS, LEARNING_RATE, BETA, BATCH (per device), ACCUMULATION,
# GENERATIONS (per prompt), MAX_COMPLETION, EPOCHS, MAX_STEPS (-1: all), SAVE_STEPS, HOST, PORT, SYNC_PORT (51216, for
# the weights on their way to the server), SERVER_LOG, START_SERVER=0 (use a server that already runs on HOST:PORT),
# PROCESSES (without a GPU), DRY_RUN=1 (print the commands).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

HOST=${HOST:-127.0.0.1}
PORT=${PORT:-8000}
SYNC_PORT=${SYNC_PORT:-51216}
REWARDS=${REWARDS:-external_countdown format}
SYSTEM="You are a helpful assistant. You first think about the reasoning process in the mind and then provide the user \
with the answer."

if have_gpu; then
  gpus=$(visible_gpus)
  ROLLOUT_GPU=${ROLLOUT_GPU:-${gpus##*,}}
  if [ "${START_SERVER:-1}" = 1 ]; then
    [[ $gpus == *,* ]] || die "one GPU is visible ($gpus), two or more are needed: one for the server, the others for training"
    TRAIN_GPUS=${TRAIN_GPUS:-${gpus%,*}}
  fi
  export CUDA_VISIBLE_DEVICES=${TRAIN_GPUS:-$gpus}
  PROCESSES=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | wc -l)
  MODEL=${MODEL:-Qwen/Qwen2.5-3B-Instruct}
  DATASET=${DATASET:-zouxuhong/Countdown-Tasks-3to4#50000}
  OUTPUT=${OUTPUT:-output/GRPO_COUNTDOWN}
  MAX_COMPLETION=${MAX_COMPLETION:-1024}
  args=(
    --torch_dtype bfloat16 --deepspeed zero3
    --max_length 2048
    --per_device_train_batch_size "${BATCH:-8}" --per_device_eval_batch_size "${BATCH:-8}"
    --gradient_accumulation_steps "${ACCUMULATION:-8}"
    --learning_rate "${LEARNING_RATE:-5e-7}" --warmup_ratio 0.01 --beta "${BETA:-0.001}"
    --eval_steps 500 --save_steps "${SAVE_STEPS:-100}" --save_total_limit 20
    --dataloader_num_workers 4
  )
else
  PROCESSES=${PROCESSES:-2}
  MODEL=${MODEL:-$TINY_MODEL}
  DATASET=${DATASET:-countdown:$ROOT/datasets/countdown/tiny_train.jsonl}
  OUTPUT=${OUTPUT:-output/countdown_tiny}
  MAX_COMPLETION=${MAX_COMPLETION:-320}
  MAX_STEPS=${MAX_STEPS:-60}
  args=(
    --model_type qwen2 --template qwen2_5 --check_model false
    --torch_dtype float32 --bf16 false --fp16 false --deepspeed "$ROOT/scripts/configs/zero3_cpu.json"
    --max_length 512
    --per_device_train_batch_size "${BATCH:-32}" --per_device_eval_batch_size "${BATCH:-32}"
    --gradient_accumulation_steps "${ACCUMULATION:-1}"
    --learning_rate "${LEARNING_RATE:-3e-4}" --lr_scheduler_type cosine --beta "${BETA:-0.001}"
    --save_steps "${SAVE_STEPS:-1000}" --save_total_limit 2 --split_dataset_ratio 0
    --dataloader_num_workers 0
  )
fi
# shellcheck disable=SC2206  # reward names are split on purpose
args+=(
  --rlhf_type grpo
  --model "$MODEL"
  --external_plugins "$ROOT/plugin/rlvr_plugin.py"
  --reward_funcs $REWARDS
  --system "$SYSTEM"
  --dataset "$DATASET"
  --use_vllm true --vllm_mode server --vllm_server_host "$HOST" --vllm_server_port "$PORT"
  --vllm_server_group_port "$SYNC_PORT"
  --tuner_type full
  --num_train_epochs "${EPOCHS:-1}" --max_steps "${MAX_STEPS:--1}"
  --max_completion_length "$MAX_COMPLETION"
  --num_generations "${GENERATIONS:-8}" --num_iterations 1 --temperature 1.0
  --logging_steps 1 --log_completions true --callbacks reward_reasons
  --output_dir "$OUTPUT"
)
if [ -n "${WANDB_API_KEY:-}" ]; then args+=(--report_to wandb); else args+=(--report_to tensorboard); fi
args+=("$@")
SERVER_COMMAND=(
  env MODEL="$MODEL" HOST="$HOST" PORT="$PORT" ROLLOUT_GPU="${ROLLOUT_GPU:-}" CUDA_VISIBLE_DEVICES="${ROLLOUT_GPU:-}"
  bash "$ROOT/scripts/rollout.sh"
)

# A wrong path would show only after the server's start.
if [[ $DATASET == countdown:* ]]; then
  file=${DATASET#countdown:}
  [ -f "${file%#*}" ] || die "DATASET names ${file%#*}: no such file; give countdown:FILE, countdown or a hub id"
fi

if [ -n "${DRY_RUN:-}" ]; then
  [ "${START_SERVER:-1}" = 0 ] || "${SERVER_COMMAND[@]}"
  gpus=${CUDA_VISIBLE_DEVICES:-}
  echo "${gpus:+CUDA_VISIBLE_DEVICES=$gpus }NPROC_PER_NODE=$PROCESSES swift rlhf $(printf '%q ' "${args[@]}")"
  exit 0
fi
ensure_environment

mkdir -p "$OUTPUT"
SERVER=
if [ "${START_SERVER:-1}" = 1 ]; then
  for port in "$PORT" "$SYNC_PORT"; do
    port_is_free "$port" || die "port $port on $HOST is in use: set PORT and SYNC_PORT to free ones"
  done
  SERVER_LOG=${SERVER_LOG:-$OUTPUT/server.log}
  say "starting the rollout server for $MODEL on $HOST:$PORT (log: $SERVER_LOG)"
  start_group "${SERVER_COMMAND[@]}" >"$SERVER_LOG" 2>&1
  SERVER=$GROUP
fi
wait_for_server "$HOST" "$PORT" "$SERVER" "${SERVER_LOG:-}"

say "training: $PROCESSES processes, results in $OUTPUT"
start_group env NPROC_PER_NODE="$PROCESSES" "${SWIFT[@]}" rlhf "${args[@]}"
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
