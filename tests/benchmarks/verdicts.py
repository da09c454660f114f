"""Every verdict of the rewards on the same inputs, before and after a change; none should differ.

    export PYTHONPATH=plugin
    python tests/benchmarks/verdict_inputs.py ../shared/real_math INPUTS  # once
    python tests/benchmarks/verdicts.py INPUTS > AFTER
    python tests/benchmarks/verdicts.py --compare BEFORE AFTER

The last exits with 1 where a verdict has changed.
"""

import json
import sys
from pathlib import Path


def verdicts(path: Path) -> None:
    """Print a JSON line for every reward of every input; an input is [[[reward, parameters], ...],
    completion, row].
    """
    from swift_rlvr.rewards import REWARDS
    from swift_rlvr.rewards.base import Grade

    inputs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    batches: dict[
        str, list[int]
    ] = {}  # in batches of one reward and one set of columns, in the order of the file
    for number, (rewards, _, row) in enumerate(inputs):
        for reward in rewards:
            batches.setdefault(json.dumps([*reward, sorted(row)]), []).append(number)
    for key, numbers in batches.items():
        name, parameters, columns = json.loads(key)
        completions = [inputs[number][1] for number in numbers]
        values = {column: [inputs[number][2][column] for number in numbers] for column in columns}
        try:
            grades = REWARDS[name](**parameters).grades(completions, **values)
        except ValueError as error:  # a column that a test leaves out
            grades = [Grade(None, str(error))] * len(completions)
        for number, (value, reason) in zip(numbers, grades, strict=True):
            shown = {
                "completion": str(inputs[number][1])[-300:],
                "row": str(inputs[number][2])[:300],
            }
            line = {
                "input": number,
                "reward": [name, parameters],
                "verdict": [value, str(reason)],
                **shown,
            }
            print(json.dumps(line))


def compare(before: Path, after: Path) -> int:
    """Print each verdict that differs, and how many; return how many."""
    first, second = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    changed = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    for pair in changed:
        print(*pair, sep="\n", end="\n\n")
    print(f"{len(changed)} of {len(first)} verdicts differ")
    return len(changed)


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(compare(*map(Path, sys.argv[2:])) > 0)
    verdicts(Path(sys.argv[1]))
