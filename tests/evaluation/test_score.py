"""Scoring files: rewards equal to direct grading, in order, whatever the workers; a broken line
harms no other.
"""

import gzip
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from present import present
from swift_rlvr.cli.app import app
from swift_rlvr.evaluation.completion_files import Block, find_files
from swift_rlvr.evaluation.completion_forms import (
    items_of,
    read_object,
    with_columns_from_prompt,
)
from swift_rlvr.evaluation.score import default_rewards, grade_block, score_files
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import build_rewards, columns_for
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.countdown import read_prompt, to_messages
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, read_jsonl

COUNTDOWN = [CountdownReward()]
ANSWERS = ["1 + 2 * 3 = 7", "1 + 2 + 3", "(1 + 2) * 3", "1 + 2 + 4", "", "seven"]


class Length(Reward):
    name, role, reasons = "external_test_length", "shaping", ("measured",)

    def grade(self, text, row):
        return Grade(float(len(text)), "measured")


class NeedsLimit(Reward):
    name, role, columns, reasons = "external_test_limit", "verifier", ("limit",), ("short", "long")

    def grade(self, text, row):
        return Grade(1.0, "short") if len(text) < row["limit"] else Grade(0.0, "long")


class RunsCode(Length):
    name, runs_code = "external_test_code", True


@pytest.fixture
def registry(monkeypatch):
    """The registry with Countdown and the rewards above only."""
    for name in set(REWARDS) - {"external_countdown"}:
        monkeypatch.delitem(REWARDS, name)
    for reward in (Length, NeedsLimit, RunsCode):
        monkeypatch.setitem(REWARDS, reward.name, reward)


def record(index: int) -> dict:
    thought = f"<think>{index}: " + "1 + 2 is 3. " * (index % 40) + "</think>"
    answer = f"<answer>{ANSWERS[index % len(ANSWERS)]}</answer>"
    return {"completion": thought + answer, "nums": [1, 2, 3], "target": 6 + index % 4}


