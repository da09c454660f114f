"""Can a task of reasoning-gym be trained on? Right answers must earn 1, and nothing else may.

For each task, items of both splits are drawn, written to JSON as for training, and answered with

- gold: the right answer, which must earn 1;
- empty: no answer block, and an empty one, which must earn 0;
- foreign: right answers to other items that differ from the right one. None may earn 1, unless `checks` finds it right;
- listed: the right answer among others, one a line or after "or". May not earn 1;
- hostile: code, endless numbers, deep brackets, a million characters and the like. None may earn 1, and none may run:
  it would end the process or use up its time.

What these earn at most is the partial credit that `partial` would pay.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from swift_rlvr.reasoning_gym import library
from swift_rlvr.reasoning_gym.checks import CHECKS
from swift_rlvr.reasoning_gym.grading import Limits, Reason, Verdict, grade_all
from swift_rlvr.reasoning_gym.naming import SPLITS, Part
from swift_rlvr.reasoning_gym.refused import REFUSED
from swift_rlvr.reasoning_gym.rows import identity, item, read_entry, to_entry
from swift_rlvr.reasoning_gym.scorers import SCORERS

PAGE = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- audit: begin -->", "<!-- audit: end -->"
EMPTY = ("", "<answer></answer>", "<answer> \n </answer>", "<think></think>", "<answer>")
CODE = (
    "__import__('os')._exit(7)",
    "[__import__('os')._exit(7)]",
    "sum(range(10**12))",
    "[i for i in range(10**12)]",
    "10**9**9",
    "9**9**9**9",
    "2**(2**(2**(2**(2**2))))",
)
HOSTILE = (
    *CODE,
    *("nan", "-nan", "inf", "-Infinity", "NaN, NaN", "[NaN]", "[[NaN]]", "nan+nanj", "1e999999999", "1/0", "1e400"),
    *("(" * 900, "[" * 900, "{" * 900, "((((1))))" * 100, "¬" * 900, "-" * 900 + "1", "9" * 900, "(" * 100_000),
    *("9" * 1_000_000, "[" * 1_000_000, "1+" * 500_000 + "1"),
    *(
        "\0",
        "\0\ud800\u200b",
        "٣",
        "１２３４５６７",
        "²",
        "\u202e1",
        "<answer>",
        "{}",
        "[]",
        "[[]]",
        "null",
        '{"a": [1]}',
    ),
    *("R999999999", "A+999999999", "Move disk 1 from Peg 1 to Peg 99", "%s%s%n", "' OR 1=1 --", "<think>", "no idea"),
)
_LIMITS = Limits(seconds=5.0)
_OTHERS = 5  # foreign answers for an item


@dataclass(frozen=True)
class Finding:
    """What the audit found of a task. Scores are the highest; `problems` is empty where nothing speaks against it."""

    task: str
    category: str
    items: int
    questions: int  # different ones
    right: int  # golds that earned 1
    empty: float
    foreign: float
    listed: float
    hostile: float
    milliseconds: float  # for a gold, by the clock
    problems: tuple[str, ...]

    @property
    def verdict(self) -> str:
        if self.task in REFUSED:
            return f"refused: {REFUSED[self.task]}"
        return "; ".join(self.problems) or ("scored by ours" if self.task in SCORERS else "good")


def audit(names: Sequence[str], items: int, done: Callable[[str], object] = lambda name: None) -> Iterator[Finding]:
    """One finding for each task; `items` of each split."""
    for name in names:
        done(name)
        yield audit_task(name, items)


def audit_task(name: str, items: int) -> Finding:
    """Draw and grade the items of one task."""
    part = Part(name, insisted=name in REFUSED)
    package = library.missing().get(name)
    if package is not None:
        return Finding(name, library.category(name), 0, 0, 0, 0, 0, 0, 0, 0, (f"needs {package}",))
    entries = [to_entry(part, item(part, split, number)) for split in SPLITS for number in range(items)]
    read = [read_entry(entry) for entry in entries]
    answers = [entry["answer"] for entry in read]
    problems = []
    if not all(answers):
        problems.append("no right answer is known")
    grade_all([_tagged("0")], entries[:1], _LIMITS)  # starts what has to be started
    start = perf_counter()
    golds = grade_all([_tagged(answer) for answer in answers], entries, _LIMITS, workers=1)
    milliseconds = (perf_counter() - start) / len(entries) * 1000
    right = sum(verdict.reason is Reason.CORRECT for verdict in golds)
    if right < len(golds) and all(answers):
        problems.append(f"{len(golds) - right} of {len(golds)} right answers earn less than 1")
    empty = [(text, entry) for entry in entries for text in EMPTY]
    foreign, listed = [], []
    for place, entry in enumerate(entries):
        others = [each for each in dict.fromkeys(answers[place + 1 :] + answers[:place]) if each != answers[place]]
        foreign += [(_tagged(each), entry) for each in others[:_OTHERS]]
        if answers[place]:
            mixed = [*others[:1], answers[place], *others[1:2]] if others else [answers[place], "no idea"]
            listed += [(_tagged(mark.join(mixed)), entry) for mark in ("\n", " or ", ", ")]
    hostile = [(_tagged(text), entry) for entry in entries[:: max(1, len(entries) // 4)] for text in HOSTILE]
    most = {}
    for kind, pairs in (("empty", empty), ("foreign", foreign), ("listed", listed), ("hostile", hostile)):
        verdicts = grade_all([text for text, _ in pairs], [entry for _, entry in pairs], _LIMITS)
        scores = [verdict.score or 0.0 for verdict in verdicts]
        if kind == "foreign" and name in CHECKS:
            by_entry = dict(zip(entries, read, strict=True))
            scores = [
                0.0 if score == 1 and verdict.answer and CHECKS[name](verdict.answer, by_entry[entry]) else score
                for (_, entry), verdict, score in zip(pairs, verdicts, scores, strict=True)
            ]
        most[kind] = max(scores, default=0.0)
        full = [
            text for (text, _), score in zip(pairs, scores, strict=True) if score >= (1 if kind != "empty" else 1e-9)
        ]
        if full:
            problems.append(f"{len(full)} of {len(pairs)} {kind} answers earn 1, such as {full[0][8:-9]!r:.60}")
        problems += sorted({problem for verdict in verdicts for problem in _run_problem(verdict)})
    questions = len({identity(entry["question"]) for entry in read})
    return Finding(
        name, library.category(name), len(entries), questions, right, **most, milliseconds=milliseconds,
        problems=tuple(problems),
    )  # fmt: skip


def _run_problem(verdict: Verdict) -> list[str]:
    """What an answer has done that no text should."""
    if verdict.reason is Reason.TIMED_OUT:
        return [f"not scored in {_LIMITS.seconds:g} s: {verdict.answer!r:.40}"]
    if verdict.reason is Reason.SCORER_FAILED and verdict.detail.startswith(("exit", "MemoryError")):
        return [f"{verdict.detail[:40]} on {verdict.answer!r:.40}"]
    return []


def _tagged(answer: str) -> str:
    return f"<answer>{answer}</answer>"


def table(findings: Sequence[Finding]) -> str:
    """The findings as markdown."""
    lines = ["| task | category | gold | questions | empty | foreign | listed | hostile | ms | verdict |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for each in findings:
        scores = " | ".join(f"{value:.2g}" for value in (each.empty, each.foreign, each.listed, each.hostile))
        lines.append(
            f"| `{each.task}` | {each.category} | {each.right}/{each.items} | {each.questions} | {scores} | "
            f"{each.milliseconds:.1f} | {each.verdict.replace('|', ' ')} |"
        )
    return "\n".join(lines)


def write_page(findings: Sequence[Finding], page: Path = PAGE) -> None:
    """Put the table between the marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(findings)}\n{END}{after}", encoding="utf-8")
