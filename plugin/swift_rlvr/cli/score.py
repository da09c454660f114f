"""`swift-rlvr score`: grade files of completions, again or for the first time."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import (
    LONGEST_DETAIL,
    counted,
    first_names,
    note,
    print_figures,
    table,
    terminal,
    visible,
)
from swift_rlvr.evaluation.completion_files import (
    Reading,
    absent_columns,
    find_files,
    first_rows,
    left_out_files,
)
from swift_rlvr.evaluation.score import (
    SHOWN_PROBLEMS,
    StoredGrades,
    default_rewards,
    score_files,
    stored_grades,
)
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.log import pace
from swift_rlvr.tasks.sources import parse_columns
from swift_rlvr.utils.errors import InputError


def score(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Files with completions, or folders of them; NAME:FILE reads the right answers as the task NAME does.",
        ),
    ],
    reward_funcs: flags.RewardNames = None,
    dataset: flags.Answered = None,
    columns: flags.Columns = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Write the reward and reason of each completion to this .jsonl file."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare with earlier verdicts: stored for those in the file, or another file."
        ),
    ] = None,
    fail_on_change: Annotated[
        bool,
        typer.Option(
            "--fail_on_change",
            help="Exit with status 1 if a verdict changed, or has no counterpart now.",
        ),
    ] = False,
    as_json: flags.Json = False,
) -> None:
    """Grade files of completions, and count rewards and reasons.

    Reads records (swift-rlvr evaluate and every training write them), what
    ms-swift and swift infer write, verl's dumps, samples of
    lm-evaluation-harness, output of OpenAI's batch API, conversations that end
    with an answer, and lines with one or several completions. The right answer
    may have any name that is usual in a dataset.

    Without --reward_funcs, the first lines decide the verifier and the format
    reward. Rewards that run code are used only if you name them. With
    --against, the rewards are those of the earlier verdicts.

    swift-rlvr score samples_gsm8k.jsonl

    swift-rlvr score batch_output.jsonl --dataset math:questions.jsonl

    swift-rlvr score eval/records.jsonl --against stored --fail_on_change
    """
    if fail_on_change and against is None:
        raise InputError("needs --against", field="fail_on_change")
    errors = terminal(stderr=True)
    flags.check_out(out)
    answered = flags.answered_by(dataset, columns)
    readings = find_files(files, parse_columns(columns), answered)
    verdicts = None
    if against is not None:
        if len(readings) != 1:
            raise InputError(f"works with one file, got {len(readings)}", field="against")
        # A folder stands for the file in it, and NAME:FILE for FILE.
        (graded,) = readings
        verdicts = stored_grades(graded if against == "stored" else against)
    absent = absent_columns(readings, answered)
    if absent:
        errors.print(note(absent))
    # A folder of one's own may hold completions under names that are not known.
    skipped = left_out_files(files, readings)
    if skipped:
        names = first_names(list(map(str, skipped)), SHOWN_PROBLEMS)
        errors.print(f"Not read: {names}. Name a file to have it read.", style="yellow")
    chosen = _chosen_rewards(reward_funcs, verdicts, readings, errors)

    # In bytes of the files and not in lines, which nobody has counted.
    parts = (TextColumn("grading"), BarColumn(), TimeRemainingColumn())
    hidden = as_json or not errors.is_terminal
    with Progress(*parts, console=errors, transient=True, disable=hidden) as progress:
        bar = progress.add_task("", total=1.0)
        summary = score_files(
            readings,
            chosen.rewards,
            out,
            workers=workers,
            against=verdicts,
            advance=lambda share: progress.update(bar, completed=share),
        )
    if as_json:
        more = {"out": None if out is None else str(out), "left_out": chosen.left_out}
        typer.echo(json.dumps({**summary, **more}))
    else:
        _print_summary(summary, chosen, out)
    # A completion that is not graded any more is a change, too: its file may have been cut.
    if fail_on_change and (summary["changed"] or summary["not_graded_now"]):
        raise typer.Exit(1)


class _Chosen(NamedTuple):
    """The rewards that grade. Where those of the first lines do: which are left out since they run
    code, and the columns of the right answers.
    """

    rewards: list[Reward]
    of_first_lines: bool = False
    left_out: Sequence[str] = ()
    golds: Sequence[str] = ()


def _chosen_rewards(
    names: list[str] | None,
    verdicts: StoredGrades | None,
    readings: Mapping[str, Reading],
    errors: Console,
) -> _Chosen:
    """The rewards that are named, else those of the earlier verdicts, else those of the first lines;
    says which cannot be used.
    """
    # Other rewards have nothing to be compared with.
    if names is None and verdicts is not None:
        stored: set[str] = set().union(*verdicts.values())
        names = [name for name in REWARDS if name in stored]
        for name in sorted(stored.difference(names)):
            errors.print(f"Not compared: {name}, which is no reward here", style="yellow")
    if names:
        return _Chosen(build_rewards(names))

    rewards, left_out = default_rewards(readings)
    if left_out:
        verb = "It runs" if len(left_out) == 1 else "They run"
        flag = " ".join(map("--reward_funcs {}".format, left_out))
        text = f"Not used: {', '.join(left_out)}. {verb} code from the completions; to allow that, add {flag}."
        errors.print(text, style="yellow")
    _, reading, row = next(first_rows(readings))
    return _Chosen(rewards, True, left_out, reading.gold_columns(row))


def _print_summary(summary: dict[str, Any], chosen: _Chosen, out: Path | None) -> None:
    """What was graded by what, the rewards and reasons, and what could not be used."""
    console = terminal()
    if chosen.of_first_lines:
        names = ", ".join(summary["rewards"])
        text = f"Verifier and format of the first lines: {names}"
        console.print(text, style="dim", soft_wrap=False)
    # A gold that was taken from the wrong column makes every verdict wrong: the user can see which it was.
    if chosen.golds:
        columns = ", else ".join(chosen.golds[:3])
        of_all = len(summary["files"]) == 1
        which = "Right answers" if of_all else "Right answers of the first line"
        text = f"{which} are in the column {columns}"
        console.print(text, style="dim", soft_wrap=False)
    count = summary["completions"]
    seconds = summary["seconds"]
    processes = "1 process" if summary["workers"] == 1 else f"{summary['workers']} processes"
    time = f"{seconds:.2f} s, {pace(count, seconds)}"
    console.print(f"{counted(count, 'completion')} graded by {processes} in {time}")
    if summary["from_prompt"]:
        count = summary["from_prompt"]
        console.print(f"The columns of {count:,} completions were read from their prompts")
    _print_rewards(console, summary)

    if summary["unusable"]:
        console.print(f"\n{summary['unusable']:,} could not be used:", style="yellow")
        for problem in summary["problems"]:
            console.print("  ", visible(problem, LONGEST_DETAIL, console.encoding), sep="")
        if summary["unusable"] > SHOWN_PROBLEMS:
            console.print(f"  ... and {summary['unusable'] - SHOWN_PROBLEMS:,} more")

    # With --against: verdicts that are other than earlier ones, and completions with only one of both,
    # without which "0 verdicts changed" would say too much.
    for change in summary.get("changed", ()):
        position = f", completion {change['position']}" if "position" in change else ""
        where = f"{change['file']}, line {change['line']}{position}: {change['reward']}"
        before, reason_before = change["before"]
        now, reason_now = change["now"]
        console.print(f"{where} was {before} ({reason_before}) and is {now} ({reason_now})")
    if "changed" in summary:
        changed = len(summary["changed"])
        console.print(f"{changed:,} of {summary['compared']:,} verdicts changed")
    if summary.get("not_graded_now"):
        places = []
        for place in summary["not_graded_now"]:
            position = f" (completion {place['position']})" if place["position"] else ""
            places.append(f"{place['line']}{position}")
        completions = counted(len(places), "completion")
        lines = first_names(places, SHOWN_PROBLEMS)
        text = f"{completions} with an earlier verdict and none now: line {lines}"
        console.print(text, style="yellow")
    if summary.get("without_stored"):
        completions = counted(summary["without_stored"], "completion")
        console.print(f"{completions} without an earlier verdict", style="yellow")
    if out is not None:
        console.print(f"written: {out}")


def _print_rewards(console: Console, summary: dict[str, Any]) -> None:
    """The mean of each reward, its reasons, and its means by file."""
    rewards = []
    reasons = []
    notes = []
    for name, figures in summary["rewards"].items():
        mean = "-" if figures["mean"] is None else f"{figures['mean']:.3f}"
        rewards.append((name, mean, f"{figures['ungraded']:,}"))
        # The name stands once, beside the first of its reasons.
        label = name
        for reason, count in figures["reasons"].items():
            share = f"{count / summary['completions']:.1%}"
            reasons.append((label, reason, f"{count:,}", share))
            label = ""
        # A mean of "-" alone is overlooked beside the others.
        if not figures["graded"]:
            reason = next(iter(figures["reasons"]))
            remedy = "; qa:FILE compares texts" if name == "external_accuracy" else ""
            notes.append(note(f"{name} graded nothing ({reason}){remedy}"))
    numbers = ("mean", "not graded")
    console.print("", table("reward", *numbers, numbers=numbers, rows=rewards), "", sep="\n")
    numbers = ("completions", "share")
    console.print(table("reward", "reason", *numbers, numbers=numbers, rows=reasons))

    # There may be several files, such as verl's dumps by step.
    if len(summary["files"]) > 1:
        names = list(summary["rewards"])
        rows = []
        for file, means in summary["means_by_file"].items():
            row = [file]
            for name in names:
                row.append(f"{means[name]:.3f}" if name in means else "-")
            rows.append(row)
        console.print("")
        print_figures(console, "Means by file", ("file", *names), rows)
    for text in notes:
        console.print(text)
