"""Options that several commands have. Those of settings have their declarations' help; the class
checks the values.
"""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.training.recipes import CONFIGS, EXPERIMENTS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import find_file
from swift_rlvr.utils.settings import Settings

DATASET = "NAME:FILE, FILE, NAME or NAME:SPLIT. NAME is a task such as countdown; add #N for the first N rows."


def option(cls: type[Settings], name: str, make: Callable = typer.Option, **options: Any) -> Any:
    """typer's option or argument for a setting. options: typer's own, such as `metavar`."""
    # Before 0.28, typer names an option without a name after its metavar.
    names = [f"--{name}"] if "metavar" in options else []
    return make(*names, help=cls.__dataclass_fields__[name].metadata["help"], **options)


def dataset_option(what: str) -> Any:
    """typer's option --dataset. what: which rows."""
    return typer.Option(
        "--dataset",
        metavar="DATASET",
        help=f"{what}: {DATASET}",
        autocompletion=dataset_names,
    )


def answered_by(dataset: str | None, columns: str = "") -> Source | None:
    """The rows of an option `Answered`."""
    return None if dataset is None else parse_source(dataset, columns=columns)


def sampling_settings(context: typer.Context) -> SamplingSettings:
    """The settings of a command that samples; InputError without a model, or with two."""
    settings = settings_in(SamplingSettings, context)
    # MODEL and --model mean the same; ms-swift's users know the flag.
    name = context.params["model_name"]
    if name is None and "model" not in settings:
        raise InputError("give a folder, a hub id or, with --server, the model's name", "model")
    if name is not None and settings.setdefault("model", name) != name:
        raise InputError(f"MODEL is {settings['model']} already, got {name}", "model_name")
    return SamplingSettings(**settings)


def settings_in(cls: type[Settings], context: typer.Context) -> dict[str, Any]:
    """The settings of `cls` among a command's options: those given, and those with a default."""
    # A flag without a default is None where it was not given: the class then has its own.
    names = {setting.name for setting in fields(cls)}
    settings = {}
    for name, value in context.params.items():
        if name in names and value is not None:
            settings[name] = value
    return settings


def dataset_names() -> list[str]:
    """Datasets, for a shell's completion; `reward_names` and `recipe_names` are too."""
    return [f"{name}:" for name in TASKS]


def reward_names() -> list[str]:
    """All rewards, by their full names."""
    return list(REWARDS)


def recipe_names() -> list[str]:
    """Experiments, and the recipes that come with this package."""
    folder = Path(find_file(str(CONFIGS)))
    return [*EXPERIMENTS, *sorted(str(path) for path in folder.glob("*.yaml"))]


# A recipe and the settings of a training, whose names are too many for typer: see
# `swift_rlvr.training.arguments`.
Launch = Annotated[list[str] | None, typer.Argument(autocompletion=recipe_names)]
LAUNCH: dict[str, Any] = {"ignore_unknown_options": True, "help_option_names": []}
Model = Annotated[str | None, option(SamplingSettings, "model", typer.Argument, show_default=False)]
ServedModel = Annotated[str | None, typer.Option("--model", help="The same as MODEL, as a flag.")]
NumGenerations = Annotated[int, option(SamplingSettings, "num_generations")]
Temperature = Annotated[float, option(SamplingSettings, "temperature")]
MaxCompletionLength = Annotated[int, option(SamplingSettings, "max_completion_length")]
BatchSize = Annotated[int, option(SamplingSettings, "batch_size")]
Seed = Annotated[int, option(SamplingSettings, "seed")]
Engine = Annotated[str, option(SamplingSettings, "engine")]
Server = Annotated[str | None, option(SamplingSettings, "server", metavar="URL")]
Tokenizer = Annotated[
    str, typer.Option(help="Model folder with a tokenizer and chat template, or a hub id.")
]
Dataset = Annotated[str, typer.Argument(help=DATASET, autocompletion=dataset_names)]
UseHf = Annotated[
    bool,
    # The variable decides in ms-swift's training, too.
    typer.Option(
        "--use_hf",
        envvar="USE_HF",
        help="Load hub ids and NAME from Hugging Face instead of ModelScope.",
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="JSON",
        help='Rename columns, as in ms-swift: \'{"Problem Statement": "problem"}\'.',
        show_default=False,
    ),
]
Answered = Annotated[
    str | None,
    dataset_option("For completions without right answers, the rows with the same ids"),
]
System = Annotated[
    str | None,
    typer.Option(help="System prompt. Default: the one used in training, else the task's."),
]
RowSystem = Annotated[
    str | None,
    typer.Option(help="System prompt for rows that have none, like ms-swift's --system."),
]
RewardNames = Annotated[
    list[str] | None,
    typer.Option(
        "--reward_funcs",
        help="Name of a reward, with or without external_. May be repeated.",
        autocompletion=reward_names,
    ),
]
OutFile = Annotated[Path, typer.Option(help="The file to write (.jsonl).")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def check_out(out: Path | None, suffix: str = ".jsonl") -> None:
    """InputError for an --out that does not end in `suffix`, or is there already."""
    if out is not None and out.suffix != suffix:
        raise InputError(f"must end in {suffix}, got {out}", field="out")
    # What took hours of sampling is not replaced by a command that was typed twice.
    if out is not None and out.exists():
        raise InputError(
            f"{out} already exists and is not overwritten: choose another file or delete it",
            "out",
        )