def lines_of(rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def direct(rows) -> list[Grade]:
    completions = [row["completion"] for row in rows]
    return COUNTDOWN[0].grades(completions, **columns_for(COUNTDOWN[0], rows))


def scored(files, **options):
    """What is written of each completion, and the summary."""
    out = files[0].with_suffix(".scored.jsonl")
    summary = score_files(files, COUNTDOWN, out, **options)
    return [row for _, row in read_jsonl(out)], summary


def graded(records) -> list[Grade]:
    return [
        Grade(row["rewards"]["external_countdown"], row["reasons"]["external_countdown"])
        for row in records
    ]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_order_and_grades_are_those_of_direct_grading(tmp_path, monkeypatch, workers):
    monkeypatch.setattr("swift_rlvr.evaluation.completion_files._BLOCK_SIZE", 5_000)
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    rows = [list(map(record, range(1500))), list(map(record, range(7, 300)))]
    for file, part in zip(files, rows, strict=True):
        file.write_bytes(lines_of(part))
    done: list[float] = []
    records, summary = scored(files, workers=workers, advance=done.append)
    assert [(row["file"], row["line"]) for row in records] == [
        (str(file), line)
        for file, part in zip(files, rows, strict=True)
        for line in range(1, len(part) + 1)
    ]
    expected = direct(rows[0]) + direct(rows[1])
    assert graded(records) == expected
    figures = summary["rewards"]["external_countdown"]
    assert figures["mean"] == pytest.approx(
        sum(present(grade.reward) for grade in expected) / len(expected)
    )
    assert figures["reasons"] == Counter(grade.reason for grade in expected)
    assert done == sorted(done) and done[-1] == 1 and len(done) > 20


good_rows = st.lists(st.integers(0, 50).map(record), min_size=1, max_size=6)
broken = st.sampled_from(
    [
        b"{",
        b'{"completion": "<answer>',
        b"[1]",
        b"\xff\xfe",
        b"nul",
        b'{"nums": [1]}',
        b"[" * 9999,
        b"\x00",
        b"",
        b"  ",
    ]
)


@given(
    rows=good_rows,
    garbage=st.lists(st.tuples(st.integers(0, 6), broken), max_size=4),
    size=st.integers(1, 300),
)
def test_a_broken_line_never_touches_its_neighbours(tmp_path_factory, rows, garbage, size):
    lines = [(lines_of([row]).strip(), row) for row in rows]
    for place, line in garbage:
        lines.insert(place, (line, None))
    file = tmp_path_factory.mktemp("broken") / "x.jsonl"
    file.write_bytes(b"\n".join(line for line, _ in lines))
    blank = sum(not line.strip() for line, _ in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swift_rlvr.evaluation.completion_files._BLOCK_SIZE", size)
        records, summary = scored([file], workers=1)
    assert graded(records) == direct(rows)
    assert [row["line"] for row in records] == [
        n for n, (_, row) in enumerate(lines, start=1) if row is not None
    ]
    assert summary["unusable"] == len(lines) - len(rows) - blank == len(summary["problems"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON (Expecting property name"),
        (b'{"completion": "\xff"}', "not UTF-8 text"),
        ("[" * 100_000, "nested too deeply"),
        ('{"completion": ' + "9" * 5000 + "}", "not JSON (Exceeds the limit"),
        ("[1]", "expected an object such as {...}, got [1]"),
        (
            '{"nums": [1], "text": "a"}',
            "no completion: expected a column such as completion, response or output (--columns "
            "names another), or messages that end with the assistant's turn, got 'nums', 'text'",
        ),
        ("{}", "got nothing"),
        ('{"completion": null}', "completion is null"),
        (
            '{"completion": true}',
            "completion: expected a text, a list of messages or a list of completions, got true",
        ),
        ('{"completion": {"role": "assistant"}}', 'got {"role": "assistant"}'),
        ('{"completion": []}', "got []"),
        (
            '{"completion": ["a", "b"], "prompt": ["p"]}',
            "unequal length: completion has 2, prompt has 1",
        ),
        ('{"responses": [], "answer": "7"}', "responses: expected a text, a list of messages or"),
    ],
)
def test_malformed_lines(line, message):
    with pytest.raises(LineError) as raised:
        items_of(read_object(line))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"completion": "a"}, [(None, "a")]),
        ({"response": "a", "messages": []}, [(None, "a")]),  # swift infer
        ({"completion": "a", "response": "b"}, [(None, "a")]),
        (
            {"completion": [{"role": "assistant", "content": "a"}]},
            [(None, [{"role": "assistant", "content": "a"}])],
        ),
        ({"completion": ["a", "b"], "advantages": [0.1, -0.1]}, [(1, "a"), (2, "b")]),
        # The numbers of one row are no list with a value for each completion.
        ({"completion": ["a", "b"], "nums": [1, 2], "target": 3}, [(1, "a"), (2, "b")]),
        (
            {"step": [], "prompt": [], "completion": []},
            [],
        ),  # ms-swift writes one where nothing was logged
    ],
)
def test_forms_of_lines(line, expected):
    assert [(item.position, item.completion) for item in items_of(line)] == expected


def table(rows, **changed) -> dict:
    """What ms-swift's `log` writes for one step: no columns of the dataset, the prompt rendered."""
    prompts = [
        "<|im_start|>system\nYou think.<|im_end|>\n<|im_start|>user\n"
        f"{to_messages(row['nums'], row['target'])[1]['content']}<|im_end|>\n<|im_start|>assistant\n"
        for row in rows
    ]
    completions = [row["completion"] for row in rows]
    made = {"step": ["7"] * len(rows), "prompt": prompts, "completion": completions}
    return {
        **made,
        "CountdownReward": [float("nan")] * len(rows),
        "advantages": [0.0] * len(rows),
        **changed,
    }


def test_tables_of_ms_swift(tmp_path):
    rows = list(map(record, range(16)))
    file = tmp_path / "completions.jsonl"
    file.write_bytes(lines_of([table(rows[:8]), {"oops": 1}, table(rows[8:])]))
    records, summary = scored([file])
    assert graded(records) == direct(rows)
    assert [(row["line"], row["position"]) for row in records] == [
        (n, p) for n in (1, 3) for p in range(1, 9)
    ]
    assert summary["from_prompt"] == 16 and summary["unusable"] == 1


