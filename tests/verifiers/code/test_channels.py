"""The way of an answer: code that answers in another order, more often, or for another call than it
is asked for; and what one completion could leave another that runs after it in the same folder.
"""

import time
from contextlib import closing

import pytest

from swift_rlvr.verifiers.code import Limits, check, read_tests
from swift_rlvr.verifiers.code.process import Zygotes
from swift_rlvr.verifiers.code.run import run_program

GENEROUS = Limits(seconds=60, memory_mb=256)

# What the runner has, found in its frames: code shares a process with it.
RUNNER = """
import os, sys, time

def in_frames(name):
    frame = sys._getframe()
    while frame:
        if name in frame.f_locals:
            return frame.f_locals[name]
        frame = frame.f_back

def answer(value, nonce=None):
    in_frames("report")({"kind": "value", "value": value, "nonce": nonce or in_frames("request")["nonce"]})

def each_pipe(action):
    for fd in range(3, 64):
        try:
            action(fd)
        except OSError:
            pass

seen = []
"""
ASSERTS = "assert f(1) == 2\nassert f(5) == 6\nassert f(7) == 8"
CALLS = {"fn_name": "f", "inputs": [[1], [5], [7]], "outputs": [2, 6, 8]}

# name -> code, and what becomes of the three tests
ATTACKS = {
    "ahead of all calls": (
        "for value in (2, 6, 8): answer(value, 'x')\ndef f(x): return 0",
        ["error"],
    ),
    "ahead of the next call": (
        "def f(x):\n    for value in (2, 6, 8): answer(value)\n    return 0",
        ["passed", "ended early", "wrong"],
    ),
    "twice": (
        "def f(x):\n    answer(x + 1)\n    return x + 1",
        ["passed", "ended early", "passed"],
    ),
    "for another call": (
        "def f(x):\n    seen.append(in_frames('request')['nonce'])\n    answer(x + 1, seen[0])\n    time.sleep(9)",
        ["passed", "ended early", "passed"],
    ),
    "changed later": (
        "def f(x):\n    seen.append(in_frames('request')['nonce'])\n    if seen[1:]: answer(2, seen[0])\n    return 0",
        ["wrong", "ended early", "wrong"],
    ),
    "again and again": (
        "def f(x):\n    while True: answer(2)",
        ["passed", "ended early", "wrong"],
    ),
    "without an end": (
        "def f(x):\n    while True: each_pipe(lambda fd: os.write(fd, b'[' * 60000))",
        ["too much output"] * 3,
    ),
    "by a pipe that is closed": (
        "def f(x):\n    if x == 5: each_pipe(os.close)\n    return x + 1",
        ["passed", "ended early", "passed"],
    ),
    "with no number": (
        "def f(x):\n    in_frames('report')({'kind': 'value', 'value': x + 1})\n    return x + 1",
        ["ended early"] * 3,
    ),
    "with a list in place of its number": (
        "def f(x):\n    answer(x + 1, [in_frames('request')['nonce']])\n    return x + 1",
        ["ended early"] * 3,
    ),
}


def reasons(code: str, tests: object, limits: Limits = GENEROUS, **options) -> list[str]:
    verdicts = check(RUNNER + code, read_tests(tests), limits, all_tests=True, **options)
    return [verdict.reason for verdict in verdicts]


