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
from swift_rlvr.reasoning_gym.grading import Reason, ScoredAnswer, grade_all
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
    *("9" * 1_000_000, "[" * 1_000_000, "1+" * 500_000 + "1", "\0", "\0\ud800\u200b", "٣", "１２３４５６７", "²"),
    *("\u202e1", "<answer>", "{}", "[]", "[[]]", "null", '{"a": [1]}'),
    *("R999999999", "A+999999999", "Move disk 1 from Peg 1 to Peg 99", "%s%s%n", "' OR 1=1 --", "<think>", "no idea"),
)
_SECONDS = 5.0
_OTHERS = 5  # foreign answers for an item


@dataclass(frozen=True)
class TaskAudit:
    """What the audit found of a task. Scores are the highest; `problems` is empty where nothing speaks against it."""

    task: str
    category: str
    items: int = 0
    questions: int = 0  # different ones
    right: int = 0  # golds that earned 1
    empty: float = 0.0
    foreign: float = 0.0
    listed: float = 0.0
    hostile: float = 0.0
    milliseconds: float = 0.0  # for a gold, by the clock
    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """In words: refused, with the reason; what is wrong; or that reasoning-gym's scorer or ours is good."""
        if self.task in REFUSED:
            return f"refused: {REFUSED[self.task]}"
        return "; ".join(self.problems) or ("scored by ours" if self.task in SCORERS else "good")


def audit(names: Sequence[str], items: int, done: Callable[[str], object] = lambda name: None) -> Iterator[TaskAudit]:
    """The audit of each task; `items` of each split, and `done` is told the name of the task before."""
    for name in names:
        done(name)
        yield audit_task(name, items)


def audit_task(name: str, items: int) -> TaskAudit:
    """Draw and grade the items of one task, `items` of each split."""
    package = library.missing().get(name)
    if package is not None:
        return TaskAudit(name, library.category(name), problems=(f"needs {package}",))
    part = Part(name, insisted=name in REFUSED)
    entries = [to_entry(part, item(part, split, number)) for split in SPLITS for number in range(items)]
    read = [read_entry(entry) for entry in entries]
    golds = [entry["answer"] for entry in read]
    problems = [] if all(golds) else ["no right answer is known"]
    grade_all([_tagged("0")], entries[:1], _SECONDS, workers=1)  # starts what has to be started
    start = perf_counter()
    scored = grade_all([_tagged(gold) for gold in golds], entries, _SECONDS, workers=1)
    milliseconds = (perf_counter() - start) / len(entries) * 1000
    right = sum(each.reason is Reason.CORRECT for each in scored)
    if right < len(golds) and all(golds):
        problems.append(f"{len(golds) - right} of {len(golds)} right answers earn less than 1")
    highest: dict[str, float] = {}
    for group, pairs in _wrong_completions(entries, golds).items():
        scored = grade_all([text for text, _ in pairs], [entry for _, entry in pairs], _SECONDS)
        scores = [each.score or 0.0 for each in scored]
        if group == "foreign" and name in CHECKS:  # it may be right here too
            for index, (each, (_, entry)) in enumerate(zip(scored, pairs, strict=True)):
                if each.reason is Reason.CORRECT and each.answer and CHECKS[name](each.answer, read_entry(entry)):
                    scores[index] = 0.0
        highest[group] = max(scores, default=0.0)
        limit = 1e-9 if group == "empty" else 1
        full = [each.answer for each, score in zip(scored, scores, strict=True) if score >= limit]
        if full:
            problems.append(f"{len(full)} of {len(pairs)} {group} answers earn 1, such as {full[0]!r:.60}")
        problems += sorted({problem for each in scored for problem in _run_problem(each)})
    questions = len({identity(entry["question"]) for entry in read})
    return TaskAudit(
        *(name, library.category(name), len(entries), questions, right),
        *(highest["empty"], highest["foreign"], highest["listed"], highest["hostile"]),
        milliseconds=milliseconds,
        problems=tuple(problems),
    )


def _wrong_completions(entries: Sequence[str], golds: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Completions with an answer that is not right, each with its entry, by kind."""
    foreign, listed = [], []
    for index, (entry, gold) in enumerate(zip(entries, golds, strict=True)):
        others = [each for each in dict.fromkeys([*golds[index + 1 :], *golds[:index]]) if each != gold]
        foreign += [(_tagged(other), entry) for other in others[:_OTHERS]]
        if gold:
            mixed = [*others[:1], gold, *others[1:2]] if others else [gold, "no idea"]
            listed += [(_tagged(separator.join(mixed)), entry) for separator in ("\n", " or ", ", ")]
    empty = [(text, entry) for entry in entries for text in EMPTY]
    hostile = [(_tagged(text), entry) for entry in entries[:: max(1, len(entries) // 4)] for text in HOSTILE]
    return {"empty": empty, "foreign": foreign, "listed": listed, "hostile": hostile}


def _run_problem(scored: ScoredAnswer) -> list[str]:
    """What an answer has done that no text should."""
    if scored.reason is Reason.TIMED_OUT:
        return [f"not scored in {_SECONDS:g} s: {scored.answer!r:.40}"]
    if scored.reason is Reason.SCORER_FAILED and scored.detail.startswith(("exit", "MemoryError")):
        return [f"{scored.detail[:40]} on {scored.answer!r:.40}"]
    return []


def _tagged(answer: str) -> str:
    return f"<answer>{answer}</answer>"


def table(audits: Sequence[TaskAudit]) -> str:
    """The audits as markdown."""
    lines = ["| task | category | gold | questions | empty | foreign | listed | hostile | ms | verdict |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for each in audits:
        scores = " | ".join(f"{value:.2g}" for value in (each.empty, each.foreign, each.listed, each.hostile))
        lines.append(
            f"| `{each.task}` | {each.category} | {each.right}/{each.items} | {each.questions} | {scores} | "
            f"{each.milliseconds:.1f} | {each.verdict.replace('|', ' ')} |"
        )
    return "\n".join(lines)


def write_page(audits: Sequence[TaskAudit], page: Path = PAGE) -> None:
    """Put the table between the marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(audits)}\n{END}{after}", encoding="utf-8")
