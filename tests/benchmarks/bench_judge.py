r"""What a judge would credit wrongly: labelled rows, graded by the rule alone and with the judge.

The rows are those of the verifier's own table or of a file of yours, .jsonl with `gold`,
`completion` and a label: `right` (true or false) or `reward` (1.0 or 0.0). `question` may be there;
the judge sees it. Rows without a label are passed over. A row that is labelled wrong and that the
judge accepts is a false credit, and is written to --out to be read.

Start a server, such as `vllm serve MODEL --port 8000`, then:

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_judge.py --url http://127.0.0.1:8000/v1
           --model MODEL [--reward_funcs external_accuracy] [--out FILE.jsonl] [FILE.jsonl ...]
The key is read from SWIFT_RLVR_JUDGE_API_KEY. Prints a table and, last, one line of JSON; exits with
1 where the judge did not reply to every question.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.judge import JudgedReward, by_rule_alone
from swift_rlvr.success import BY_JUDGE
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_jsonl, write_jsonl

PAIRS = Path(__file__).parents[1] / "verifiers" / "mathematics" / "pairs.jsonl"
BATCH = 64


class Row(NamedTuple):
    gold: str
    completion: str
    right: bool
    question: str
    place: str  # file and line


def labelled_rows(path: Path) -> list[Row]:
    """The rows with a label; InputError for a line without gold and completion."""
    rows = []
    for number, row in read_jsonl(path):
        place = f"{path}, line {number}"
        if not {"gold", "completion"} <= row.keys():
            raise InputError(f"{place}: expected gold and completion, got {', '.join(row)}")
        if "right" not in row and "reward" not in row:
            raise InputError(f"{place}: expected a label, right or reward, got {', '.join(row)}")
        label = row.get("right", row.get("reward"))
        if label not in (None, 0, 1):
            raise InputError(f"{place}: expected a label of true, false, 1.0 or 0.0, got {label!r}")
        if label is not None:
            question = str(row.get("question") or "")
            rows.append(Row(row["gold"], row["completion"], bool(label), question, place))
    return rows


def graded(reward: Reward, rows: list[Row]) -> list[tuple[float | None, str]]:
    """Reward and reason of each row, in batches as a training has them."""
    gold_column = reward.columns[0]
    grades: list[tuple[float | None, str]] = []
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        columns = {
            gold_column: [row.gold for row in batch],
            "messages": [[{"role": "user", "content": row.question}] for row in batch],
        }
        grades += reward.grades([row.completion for row in batch], **columns)
    return grades


def main() -> int:
    """Grade all files, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, default=[PAIRS])
    parser.add_argument("--url", required=True, help="such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", required=True, help="the name of the model there")
    parser.add_argument("--reward_funcs", default="external_accuracy")
    parser.add_argument("--out", type=Path, help="a .jsonl file for what the judge accepts")
    options = parser.parse_args()
    try:
        rows = [row for path in options.files for row in labelled_rows(path)]
        cls = REWARDS[options.reward_funcs]
        # Each row is to be asked about, however slow the server is.
        judged = cls(
            judge_url=options.url,
            judge_model=options.model,
            judge_timeout=120.0,
            judge_batch_timeout=3600.0,
            judge_batch_calls=BATCH,
            judge_total_calls=10_000_000,
        )
        assert isinstance(judged, JudgedReward)
        by_rule = graded(by_rule_alone(cls), rows)
        started = time.perf_counter()
        with_judge = graded(judged, rows)
    except InputError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    seconds = time.perf_counter() - started
    judge = judged.model_judge
    assert judge is not None
    accepted = []
    for row, (_, rule_reason), (_, reason) in zip(rows, by_rule, with_judge, strict=True):
        if reason == BY_JUDGE:
            accepted.append({**row._asdict(), "rule": rule_reason})
    if options.out is not None:
        write_jsonl(options.out, accepted)

    wrong = sum(not row.right for row in rows)
    rule_credits = [row for row, (value, _) in zip(rows, by_rule, strict=True) if value == 1]
    figures = {
        "model": options.model,
        "rows": len(rows),
        "right": len(rows) - wrong,
        "wrong": wrong,
        "rule_right": sum(row.right for row in rule_credits),
        "rule_false": sum(not row.right for row in rule_credits),
        "asked": judge.calls,
        "replies": judge.replies,
        "judge_right": sum(row["right"] for row in accepted),
        "judge_false": sum(not row["right"] for row in accepted),
        "seconds": round(seconds, 1),
    }
    table = Table("credits", "of right rows", "of wrong rows (false credits)")
    for name, title in (("rule", "the rule"), ("judge", "the judge, beside these")):
        table.add_row(title, f"{figures[f'{name}_right']}", f"{figures[f'{name}_false']}")
    console = Console()
    console.print(table)
    asked = f"{judge.calls} of {len(rows)} rows were asked about, each different one once"
    console.print(f"{asked}; {judge.replies} replies of yes or no, {seconds:.1f} s")
    print(json.dumps(figures))
    return 0 if judge.replies == judge.calls else 1


if __name__ == "__main__":
    sys.exit(main())
