"""The reward for reasoning-gym: its reasons, and that no answer disturbs another or outlives its
limits.
"""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.verifiers.reasoning_gym import processes
from swift_rlvr.verifiers.reasoning_gym.verifier import Reason, grade_all
from swift_rlvr.verifiers.workers import start_code

pytestmark = pytest.mark.skipif(
    find_spec("reasoning_gym") is None, reason="needs the extra [reasoning-gym]"
)
in_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)
GCD = REWARDS["external_reasoning_gym"].examples[0].row["entry"]  # the right answer is 3


def written(name, answer="1", settings=None, **metadata):
    """An entry as nobody drew it."""
    encoded = ["dict", *map(list, metadata.items())]
    return json.dumps(
        {
            "task": name,
            "settings": settings or {},
            "question": "?",
            "answer": answer,
            "metadata": encoded,
        }
    )


WORD = written("ab", answer="ABBA")
GRID = written(
    "rotate_matrix", answer="3 1\n4 2", solution=["list", ["list", 3, 1], ["list", 4, 2]]
)
# A scorer of reasoning-gym that turns a cube as often as the row says, for minutes.
ENDLESS = written("rubiks_cube", cube_size=3, scramble_moves="R " * 1_000_000)
# One that makes a cube of 6 * 20,000 * 20,000 stickers
HUGE = written("rubiks_cube", cube_size=20_000, scramble_moves="R")


def tagged(answer):
    return f"<think>?</think><answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("text", "entry", "score", "reason"),
    [
        (tagged("3"), GCD, 1.0, Reason.CORRECT),
        (tagged(" 3\n"), GCD, 1.0, Reason.CORRECT),
        # out of what stands around all of it
        (tagged("\n```\n3\n```\n"), GCD, 1.0, Reason.CORRECT),
        (tagged("**$3$**"), GCD, 1.0, Reason.CORRECT),
        (tagged('"3"'), GCD, 1.0, Reason.CORRECT),
        (tagged("$3$ or $4$"), GCD, 0.1, Reason.PARTLY_RIGHT),
        (tagged("```\n3\n```\n```\n4\n```"), GCD, 1 / 19, Reason.PARTLY_RIGHT),
        (tagged("33"), GCD, 0.5, Reason.PARTLY_RIGHT),
        (tagged("1, 2 or 3"), GCD, 1 / 9, Reason.PARTLY_RIGHT),
        (tagged("4"), GCD, 0.0, Reason.WRONG),
        ("It is 3", GCD, 0.0, Reason.NO_ANSWER),
        ("297 = 3 * 99\n3", GCD, 1.0, Reason.CORRECT),
        ("<think>It is 4.</think>The answer is 3.", GCD, 1.0, Reason.CORRECT),
        # a word, a grid and a sentence, which are no value on one line
        ("x</think>ABBA", WORD, 1.0, Reason.CORRECT),
        ("Some steps.\nABBA", WORD, 1.0, Reason.CORRECT),
        ("x</think>It is\nABAB", WORD, 0.0, Reason.NO_ANSWER),
        ("x</think>No answer: \\boxed{}", WORD, 0.0, Reason.EMPTY_ANSWER),
        ("<think>ABBA</think>", WORD, 0.0, Reason.NO_ANSWER),
        ("Turned:\n**Answer:**\n3 1\n4 2", GRID, 1.0, Reason.CORRECT),
        ("Turned:\nAnswer: 3 1\n4 2", GRID, 1.0, Reason.CORRECT),
        ("x</think>3 1\n4 2", GRID, 1.0, Reason.CORRECT),
        ("Answer:\n3 1\n4 2\n\n4 2\n3 1", GRID, 0.4375, Reason.PARTLY_RIGHT),
        ("The answer is 2 or 3.", GCD, 0.0, Reason.NO_ANSWER),
        (None, GCD, 0.0, Reason.NO_ANSWER),
        ("<answer>3</answer></think>", GCD, 0.0, Reason.NO_ANSWER),
        ("</think><answer>3", GCD, 0.0, Reason.UNCLOSED_ANSWER),
        (tagged(" "), GCD, 0.0, Reason.EMPTY_ANSWER),
        (tagged("3" + " " * 10_000), GCD, 1.0, Reason.CORRECT),
        (tagged("3" * 1005), GCD, 0.0, Reason.TOO_LONG),
        (tagged("3\0\ud800"), GCD, 1 / 3, Reason.PARTLY_RIGHT),
        (tagged("3"), None, None, Reason.BAD_ROW),
        (tagged("3"), "{}", None, Reason.BAD_ROW),
        (tagged("3"), written("no_such_task"), None, Reason.BAD_ROW),
        (tagged("3"), written("gcd", settings={"no_such": 1}), None, Reason.BAD_ROW),
        (tagged("A+1"), written("rush_hour"), None, Reason.REFUSED_TASK),
        (tagged("3"), written("fraction_simplification", answer="1/2"), 0.01, Reason.PARTLY_RIGHT),
        (tagged("3"), written("countdown"), None, Reason.BAD_ROW),  # without its numbers
        (
            tagged("x"),
            written("prime_factorization", answer="2"),
            0.0,
            Reason.WRONG,
        ),  # theirs raises ValueError
    ],
)
def test_reasons(text, entry, score, reason):
    (scored,) = grade_all([text], [entry])
    assert (scored.score, scored.reason) == (pytest.approx(score) if score else score, reason), (
        scored
    )