def test_one_bad_completion_of_a_table(tmp_path):
    rows = list(map(record, range(3)))
    made = table(rows)
    made["prompt"][1], made["completion"][2] = "What is 1 + 1?", None
    file = tmp_path / "completions.jsonl"
    file.write_bytes(lines_of([made]))
    records, summary = scored([file])
    assert graded(records) == direct(rows[:1])
    named = [problem.partition("jsonl, ")[2] for problem in summary["problems"]]
    expected = [
        "line 1, completion 2: external_countdown needs the column 'nums', ",
        "line 1, completion 3: expected a text or a list of messages, got null",
    ]
    assert len(named) == len(expected)
    assert all(map(str.startswith, named, expected))


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (to_messages([7, 3, 5], 22)[1]["content"], ([7, 3, 5], 22)),
        (to_messages([7], -2)[1]["content"], ([7], -2)),
        ("Using the numbers [1, 2], create an equation that equals 3.", ([1, 2], 3)),
        ("Using the numbers [1, 2], create an equation that equals 3." * 2, ([1, 2], 3)),
        # An earlier turn of the policy must not put another task in place of the one that was
        # asked.
        (
            "".join(
                f"Using the numbers [{n}], create an equation that equals {n}." for n in (1, 2)
            ),
            None,
        ),
        ("Using the numbers [], create an equation that equals 3.", None),
        ("Using the numbers [ , ], create an equation that equals 3.", None),
        (f"Using the numbers [{'9' * 5000}], create an equation that equals 3.", None),
        ("Using the numbers [" * 50_000, None),
        ("", None),
    ],
)
def test_task_from_the_prompt(prompt, expected):
    assert read_prompt(prompt) == expected


def test_where_prompts_stand():
    turns = to_messages([1, 2], 3)
    for row in ({"prompt": turns}, {"messages": [*turns, {"role": "assistant", "content": "3"}]}):
        found = with_columns_from_prompt(row)
        assert (found["nums"], found["target"]) == ([1, 2], 3)
    unreadable: list[dict] = [
        {"prompt": turns, "nums": [5]},
        {"prompt": 3},
        {"messages": 3},
        {"messages": [3]},
        {"prompt": None},
    ]
    for row in unreadable:
        assert with_columns_from_prompt(row) is row


def test_a_task_of_ones_own_says_what_its_prompt_tells(monkeypatch):
    def columns_in(prompt):
        return {"side": prompt.split()[-1]} if prompt.startswith("Fold ") else None

    folding = replace(
        TASKS["math"], name="folding", reward_columns=("side",), columns_in_prompt=columns_in
    )
    monkeypatch.setitem(TASKS.data, "folding", folding)
    row = {"prompt": "Fold a square of 5", "completion": "<answer>7</answer>"}
    assert with_columns_from_prompt(row) == {**row, "side": "5"}
    for other in ({**row, "side": "6"}, {**row, "prompt": "Unfold 5"}):
        assert with_columns_from_prompt(other) is other


def test_rows_of_other_tasks_need_no_columns():
    rows = [
        record(0),
        {"completion": "42", "task": "math"},
        {"completion": "42"},
        {**record(2), "task": "countdown"},
    ]
    block = grade_block(Block("x.jsonl", 1, lines_of(rows)), COUNTDOWN)
    assert [row["line"] for row in block.rows] == [1, 2, 4]
    assert [row["reasons"]["external_countdown"] for row in block.rows] == [
        "wrong value",
        "other task",
        "wrong value",
    ]
    assert [problem.partition(":")[0] for problem in block.problems] == ["x.jsonl, line 3"]


def test_bad_gold_is_graded_as_none_and_not_refused(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(lines_of([{**record(0), "nums": None}, record(1)]))
    figures = score_files([file], COUNTDOWN)["rewards"]["external_countdown"]
    assert (figures["graded"], figures["ungraded"], figures["reasons"]["bad gold"]) == (1, 1, 1)


def test_summary_of_several_rewards(tmp_path, registry):
    file = tmp_path / "x.jsonl"
    file.write_bytes(lines_of([{"completion": text} for text in ("a", "bbb", "bbb", "")]))
    rewards = build_rewards(["test_length", "external_test_code", "test_length"])
    summary = score_files([file, file], rewards, tmp_path / "out.jsonl")
    assert list(summary["rewards"]) == ["external_test_length", "external_test_code"]
    figures = summary["rewards"]["external_test_length"]
    assert (figures["mean"], figures["graded"], figures["ungraded"]) == (1.75, 4, 0)
    assert figures["reasons"] == {"measured": 4} and summary["completions"] == 4
    last = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[-1])
    assert (
        last["rewards"] == {"external_test_length": 0.0, "external_test_code": 0.0}
        and last["line"] == 4
    )


