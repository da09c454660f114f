"""The names of recipes, flags and variables that the check uses, in one place."""

from pathlib import Path

FOLDER = Path(__file__).parent
HOOKS = FOLDER / "hooks"
CONFIGS = "scripts/configs"
TINY_MODEL = "plugin/swift_rlvr/share/tiny_model/weights"
TINY_TEST = "datasets/countdown/tiny_test.jsonl"
# The experiment's tasks that are in the repository, for --model without --dataset.
COUNTDOWN = "datasets/countdown/train.jsonl"
PLUGINS = ("plugin/rlvr_plugin.py", "scripts/gpu_check/hooks/gpu_check_trainer.py")

# Recipes with the tiny model: a server and trainers, or both on one GPU.
ON_CPU = f"{CONFIGS}/countdown_cpu.yaml"
WITH_SERVER = f"{CONFIGS}/countdown_tiny_gpus.yaml"
COLOCATED = f"{CONFIGS}/countdown_tiny_1gpu.yaml"
# What `swift-rlvr train` takes for the recipe of this machine's class: the experiment's, the tiny
# model's.
EXPERIMENT, TINY = "countdown", "tiny"

# vLLM's own: which of its two runners of a model.
RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
# MB of a part of an update in ms-swift; the tiny model has 4.
BUCKET = {"SWIFT_UPDATE_WEIGHTS_BUCKET_SIZE": "1"}

# Flags.
QUIET = ("--report_to", "none", "--callbacks", "reward_reasons")
NO_CHECKPOINT = ("--save_strategy", "no")
K3_KL = ("--log_rollout_offpolicy_metrics", "true")
# A step that moves every weight: the experiment's learning rate is 5e-7.
LARGE_STEPS = ("--learning_rate", "1e-3", "--lr_scheduler_type", "constant")
LORA = (
    *("--tuner_type", "lora", "--lora_rank", "16", "--lora_alpha", "32"),
    *("--target_modules", "all-linear"),
)
SLEEP_AND_OFFLOAD = (
    *("--sleep_level", "1", "--offload_model", "true", "--offload_optimizer", "true"),
)
# Fewer and shorter completions where a CPU computes them.
SMALL_ON_CPU = ("--gradient_accumulation_steps", "1", "--max_completion_length", "64")
LONG_ON_CPU = ("--max_completion_length", "320")
# A step's time: the variables of each variant.
VARIANTS: dict[str, dict[str, str]] = {
    "as_it_is": {},
    "without_speedups": {"SWIFT_RLVR_SPEEDUPS": "0"},
}
