r"""A scoreboard: what each installed math verifier credits on public data, and how fast it is
there.

The verifiers are ours (`swift_rlvr.verifiers.mathematics.grade`), math_verify (parse and verify
with their defaults), TRL's `accuracy_reward` and ms-swift's `accuracy`. The data are public files
in a folder, which stay outside the repository: `docs/results/verifiers.md` says where they are,
how they are labelled and what is wrong with their labels.

Every verifier works in a process of its own, all of them pinned to the same core, and has graded a
few other rows before. The rows go to all in the same batches, of 64 as they come; who is first
changes with every batch. Then, in new processes, the rows whose gold occurs more than once go to
all in groups of at most 8 with the same gold, as in GRPO. Peers grade row after row by themselves,
so they get one row a call, which tells which row raised or timed out; a bare gold goes to them
between dollars, with which all of them credit more. They give up after 5 s with SIGALRM, in the
main thread; a process that is still busy after `HANG_S` is ended and its rows are graded one by
one. "changed" counts rows with two verdicts, one in each kind of batch.

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_verifiers.py --data FOLDER
           [--sample ROWS_A_FILE] [--disagreements FILE.jsonl] [--verifiers ours,math_verify]
Prints a table and, last, one line of JSON.
"""

import argparse
import json
import logging
import multiprocessing
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from verifier_data import Row, read_folder

BATCH, GROUP = 64, 8
HANG_S = 60.0  # a row; a batch may take this and 5 s for every further row
LOGGERS = ("math_verify.parser", "math_verify.grader")
WARM_UP = [
    (rf"So it is \boxed{{{n}}}.", f"${n}$")
    for n in (r"\frac{1}{7}", "12", "x^2 - 1", r"2\sqrt{5}", "(1, 2)")
]


class Result(NamedTuple):
    verdict: str  # "right", "wrong", "declined" (the gold cannot be read), "error" or "timed out"
    reason: str = ""


class Timeouts(logging.Handler):
    """Counts the warnings in which math_verify says that it gave up; it goes on as if the answer
    were wrong.
    """

    count = 0

    def emit(self, record):
        self.count += record.getMessage().startswith("Timeout during")


def between_dollars(gold: str) -> str:
    r"""Return the gold as math_verify's README wants it, in a LaTeX environment.

    >>> between_dollars("x^2"), between_dollars("$x^2$"), between_dollars(r"\$6")
    ('$x^2$', '$x^2$', '$\\$6$')
    """
    return gold if re.search(r"(?<!\\)\$|\\boxed|\\\(|\\\[", gold) else f"${gold}$"


def row_by_row(
    grade: Callable[[str, str], float | None],
) -> Callable[[list[str], list[str]], list[Result]]:
    """Make a judge of batches from a function of one completion and one gold; None says that it
    declines.
    """
    from math_verify.errors import TimeoutException

    timeouts = Timeouts()
    for name in LOGGERS:
        logging.getLogger(name).addHandler(timeouts)
        logging.getLogger(name).propagate = False

    def judge_one(text: str, gold: str) -> Result:
        timeouts.count = 0
        try:
            reward = grade(text, between_dollars(gold))
        except TimeoutException:
            return Result("timed out")
        except Exception as error:
            return Result("error", f"{type(error).__name__}: {error}"[:200])
        if reward == 1.0:
            return Result("right")
        if timeouts.count:
            return Result("timed out")
        return Result("declined" if reward is None else "wrong")

    return lambda texts, golds: [
        judge_one(text, gold) for text, gold in zip(texts, golds, strict=True)
    ]


def ours():
    from swift_rlvr.verifiers.mathematics import grade

    def judge(texts, golds):
        results = []
        for text, gold in zip(texts, golds, strict=True):
            verdict = grade(text, gold)
            reason = str(verdict.reason)
            name = (
                "error"
                if reason == "error"
                else {1.0: "right", 0.0: "wrong", None: "declined"}[verdict.reward]
            )
            results.append(Result(name, reason))
        return results

    return judge


def math_verify():
    from math_verify import parse, verify

    def grade(text, gold):
        read = parse(gold)
        return float(verify(read, parse(text))) if read else None

    return row_by_row(grade)


def trl():
    from trl.rewards import accuracy_reward

    return row_by_row(
        lambda text, gold: accuracy_reward(
            [[{"role": "assistant", "content": text}]], solution=[gold]
        )[0]
    )


def ms_swift():
    """It pays 0 where it cannot read the gold, so it never declines."""
    from swift.rewards import orms

    accuracy = orms["accuracy"]()
    return row_by_row(lambda text, gold: accuracy([text], solution=[gold])[0])


