"""external_tool_call against the checker of the Berkeley Function Calling Leaderboard, on its rows.

Each row of the Python categories with a right call is answered with its right calls, and with eight
changed ones: in another order, one twice, one less, other accepted values, and arguments that are
left out, added or of another value or type. Both say what is right, ours with `loose_text`. The
package bfcl-eval holds rows and checker; it is unpacked, not installed, since it asks for the
clients of twenty vendors:

    pip download --no-deps bfcl-eval==2026.3.23 && unzip -q bfcl_eval-*.whl -d bfcl

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_tool_calls.py bfcl [--out FILE.jsonl]
Prints a table and, last, one line of JSON. --out gets the answers on which the two differ. Exits with 1
where a right answer is not paid, or where we refuse what BFCL takes.
"""

import argparse
import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.jsonl import write_jsonl
from swift_rlvr.verifiers.tool_calls import Call, GoldCall, in_hermes, read_golds, read_tools

CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
)
CHANGES = ("left out", "added", "upper case", "number", "float", "list", "text", "null")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bfcl", type=Path, help="the folder in which bfcl_eval lies")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    theirs = their_checker(options.bfcl)

    answers: list[dict[str, Any]] = []
    for row in rows_of(options.bfcl / "bfcl_eval" / "data"):
        prepared = TASKS["tool_calls"].preprocess(row)
        for change, calls in answers_of(prepared):
            answers.append({"row": row, "prepared": prepared, "change": change, "calls": calls})
    columns = {
        name: [answer["prepared"][name] for answer in answers] for name in ("functions", "calls")
    }
    texts = [in_hermes(answer["calls"]) for answer in answers]
    start = time.process_time()
    grades = REWARDS["tool_call"](loose_text=True).grades(texts, **columns)
    seconds = time.process_time() - start

    verdicts: Counter[tuple[str, float | None, float]] = Counter()
    differing = []
    for answer, grade in zip(answers, grades, strict=True):
        their_reward, problem = theirs(answer["row"], answer["calls"])
        verdicts[answer["change"], grade.reward, their_reward] += 1
        if grade.reward != their_reward:
            written = [call._asdict() for call in answer["calls"]]
            shown = {"id": answer["row"]["id"], "change": answer["change"], "calls": written}
            differing.append(
                {**shown, "ours": grade.reward, "theirs": their_reward, "why": problem}
            )
    if options.out:
        write_jsonl(options.out, differing)
    return report(verdicts, len(answers) / seconds)


def rows_of(data: Path) -> Iterator[dict[str, Any]]:
    """The rows of the categories with their right calls."""
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        golds = {}
        for line in (data / "possible_answer" / name).read_text(encoding="utf-8").splitlines():
            gold = json.loads(line)
            golds[gold["id"]] = gold["ground_truth"]
        for line in (data / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield {**row, "ground_truth": golds[row["id"]], "category": category}


def answers_of(prepared: dict[str, Any]) -> Iterator[tuple[str, list[Call]]]:
    """The right calls of a row, and changed ones, each with the name of the change."""
    tools = {tool.name: tool for tool in read_tools(prepared["functions"])}
    golds = read_golds(prepared["calls"], list(tools.values()))
    right = [gold.example(tools[gold.name]) for gold in golds]
    drawn = random.Random(prepared["calls"])
    yield "right", right
    yield "other order", right[::-1]
    yield "one twice", [*right, right[0]]
    yield "one less", right[:-1]
    yield (
        "other values",
        [other_values(gold, call, drawn) for gold, call in zip(golds, right, strict=True)],
    )
    for change in drawn.sample(CHANGES, 4):
        calls = copy.deepcopy(right)
        call = drawn.choice(calls)
        if call.arguments:
            change_one(call.arguments, change, drawn)
        yield change, calls


def other_values(gold: GoldCall, right: Call, drawn: random.Random) -> Call:
    """The call with any of the accepted values of each argument that is one value."""
    arguments = dict(right.arguments)
    for name in arguments:
        values = [value for value in gold.accepted[name] if value != ""]
        if values and not any(isinstance(value, (dict, list)) for value in values):
            arguments[name] = drawn.choice(values)
    return Call(gold.name, arguments)


def change_one(arguments: dict[str, Any], change: str, drawn: random.Random) -> None:
    """Change one argument, if it is of a type that can be changed so."""
    name = drawn.choice(list(arguments))
    value = arguments[name]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if change == "left out":
        del arguments[name]
    elif change == "added":
        arguments["another"] = 1
    elif change == "upper case" and isinstance(value, str):
        arguments[name] = value.upper()
    elif change == "number" and is_number:
        arguments[name] = value + 1
    elif change == "float" and is_number:
        arguments[name] = float(value)
    elif change == "list":
        arguments[name] = [value]
    elif change == "text":
        arguments[name] = str(value)
    elif change == "null":
        arguments[name] = None


def their_checker(folder: Path) -> Any:
    """BFCL's checker as a function of a row and calls: its reward, and why it is 0.

    The table of models that it imports asks for the clients of all vendors, and the readers of Java
    and JavaScript for parsers; none is needed for calls of Python.
    """
    sys.path.insert(0, str(folder))

    class Model:
        underscore_to_dot = False

    models = ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = {"any": Model}  # type: ignore[attr-defined]
    sys.modules[models.__name__] = models
    for language in ("java", "js"):
        folder_name = "bfcl_eval.eval_checker.ast_eval.type_convertor"
        converter = ModuleType(f"{folder_name}.{language}_type_converter")
        setattr(converter, f"{language}_type_converter", None)
        sys.modules[converter.__name__] = converter
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(row: dict[str, Any], calls: list[Call]) -> tuple[float, str]:
        written = [{call.name: copy.deepcopy(call.arguments)} for call in calls]
        verdict = ast_checker(
            row["function"], written, row["ground_truth"], Language.PYTHON, row["category"], "any"
        )
        return (1.0, "") if verdict["valid"] else (0.0, str(verdict["error"]))

    return check


def report(verdicts: Counter[tuple[str, float | None, float]], speed: float) -> int:
    table = Table("answer", "answers", "both pay", "both refuse", "we alone pay", "BFCL alone pays")
    totals: Counter[tuple[float | None, float]] = Counter()
    for change in dict.fromkeys(change for change, _, _ in verdicts):
        by_verdict = {key[1:]: count for key, count in verdicts.items() if key[0] == change}
        totals.update(by_verdict)
        pairs = ((1.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
        counts = [by_verdict.get(pair, 0) for pair in pairs]
        table.add_row(change, *(f"{count:,}" for count in (sum(by_verdict.values()), *counts)))
    Console().print(table)
    right_unpaid = sum(
        count for (change, ours, _), count in verdicts.items() if change == "right" and ours != 1.0
    )
    agreed = totals[1.0, 1.0] + totals[0.0, 0.0]
    figures = {
        "answers": sum(totals.values()),
        "agreed": agreed,
        "we_alone_pay": totals[1.0, 0.0],
        "bfcl_alone_pays": totals[0.0, 1.0],
        "right_unpaid": right_unpaid,
        "answers_a_second": round(speed),
    }
    missed = [name for name in ("right_unpaid", "bfcl_alone_pays") if figures[name]]
    print(json.dumps({**figures, "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
