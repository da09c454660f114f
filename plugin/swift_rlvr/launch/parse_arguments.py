"""Let ms-swift read the arguments of a launch: a program of its own, for the imports take seconds.

    python -m swift_rlvr.launch.parse_arguments PROCESSES RECIPE.yaml FLAGS...

It writes a line with the first rows of the datasets that ms-swift reads by itself, waits for a line
with rows, on which it tries the rewards, and writes a line with `Parsed`. All lines are JSON. Then it
reads texts with the model's tokenizer, for as long as it is asked to. It parses as
`swift rlhf` does, with the rules among arguments, and loads the plugins; it needs no GPU, connects to
no server and hub, listens nowhere, and writes only into a temporary folder and the cache of datasets.
Where the model is not on this machine, the arguments are read for the tiny one of this package.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import IO, Any
from unittest import mock

from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.launch.model_size import model_folder
from swift_rlvr.launch.plan import Plan
from swift_rlvr.launch.settings import numeric_fields
from swift_rlvr.runs.folder import as_json
from swift_rlvr.success import FULL, role_of
from swift_rlvr.training.ms_swift.first_rows import FirstRows
from swift_rlvr.training.recipes import read_flags
from swift_rlvr.utils.errors import InputError, located
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.imports import without_collecting

# How long an answer is waited for: so many seconds of a processor, or as many in which it computes less
# than one. By the clock alone a busy machine would decide what is checked.
SECONDS = 300
# Variables of a process without GPUs, on its own, without a hub; and those that it must not have.
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
UNSET = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "RAY_SWIFT_ARGS")
# The variable with the model that the launch names, where the tiny one stands in for it.
NAMED_MODEL = "SWIFT_RLVR_NAMED_MODEL"
# How the line with the first rows begins, and the one with `Parsed`.
READ = "first rows: "
PARSED = "parsed: "
# Flags for the tiny model, which stands in for a model that is not here.
TINY = ("--model", str(TINY_MODEL), "--model_type", "qwen2", "--template", "qwen2_5")
# Flags without which a process without GPUs is refused, or reports to a service.
WITHOUT_GPUS = ("--report_to", "none", "--bf16", "false", "--fp16", "false")


@dataclass(frozen=True)
class Parsed:
    """What ms-swift makes of the arguments.

    problem: why it refuses them. broken_plugin: the file of --external_plugins that cannot be
    imported, and why. failure: why it could not be asked. All are empty where it takes them.
    unknown: flags that it does not know. settings: all that it knows.
    unusable: what it takes and its training refuses later, as `Unusable` has it; unread: what its
    training does not look at; rescaled: what multiplies its loss. numbers: those that a plan counts
    with, as the training has them.
    rewards: all that the plugins left, by name in `--reward_funcs`, with their roles.
    replaced: names of our rewards that stand for another's, which is described. has_ours: our
    plugin is loaded.
    """

    problem: str = ""
    broken_plugin: str = ""
    failure: str = ""
    unknown: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    unusable: list[tuple[str, str, str]] = field(default_factory=list)
    unread: list[tuple[str, str, str]] = field(default_factory=list)
    rescaled: list[tuple[str, str, str]] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    # What ends an answer in the template, where the model has no token for it.
    end_of_answer: str = ""
    # Flags that choose what is trained of a model that is not on this machine.
    untried: list[str] = field(default_factory=list)
    rewards: dict[str, str | None] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    has_ours: bool = True
    # Rewards that ms-swift does not know because their plugin, a file, is loaded after ours.
    late: dict[str, str] = field(default_factory=dict)
    # Whether the model can be given pictures, as ms-swift's table has it for a hub's id; None where it
    # has not.
    sees_pictures: bool | None = None
    # By name, what each reward of the run pays for the rows that were tried, or the error that it
    # raises. Empty where none was tried.
    paid: dict[str, list[float | None] | str] = field(default_factory=dict)
    # By name, what each reward of the run pays at most, as it declares.
    full: dict[str, float] = field(default_factory=dict)
    # By name of a reward that changes an argument of all rewards, the argument.
    changed: dict[str, str] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        """Whether ms-swift has taken the arguments and said what it knows."""
        return not (self.problem or self.broken_plugin or self.failure)


class MsSwift:
    """The program for a plan's trainer. It is asked for `first_rows`, then for `parsed`, and then for
    the tokenizer.
    """

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]):
        assert process.stdin is not None and process.stdout is not None  # pipes
        self._process = process
        self._questions = process.stdin
        self._answers = process.stdout
        self._errors = errors
        self._parsed = ""  # the line with `Parsed`
        self._watch = threading.Thread(target=self._end_if_it_hangs, daemon=True)
        self._hangs = ""  # how, once it was ended for it
        self._is_asked = False  # and has not answered yet

    def _lines(self) -> Iterator[str]:
        """Its lines up to the one with `Parsed`."""
        for line in self._answers:
            if line.startswith(PARSED):
                self._is_asked = False
                self._parsed = line.removeprefix(PARSED)
                return
            yield line

    def _ask(self, question: object) -> None:
        if self._questions.closed:
            return
        self._is_asked = True
        try:
            print(json.dumps(question), file=self._questions, flush=True)
        except BrokenPipeError:  # it has ended, and there will be no answer
            with suppress(BrokenPipeError):  # for what was not written
                self._questions.close()

    def first_rows(self) -> dict[str, FirstRows]:
        """The first rows of the datasets that ms-swift reads by itself; none where it refuses the
        arguments.
        """
        self._is_asked = True
        self._watch.start()
        for line in self._lines():
            if line.startswith(READ):
                self._is_asked = False
                read = json.loads(line.removeprefix(READ))
                return {name: FirstRows(**first) for name, first in read.items()}
        return {}

    def parsed(self, rows: Sequence[Mapping[str, Any]]) -> Parsed:
        """What it makes of the arguments. rows: for `try_rewards`."""
        if not self._parsed:  # else it refuses the arguments
            self._ask(list(map(as_json, rows)))  # of which pictures are bytes
            for _ in self._lines():
                pass
        if self._parsed:
            return Parsed(**json.loads(self._parsed))
        if self._hangs:
            return Parsed(failure=self._hangs)
        self._errors.seek(0)
        return Parsed(failure=" ".join(self._errors.read().split()[-40:]))

    def _end_if_it_hangs(self) -> None:
        import psutil

        used = 0.0  # by the last time at which it had computed for another second
        since = time.monotonic()
        with suppress(psutil.Error):  # it has ended
            program = psutil.Process(self._process.pid)
            while not self._hangs and self._process.poll() is None:
                times = program.cpu_times()
                now = times.user + times.system
                # While it waits for the doctor, which may fetch a dataset meanwhile, it has nothing to compute.
                if now >= used + 1 or not self._is_asked:
                    used, since = now, time.monotonic()
                if now > SECONDS:
                    self._hangs = f"no answer after {SECONDS} seconds of a processor"
                elif time.monotonic() > since + SECONDS:
                    self._hangs = f"no answer, and nothing computed for {SECONDS} seconds"
                time.sleep(0.5)
            self._process.kill()

    def load_tokenizer(self, folder: str) -> Any:
        """The tokenizer of the model in a folder, which stays in the program: here its imports would
        take another four seconds of a core.

        Raises:
            InputError: it cannot be loaded, or has no chat template.
        """
        if not self._parsed:  # the program has failed
            return load_tokenizer(folder)
        try:
            self.read_text("load", folder)
        except ValueError as error:
            raise InputError(str(error), "model") from error
        return RemoteTokenizer(self)

    def read_text(self, method: str, text: object, **options: object) -> Any:
        """What the method of the tokenizer makes of a text. ValueError if it cannot."""
        self._ask(as_json({"method": method, "text": text, "options": options}))
        line = self._answers.readline()
        self._is_asked = False
        if not line:
            raise BrokenPipeError("ms-swift's process, which counted tokens, has ended")
        result, problem = json.loads(line)
        if problem:
            raise ValueError(problem)
        return result


@dataclass(frozen=True)
class RemoteTokenizer:
    """A tokenizer in ms-swift's process, with what `swift_rlvr.evaluation.prompts` needs of one."""

    ms_swift: MsSwift

    def apply_chat_template(self, turns: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """The text of a conversation."""
        return self.ms_swift.read_text("apply_chat_template", turns, **options)

    def __call__(self, text: str, **options: Any) -> dict[str, list[int]]:
        """The tokens of a text."""
        return {"input_ids": self.ms_swift.read_text("__call__", text, **options)}


@contextmanager
def started(plan: Plan) -> Iterator[MsSwift]:
    """Run the program for a plan's trainer inside the `with` block."""
    processes = plan.processes * plan.variables.nnodes
    words = plan.trainer.argv[plan.trainer.argv.index("rlhf") + 1 :]
    folder = model_folder(str(plan.settings.get("model")))
    model = TINY if folder is None else ("--model", str(folder))
    command = [sys.executable, "-m", __name__, str(processes), *words, *model]
    env = os.environ | plan.trainer.env | ENVIRONMENT
    env[NAMED_MODEL] = str(plan.settings.get("model"))
    for name in UNSET:
        env.pop(name, None)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        # Whoever does not ask it, because a check has failed, does not wait for it either.
        try:
            yield MsSwift(process, errors)
        finally:
            process.kill()


def parse(
    words: Sequence[str],
    processes: int,
    rows: Callable[[dict[str, FirstRows]], Sequence[Mapping[str, Any]]] = lambda read: (),
) -> Parsed:
    """Parse a recipe and flags for so many trainer processes. rows: gets the first rows of the
    datasets that ms-swift reads by itself, and gives those for `try_rewards`.

    It changes ms-swift's classes, and so needs a process of its own.
    """
    from swift.cli.main import parse_yaml_args
    from swift.rewards import ORM, AsyncORM, orms

    from swift_rlvr.launch.checks.rows import FIRST
    from swift_rlvr.training.ms_swift.first_rows import names_to_read, read_first_rows
    from swift_rlvr.training.ms_swift.reward_names import is_loaded, late, replaced
    from swift_rlvr.training.ms_swift.trial import try_rewards
    from swift_rlvr.training.ms_swift.unread import unread
    from swift_rlvr.training.ms_swift.unusable import (
        choosing,
        end_without_token,
        rescaled,
        untrained,
        unusable,
    )

    words = list(words)
    parse_yaml_args(words)
    named = read_flags(words)
    parser = _parser(processes)
    known = sorted(action.dest for action in parser._actions)
    # The parser makes the output folder, and with its file of arguments a launch would take it for a run.
    with tempfile.TemporaryDirectory() as folder:
        words += ["--output_dir", folder, *WITHOUT_GPUS]
        try:
            # As in the training: the plugin reads the names of rewards there.
            with mock.patch.object(sys, "argv", [sys.argv[0], *words]):
                arguments, others = parser.parse_args_into_dataclasses(
                    words, return_remaining_strings=True, look_for_args_file=False
                )
        except _PluginError as error:
            return Parsed(broken_plugin=str(error), settings=known)
        except (ValueError, AssertionError, NotImplementedError, OSError) as error:
            return Parsed(problem=_described(error), settings=known)
        except Exception as error:  # of this process, which has no GPU
            return Parsed(failure=_described(error), settings=known)
    # The classes that rewards are made of can be called, and raise in the first step.
    for name in arguments.reward_funcs:
        call = getattr(orms.get(name), "__call__", None)  # noqa: B004
        if call in (ORM.__call__, AsyncORM.__call__):
            problem = f"the reward {name} is not implemented: it has no __call__"
            return Parsed(problem=problem, settings=known)

    unknown = []
    for word in others:
        if word.startswith("--"):
            unknown.append(word.lstrip("-").partition("=")[0].replace("-", "_"))
    refused: list[tuple[str, str, str]] = list(unusable(arguments))
    named_model = os.environ.get(NAMED_MODEL, "")
    end_of_answer = ""
    untried: list[str] = []
    if model_folder(named_model) is None:  # the tiny one stands in for it
        untried = choosing(arguments)
    else:
        refused += untrained(arguments)
        end_of_answer = end_without_token(arguments)
    numbers: dict[str, float] = {}
    for name in numeric_fields():
        value = getattr(arguments, name, None)
        if value is not None:
            numbers[name] = value
    options = arguments.get_dataset_kwargs()
    datasets = [*arguments.dataset, *arguments.val_dataset]
    read = {}
    for name in names_to_read(datasets, bool(arguments.use_hf)):
        read[name] = read_first_rows(name, FIRST, options)
    known_rewards = [name for name in arguments.reward_funcs if name in orms]
    trial = try_rewards(known_rewards, arguments, rows(read))
    return Parsed(
        paid=trial.paid,
        changed=trial.changed,
        full={name: getattr(orms[name], "full_reward", FULL) for name in known_rewards},
        unknown=unknown,
        settings=known,
        unusable=refused,
        unread=list(unread(arguments, named)),
        rescaled=list(rescaled(arguments)),
        numbers=numbers,
        end_of_answer=end_of_answer,
        untried=untried,
        rewards={name: role_of(reward) for name, reward in orms.items()},
        replaced=replaced(arguments.reward_funcs),
        has_ours=is_loaded(),
        late=late(arguments.reward_funcs),
        sees_pictures=sees_pictures(named_model),
    )


def sees_pictures(model: str) -> bool | None:
    """Whether a model can be given pictures, by ms-swift's table; None if it is not in there."""
    from swift.model.model_meta import get_matched_model_meta

    known = get_matched_model_meta(model)
    return None if known is None else bool(known.is_multimodal)


def _parser(processes: int) -> Any:
    """ms-swift's parser, which raises ValueError for a flag's value that cannot be used, and builds
    its arguments without ranks, servers and hubs.
    """
    from swift.arguments import RLHFArguments, rlhf_args
    from swift.arguments.base_args import base_args
    from swift.hub import HFHub, MSHub
    from swift.rlhf_trainers import GRPOConfig
    from swift.utils.utils import _patch_get_type_hints
    from transformers import HfArgumentParser

    rlhf_args.set_default_ddp_config = lambda: None  # makes this process a rank, which listens
    RLHFArguments._init_external_vllm = lambda self: None  # connects to the server
    HFHub.try_login = MSHub.try_login = classmethod(lambda cls, token=None: False)
    GRPOConfig.world_size = property(lambda self: processes)
    base_args.import_external_file = _import_plugin

    def refuse(message: str) -> None:
        raise ValueError(message)

    with _patch_get_type_hints():
        # A plan does not know abbreviations.
        parser = HfArgumentParser([RLHFArguments], allow_abbrev=False)
    parser.error = refuse
    return parser


class _PluginError(Exception):
    """A file of --external_plugins cannot be imported."""


def _import_plugin(path: str) -> ModuleType:
    """Import a plugin as ms-swift does.

    Raises:
        _PluginError: it is not there, or raises; with its line.
    """
    from swift.utils import import_external_file

    flag = "--external_plugins"
    file = os.path.expanduser(path)
    if not Path(file).is_file():
        raise _PluginError(f"{flag}: there is no file {path}")
    try:
        return import_external_file(path)
    except InputError as error:  # names what is wrong, as our own plugin does for --reward_funcs
        raise _PluginError(str(error)) from error
    except (Exception, SystemExit) as error:  # whatever somebody else's code raises
        raise _PluginError(f"{flag}: {located(error, file)}") from error


def _described(error: Exception) -> str:
    """The message of an error, or the line that raised it where it has none."""
    message = " ".join(str(error).split())
    if message:
        return message
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(where.filename).name}: {where.line}"


