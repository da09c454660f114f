"""What runs in the processes of `processes.py`: a job is a message, its item or score the report.

An answer has so many seconds of CPU time, measured by a timer whose signal ends the process,
whatever C code does. Once reasoning-gym is imported, the process can start no other one, open no
socket and write no file (`code.lockdown`).
"""

import copy
import json
import signal
from collections.abc import Mapping
from typing import Any

from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.code.child import connect
from swift_rlvr.verifiers.reasoning_gym import library
from swift_rlvr.verifiers.reasoning_gym.naming import Part
from swift_rlvr.verifiers.reasoning_gym.rows import BadEntry, dataset, item, read_entry, to_entry
from swift_rlvr.verifiers.reasoning_gym.scorers import SCORERS, without_wrapping
from swift_rlvr.verifiers.worker_limits import confine


def score(job: Mapping[str, Any]) -> dict[str, Any]:
    """The report on a job: the score of the answer, by our scorer or by reasoning-gym's, or why
    there is none.

    A scorer that raises an error for an answer cannot read it; one that does so for the right
    answer too has a bad row.
    """
    try:
        entry = read_entry(job["entry"])
        settings = json.dumps(entry["settings"], sort_keys=True)
        # Their scorers are methods of a dataset, of which the smallest will do.
        theirs = dataset(entry["task"], settings, seed=0, size=1)
    except (BadEntry, InputError, KeyError) as error:
        return {"bad_row": _shown(error)}
    scorer = SCORERS.get(entry["task"])

    def score_of(answer: str) -> float:
        own_entry = copy.deepcopy(entry)  # some write into it
        if scorer is None:
            return float(theirs.score_answer(answer, own_entry))
        return float(scorer(answer, own_entry, theirs))

    # Some answers are meant to stand in quotes, most are not: as written, and without what is around it.
    scores = []
    errors = []
    signal.setitimer(signal.ITIMER_PROF, job["seconds"])
    try:
        for reading in dict.fromkeys((job["answer"], without_wrapping(job["answer"]))):
            try:
                scores.append(score_of(reading))
            except Exception as error:  # of a scorer that does not expect such a text
                errors.append(error)
            if 1 in scores:
                break
        if scores:
            return {"score": max(scores)}
        try:
            score_of(entry["answer"])
        except Exception as error_of_gold:
            return {"bad_row": _shown(error_of_gold)}
        return {"error": _shown(errors[0])}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def draw(part: Part, split: str, number: int) -> dict[str, str]:
    """The row of an item, or why there is none."""
    try:
        return {"entry": to_entry(part, item(part, split, number))}
    except InputError as error:
        return {"refused": str(error)}
    except Exception as error:  # of a task that cannot make this item
        return {"error": _shown(error)}


def main() -> None:
    """Do jobs until there are no more messages; the first one has the limit of memory."""
    receive, report = connect()
    limits = receive()
    try:
        library.load()
    except InputError as error:
        report({"unavailable": str(error)})
        return
    confine(limits["memory"])
    report({})
    while job := receive():
        if "part" in job:
            part = Part(**job["part"])
            numbers = range(job["start"], job["start"] + job["size"])
            report({"items": [draw(part, job["split"], number) for number in numbers]})
        else:
            report(score(job))