@pytest.mark.parametrize("tests", [ASSERTS, CALLS], ids=["asserts", "calls"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_answer_counts_for_the_call_that_it_belongs_to(attack, tests):
    code, expected = ATTACKS[attack]
    assert reasons(code, tests) == expected


@pytest.mark.parametrize("tests", [ASSERTS, CALLS], ids=["asserts", "calls"])
def test_a_call_is_not_sent_before_the_last_one_is_answered(tests):
    """What the next test hands over may be what this one expects: ``decode("b")`` after
    ``encode("a") == "b"``.
    """
    code = """
def f(x):
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, False)
            if os.read(fd, 1 << 16):
                return "read ahead"
        except OSError:
            pass
    unread = in_frames("receive").__closure__
    if x == 1 and any("5" in str(cell.cell_contents) for cell in unread if type(cell.cell_contents) is bytearray):
        return "found ahead"
    return x + 1
"""
    first = {**CALLS, "inputs": [[1]], "outputs": [2]} if tests is CALLS else "assert f(1) == 2"
    assert reasons(code, tests)[:1] == reasons(code, first) == ["passed"]


def test_time_is_that_of_each_test_and_of_all_together():
    """Code that falls asleep at its second call loses that one; code that computes at each loses what
    comes after all of its time.
    """
    limits = Limits(seconds=1, memory_mb=256)
    asleep = "def f(x):\n    if x == 5: time.sleep(1000)\n    return x + 1"
    assert reasons(asleep, ASSERTS, limits) == ["passed", "timeout", "passed"]
    computing = """
def f(x):
    end = time.process_time() + 0.6
    while time.process_time() < end: pass
    return x"""
    many = "\n".join(f"assert f({number}) == {number}" for number in range(15))
    found = reasons(computing, many, Limits(seconds=1))
    assert found[0] == "passed" and found[-1] == "timeout" and found.count("passed") <= 9


LEAVING = {
    "nothing": "",
    "a file": "open('x', 'w').write('left')",
    "a file that is removed": "open('x', 'w').close(); os.remove('x')",
    "a look at the folder": "os.listdir('.')",
    "folders that nobody may enter": """
os.makedirs('a/b/c'); open('a/x', 'w')
try: os.mkdir('a/d', 0)
except PermissionError: pass
os.mkdir('a/e', 0o500)""",
    "many files": "for n in range(250): open(f'{n:0200}', 'w').close()",
    "many files that are removed": """
for n in range(250): open(f'{n:0200}', 'w').close()
for n in range(250): os.remove(f'{n:0200}')""",
    "a deep folder": "for _ in range(16): os.mkdir('a'); os.chdir('a')",
}
LOOKING = """
import os

def look():
    status = os.stat(".")
    times = [status.st_mtime, status.st_atime, status.st_ctime]
    times = [each for each in times if 0 < each < start]
    return [*times, status.st_size, status.st_nlink, oct(status.st_mode), os.listdir(".")]
"""


@pytest.mark.parametrize("left", LEAVING)
def test_nothing_is_seen_of_what_another_left_in_the_folder(left):
    """Neither by the next case of a program, nor by the next completion. The parent lists the folder,
    too, while code runs: only a time before that says something of others.
    """
    any_time = f"{LOOKING}start = 0\n"
    (first,) = run_program(f"{any_time}print(look())", [""], GENEROUS)
    by_turns = f"{any_time}if input() == '1': exec({LEAVING[left]!r})\nelse: print(look())"
    cases = {"inputs": ["1", "2", "1", "2"], "outputs": ["", first, "", first]}
    assert reasons(by_turns, cases) == ["passed"] * 4

    with closing(Zygotes()) as zygotes:
        for _ in range(2):
            leaving = f"def f(x):\n    exec({LEAVING[left]!r})\n    return x + 1"
            assert reasons(leaving, "assert f(1) == 2", zygotes=zygotes) == ["passed"]
            time.sleep(0.1)
            # The clock of files is behind by some milliseconds.
            looking = f"{LOOKING}start = {time.time() - 0.02}"
            tests = f"assert look() == {first}"
            assert reasons(looking, tests, zygotes=zygotes) == ["passed"]


ARGUMENTS = (
    *("{1: 'a', (1, 2): [3], None: 4, True: 5, 2.5: 6, b'a': 7}", "(1, (2, [3, (4,)]))", "()"),
    *("float('nan')", "-float('inf')", "[-0.0, 1.0, 1e400]", "1+2j", "b'\\x00\\xff'"),
    *("9223372036854775808", "-9223372036854775808", "{'dict': ['set', 1]}"),
    *("'\\ud800'", "'\\ud83d\\ude00'", "'\U0001f600\\x00\\u2028'", "...", "[..., {...: 1}]"),
)


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_an_argument_arrives_as_the_assert_writes_it(argument):
    """A row with an ellipsis raised, and JSON makes one character of two surrogates."""
    told = repr(eval(argument))
    code = "def f(x): return repr(x)"
    assert reasons(code, f"assert f({argument}) == {told!r}") == ["passed"]
    assert reasons(code, f"assert f(x={argument}) == {told!r}") == ["passed"]


def test_an_ellipsis_can_be_expected():
    assert reasons("def f(x): return x", "assert f(...) == ...") == ["passed"]
