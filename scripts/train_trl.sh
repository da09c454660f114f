#!/usr/bin/env bash
# GRPO with TRL's own GRPOTrainer in place of ms-swift's: the same rewards, datasets and logs, in one process. At the end
# the trained model is loaded again and asked one question.
#
#   bash scripts/train_trl.sh [further flags of swift-rlvr train-trl]
#
# Hardware: one GPU (the first that is visible): the R1-Zero recipe, Qwen2.5-0.5B-Instruct on NuminaMath-TIR with five
# rewards, all 36,000 steps of one epoch unless MAX_STEPS says less. Without a GPU, the tiny model on Countdown: 40 steps,
# about ten minutes of one CPU core.
# Settings (environment): MODEL, DATASET, EVAL_DATASET (may be empty), USE_HF=0 (datasets by name from ModelScope, not
# Hugging Face), OUTPUT, REWARDS, LEARNING_RATE, SCHEDULER, WARMUP, WEIGHT_DECAY, EPOCHS, MAX_STEPS (-1: all), BATCH and
# EVAL_BATCH (completions), ACCUMULATION, GENERATIONS (per prompt), MAX_COMPLETION, BETA, LOGGING_STEPS, EVAL_STEPS,
# SAVE_STEPS, KEEP (checkpoints), WORKERS, SEED, EXTERNAL_<REWARD>_<PARAMETER> for the rewards, DRY_RUN=1 (print the
# command).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

if have_gpu; then
  gpus=$(visible_gpus)
  export CUDA_VISIBLE_DEVICES=${gpus%%,*}
  MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
  DATASET=${DATASET:-numina_math_tir}
  EVAL_DATASET=${EVAL_DATASET-numina_math_tir:test}
  OUTPUT=${OUTPUT:-output/trl_r1_zero}
  REWARDS=${REWARDS:-external_accuracy external_format external_reasoning_steps external_cosine external_repetition_penalty}
  export EXTERNAL_ACCURACY_NEUTRAL_GOLD=${EXTERNAL_ACCURACY_NEUTRAL_GOLD:-true}
  export EXTERNAL_COSINE_UNIT=${EXTERNAL_COSINE_UNIT:-characters}
  args=(
    --learning-rate "${LEARNING_RATE:-5e-5}" --scheduler "${SCHEDULER:-linear}" --warmup "${WARMUP:-0.1}"
    --batch "${BATCH:-8}" --eval-batch "${EVAL_BATCH:-16}" --accumulation "${ACCUMULATION:-2}"
    --max-completion "${MAX_COMPLETION:-256}" --beta "${BETA:-0.04}" --max-steps "${MAX_STEPS:--1}"
    --logging-steps "${LOGGING_STEPS:-10}" --eval-steps "${EVAL_STEPS:-50}" --save-steps "${SAVE_STEPS:-50}"
    --workers "${WORKERS:-2}" --checkpointing
  )
else
  MODEL=${MODEL:-$ROOT/plugin/swift_rlvr/tiny_model/weights}
  DATASET=${DATASET:-countdown:$ROOT/datasets/countdown/tiny_train.jsonl}
  EVAL_DATASET=${EVAL_DATASET-countdown:$ROOT/datasets/countdown/tiny_validation.jsonl#16}
  OUTPUT=${OUTPUT:-output/trl_tiny}
  REWARDS=${REWARDS:-external_countdown external_format external_cosine external_repetition_penalty}
  export EXTERNAL_COSINE_ACCURACY=${EXTERNAL_COSINE_ACCURACY:-external_countdown}
  # Beside other jobs the two threads wait for each other: a step took 65 s, and 12 s with one thread.
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
  args=(
    --learning-rate "${LEARNING_RATE:-3e-4}" --scheduler "${SCHEDULER:-cosine}" --warmup "${WARMUP:-0}"
    --batch "${BATCH:-64}" --eval-batch "${EVAL_BATCH:-128}" --accumulation "${ACCUMULATION:-1}"
    --max-completion "${MAX_COMPLETION:-320}" --beta "${BETA:-0.001}" --max-steps "${MAX_STEPS:-40}"
    --logging-steps "${LOGGING_STEPS:-1}" --eval-steps "${EVAL_STEPS:-20}" --save-steps "${SAVE_STEPS:-20}"
    --workers "${WORKERS:-0}" --no-checkpointing
  )
fi
for reward in $REWARDS; do args+=(--reward "$reward"); done
[ -z "$EVAL_DATASET" ] || args+=(--eval-dataset "$EVAL_DATASET")
[ "${USE_HF:-1}" = 0 ] || args+=(--use-hf)
if [ -n "${WANDB_API_KEY:-}" ]; then args+=(--report-to wandb); else args+=(--report-to tensorboard); fi
args+=(
  --model "$MODEL" --dataset "$DATASET" --out "$OUTPUT"
  --weight-decay "${WEIGHT_DECAY:-0.01}" --epochs "${EPOCHS:-1}" --generations "${GENERATIONS:-8}"
  --keep "${KEEP:-2}" --seed "${SEED:-42}"
)
args+=("$@")

if [ -n "${DRY_RUN:-}" ]; then
  echo "${CUDA_VISIBLE_DEVICES:+CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES }swift-rlvr train-trl $(printf '%q ' "${args[@]}")"
  exit 0
fi
ensure_environment
exec swift-rlvr train-trl "${args[@]}"
