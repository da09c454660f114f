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
GSM8K, R1_ZERO = f"{CONFIGS}/gsm8k.yaml", f"{CONFIGS}/r1_zero.yaml"
# What `swift-rlvr train` takes for the recipe of this machine's class: the experiment's, the tiny
# model's.
EXPERIMENT, TINY = "countdown", "tiny"
# The experiment's two recipes for a model that is trained as a whole.
SERVER, COLOCATE = f"{CONFIGS}/countdown.yaml", f"{CONFIGS}/countdown_colocate.yaml"

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
ADAPTER_IN_VLLM = ("--vllm_enable_lora", "true", "--vllm_max_lora_rank", "16")
SLEEP_AND_OFFLOAD = (
    *("--sleep_level", "1", "--offload_model", "true", "--offload_optimizer", "true"),
)
# Fewer and shorter completions where a CPU computes them.
SMALL_ON_CPU = ("--gradient_accumulation_steps", "1", "--max_completion_length", "64")
LONG_ON_CPU = ("--max_completion_length", "320")
# What lets a recipe for GPUs run on a CPU, with a server in place of colocate.
IN_PLACE_OF_A_GPU = (
    *("--torch_dtype", "float32", "--bf16", "false", "--fp16", "false"),
    *("--vllm_mode", "server", "--vllm_server_host", "127.0.0.1"),
    *("--dataloader_num_workers", "0"),
)
OF_TINY_MODEL = (
    *("--model", TINY_MODEL, "--model_type", "qwen2", "--template", "qwen2_5"),
    *("--check_model", "false"),
)
# A step's time: the recipe, flags and variables of each variant. Recipes: the machine's, or that with
# a server or in colocate mode. WITHOUT takes a patch of table.py back, by the trainer's method that it
# replaces.
MACHINES, IN_SERVER_MODE, IN_COLOCATE_MODE = "", "server", "colocate"
WITHOUT = "GPU_CHECK_WITHOUT"
VARIANTS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "as_it_is": (MACHINES, (), {}),
    "without_speedups": (MACHINES, (), {"SWIFT_RLVR_SPEEDUPS": "0"}),
    "with_old_policy": (MACHINES, (), {WITHOUT: "_prepare_batch_inputs"}),
    "unsorted": (MACHINES, (), {WITHOUT: "split_by_mini_batches"}),
    "zero2": (MACHINES, ("--deepspeed", "zero2"), {}),
    "server": (IN_SERVER_MODE, (), {}),
    "async_generate": (IN_SERVER_MODE, ("--async_generate", "true"), {}),
    "colocate": (IN_COLOCATE_MODE, (), {}),
}
