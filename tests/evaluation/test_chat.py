"""Asking a model: the real tiny model, its streamed answers, its system prompt, graded tasks, conversations, errors."""

import json
import os
import pty
import sys

import pytest
from paths import DATASETS
from swift_rlvr.cli import app
from swift_rlvr.cli.chat import chat as chat_command
from swift_rlvr.countdown import verify
from swift_rlvr.data.sources import parse_source
from swift_rlvr.evaluation.chat import Question, converse, countdown_question, row_question
from swift_rlvr.sampling import SamplingSettings, open_engine
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT, to_messages
from swift_rlvr.tasks.task import with_system
from swift_rlvr.tiny_model import WEIGHTS
from typer.testing import CliRunner

pytestmark = pytest.mark.slow  # as a whole

HELD_OUT = DATASETS / "countdown" / "tiny_test.jsonl"


@pytest.fixture(scope="module")
def engine():
    with open_engine(SamplingSettings(str(WEIGHTS), temperature=0, max_completion_length=100)) as opened:
        yield opened


def answer(engine, messages):
    return engine.stream(messages, lambda text: None)


def run(*arguments: object, **options):
    return CliRunner().invoke(app, ["chat", str(WEIGHTS), *map(str, arguments)], **options)


def test_a_countdown_task_is_asked_word_for_word_as_in_training_and_graded_by_the_verifier():
    question = countdown_question("7 3 5", "22")
    assert with_system(question.messages, SYSTEM_PROMPT) == to_messages([7, 3, 5], 22)
    for text in ("<answer>3 * 5 + 7</answer>", "<answer>3 * 5</answer>", "no answer", "<answer>3 * 5 + 7"):
        graded, verdict = question.grade(text), verify(text, [7, 3, 5], 22)
        assert (graded.reward, graded.reason) == (verdict.reward, verdict.reason)
        assert graded.rules
    assert Question([{"role": "user", "content": "1 + 1?"}]).grade("2") is None


def test_rows_of_a_mixed_file_are_graded_by_their_own_task(tmp_path):
    rows = [
        {"task": "countdown", "nums": [3, 5, 7], "target": 22},
        {"task": "math", "messages": [{"role": "user", "content": "1 + 1?"}], "solution": "2"},
    ]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = parse_source(f"mixed:{tmp_path / 'mixed.jsonl'}")
    assert row_question(source, 1).grade("<answer>3*5+7</answer>").reward == 1.0
    graded = row_question(source, 2).grade("<answer>2</answer>")
    assert (graded.reward, graded.reason) == (1.0, "correct")


def test_a_conversation_remembers_and_leaves_out_the_oldest_when_it_is_too_long(engine):
    question = countdown_question([3, 5, 7], 22).messages[0]["content"]
    notes: list[str] = []
    questions = iter([question, "And in another way?", "", "never asked"])
    messages = converse(engine, SYSTEM_PROMPT, questions, lambda text: None, notes.append)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert messages[0]["content"] == question
    assert messages[1]["content"] == answer(engine, to_messages([3, 5, 7], 22)).text
    assert messages[3]["content"] == answer(engine, with_system(messages[:3], SYSTEM_PROMPT)).text
    assert next(questions) == "never asked"

    # The model reads 1,024 tokens, 100 of them its answer: one such question has room, two have not.
    long = [question + " 1" * 300, "And now? " + "2 " * 250]
    messages = converse(engine, SYSTEM_PROMPT, long, lambda text: None, notes.append)
    assert [message["content"][:8] for message in messages[::2]] == ["And now?"]
    assert any("left out" in note for note in notes)


def test_the_command_streams_grades_and_says_which_prompt_it_used():
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
        (["1 + 1?", "--nums", "3 5", "--target", 8], "expected one of QUESTION, --nums"),
        (["--dataset", f"countdown:{HELD_OUT}", "--row", 10_000], "has no row 10000"),
        (["--dataset", "countdown:gone.jsonl"], "cannot read gone.jsonl: No such file"),
        ([], "give a QUESTION"),
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


def test_a_conversation_on_a_terminal_ends_with_an_empty_line(capsys, monkeypatch):
    """A real pseudo-terminal: without one the command asks for a question."""
    ours, theirs = pty.openpty()
    os.write(ours, b"What is 1 + 1?\nAnd 2 + 2?\n\nnever asked\n")
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        chat_command(str(WEIGHTS), max_completion_length=8, temperature=0)
    os.close(ours)
    shown = capsys.readouterr()
    assert "An empty line or Ctrl-D ends the conversation." in shown.err
    assert shown.err.count("8 tokens, cut off by --max_completion_length") == 2
    assert shown.out.count("you>") == 3
