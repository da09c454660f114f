r"""Your own mathematics file: check it, look at a prompt, grade completions.

own_data.jsonl has 12 rows. Its columns are called "Problem Statement" and "Final Answer", and the
answer of the last row is a sentence, which no verifier can compare. Run it:

    python examples/own_data.py

The same three steps on the command line:

    swift-rlvr dataset check math:examples/own_data.jsonl
    swift-rlvr dataset show math:examples/own_data.jsonl --model plugin/swift_rlvr/share/tiny_model/weights
    swift-rlvr explain '<think>9 pi</think><answer>28.27</answer>' --gold '$9\pi$'

`examples/swift_rlhf.sh` trains on this file.
"""

from pathlib import Path

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.sources import parse_source

DATA = Path(__file__).with_name("own_data.jsonl")


def main() -> None:
    # Rows that no reward can grade are left out and named, here and in a training.
    source = parse_source(f"math:{DATA}")
    rows, left_out = source.usable_rows()
    print(f"{len(rows)} rows can be used")
    print(left_out)

    # A raw row becomes the prompt and the columns that the rewards read.
    _, circle = rows[5]
    row = source.task.preprocess(circle)
    print(f"\nquestion: {row['messages'][-1]['content']}")
    print(f"gold answer: {row['solution']}\n")

    accuracy = REWARDS["accuracy"]()
    completions = [
        r"<think>pi times 3 squared</think><answer>\pi \cdot 3^2</answer>",
        "<think>2 pi r</think><answer>6 pi</answer>",
        "<think>It is about 28.27.</think><answer>28.27</answer>",
        "<think>pi times 3 squared, so 9 pi",
    ]
    for completion in completions:
        grade = accuracy.explain(completion, row)
        print(f"{grade.reward}  {grade.reason:<12} {completion}")

    # As a trainer calls it: a list of completions, and a list for each column.
    count = len(completions)
    rewards = accuracy(completions, solution=[row["solution"]] * count)
    print(f"\nrewards of the group: {rewards}")


if __name__ == "__main__":
    main()
