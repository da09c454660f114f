"""The folder of a training run: the names of its files, when a run may write into it, and how it is
found again.

All trainers leave the same here: ARGS with the settings, REWARDS with the roles of the rewards, LOG
with a line for each logged step, RECORDS with each graded completion, and folders
`checkpoint-<step>`. Where a run evaluates held-out rows, HELD_OUT has their completions, and the
link BEST leads to the best checkpoint. ALARMS has a line for each warning. ms-swift makes the folder
of a run, `v<N>-<time>`, in its output folder, and writes tables of completions too, COMPLETIONS.
"""

import json
import math
import re
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from swift_rlvr.utils.errors import DivergedError, InputError
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.settings import as_list, number

ARGS = "args.json"
REWARDS = "rewards.json"
LOG = "logging.jsonl"
RECORDS = "records.jsonl"
COMPLETIONS = "completions.jsonl"
HELD_OUT = "held_out.jsonl"
ALARMS = "alarms.jsonl"
BEST = "best"
# Of an evaluation, beside its RECORDS.
SUMMARY = "summary.json"

# Settings of ms-swift that decide what is learned, on however many GPUs.
DECIDE = (
    *("model", "tuner_type", "reward_funcs", "reward_weights", "system", "max_length"),
    *("dataset", "split_dataset_ratio", "dataset_shuffle", "seed", "data_seed"),
    # The schedule of the learning rate is made for the whole run.
    *("num_train_epochs", "max_steps", "warmup_ratio", "warmup_steps"),
    *("num_generations", "max_completion_length", "temperature", "top_p", "top_k"),
    *("loss_type", "advantage_estimator", "scale_rewards", "importance_sampling_level"),
    *("beta", "epsilon", "epsilon_high", "num_iterations", "learning_rate", "lr_scheduler_type"),
)
# Settings that may differ between a run and its continuation; the others change the result.
MAY_CHANGE = {
    "output_dir",
    "resume_from_checkpoint",
    "save_steps",
    "save_total_limit",
    "logging_steps",
    "report_to",
    "run_name",
    "log_level",
    "disable_tqdm",
    "dataloader_num_workers",
    "dataloader_pin_memory",
    "stop_on_alarm",
    "held_out_dataset",
    "held_out_every",
    "held_out_rows",
    "held_out_samples",
    "held_out_patience",
}
# In a line of LOG: a step that was made, as in "7/100". Step 0 is an evaluation before the first.
_LOGGED_STEP = re.compile(rb'"global_step/max_steps": "[1-9]')


def checkpoints(folder: str | Path) -> list[Path]:
    """The checkpoints in a folder, the oldest first."""
    steps = {}
    for path in Path(folder).glob("checkpoint-*"):
        match = re.fullmatch(r"checkpoint-(\d+)", path.name)
        if match is not None:
            steps[path] = int(match[1])
    return sorted(steps, key=lambda path: steps[path])


def link_best(folder: str | Path, step: int) -> None:
    """Let BEST lead to the checkpoint of a step. It is a relative link, so that the folder can be
    moved.
    """
    # It is made beside the old one and takes its place: whoever reads finds one of the two.
    link = Path(folder) / BEST
    part = Path(folder) / f"{BEST}.part"
    part.unlink(missing_ok=True)
    part.symlink_to(f"checkpoint-{step}", target_is_directory=True)
    part.replace(link)


def whole_checkpoints(folder: str | Path) -> list[Path]:
    """The checkpoints of ms-swift's and TRL's trainers that a run can go on from, the oldest
    first.
    """
    return [path for path in checkpoints(folder) if missing(path) is None]


