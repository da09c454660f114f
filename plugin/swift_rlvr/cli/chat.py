"""The command `swift-rlvr chat`: ask a model a question, or a task whose answer is graded."""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.dataset import DATASET, HubIsHf, Json
from swift_rlvr.cli.render import plain, print_explanation
from swift_rlvr.errors import InputError


def chat(
    model: flags.Model,
    question: Annotated[str | None, typer.Argument(help="- reads standard input; without one: a conversation.")] = None,
    nums: Annotated[str | None, typer.Option(help='Ask a Countdown task: the numbers, such as "3 5 7".')] = None,
    target: Annotated[str | None, typer.Option(help="Countdown: the number to reach.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="DATASET", help=f"Ask a row of a dataset: {DATASET}")] = None,
    row: Annotated[int, typer.Option(min=1, help="Which row.")] = 1,
    use_hf: HubIsHf = False,
    system: Annotated[str | None, typer.Option(help='Instead of the one of the training; "" for none.')] = None,
    max_completion_length: flags.MaxCompletionLength = 200,
    temperature: flags.Temperature = 0.7,
    seed: flags.Seed = 0,
    as_json: Json = False,
) -> None:
    """Ask a model a question and see the answer as it is written.

    A Countdown task and a row of a dataset are asked as in training, and the
    answer is graded. In a conversation the model sees what was said before;
    an empty line or Ctrl-D ends it.
    """
    from swift_rlvr.data.prompts import system_prompt
    from swift_rlvr.data.sources import parse_source
    from swift_rlvr.evaluation import chat as chatting
    from swift_rlvr.sampling import SamplingSettings, open_engine
    from swift_rlvr.tasks.task import with_system

    settings = SamplingSettings(model, 1, temperature, max_completion_length, 1, seed, "transformers", use_hf)
    if (nums is None) != (target is None):
        raise InputError('--nums and --target belong together, such as --nums "3 5 7" --target 22')
    if sum(option is not None for option in (question, nums, dataset)) > 1:
        raise InputError("expected one of QUESTION, --nums with --target, and --dataset")
    asked: chatting.Question | None = None
    if nums is not None:
        asked = chatting.countdown_question(nums, target)
    elif dataset is not None:
        asked = chatting.row_question(parse_source(dataset, use_hf), row)
    elif question is not None:
        text = sys.stdin.read() if question == "-" else question
        if not text.strip():
            raise InputError("QUESTION is empty")
        asked = chatting.Question([{"role": "user", "content": text}])
    elif as_json or not sys.stdin.isatty():
        raise InputError(
            "give a QUESTION (- for standard input), --nums with --target, or --dataset; "
            "a conversation needs a terminal"
        )
    prompt, source = system_prompt(model, asked.task if asked else None)
    if system is not None:
        prompt, source = system or None, "--system"
    notes, console = Console(stderr=True, highlight=False, soft_wrap=True), Console(highlight=False)

    def write(text: str) -> None:
        print(plain(text), end="", flush=True)

    def note(line: str) -> None:
        write("\n")
        notes.print(Text(line, "dim"))

    try:
        notes.print(Text(f"Loading {model}", "dim"))
        with open_engine(settings) as engine:
            if asked is None:
                notes.print(_about(prompt, source))
                notes.print(Text("An empty line or Ctrl-D ends the conversation.", "dim"))
                chatting.converse(engine, prompt, _questions(), write, note)
                return
            messages = with_system(asked.messages, prompt, override=system is not None)
            if not as_json:
                own = asked.messages[0]["role"] == "system" and system is None
                notes.print(_about(messages[0]["content"], "the row") if own else _about(prompt, source))
                if asked.task is not None:
                    notes.print(Text(f"\n{plain(messages[-1]['content'])}\n", "dim"))
            answer = engine.stream(messages, (lambda text: None) if as_json else write)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    explanation = asked.grade(answer.text)
    if as_json:
        grade = {} if explanation is None else {"reward": explanation.reward, "reason": explanation.reason}
        payload = {"model": model, "messages": messages, "answer": answer.text, "tokens": answer.tokens}
        typer.echo(json.dumps({**payload, "finish": answer.finish, **grade}))
        return
    note(chatting.ended(answer))
    if explanation is not None and asked.task is not None:
        print_explanation(console, asked.task.name, explanation)


def _about(system: str | None, source: str) -> Text:
    own = f"No system prompt other than the chat template's own (from: {source})."
    return Text(own if system is None else f"System prompt (from: {source}): {system}", "dim")


def _questions() -> Iterator[str]:
    with suppress(EOFError):
        while True:
            yield input("\nyou> ")
