"""The command `swift-rlvr chat`: ask a model a question, or a task whose answer is graded."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import plain, print_explanation
from swift_rlvr.errors import InputError
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError, Task


def chat(
    model: flags.Model,
    question: Annotated[str | None, typer.Argument(help="- reads standard input.")] = None,
    nums: Annotated[str | None, typer.Option(help='Ask a Countdown task: the numbers, such as "3 5 7".')] = None,
    target: Annotated[str | None, typer.Option(help="Countdown: the number to reach.")] = None,
    dataset: Annotated[str | None, flags.dataset_option("Ask a row of a dataset")] = None,
    row: Annotated[int, typer.Option(min=1, help="Which row.")] = 1,
    use_hf: flags.UseHf = False,
    system: Annotated[str | None, typer.Option(help='Instead of the one of the training; "" for none.')] = None,
    max_completion_length: flags.MaxCompletionLength = 200,
    temperature: flags.Temperature = 0.7,
    seed: flags.Seed = 0,
    as_json: flags.Json = False,
) -> None:
    """Ask a model a question.

    A Countdown task and a row of a dataset are asked as in training, and the
    answer is graded.
    """
    from swift_rlvr.data.prompts import system_prompt
    from swift_rlvr.sampling import SamplingSettings, open_engine
    from swift_rlvr.tasks.task import with_system

    settings = SamplingSettings(model, 1, temperature, max_completion_length, 1, seed, "transformers", use_hf)
    if (nums is None) != (target is None):
        raise InputError('--nums and --target belong together, such as --nums "3 5 7" --target 22')
    if sum(option is not None for option in (question, nums, dataset)) != 1:
        raise InputError("expected one of QUESTION (- for standard input), --nums with --target, and --dataset")
    task, prepared = _asked(question, nums, target, dataset, row, use_hf)
    prompt, source = system_prompt(model, task)
    if system is not None:
        prompt, source = system or None, "--system"
    messages = with_system(prepared["messages"], prompt, override=system is not None)
    if prepared["messages"][0]["role"] == "system" and system is None:
        prompt, source = messages[0]["content"], "the row"
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        notes.print(Text(f"Loading {model}", "dim"))
        with open_engine(settings, [messages]) as engine:
            if not as_json:
                own = f"No system prompt other than the chat template's own (from: {source})."
                notes.print(Text(own if prompt is None else f"System prompt (from: {source}): {prompt}", "dim"))
                notes.print(Text(f"\n{plain(messages[-1]['content'])}\n", "dim"))
            ((answer,),) = engine.sample([messages])
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    explanation = None if task is None else REWARDS[task.verifier or ""]().explain(answer.text, prepared)
    if as_json:
        grade = {} if explanation is None else {"reward": explanation.reward, "reason": explanation.reason}
        payload = {"model": model, "messages": messages, "answer": answer.text, "tokens": answer.tokens}
        typer.echo(json.dumps({**payload, "finish": answer.finish, **grade}))
        return
    print(plain(answer.text), flush=True)
    cut_off = ", cut off by --max_completion_length" if answer.finish == "length" else ""
    notes.print(Text(f"{answer.tokens} tokens{cut_off}", "dim"))
    if explanation is not None and task is not None:
        print_explanation(Console(highlight=False), task.name, explanation)


def _asked(
    question: str | None, nums: str | None, target: str | None, dataset: str | None, number: int, use_hf: bool
) -> tuple[Task | None, dict[str, Any]]:
    """The task that grades the answer, None for a plain question, and the preprocessed row."""
    from swift_rlvr.data.sources import parse_source

    if dataset is not None:
        source = parse_source(dataset, use_hf)
        line, row = source.row(number)
        with source.at(line):
            return source.task.of(row), source.task.preprocess(row)
    if nums is not None:
        try:
            return TASKS["countdown"], TASKS["countdown"].preprocess({"nums": nums, "target": target})
        except RowError as error:
            raise InputError(f"--nums and --target: {error}") from error
    text = sys.stdin.read() if question == "-" else question or ""
    if not text.strip():
        raise InputError("QUESTION is empty")
    return None, {"messages": [{"role": "user", "content": text}]}
