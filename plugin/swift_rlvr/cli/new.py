"""The command `swift-rlvr new`: a package with a task and its reward, to start from."""

import keyword
import re
import shlex
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.function import class_name
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import InputError

LONGEST_NAME = 30
EXAMPLE = "letter_sort"  # the name in the templates
# Each has a template of its name.
PATHS = (
    "pyproject.toml",
    "README.md",
    "sample.jsonl",
    f"src/{EXAMPLE}/__init__.py",
    f"src/{EXAMPLE}/reward.py",
    f"src/{EXAMPLE}/task.py",
    f"tests/test_{EXAMPLE}.py",
)


def new(
    name: Annotated[
        str, typer.Argument(help="Name of the package and the task, such as word_count.")
    ],
    folder: Annotated[Path | None, typer.Option(help="Where to write it. Default: ./NAME.")] = None,
) -> None:
    """Write a package with a task, its reward and tests, for you to edit.

    It starts as a working example that sorts letters. Once the package is
    installed, its entry points register the reward external_NAME and the dataset
    NAME with swift-rlvr, ms-swift and TRL.

    swift-rlvr new word_count
    """
    check_name(name)
    folder = Path(name) if folder is None else folder
    # An empty folder may be a fresh repository.
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} already exists and is not overwritten: choose a new or an empty folder"
        )
    try:
        for path, text in render(name).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
            typer.echo(f"written: {folder / path}")
    except OSError as error:
        raise InputError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    commands = (
        f"cd {shlex.quote(str(folder))}",
        "pip install -e '.[test]'",
        "python -m pytest",
        f"swift-rlvr check {name}",
    )
    typer.echo("\n  ".join(("\nNext steps, explained in its README.md:", *commands)))


def check_name(name: str) -> None:
    """InputError for a name that no module can have, or that is taken here or by an installed
    module.
    """
    if keyword.iskeyword(name):
        raise InputError(f"{name!r} is a word of Python's syntax: choose another name", "name")
    if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name) or len(name) > LONGEST_NAME:
        characters = f"2 to {LONGEST_NAME} of a-z, 0-9 and _"
        accepted = f"{characters}, a letter first and no _ last, such as word_count"
        raise InputError(f"must be {accepted}, got {name!r}", field="name")
    # ms-swift logs a reward under its class: of two with one name the figures would be mixed.
    logged = class_name(name)
    owner = None
    if name in TASKS:
        owner = f"a dataset of {TASKS.owner(name)}"
    elif name in REWARDS:
        owner = f"a reward of {REWARDS.owner(f'external_{name}')}"
    elif logged in {reward.__name__ for reward in REWARDS.values()}:
        owner = f"the class {logged} of swift-rlvr"
    elif name in sys.stdlib_module_names or name == "tests" or find_spec(name):
        owner = "an installed module"
    if owner is not None:
        raise InputError(f"{name!r} is taken by {owner}: choose another name", field="name")


def render(name: str) -> dict[str, str]:
    """The files of the package by their paths in its folder."""
    templates = files("swift_rlvr.cli") / "templates"
    rendered = {}
    for path in PATHS:
        text = (templates / f"{Path(path).name}.txt").read_text(encoding="utf-8")
        text = text.replace(EXAMPLE, name)
        # The name of the distribution, with a hyphen.
        text = text.replace(EXAMPLE.replace("_", "-"), name.replace("_", "-"))
        rendered[path.replace(EXAMPLE, name)] = text
    return rendered
