"""The settings of ms-swift's GRPO that a launch reads, with their types and ms-swift's defaults."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

from swift_rlvr.rewards.feedback import FEEDBACK_TOKENS
from swift_rlvr.training.recipes import uses_servers
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.settings import as_list, number

BATCH, ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"
TENSOR, DATA = "vllm_tensor_parallel_size", "vllm_data_parallel_size"
# The files that have the fields of ms-swift's arguments.
_SOURCES = (
    ("swift", "**/arg*.py"),
    ("swift", "**/*_args.py"),
    ("transformers", "training_args*.py"),
)
# Tokens of a prompt, where only the model's context limits them.
PROMPT = 1024


class Zero(NamedTuple):
    """DeepSpeed's ZeRO: its stage, None without DeepSpeed, and whether the host has the optimizer."""

    stage: int | None
    offloads_optimizer: bool = False


def read_zero(value: Any) -> Zero:
    """What a value of `--deepspeed` stands for: a name, a file or the settings in it.

    >>> read_zero("zero3_offload"), read_zero(None).stage
    (Zero(stage=3, offloads_optimizer=True), None)
    """
    if not value:
        return Zero(None)
    if isinstance(value, str):
        if name := re.fullmatch(r"zero([0-3])(_offload)?", value):
            return Zero(int(name[1]), offloads_optimizer=bool(name[2]))
        value = read_json(value)
    zero = value.get("zero_optimization") or {}
    optimizer = zero.get("offload_optimizer") or {}
    return Zero(int(zero.get("stage", 0)), optimizer.get("device", "none") != "none")


def _number(default: int | float, at_least: int | None = None) -> Any:
    return field(default=default, metadata={"at_least": at_least})