def missing(checkpoint: Path) -> str | None:
    """What a checkpoint of ms-swift's or TRL's trainer lacks for a run to go on from it; None where
    it is whole.

    transformers writes the weights first, then the state of the optimizer (DeepSpeed: a folder of
    all ranks and its name in `latest`), then each rank its random numbers and rank 0
    trainer_state.json. A run can end between any two of them, and another rank in the middle of a
    file.
    """
    try:
        step = read_json(checkpoint / "trainer_state.json").get("global_step")
    except InputError:
        return "trainer_state.json, which is written last"
    # Copied from another checkpoint, it would go on at that one's place in rows and schedule.
    if step != int(checkpoint.name.rpartition("-")[2]):
        return "a trainer_state.json of its own step"
    ranks = 1
    # Only ms-swift's checkpoints have it.
    with suppress(InputError):
        ranks = int(read_json(checkpoint / ARGS).get("global_world_size", 1))
    lost = _missing_optimizer_state(checkpoint, ranks)
    if lost is not None:
        return lost
    for rank in range(ranks):
        random_numbers = f"rng_state_{rank}.pth" if ranks > 1 else "rng_state.pth"
        if not (checkpoint / random_numbers).is_file():
            return random_numbers
    for path in checkpoint.rglob("*.pt*"):
        # torch saves zip files, whose table of contents stands at the end.
        if not zipfile.is_zipfile(path):
            return f"the end of {path.name}"
    for path in checkpoint.glob("*.safetensors"):
        if not _is_whole_safetensors(path):
            return f"the end of {path.name}"
    return None


def _is_whole_safetensors(path: Path) -> bool:
    """Whether a file is as long as its header says: the length of it in 8 bytes, then JSON with each
    tensor's place behind it.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        if start > size:
            return False
        try:
            header = json.loads(file.read(start - 8))
        except ValueError:
            return False
    header.pop("__metadata__", None)
    ends = [tensor["data_offsets"][1] for tensor in header.values()]
    return size == start + max(ends, default=0)


def _missing_optimizer_state(checkpoint: Path, ranks: int) -> str | None:
    is_of_deepspeed = any(checkpoint.glob("global_step*"))
    if not is_of_deepspeed:
        if (checkpoint / "optimizer.pt").is_file():
            return None
        return "the optimizer's state (save_only_model keeps only weights)"
    latest = checkpoint / "latest"
    if not latest.is_file():
        return "latest, which names the optimizer's state"
    # Such as bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt, one for each rank.
    states = list((checkpoint / latest.read_text().strip()).glob("*_optim_states.pt"))
    lost = ranks - len(states)
    return f"the optimizer's state of {lost} ranks" if lost > 0 else None


def training_args(model: str | Path) -> tuple[Path, dict[str, Any]] | None:
    """The ARGS that a trainer left beside a checkpoint or one folder above, and what it holds; None
    without one.
    """
    if not Path(model).exists():
        # A name on a hub or at a server, which is below no folder.
        return None
    for folder in (Path(model), Path(model).parent):
        file = folder / ARGS
        if file.is_file():
            return file, read_json(file)
    return None


def find_run(path: str | Path) -> Path:
    """The folder with LOG: `path` itself, the newest `v<N>-<time>` folder in it, or the only run one
    folder below, as in the folder of the quickstart; InputError if there is none, or several.
    """
    path = Path(path)
    if (path / LOG).is_file():
        return path
    versions = sorted(path.glob(f"v*-*/{LOG}"), key=lambda log: log.stat().st_mtime)
    if versions:
        return versions[-1].parent
    # A supervised training, such as a cold start, has no rewards.
    below = []
    for log in sorted(path.glob(f"*/{LOG}")):
        if (log.parent / REWARDS).is_file():
            below.append(log.parent)
    if len(below) == 1:
        return below[0]
    if below:
        names = ", ".join(str(folder) for folder in below)
        raise InputError(f"{path}: holds several runs; name those to show: {names}")
    raise InputError(
        f"{path}: expected a training run, a folder that has {LOG} or has it in a subfolder such as "
        "v<N>-<time>; or an evaluation's folder or a file of completions"
    )


def checkpoint_to_resume(output_dir: str | Path, resume_from_checkpoint: str | None) -> Path | None:
    """The checkpoint that a run begins from; None for a new run, whose folder must not hold another
    one.

    What is left of an attempt that ended before its first step is no run.

    resume_from_checkpoint: a checkpoint in `output_dir`, or "true" for the last whole one, or for the
    last one where none is whole.
    """
    folder = Path(output_dir)
    check_is_folder(folder)
    available = checkpoints(folder)
    if resume_from_checkpoint is None or resume_from_checkpoint.lower() == "false":
        log = folder / LOG
        has_steps = log.is_file() and _LOGGED_STEP.search(log.read_bytes())
        if not has_steps and not available:
            return None
        existing = [path.name for path in (folder / ARGS, log, *available) if path.exists()]
        raise InputError(
            f"{folder}: holds another run ({', '.join(existing[:3])}); choose another folder, or "
            "resume that run with --resume_from_checkpoint true",
            "output_dir",
        )
    if resume_from_checkpoint.lower() == "true" and available:
        return (whole_checkpoints(folder) or available)[-1]
    for path in available:
        if path.resolve() == Path(resume_from_checkpoint).resolve():
            return path
    names = ", ".join(path.name for path in available) or "none"
    raise InputError(
        f"{resume_from_checkpoint}: expected true or a checkpoint in {folder}; available: {names}",
        "resume_from_checkpoint",
    )


def check_is_folder(folder: Path) -> None:
    """InputError if a folder is or would be in a file."""
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise InputError(f"{folder}: {path} is a file, expected a folder", "output_dir")


def is_finished(checkpoint: Path, settings: Mapping[str, Any]) -> bool:
    """Whether a checkpoint of transformers' trainer is of the last step that the settings ask
    for.
    """
    state = read_json(checkpoint / "trainer_state.json")
    last: float = number(settings, "max_steps", -1)
    if last <= 0:
        last = state.get("max_steps", math.inf)
        if number(settings, "num_train_epochs", 3.0) > state.get("num_train_epochs", 0):
            last = math.inf
    return state.get("global_step", 0) >= last


def check_same_settings(checkpoint: str | Path, settings: Mapping[str, Any]) -> None:
    """InputError if a run had other settings than those that it is to be resumed with."""
    run = training_args(checkpoint)
    if run is None:
        raise InputError(
            f"{checkpoint}: expected a checkpoint of a run, with {ARGS} in it or one folder above"
        )
    _, args = run
    changes = list(_changes(args, as_json(settings)))
    if changes:
        raise InputError(
            f"{checkpoint}: cannot be resumed with other settings: {'; '.join(changes[:5])}"
        )


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs, with the path of each setting, such as reward_parameters.format.tasks."""
    for name, value in now.items():
        old = before.get(name)
        if name in MAY_CHANGE or value == old:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            yield from _changes(old, value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name} was {old!r} and is {value!r}"


