"""A verdict depends on the two texts alone: not on its neighbours, their order, threads, processes,
or the load.
"""

import ast
import json
import multiprocessing
import random
import subprocess
import sys
import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paths import PLUGIN
from swift_rlvr.verifiers.mathematics import Reason, functions, grade
from verifiers.mathematics.generated import COMPLETIONS, MARKS, PIECES, TEXTS
from verifiers.mathematics.tables import PAIRS

ROWS = 512
TABLE = [
    (case.completion, case.gold)
    for case in PAIRS
    if isinstance(case.gold, str) and isinstance(case.completion, str)
]


MARKED = [r"\boxed{%s}", "<answer>%s</answer>", "The answer is %s."]


def random_rows(count: int) -> list[tuple[str, str]]:
    """Completions of random pieces, half of them near their gold: with one piece put in or one
    character left out.
    """
    rng = random.Random(12)
    rows = []
    for number in range(count):
        _, gold = rng.choice(TABLE)
        answer = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 12)))
        if number % 2:
            place = rng.randrange(len(gold) + 1)
            piece = rng.choice([*PIECES, ""])
            answer = gold[:place] + piece + gold[place + rng.randint(0, 1) :]
        completion = rng.choice(MARKED).replace("%s", answer)
        rows.append((completion, gold))
    return rows


@pytest.fixture(scope="module")
def rows():
    return random.Random(5).sample(TABLE, ROWS // 2) + random_rows(ROWS // 2)


@pytest.fixture(scope="module")
def alone(rows):
    return [grade(*row) for row in rows]


def grade_rows(rows):
    return [grade(*row) for row in rows]


def test_among_8_and_among_512(rows, alone):
    assert {verdict.reward for verdict in alone} == {0.0, 1.0, None}
    assert {verdict.reason for verdict in alone} >= {
        Reason.CORRECT,
        Reason.WRONG,
        Reason.UNREADABLE,
        Reason.BAD_GOLD,
    }
    assert grade_rows(rows) == alone
    in_eights = []
    for place in range(0, ROWS, 8):
        in_eights += grade_rows(rows[place : place + 8])
    assert in_eights == alone


def test_in_another_order(rows, alone):
    assert grade_rows(rows[::-1])[::-1] == alone
    order = random.Random(3).sample(range(ROWS), ROWS)
    assert grade_rows([rows[number] for number in order]) == [alone[number] for number in order]


def test_in_threads_at_once(rows, alone):
    verdicts = {}
    interval = sys.getswitchinterval()
    precision = functions._context.prec

    def work(number):
        order = random.Random(number).sample(range(ROWS), ROWS)
        verdicts[number] = {place: grade(*rows[place]) for place in order}
        # mpmath raises its precision within these, for all threads
        for argument in range(100):
            grade(
                rf"\boxed{{\cot({argument}x) + \sec x + {number}}}",
                rf"\sec x + \cot({argument}x) + {number}",
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    # they take turns in the middle of everything
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert functions._context.prec == precision
    for number in range(6):
        assert [verdicts[number][place] for place in range(ROWS)] == alone


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_in_forked_children_while_a_thread_grades(rows, alone):
    stop = threading.Event()

    def keep_grading():
        number = 0
        while not stop.is_set():
            number += 1  # new texts: nothing comes from a cache
            grade(
                rf"\boxed{{\sin({number} x) + \ln({number} + x^2)}}",
                rf"\ln({number} + x^2) + \sin({number} x)",
            )

    context = multiprocessing.get_context("fork")
    thread = threading.Thread(target=keep_grading)
    thread.start()
    try:
        for _ in range(8):
            child = context.Process(target=lambda: sys.exit(grade_rows(rows) != alone))
            child.start()
            # one second is enough; a lock that nobody gives back would be for ever
            child.join(60)
            exitcode = child.exitcode
            child.kill()
            assert exitcode == 0
    finally:
        stop.set()
        thread.join()


VERIFIERS = PLUGIN / "swift_rlvr" / "verifiers"
# What finds the answer in a text.
FINDERS = ("answer_forms", "answers", "languages", "patterns", "statements", "thinking")
FILES = sorted((VERIFIERS / "mathematics").glob("*.py"))
FILES += [VERIFIERS / f"{name}.py" for name in FINDERS]


def imports(file):
    """The full names of the modules that a file imports."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def test_no_clock_no_process_and_no_chance():
    imported = {module.partition(".")[0] for file in FILES for module in imports(file)}
    assert "re" in imported
    assert not imported & {
        "time",
        "datetime",
        "signal",
        "random",
        "multiprocessing",
        "subprocess",
        "asyncio",
    }


def test_it_can_be_lifted_out_and_used_alone():
    """Of this project it imports nothing but its own folder and what finds the answer in a text."""
    for file in FILES:
        for module in imports(file):
            if module.startswith("swift_rlvr"):
                is_finder = module.removeprefix("swift_rlvr.verifiers.") in FINDERS
                alone = is_finder or module.startswith("swift_rlvr.verifiers.mathematics.")
                assert alone, f"{file.name} imports {module}"


SCRIPT = """
import json, sys
from swift_rlvr.verifiers.mathematics import grade
rows = json.load(sys.stdin)
verdicts = {place: grade(*rows[place]) for place in reversed(range(len(rows)))}
assert "sympy" not in sys.modules and "math_verify" not in sys.modules
json.dump([verdicts[place] for place in range(len(rows))], sys.stdout)
"""


def test_in_a_fresh_process_with_another_hash_seed(rows, alone):
    for seed in ("1", "2"):
        environment = {"PYTHONPATH": str(PLUGIN), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(
            command, input=json.dumps(rows), capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [list(verdict) for verdict in alone]


@settings(max_examples=1000, derandomize=True)
@given(
    st.one_of(COMPLETIONS, TEXTS.map(r"\boxed{{{}}}".format)),
    st.one_of(TEXTS, COMPLETIONS, st.none(), st.floats()),
)
@example(MARKS[4], MARKS[0])
def test_no_text_and_no_gold_raises(text, gold):
    verdict = grade(text, gold)
    assert verdict.reason is not Reason.ERROR
    assert verdict.reward == {Reason.CORRECT: 1.0, Reason.BAD_GOLD: None}.get(verdict.reason, 0.0)
    assert grade(text, gold) == verdict
