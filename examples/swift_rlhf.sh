#!/usr/bin/env bash
# Your own `swift rlhf` command with the rewards and datasets of this package: GRPO on a file of yours, two steps with
# the tiny model on a CPU. It needs the environment of scripts/install.sh, or pip install '.[train]'.
#
#   source scripts/activate.sh
#   bash examples/swift_rlhf.sh
#   DATASET=math:mine.jsonl bash examples/swift_rlhf.sh --max_steps 200 --learning_rate 1e-6
#
# The first four flags are this package's. The others are plain ms-swift: replace them with those of your run.
# Every flag that you add goes to ms-swift and wins. Settings (environment): MODEL, DATASET, OUTPUT.

set -euo pipefail
cd "$(dirname "$0")/.."
MODEL=${MODEL:-plugin/swift_rlvr/share/tiny_model/weights}
DATASET=${DATASET:-math:examples/own_data.jsonl}
OUTPUT=${OUTPUT:-output/swift_rlhf}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

flags=(
  --external_plugins "$(swift-rlvr plugin)"         # registers our rewards, datasets and callbacks
  --dataset "$DATASET"                              # math: finds the columns and writes the prompt
  --reward_funcs external_accuracy external_format  # the verifier, and the think and answer tags
  --callbacks reward_reasons                        # logs success and reasons, saves every graded completion
  --reward_weights 1 0.2

  # The tiny model. Your model needs the first line only.
  --model "$MODEL" --tuner_type full
  --model_type qwen2 --template qwen2_5 --check_model false

  # A CPU. On a GPU: --torch_dtype bfloat16 --use_vllm true --vllm_mode colocate
  --torch_dtype float32 --bf16 false --fp16 false --use_vllm false --gradient_checkpointing false

  # 32 completions a step: 8 of each of 4 prompts
  --num_generations 8 --per_device_train_batch_size 32 --gradient_accumulation_steps 1
  --max_length 512 --max_completion_length 64 --temperature 1.0
  --max_steps 2 --learning_rate 1e-4 --beta 0.001
  --split_dataset_ratio 0 --dataloader_num_workers 0

  --output_dir "$OUTPUT" --add_version false --logging_steps 1 --save_strategy no --report_to none
)
swift rlhf --rlhf_type grpo "${flags[@]}" "$@"

# Every completion of the run, counted by reward and reason. `swift-rlvr report` makes a page of them.
swift-rlvr score "$OUTPUT/records.jsonl"
