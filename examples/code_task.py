"""Your own programming tasks: tests that no prompt shows, and a sandbox that code cannot fool.

code_task.jsonl has two tasks, each with visible tests and a reference solution. Run it on Linux, in
a few seconds:

    python examples/code_task.py

The same steps on the command line:

    swift-rlvr dataset check code:examples/code_task.jsonl
    swift-rlvr dataset prepare code:examples/code_task.jsonl --add_cases 10 --out more.jsonl
    swift-rlvr explain - --row more.jsonl:1 --reward_funcs code <answer.md

Then train with `--dataset code:more.jsonl --reward_funcs external_code`.
"""

from pathlib import Path

from swift_rlvr.evaluation.added_cases import add_cases
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.sources import parse_source

DATA = Path(__file__).with_name("code_task.jsonl")
COMPLETIONS = {
    "right": """
def median(numbers):
    ordered, half = sorted(numbers), len(numbers) // 2
    return (ordered[half] + ordered[-half - 1]) / 2
""",
    "memorised": """
def median(numbers):
    return {(3, 1, 2): 2, (4, 1, 3, 2): 2.5}.get(tuple(numbers), 0)
""",
    "equal to everything": """
class Anything(float):
    __eq__ = lambda self, other: True

def median(numbers):
    return Anything()
""",
    "writes a file": """
open("/tmp/median", "w").write("2")

def median(numbers):
    return 2
""",
    "hangs": """
def median(numbers):
    while True:
        pass
""",
}


def main() -> None:
    source = parse_source(f"code:{DATA}")
    rows, _ = source.usable_rows()

    # Reference solutions answer calls that the visible tests do not make.
    with_tests = list(add_cases(source, rows, count=10, seed=0))
    for case in with_tests:
        print(f"line {case.line}: {case.added} tests were added")

    row = source.task.preprocess(with_tests[0].row)
    print(f"\nprompt: {row['messages'][-1]['content']}\n")
    code = REWARDS["code"](timeout=2)  # seconds of CPU time for each test
    for name, program in COMPLETIONS.items():
        grade = code.explain(f"```python{program}```", row)
        print(f"{grade.reward}  {name:<20} {grade.reason}")


if __name__ == "__main__":
    main()
