"""Asking a model: the real tiny model, its answers, its system prompt, graded tasks, errors."""

import json

import pytest
from paths import DATASETS
from swift_rlvr.cli import app
from swift_rlvr.countdown import verify
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.tiny_model import WEIGHTS
from typer.testing import CliRunner

pytestmark = pytest.mark.slow  # as a whole

HELD_OUT = DATASETS / "countdown" / "tiny_test.jsonl"


def run(*arguments: object, **options):
    return CliRunner().invoke(app, ["chat", str(WEIGHTS), *map(str, arguments)], **options)


def test_rows_of_a_mixed_file_are_asked_and_graded_by_their_own_task(tmp_path):
    rows = [
        {"task": "countdown", "nums": [3, 5, 7], "target": 22},
        {"task": "math", "messages": [{"role": "user", "content": "1 + 1?"}], "solution": "2"},
    ]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number, verifier in ((1, "external_countdown"), (2, "external_accuracy")):
        shown = run("--dataset", f"mixed:{tmp_path / 'mixed.jsonl'}", "--row", number, "--json", "--temperature", 0)
        output = json.loads(shown.stdout)
        verdict = REWARDS[verifier]().explain(output["answer"], rows[number - 1])
        assert (output["reward"], output["reason"]) == (verdict.reward, verdict.reason)


def test_the_command_grades_and_says_which_prompt_it_used():
    result = run("--nums", "3 5 7", "--target", 22, "--max_completion_length", 20)
    assert result.exit_code == 0, result.output
    text, _, grade = result.stdout.partition("countdown: reward 0.0 (no answer)")  # nobody gets there in 20 tokens
    assert text.startswith("<think>\n") and len(text) > 20
    assert "there is an <answer> block" in grade
    assert "20 tokens, cut off by --max_completion_length" in result.stderr
    assert "the task countdown" in result.stderr
    assert "Using the numbers [3, 5, 7], create an equation that equals 22." in result.stderr


def test_json_for_programs_is_all_there_is_on_standard_output():
    result = run("--dataset", f"countdown:{HELD_OUT}", "--row", 3, "--json", "--temperature", 0)
    output = json.loads(result.stdout)
    row = json.loads(HELD_OUT.read_text().splitlines()[2])
    assert output["messages"] == to_messages(row["nums"], row["target"])
    verdict = verify(output["answer"], row["nums"], row["target"])
    assert (output["reward"], output["reason"]) == (verdict.reward, verdict.reason)
    assert output["finish"] in ("stop", "length") and output["tokens"] > 1


def test_a_question_from_standard_input_with_a_system_prompt_of_ones_own():
    output = json.loads(run("-", "--system", "Think.", "--json", "--max_completion_length", 3, input="1 + 1?").stdout)
    assert output["messages"] == [{"role": "system", "content": "Think."}, {"role": "user", "content": "1 + 1?"}]
    assert "reward" not in output
    bare = json.loads(run("1 + 1?", "--system", "", "--json", "--max_completion_length", 3).stdout)
    assert [message["role"] for message in bare["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--nums", "3 5"], "--nums and --target belong together"),
        (["--nums", "3 five", "--target", 8], r"--nums and --target: column 'nums': expected whole numbers"),
        (["1 + 1?", "--nums", "3 5", "--target", 8], "expected one of QUESTION (- for standard input), --nums"),
        (["--dataset", f"countdown:{HELD_OUT}", "--row", 10_000], "has no row 10000"),
        (["--dataset", "countdown:gone.jsonl"], "cannot read gone.jsonl: No such file"),
        ([], "expected one of QUESTION"),
        (["  "], "QUESTION is empty"),
        (["1 + 1?", "--temperature", "nan"], "--temperature must be a finite number, got nan"),
        (["1 + 1?", "--max_completion_length", 0], "--max_completion_length must be at least 1"),
        (["1 + 1?", "--seed", -1], "--seed must be at least 0"),
        (["1 " * 600], "--max_completion_length must be at most"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, problem):
    result = run(*arguments)
    assert result.exit_code == 2 and not result.stdout
    assert problem in result.stderr and "Traceback" not in result.stderr
