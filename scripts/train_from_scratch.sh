#!/usr/bin/env bash
# GRPO without ms-swift or TRL, with this package's own trainer (plugin/swift_rlvr/grpo), in one process on one device.
# At the end the trained model is loaded again and asked one question.
#
#   bash scripts/train_from_scratch.sh [further flags of swift-rlvr train]
#   TASK=countdown bash scripts/train_from_scratch.sh
#
# Hardware: one GPU of 24 GB (the first that is visible): Qwen2.5-0.5B-Instruct with 8 completions a prompt, on the first
# 1,024 rows of GSM8K that are short enough (TASK=gsm8k, the default), or on Countdown. Without a GPU, the tiny model and
# the small files in datasets/: Countdown (the default there) in a few minutes on two CPU cores; GSM8K only shows that it
# runs, since the tiny model knows nothing but Countdown.
# Settings (environment): TASK, MODEL, DATASET, USE_HF=1 (datasets by name from Hugging Face, not ModelScope), OUTPUT,
# REWARDS and REWARD_WEIGHTS, LEARNING_RATE, SCHEDULER, BETA, EPSILON, GENERATIONS (per prompt), BATCH (completions a
# step), MICRO_BATCH (completions in memory), ITERATIONS (updates with a batch), MAX_COMPLETION, EPOCHS, MAX_STEPS (-1:
# all), SAVE_STEPS, SAMPLER (transformers or vllm), SEED, DRY_RUN=1 (print the commands).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

if have_gpu; then
  gpus=$(visible_gpus)
  export CUDA_VISIBLE_DEVICES=${gpus%%,*}
  TASK=${TASK:-gsm8k}
  MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
  OUTPUT=${OUTPUT:-output/scratch_$TASK}
  BATCH=${BATCH:-64}
  args=(--learning-rate "${LEARNING_RATE:-1e-6}" --lr-scheduler-type "${SCHEDULER:-constant}" --beta "${BETA:-0.04}"
    --max-completion-length "${MAX_COMPLETION:-512}" --micro-batch-size "${MICRO_BATCH:-8}" --top-p 0.9 --top-k 50
    --gradient-checkpointing --max-steps "${MAX_STEPS:--1}" --save-steps "${SAVE_STEPS:-50}")
  countdown='countdown#1024'
else
  TASK=${TASK:-countdown}
  MODEL=${MODEL:-$ROOT/plugin/swift_rlvr/tiny_model/weights}
  OUTPUT=${OUTPUT:-output/scratch_${TASK}_tiny}
  BATCH=${BATCH:-64}
  # A step takes 4.4 s with one thread and 3.3 s with two on an idle machine, 6.4 s and 12 s beside two busy processes.
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
  # The optimizer is set as in the run with ms-swift (scripts/train_countdown.sh), so that the two can be compared.
  args=(--learning-rate "${LEARNING_RATE:-3e-4}" --lr-scheduler-type "${SCHEDULER:-cosine}" --beta "${BETA:-0.001}"
    --weight-decay 0.1 --adam-beta2 0.95
    --max-completion-length "${MAX_COMPLETION:-320}" --micro-batch-size "${MICRO_BATCH:-16}" --top-p 1 --top-k 0
    --max-steps "${MAX_STEPS:-60}" --save-steps "${SAVE_STEPS:-20}")
  countdown=countdown:$ROOT/datasets/countdown/tiny_train.jsonl
fi
PREPARE=()
case $TASK in
  gsm8k)
    REWARDS=${REWARDS:-external_format_strict external_tag_count external_accuracy}
    REWARD_WEIGHTS=${REWARD_WEIGHTS:-0.5 0.5 1}
    if [ -z "${DATASET:-}" ] && have_gpu; then
      DATASET=$OUTPUT/gsm8k_1024.jsonl
      PREPARE=(swift-rlvr dataset prepare gsm8k --model "$MODEL" --max-prompt-tokens 300 --max-answer-tokens 200
        --rows 1024 --out "$DATASET")
      [ "${USE_HF:-0}" = 0 ] || PREPARE+=(--use-hf)
      DATASET=gsm8k:$DATASET
    fi
    DATASET=${DATASET:-gsm8k:$ROOT/datasets/gsm8k/train.jsonl}
    ;;
  countdown)
    REWARDS=${REWARDS:-external_countdown external_format}
    DATASET=${DATASET:-$countdown}
    ;;
  *)
    [ -n "${DATASET:-}" ] && [ -n "${REWARDS:-}" ] ||
      die "TASK must be gsm8k or countdown, got $TASK; for another one set DATASET and REWARDS"
    ;;
esac
for reward in $REWARDS; do args+=(--reward "$reward"); done
for weight in ${REWARD_WEIGHTS:-}; do args+=(--reward-weight "$weight"); done
[ "${USE_HF:-0}" = 0 ] || args+=(--use-hf)
args+=(
  --model "$MODEL" --dataset "$DATASET" --out "$OUTPUT"
  --num-generations "${GENERATIONS:-8}" --batch-size "$BATCH" --num-iterations "${ITERATIONS:-1}"
  --epsilon "${EPSILON:-0.2}" --num-train-epochs "${EPOCHS:-1}" --sampler "${SAMPLER:-transformers}" --seed "${SEED:-42}"
)
args+=("$@")

if [ -n "${DRY_RUN:-}" ]; then
  [ ${#PREPARE[@]} = 0 ] || echo "$(printf '%q ' "${PREPARE[@]}")"
  echo "${CUDA_VISIBLE_DEVICES:+CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES }swift-rlvr train $(printf '%q ' "${args[@]}")"
  exit 0
fi
ensure_environment
if [ ${#PREPARE[@]} != 0 ] && [ ! -e "${DATASET#gsm8k:}" ]; then "${PREPARE[@]}"; fi
exec swift-rlvr train "${args[@]}"
