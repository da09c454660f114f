"""What the commands show on the terminal. Text from a model or a file is escaped: see `visible` and
`plain`.
"""

from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swift_rlvr.rewards import Explanation
from swift_rlvr.success import FULL

OUTCOMES = {
    True: Text("passed", "green"),
    False: Text("failed", "bold red"),
    None: Text("not looked at", "dim"),
}
LONGEST_EXTRACT, LONGEST_DETAIL = 600, 200


def table(
    *headings: str, numbers: Collection[str] = (), rows: Iterable[Sequence[str | Text]] = ()
) -> Table:
    """A table of rows; texts are no markup and not cut; columns `numbers` stand right and are never
    broken.
    """
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        number = heading in numbers
        made.add_column(
            heading, justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def note(text: str) -> Text:
    """A line that begins with a yellow `note:`."""
    return Text.assemble(("note:", "yellow"), f" {text}")


def count_text(count: int, good: str = "", bad: str = "yellow") -> Text:
    """A count of rows for a table, in the style `good` or, where it counts faults, `bad`; a zero is
    dim.
    """
    return Text(f"{count:,}", good or bad if count else "dim")


def plain(text: str) -> str:
    r"""A text without what could steer the terminal, which is written as in Python.

    >>> print(plain("a\x1b[2J"))
    a\x1b[2J
    """
    return "".join(
        char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text
    )


def visible(text: str, longest: int, encoding: str = "utf-8") -> Text:
    r"""A text for the terminal, cut in the middle; what cannot be seen or encoded is escaped as in
    Python.

    >>> print(visible("[bold]1\u200b+\t2\n", longest=20))
    [bold]1\u200b+\t2\n
    <BLANKLINE>
    >>> print(visible("1+" * 1000, longest=8))
    1+1+1+ ... 1,992 more characters ... 1+
    """
    if len(text) > longest:
        tail = longest // 4
        text = f"{text[: longest - tail]} ... {len(text) - longest:,} more characters ... {text[-tail:]}"
    text = "".join(
        char if char.isprintable() else repr(char)[1:-1] + "\n" * (char == "\n") for char in text
    )
    return Text(text.encode(encoding, "backslashreplace").decode(encoding))


def print_figures(
    console: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """A table of figures under a title; where the terminal is too narrow, a heading stands before
    each figure.
    """
    rows, names = list(rows), headings[1:]
    shown: Table | Text = table(*headings, numbers=names, rows=rows)
    if console.measure(shown, options=console.options.update(width=10_000)).maximum > console.width:
        texts = (
            "\n  ".join((label, *map(" ".join, zip(names, cells, strict=True))))
            for label, *cells in rows
        )
        shown = Text("\n".join(texts))
    console.print(Text(title, "bold"), shown, sep="\n")


def print_explanation(console: Console, name: str, explanation: Explanation) -> None:
    """A reward with its reason, what was judged, and every rule with its outcome."""
    reward = explanation.reward
    value = "none, cannot be graded" if reward is None else str(round(reward, 4))
    style = (
        "yellow" if reward is None else "green" if reward >= FULL else "red" if reward <= 0 else ""
    )
    console.print(
        Text.assemble(
            (name, "bold"), ": reward ", (value, f"bold {style}"), f" ({explanation.reason})"
        )
    )
    if explanation.extracted is None:
        console.print("Nothing was found that could be judged.")
    else:
        length = len(explanation.extracted)
        console.print(
            f"Judged ({length:,} character{'' if length == 1 else 's'}){':' * bool(length)}"
        )
        extract = visible(explanation.extracted, LONGEST_EXTRACT, console.encoding)
        if extract:
            console.print(Padding(extract, (0, 0, 0, 2), expand=False))
    rules = table("outcome", "rule")
    rules.columns[0].no_wrap = True
    for rule in explanation.rules:
        text = visible(rule.name, LONGEST_DETAIL, console.encoding)
        if rule.passed is None:
            text.stylize("dim")
        if rule.detail:
            text = Text.assemble(text, ": ", visible(rule.detail, LONGEST_DETAIL, console.encoding))
        # None with a detail: a measurement, or the detail says why the rule was not looked at.
        rules.add_row(
            Text("-") if rule.passed is None and rule.detail else OUTCOMES[rule.passed], text
        )
    console.print("", rules, sep="\n")