def decided_otherwise(
    checkpoint: str | Path, settings: Mapping[str, Any], completions: int
) -> list[str]:
    """What a run of ms-swift had otherwise than a launch that goes on from its checkpoint: DECIDE, the
    completions of a step, and what of the run is not gone on with.

    settings: of a recipe and of flags, where a number may still be a text.
    """
    _, before = training_args(checkpoint) or ("", {})
    changes = []
    if settings.get("ignore_data_skip") is True:
        changes.append("ignore_data_skip begins the epoch's rows anew")
    if settings.get("resume_only_model") is True:
        changes.append("resume_only_model begins with a new optimizer")
    old = 1
    for part in ("global_world_size", "per_device_train_batch_size", "gradient_accumulation_steps"):
        old *= before.get(part) or 0
    # transformers finds its place in the rows by steps of the new size.
    if old not in (0, completions):
        changes.append(
            f"a step had {old} completions and has {completions}, so that rows are trained on twice "
            "or left out"
        )
    for name in DECIDE:
        if name not in settings or name not in before:
            continue
        if _comparable(settings[name]) != _comparable(before[name]):
            changes.append(f"{name} was {_shown(before[name])} and is {_shown(settings[name])}")
    return changes


def _comparable(value: Any) -> list[Any]:
    """A value or several, with numbers in place of texts that stand for them."""
    values: list[Any] = []
    for each in as_list(value):
        try:
            values.append(float(each))
        except (TypeError, ValueError):
            values.append(each)
    return values


def _shown(value: Any) -> str:
    return ", ".join(map(str, as_list(value))) or "not set"


def as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as ARGS holds them, or a row: what JSON lacks, such as a date, as text, and bytes in
    base64.
    """
    return json.loads(json.dumps(settings, default=_as_text))


def _as_text(value: Any) -> str:
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)


def diverged(folder: str | Path, step: int, sign: str) -> DivergedError:
    """The error for a run that went wrong at a step. sign: what shows it, such as "the loss is
    nan".
    """
    kept = checkpoints(folder)
    checkpoint = f"there is no checkpoint yet in {folder}"
    if kept:
        checkpoint = f"the last checkpoint is {kept[-1]}"
    return DivergedError(
        f"training has diverged at step {step}: {sign}; a smaller learning_rate or a larger beta may "
        f"help; {checkpoint}"
    )