@dataclass(frozen=True)
class GrpoSettings:
    """Settings by ms-swift's names. values: all of them, also those without a field, which a launch
    hands on and does not read. 0 stands for no limit, and for what is not set.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    num_generations: int = _number(8, at_least=1)
    per_device_train_batch_size: int = _number(1, at_least=1)
    gradient_accumulation_steps: int = _number(1, at_least=1)
    steps_per_generation: int = _number(0)
    generation_batch_size: int = _number(0)
    per_device_eval_batch_size: int = _number(1)
    num_generations_eval: int = _number(0)
    max_length: int = _number(0)
    max_completion_length: int = _number(512)
    max_turns: int = _number(1, at_least=1)
    num_train_epochs: float = _number(3.0)
    max_steps: int = _number(-1)
    warmup_steps: float = _number(0.0)
    num_iterations: int = _number(1)
    split_dataset_ratio: float = _number(0.0)
    save_steps: float = _number(500.0)
    save_total_limit: int = _number(0)
    dataloader_num_workers: int = _number(1)
    lora_rank: int = _number(8)

    vllm_max_model_len: int = _number(0)
    vllm_gpu_memory_utilization: float = _number(0.9)
    vllm_tensor_parallel_size: int = _number(1, at_least=1)
    vllm_data_parallel_size: int = _number(1, at_least=1)
    move_model_batches: int = _number(0)
    sleep_level: int = _number(0)

    beta: float = _number(0.04)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The fields from a recipe and flags. InputError where one is not such a number."""
        numbers: dict[str, Any] = {}
        for name, each in numeric_fields().items():
            default: Any = each.default
            numbers[name] = number(values, name, default, each.metadata["at_least"])
        return cls(values, **numbers)

    @property
    def model(self) -> str:
        """A folder or a hub's id."""
        return str(self.values.get("model"))

    def listed(self, name: str) -> list[str]:
        """A setting that takes one value or several."""
        return [str(value) for value in as_list(self.values.get(name))]

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.values.get(name) is True

    @property
    def reward_weights(self) -> list[float]:
        """One for each reward, or none where each counts once."""
        name = "reward_weights"
        return [number({name: each}, name, 1.0) for each in as_list(self.values.get(name))]

    # What is trained.

    @property
    def trains_all_parameters(self) -> bool:
        """Whether the model is trained itself, and not adapters."""
        return self.values.get("tuner_type") == "full"

    @property
    def zero(self) -> Zero:
        """What DeepSpeed divides and offloads."""
        return read_zero(self.values.get("deepspeed"))

    @property
    def bytes_a_parameter(self) -> int:
        """Of the weights with which a model computes."""
        return 4 if self.values.get("torch_dtype") in ("float32", "float") else 2

    def gathers_weights(self, processes: int) -> bool:
        """Whether every GPU gathers weights of all processes for vLLM."""
        return self.uses_vllm and self.zero.stage == 3 and processes > 1

    # Where vLLM is.

    @property
    def uses_vllm(self) -> bool:
        """Whether vLLM samples, in whatever process."""
        return bool(self.values.get("use_vllm"))

    @property
    def uses_servers(self) -> bool:
        """Whether vLLM is in rollout servers."""
        return uses_servers(self.values)

    @property
    def is_colocated(self) -> bool:
        """Whether vLLM is in the trainers' processes, on their GPUs."""
        return self.uses_vllm and not self.uses_servers

    @property
    def pictures_in_a_prompt(self) -> int | None:
        """How many vLLM takes; None where it is not limited, or not by a number."""
        limits = self.values.get("vllm_limit_mm_per_prompt")
        if isinstance(limits, str):
            with suppress(ValueError):  # ms-swift says what is wrong with it
                limits = json.loads(limits)
        allowed = limits.get("image") if isinstance(limits, Mapping) else None
        return allowed if isinstance(allowed, int) else None

    # How much there is in a step.

    def completions(self, processes: int) -> int:
        """Completions a step with so many processes of all nodes."""
        return processes * self.per_device_train_batch_size * self.gradient_accumulation_steps

    def sampled_at_once(self, processes: int) -> int:
        """Completions that are sampled before any of them is trained on; a step's, unless it is set."""
        steps = self.steps_per_generation or self.gradient_accumulation_steps
        at_once = processes * self.per_device_train_batch_size * steps
        return self.generation_batch_size or at_once

    @property
    def longest_completion(self) -> int:
        """Tokens after the first prompt: those of all answers, and the feedback between them."""
        turns = 1
        if self.values.get("multi_turn_scheduler"):
            turns = self.max_turns
        return turns * self.max_completion_length + (turns - 1) * FEEDBACK_TOKENS

    @property
    def longest_row(self) -> int:
        """Tokens of the longest prompt and completion."""
        return (self.max_length or PROMPT) + self.longest_completion

    @property
    def evaluated_at_once(self) -> int:
        """Completions of an evaluation that a GPU computes at once; 0 without ms-swift's evaluation."""
        has_rows = self.values.get("val_dataset") or self.split_dataset_ratio > 0
        strategy = self.values.get("eval_strategy", self.values.get("save_strategy"))
        if not has_rows or strategy in ("no", False):
            return 0
        return self.per_device_eval_batch_size


def refuse_bare_flags(words: Sequence[str]) -> None:
    """Raise InputError for a flag without a value that is no switch, such as `--learning_rate`.

    ms-swift's parser says so too, and its imports take seconds. So its fields are read from its sources;
    where it is not installed, the numbers that a launch reads are known all the same. An optional
    switch (`--bf16`), which the parser refuses as well, passes here.
    """
    bare = []
    for word, following in pairwise([*words, "--"]):
        if word.startswith("--") and "=" not in word and following.startswith("--"):
            bare.append(word.removeprefix("--").replace("-", "_"))
    if not bare:
        return
    types = dict.fromkeys(numeric_fields(), "float")
    for package, files in _SOURCES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for file in Path(spec.origin).parent.glob(files):
            # loss_type: Optional[str] = field(
            fields_of_file = re.findall(
                r"(?m)^    (\w+): ([^=#\n]+)", file.read_text(encoding="utf-8")
            )
            for name, annotation in fields_of_file:
                # Another command may have a switch of the same name, so that all types are kept.
                types[name] = types.get(name, "") + annotation
    for name in bare:
        if "bool" not in types.get(name, "bool"):
            raise InputError("expected a value: only a switch can stand without one", f"--{name}")


def numeric_fields() -> dict[str, Field[Any]]:
    """The settings that are numbers, by name."""
    return {each.name: each for each in fields(GrpoSettings) if "at_least" in each.metadata}