class Verifier(NamedTuple):
    start: Callable[[], Callable]
    module: str  # which must be importable
    package: str


VERIFIERS = {
    "ours": Verifier(ours, "swift_rlvr", "swift-rlvr"),
    "math_verify": Verifier(math_verify, "math_verify", "math-verify"),
    "TRL": Verifier(trl, "trl", "trl"),
    "ms-swift": Verifier(ms_swift, "swift", "ms-swift"),
}


def serve(name: str, core: int, connection) -> None:
    """The process of a verifier: receive (completions, golds), send (seconds, results), until None
    comes.
    """
    os.sched_setaffinity(0, {core})
    os.dup2(2, 1)  # what the packages print goes to stderr
    logging.disable(logging.INFO)
    judge = VERIFIERS[name].start()
    texts, golds = (list(column) for column in zip(*WARM_UP, strict=True))
    judge(texts, golds)
    connection.send("ready")
    while (batch := connection.recv()) is not None:
        start = time.perf_counter()
        try:
            results = judge(*batch)
        except Exception as error:  # a batch that raises tells nothing of its rows
            results = f"{type(error).__name__}: {error}"[:200]
        connection.send((time.perf_counter() - start, results))


class Worker:
    """A verifier in its own process, which is started again when it hangs."""

    def __init__(self, name: str, core: int):
        self.name, self.core = name, core
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(self.name, self.core, theirs), daemon=True
        )
        self.process.start()
        theirs.close()
        try:
            self.connection.recv()
        except EOFError:
            raise RuntimeError(f"{self.name} does not start; what it says is above") from None

    def close(self) -> None:
        try:
            self.connection.send(None)
            self.process.join(10)
        except OSError:
            pass
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def judge(self, texts: list[str], golds: list[str]) -> tuple[float, list[Result]]:
        """Return the seconds it took and a result for each row."""
        start = time.perf_counter()
        self.connection.send((texts, golds))
        try:
            if self.connection.poll(HANG_S + 5 * (len(texts) - 1)):
                seconds, results = self.connection.recv()
                failed = results if isinstance(results, str) else None
            else:
                failed = "hangs"
        except EOFError:
            failed = "the process died"
        if failed is None:
            return seconds, results
        if failed in ("hangs", "the process died"):
            self.process.kill()
            self.process.join()
            self.start()
        if len(texts) == 1:
            return time.perf_counter() - start, [
                Result("timed out" if failed == "hangs" else "error", failed)
            ]
        alone = [self.judge([text], [gold]) for text, gold in zip(texts, golds, strict=True)]
        return sum(seconds for seconds, _ in alone), [results[0] for _, results in alone]


def groups(rows: list[Row]) -> list[list[int]]:
    """Return the places of rows with the same gold, at most `GROUP` at a time, where there are two
    or more.
    """
    places = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.gold].append(place)
    parts = [same[i : i + GROUP] for same in places.values() for i in range(0, len(same), GROUP)]
    return [part for part in parts if len(part) > 1]


class Measured(NamedTuple):
    """What one verifier did with the rows of one file."""

    results: list[Result]
    seconds: float
    in_groups: dict[int, Result]
    group_seconds: float


def measure(
    files: dict[str, list[Row]], names: list[str], core: int, tell: Callable[[str], None]
) -> dict:
    """Return {file: {verifier: Measured}}."""
    batches = {
        file: [list(range(i, min(i + BATCH, len(rows)))) for i in range(0, len(rows), BATCH)]
        for file, rows in files.items()
    }
    kinds = (
        ("batches of 64", batches),
        ("groups of 8", {file: groups(rows) for file, rows in files.items()}),
    )
    found: dict = {
        kind: {file: {name: ({}, 0.0) for name in names} for file in files} for kind, _ in kinds
    }
    for kind, parts in kinds:
        workers = {name: Worker(name, core) for name in names}
        turn = 0
        for file, rows in files.items():
            tell(f"{kind}: {file}")
            for part in parts[file]:
                texts, golds = [rows[i].completion for i in part], [rows[i].gold for i in part]
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    seconds, results = workers[name].judge(texts, golds)
                    verdicts, total = found[kind][file][name]
                    verdicts.update(zip(part, results, strict=True))
                    found[kind][file][name] = (verdicts, total + seconds)
                turn += 1
        for worker in workers.values():
            worker.close()
    return {
        file: {
            name: Measured(
                [found["batches of 64"][file][name][0][i] for i in range(len(rows))],
                found["batches of 64"][file][name][1],
                *found["groups of 8"][file][name],
            )
            for name in names
        }
        for file, rows in files.items()
    }