def test_default_rewards_are_the_verifiers_and_formats_of_the_first_lines(tmp_path, registry):
    def chosen(*rows):
        file = tmp_path / "x.jsonl"
        file.write_bytes(b"garbage\n\n" + lines_of(rows))
        rewards, left_out = default_rewards(find_files([file]))
        assert left_out == []
        return [reward.name for reward in rewards]

    assert chosen(record(0)) == ["external_countdown"]
    assert chosen({"completion": "a", "limit": 3}) == ["external_test_limit"]
    assert chosen(table([record(0)])) == ["external_countdown"]
    # Of a mixture, all of them.
    assert chosen(record(0), {"completion": "a", "limit": 3}) == [
        "external_countdown",
        "external_test_limit",
    ]
    with pytest.raises(InputError, match="no line can be graded: .*line 1: not JSON"):
        chosen()


def test_no_verifier_fits(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(lines_of([{"completion": "a", "Loesung": 1}]))
    message = "line 1: no right answer in 'completion', 'Loesung'; expected one in a column such as"
    with pytest.raises(InputError, match=message):
        default_rewards(find_files([file]))


def test_files_that_cannot_be_graded(tmp_path):
    empty, blank, bad = (tmp_path / name for name in ("empty.jsonl", "blank.jsonl", "bad.jsonl"))
    empty.write_text("")
    blank.write_text("\n \n")
    bad.write_text("{\n[]\n")
    header, no_rows = tmp_path / "header.csv", tmp_path / "list.json"
    header.write_text("question,answer,completion\n")
    no_rows.write_text("[]")
    (tmp_path / "none").mkdir()
    for file, message in {
        empty: "the file is empty",
        blank: "blank.jsonl: no completions: all lines are empty",
        header: "header.csv: no completions: there is a header and no row",
        no_rows: "list.json: no completions: there is no row",
        bad: "no line can be graded: .*line 1: not JSON.*line 2: expected an object",
        tmp_path / "none": "none: expected a folder with records.jsonl, other .jsonl files or",
        tmp_path / "no.jsonl": "No such file",
    }.items():
        with pytest.raises(InputError, match=message):
            score_files([file], COUNTDOWN, tmp_path / "out.jsonl")
    good = tmp_path / "good.jsonl"
    good.write_bytes(lines_of([record(0)]))
    with pytest.raises(InputError, match="would be overwritten"):
        score_files([good], COUNTDOWN, tmp_path / "." / "good.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bad.jsonl",
        "blank.jsonl",
        "empty.jsonl",
        "good.jsonl",
        "header.csv",
        "list.json",
        "none",
    ]


def test_byte_order_mark_and_line_ends_of_windows(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + lines_of([record(0), record(1)]).replace(b"\n", b"\r\n"))
    records, summary = scored([file])
    assert graded(records) == direct([record(0), record(1)]) and not summary["unusable"]


def test_a_reward_that_runs_code_is_not_left_out_without_a_word(tmp_path):
    row = {"completion": "<answer>def add(a, b): return a + b</answer>"}
    file = tmp_path / "x.jsonl"
    file.write_bytes(lines_of([{**row, "tests": ["assert add(1, 2) == 3"]}]))
    result = CliRunner().invoke(app, ["score", str(file), "--json"], env={"COLUMNS": "200"})
    said = (
        "Not used: external_code. It runs code from the completions; to allow that, add "
        "--reward_funcs external_code."
    )
    assert said in result.stderr
    summary = json.loads(result.stdout)
    assert summary["left_out"] == ["external_code"]
    assert "external_code" not in summary["rewards"]
    command = ["score", str(file), "--reward_funcs", "external_code", "--json"]
    result = CliRunner().invoke(app, command)
    assert not result.stderr
    assert json.loads(result.stdout)["rewards"]["external_code"]["mean"] == 1.0


@pytest.mark.parametrize("rows_before", [1, 1001])
def test_the_target_of_countdown_is_no_gold_of_a_mathematical_question(tmp_path, rows_before):
    """A completion that only repeats the target is not paid where questions stand beside it."""
    question = {"question": "1 + 1?", "answer": "2", "completion": "<answer>2</answer>"}
    countdown = {"nums": [3, 5, 7], "target": 22, "completion": "<answer>22</answer>"}
    file = tmp_path / "x.jsonl"
    file.write_bytes(lines_of([question] * rows_before + [countdown]))
    readings = find_files([file])
    rewards, _ = default_rewards(readings)
    summary = score_files(readings, rewards, tmp_path / "out.jsonl")
    *_, (_, last) = read_jsonl(tmp_path / "out.jsonl")
    assert last["rewards"]["external_accuracy"] is None
    assert last["reasons"]["external_accuracy"] == "other task"
    assert summary["rewards"]["external_accuracy"]["graded"] == rows_before
    if rows_before == 1:
        assert last["reasons"]["external_countdown"] == "extra number"


def test_a_compressed_file_is_known_by_its_suffix_in_any_case(tmp_path):
    file = tmp_path / "X.JSONL.GZ"
    file.write_bytes(gzip.compress(lines_of([record(0)])))
    records, _ = scored([file])
    assert graded(records) == direct([record(0)])


def test_a_file_without_a_completion_stands_among_the_means(tmp_path):
    full, blank = tmp_path / "full.jsonl", tmp_path / "blank.jsonl"
    full.write_bytes(lines_of([record(0)]))
    blank.write_text("\n")
    _, summary = scored([full, blank])
    assert summary["means_by_file"][str(blank)] == {}


def test_the_column_of_the_gold_is_said_of_the_first_line_of_several_files(tmp_path):
    files = []
    for column in ("answer", "solution"):
        file = tmp_path / f"{column}.jsonl"
        file.write_bytes(lines_of([{"question": "1 + 1?", column: "2", "response": "2"}]))
        files.append(str(file))
    shown = CliRunner().invoke(app, ["score", *files], env={"COLUMNS": "200"}).output
    assert "Right answers of the first line are in the column answer" in shown


def test_a_completion_that_is_null_is_called_so(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(lines_of([record(0), {**record(1), "completion": None}]))
    _, summary = scored([file])
    assert summary["problems"] == [f"{file}, line 2: no completion: completion is null"]


def against(stored, file, *flags):
    """The exit status and output of `score --against`."""
    command = ["score", str(file), "--against", str(stored), "--fail_on_change", *flags]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_only_verdicts_that_were_compared_are_called_unchanged(tmp_path):
    file, stored = tmp_path / "x.jsonl", tmp_path / "stored.jsonl"
    file.write_bytes(lines_of([record(0), record(1)]))
    score_files([file], COUNTDOWN, stored)
    assert against(stored, file)[0] == 0
    # A folder stands for the file in it, as without --against.
    folder = tmp_path / "eval"
    folder.mkdir()
    graded = {**record(0), "rewards": {"external_countdown": 0.0}}
    (folder / "records.jsonl").write_bytes(lines_of([graded]))
    assert "verdicts changed" in against("stored", folder)[1]

    # A completion that has a verdict, and can no longer be graded, or is gone.
    shorter = tmp_path / "shorter.jsonl"
    shorter.write_bytes(lines_of([record(0), {"completion": "1"}]))
    status, output = against(stored, shorter)
    assert status == 1
    assert "1 completion with an earlier verdict and none now: line 2" in output
    # One that has none yet.
    longer = tmp_path / "longer.jsonl"
    longer.write_bytes(lines_of([record(0), record(1), record(2)]))
    status, output = against(stored, longer)
    assert status == 0 and "1 completion without an earlier verdict" in output


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([], "no earlier verdicts: the file is empty"),
        ([{"line": 1, "rewards": {"external_countdown": "1.0"}}], "expected a number, got"),
        ([{"line": "1", "rewards": {}}], "expected whole numbers as line and position"),
        ([{"line": 1, "rewards": {}}] * 2, "line 2: line 1 has an earlier verdict already"),
        ([{"line": 9, "rewards": {"external_countdown": 1.0}}], "nothing was compared"),
        ([{"line": 1, "rewards": {"mine": 1.0}}], "Not compared: mine, which is no reward here"),
    ],
)
def test_earlier_verdicts_that_say_nothing(tmp_path, stored, message):
    file, earlier = tmp_path / "x.jsonl", tmp_path / "stored.jsonl"
    file.write_bytes(lines_of([record(0)]))
    earlier.write_bytes(lines_of(stored))
    status, output = against(earlier, file)
    assert status == 2 and message in output