def test_partial_credit_is_for_those_who_ask():
    texts, columns = [tagged("33"), tagged("3"), tagged("4"), ""], {"entry": [GCD] * 4}
    assert REWARDS["reasoning_gym"]()(texts, **columns) == [0.0, 1.0, 0.0, 0.0]
    assert REWARDS["reasoning_gym"](partial=True)(texts, **columns) == [0.5, 1.0, 0.0, 0.0]
    explanation = REWARDS["reasoning_gym"]().explain(tagged("33"), {"entry": GCD})
    assert (explanation.reward, explanation.reason, explanation.extracted) == (
        0.0,
        "partly right",
        "33",
    )
    assert explanation.rules[-1] == ("it is fully right", False, "the score is 0.5")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_answer_without_end_or_that_fills_the_memory_is_stopped_and_its_neighbours_are_graded(
    workers,
):
    texts = [tagged(text) for text in ("3", "R", "4")]
    scored = grade_all(texts, [GCD, ENDLESS, GCD], workers=workers)
    assert [each.reason for each in scored] == [Reason.CORRECT, Reason.TIMED_OUT, Reason.WRONG]
    scored = grade_all(
        texts, [GCD, HUGE, GCD], 60.0, 256, workers
    )  # the busier the machine, the more CPU time it takes
    assert [each.reason for each in scored] == [Reason.CORRECT, Reason.BAD_ROW, Reason.WRONG]
    assert scored[1].detail.startswith("MemoryError")


def workers_of_this_process():
    """The processes that score answers, by their command line."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            status = dict(
                line.split(":\t", 1)
                for line in (folder / "status").read_text().splitlines()
                if ":\t" in line
            )
            if (
                int(status["PPid"]) == os.getpid()
                and start_code(processes.MODULE).encode() in (folder / "cmdline").read_bytes()
            ):
                found.add(int(folder.name))
    return found


@in_proc
def test_workers_that_somebody_kills_are_replaced():
    for _ in range(2):
        assert [each.score for each in grade_all([tagged("3"), tagged("4")], [GCD] * 2)] == [
            1.0,
            0.0,
        ]
        assert workers_of_this_process()
        for pid in workers_of_this_process():
            os.kill(pid, signal.SIGKILL)


@in_proc
def test_a_process_that_was_forked_starts_its_own_and_ends_no_other():
    assert grade_all([tagged("3")], [GCD])[0].score == 1.0
    workers = workers_of_this_process()
    child = os.fork()
    if not child:
        os._exit(
            7
            if grade_all([tagged("3")], [GCD])[0].score == 1.0
            and not workers & workers_of_this_process()
            else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert workers_of_this_process() == workers


def test_in_threads_that_end():
    """On Linux a worker ends with the thread that started it."""
    for _ in range(2):
        with ThreadPoolExecutor(3) as pool:
            graded = list(
                pool.map(lambda _: grade_all([tagged("3"), tagged("4")], [GCD] * 2), range(3))
            )
        assert [[each.score for each in scored] for scored in graded] == [[1.0, 0.0]] * 3


@in_proc
def test_workers_have_given_up_all_but_computing():
    grade_all([tagged("3")], [GCD])
    for pid in workers_of_this_process():
        assert (
            "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text()
        )  # what that refuses: tests/verifiers/code