def rate(rows: int, seconds: float) -> float | None:
    return round(rows / seconds, 1) if rows and seconds else None


def summary(rows: list[Row], measured: Measured) -> dict:
    """Return the figures of a line of the table."""
    verdicts = [result.verdict for result in measured.results]
    labelled = Counter(
        (row.right, verdict == "right") for row, verdict in zip(rows, verdicts, strict=True)
    )
    counts = Counter(verdicts)
    return {
        "rows": len(verdicts),
        "right": labelled[True, True] + labelled[True, False],
        "right credited": labelled[True, True],
        "wrong": labelled[False, True] + labelled[False, False],
        "wrong credited": labelled[False, True],
        "declined": counts["declined"],
        "errors": counts["error"],
        "timed out": counts["timed out"],
        "changed": sum(
            result.verdict != verdicts[place] for place, result in measured.in_groups.items()
        ),
        "a second": rate(len(rows), measured.seconds),
        "a second in groups": rate(len(measured.in_groups), measured.group_seconds),
    }


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"


COLUMNS = {
    "rows": lambda f: f"{f['rows']:,}",
    "right credited": lambda f: share(f["right credited"], f["right"]),
    "wrong credited": lambda f: share(f["wrong credited"], f["wrong"]),
    "declined": lambda f: str(f["declined"]),
    "errors": lambda f: str(f["errors"]),
    "timed out": lambda f: str(f["timed out"]),
    "changed": lambda f: str(f["changed"]),
    "a second": lambda f: f"{f['a second']:,.0f}" if f.get("a second") else "-",
    "in groups": lambda f: (
        f"{f['a second in groups']:,.0f}" if f.get("a second in groups") else "-"
    ),
}


def show(lines: list[tuple[str, str, dict]]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("data", overflow="fold")
    table.add_column("verifier", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    last = None
    for data, name, figures in lines:
        table.add_row(
            "" if data == last else data, name, *(cell(figures) for cell in COLUMNS.values())
        )
        last = data
    Console(width=max(140, Console().width)).print(table)


def write_disagreements(
    path: Path, files: dict[str, list[Row]], measured: dict, names: list[str]
) -> int:
    """Write every row on which the verifiers do not all say the same, or not what the label says;
    return how many.
    """
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for file, rows in files.items():
            for place, row in enumerate(rows):
                results = {name: measured[file][name].results[place] for name in names}
                said = {result.verdict == "right" for result in results.values()}
                if len(said | ({row.right} - {None})) == 1:
                    continue
                verdicts = {
                    name: " / ".join(filter(None, result)) for name, result in results.items()
                }
                out.write(
                    json.dumps(row._asdict() | {"verdicts": verdicts}, ensure_ascii=False) + "\n"
                )
                count += 1
    return count


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder with public files; docs/results/verifiers.md says which",
    )
    parser.add_argument(
        "--disagreements", type=Path, help="write every row on which not all agree, as .jsonl"
    )
    parser.add_argument(
        "--sample", type=int, help="at most so many rows of a file, drawn with a fixed seed"
    )
    parser.add_argument("--verifiers", default=",".join(VERIFIERS), help="default: %(default)s")
    chosen = parser.parse_args()
    if not chosen.data.is_dir():
        parser.error(f"{chosen.data} is no folder")
    if unknown := set(chosen.verifiers.split(",")) - VERIFIERS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(VERIFIERS)}")
    return chosen


def main() -> int:
    chosen = options()
    tell = Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print
    files = read_folder(chosen.data, chosen.sample)
    if not files:
        tell(f"There is no file to measure on in {chosen.data}.")
        return 1
    names = [name for name in chosen.verifiers.split(",") if find_spec(VERIFIERS[name].module)]
    for name in set(chosen.verifiers.split(",")) - set(names):
        tell(f"not installed: {VERIFIERS[name].package}")
    measured = measure(files, names, min(os.sched_getaffinity(0)), tell)
    lines = [
        (file, name, summary(rows, measured[file][name]))
        for file, rows in files.items()
        for name in names
    ]
    show(lines)
    if chosen.disagreements:
        count = write_disagreements(chosen.disagreements, files, measured, names)
        print(f"{count} rows on which not all agree: {chosen.disagreements}")
    figures = [{"data": data, "verifier": name} | values for data, name, values in lines]
    print(json.dumps({"benchmark": "verifiers", "lines": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
