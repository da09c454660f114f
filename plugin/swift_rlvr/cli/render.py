"""What the commands show on the terminal.

Text from a model or a file could steer the terminal: `visible` and `plain` escape it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from inspect import cleandoc
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import track
from rich.table import Table
from rich.text import Text

from swift_rlvr.rewards import Explanation
from swift_rlvr.success import FULL

Item = TypeVar("Item")
OUTCOMES = {
    True: Text("passed", "green"),
    False: Text("failed", "bold red"),
    None: Text("not checked", "dim"),
}
LONGEST_EXTRACT = 600
LONGEST_DETAIL = 200


def terminal(stderr: bool = False) -> Console:
    """A console that shows texts as they are and leaves it to the terminal to break their lines, so
    that a path can be copied. `soft_wrap=False` breaks a sentence between its words.
    """
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def with_progress(
    items: Iterable[Item], description: str, total: float | None = None, is_hidden: bool = False
) -> Iterable[Item]:
    """The items, with a bar on standard error while they are gone through, if that is a terminal."""
    console = terminal(stderr=True)
    disable = is_hidden or not console.is_terminal
    return track(items, description, total, console=console, transient=True, disable=disable)


def print_error(problem: object) -> None:
    """What ends a command, on standard error."""
    terminal(stderr=True).print(Text.assemble(("Error:", "red"), f" {problem}"))


def print_usage(usage: str, docstring: str | None) -> None:
    """The help of a command whose flags typer does not know."""
    terminal().print(f"Usage: {usage}\n\n{cleandoc(docstring or '')}")


def print_outcomes(console: Console, outcomes: Iterable[str], styles: Mapping[str, str]) -> bool:
    """How often there was each outcome, in the order of `styles`; whether one is "failed"."""
    counts = Counter(outcomes)
    console.print("\n" + ", ".join(f"{counts[each]} {each}" for each in styles if counts[each]))
    return counts["failed"] > 0


def table(
    *headings: str, numbers: Collection[str] = (), rows: Iterable[Sequence[str | Text]] = ()
) -> Table:
    """A table of rows. Its texts are not read as markup and not cut.

    numbers: the columns that stand to the right and never break.
    """
    # "fold" breaks a long name into lines; rich's default would end it in "...".
    result = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        is_number = heading in numbers
        justify: Any = "right" if is_number else "left"
        result.add_column(heading, justify=justify, no_wrap=is_number, overflow="fold")
    for row in rows:
        result.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return result


def note(text: str) -> Text:
    """A line that begins with a yellow `note:`."""
    return Text.assemble(("note:", "yellow"), f" {text}")


def counts_text(counts: Iterable[tuple[str, int]]) -> str:
    """Counts in a sentence: `wrong answer: 3, no answer: 1`."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts)


def first_names(names: Sequence[str], most: int) -> str:
    """The first names of many, and how many more there are.

    >>> first_names(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"


def counted(count: int, noun: str) -> str:
    """A count and what is counted: `1 row`, `2 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def count_text(count: int, good: str = "", bad: str = "yellow") -> Text:
    """A count for a table, in the style `good`, or `bad` if it counts faults. A zero is dim."""
    if count == 0:
        return Text("0", "dim")
    return Text(f"{count:,}", good or bad)


def plain(text: str) -> str:
    r"""A text whose invisible characters are written as in Python, but for line breaks and tabs.

    >>> print(plain("a\x1b[2J"))
    a\x1b[2J
    """
    return "".join(char if char in "\n\t" else _escaped(char) for char in text)


def plain_help(docstring: str) -> str:
    """A docstring without its reStructuredText marks, which a terminal would show as they are.

    >>> print(plain_help("With progress `p` the reward is ::"))
    With progress p the reward is:
    """
    return docstring.replace("`", "").replace(" ::", ":").replace("::\n", ":\n")


def visible(text: str, longest: int, encoding: str = "utf-8") -> Text:
    r"""A text for the terminal, cut in the middle, with invisible characters as in Python.

    encoding: the terminal's; what it lacks is escaped too.

    >>> print(visible("[bold]1\u200b+\t2\n", longest=20))
    [bold]1\u200b+\t2\n
    <BLANKLINE>
    >>> print(visible("1+" * 1000, longest=8))
    1+1+1+ ... 1,992 more characters ... 1+
    >>> print(visible("1+1+1+1", longest=6))
    1+1+1+1
    """
    left_out = f" ... {len(text) - longest:,} more characters ... "
    # To say so must be shorter than what is left out.
    if len(text) > longest + len(left_out):
        # Its end is as telling as its beginning: the answer stands there.
        tail = longest // 4
        text = text[: longest - tail] + left_out + text[-tail:]
    # A line break is shown, and breaks the line.
    escaped = "".join("\\n\n" if char == "\n" else _escaped(char) for char in text)
    return Text(escaped.encode(encoding, "backslashreplace").decode(encoding))


def _escaped(char: str) -> str:
    return char if char.isprintable() else repr(char)[1:-1]


def print_figures(
    console: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """A table of figures under a title.

    On a terminal that is too narrow for it, each figure stands on a line of its own, after its
    heading.
    """
    # On one line, whatever the terminal's width, to measure it; then as it fits.
    rows = list(rows)
    names = headings[1:]
    figures: Table | Text = table(*headings, numbers=names, rows=rows)
    unlimited = console.options.update(width=10_000)
    if console.measure(figures, options=unlimited).maximum > console.width:
        lines = []
        for label, *cells in rows:
            lines.append(label)
            lines += [f"  {name} {cell}" for name, cell in zip(names, cells, strict=True)]
        figures = Text("\n".join(lines))
    console.print(Text(title, "bold"), figures, sep="\n")


def print_explanation(console: Console, name: str, explanation: Explanation) -> None:
    """A reward with its reason, what was judged, and every rule with its outcome."""
    if explanation.reward is None:
        value, style = "none, cannot be graded", "yellow"
    else:
        # Sums of weights are not shown as 0.30000000000000004.
        value, style = str(round(explanation.reward, 4)), ""
        if explanation.reward >= FULL:
            style = "green"
        elif explanation.reward <= 0:
            style = "red"
    reason = f" ({explanation.reason})"
    console.print(Text.assemble((name, "bold"), ": reward ", (value, f"bold {style}"), reason))
    extract = explanation.extracted
    if extract is None:
        console.print("There is nothing to judge in this completion.")
    else:
        size = counted(len(extract), "character")
        console.print(f"Judged ({size}){':' if extract else ''}")
    if extract:
        text = visible(extract, LONGEST_EXTRACT, console.encoding)
        console.print(Padding(text, (0, 0, 0, 2), expand=False))

    rules = table("outcome", "rule")
    rules.columns[0].no_wrap = True
    for rule in explanation.rules:
        # A rule's name may quote the completion, too.
        text = visible(rule.name, LONGEST_DETAIL, console.encoding)
        if rule.passed is None:
            text.stylize("dim")
        if rule.detail:
            text = Text.assemble(text, ": ", visible(rule.detail, LONGEST_DETAIL, console.encoding))
        # A detail without an outcome is a measurement, or says why the rule was not looked at.
        outcome = Text("-") if rule.passed is None and rule.detail else OUTCOMES[rule.passed]
        rules.add_row(outcome, text)
    console.print("", rules, sep="\n")