def _own_pipes() -> tuple[IO[str], IO[str]]:
    """The pipes from and to the doctor, which plugins, preprocessors and rewards then no longer have:
    what they print goes to the errors, and they read nothing.
    """
    questions = os.fdopen(os.dup(0), "r")
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return questions, answers


def _told_rows(
    questions: IO[str], answers: IO[str], read: dict[str, FirstRows]
) -> Sequence[Mapping[str, Any]]:
    """Write the first rows that were read, and wait for the rows on which rewards are tried."""
    told = as_json({name: asdict(first) for name, first in read.items()})
    print(READ + json.dumps(told), file=answers, flush=True)
    return json.loads(questions.readline())


def _read_texts(questions: IO[str], answers: IO[str]) -> None:
    """Answer each line of `MsSwift.read_text`, until there is no other."""
    tokenizer: Any = None
    for line in questions:
        question = json.loads(line)
        text, options = question["text"], question["options"]
        result, problem = None, ""
        try:
            match question["method"]:
                case "load":
                    tokenizer = load_tokenizer(text)
                case "apply_chat_template":
                    result = tokenizer.apply_chat_template(text, **options)
                case "__call__":
                    result = tokenizer(text, **options)["input_ids"]
        except Exception as error:  # a chat template may refuse a conversation
            problem = _described(error)
        print(json.dumps((result, problem)), file=answers, flush=True)


if __name__ == "__main__":
    questions, answers = _own_pipes()
    with without_collecting():
        parsed = parse(sys.argv[2:], int(sys.argv[1]), partial(_told_rows, questions, answers))
    print(PARSED + json.dumps(asdict(parsed)), file=answers, flush=True)
    _read_texts(questions, answers)
