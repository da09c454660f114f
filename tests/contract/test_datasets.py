"""`swift-rlvr dataset check`: what it counts, in which words, its limit."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import pytest
from datasets import Dataset, DatasetDict

import commands
from paths import DATASETS
from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.contract.findings import Paid
from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.imported import import_reward
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError

pytestmark = pytest.mark.slow  # as a whole

GOOD = {"nums": [3, 5, 7], "target": 22}


def write(path, rows):
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    )
    return path


def ran(*arguments, **options):
    return commands.ran("dataset", *arguments, **options)


def refused(*arguments):
    return commands.refused("dataset", *arguments)


@pytest.mark.parametrize(
    ("name", "rows", "bad"),
    [
        ("countdown/train", 64, 0),
        ("countdown/tiny_test", 539, 0),
        ("gsm8k/train", 28, 0),
        ("gsm8k/test", 12, 0),
        ("numina_math_tir/train", 23, 0),
        ("bespoke_stratos/train", 24, 2),
        ("bespoke_stratos/test", 8, 0),
    ],
)
def test_samples(name, rows, bad):
    path = DATASETS / f"{name}.jsonl"
    other = path.with_name(
        path.name.replace("train", "!").replace("test", "train").replace("!", "test")
    )
    found = json.loads(ran("check", path, "--against", other, "--json"))
    assert found["task"] == name.partition("/")[0]
    assert (found["rows"], found["bad"], found["duplicates"], found["shared"]) == (
        rows,
        bad,
        0,
        {str(other): 0},
    )
    assert (
        all(counts["full"] == rows - bad for counts in found["rewards"].values())
        and len(found["rewards"]) > 1
    )


def test_a_countdown_file_with_every_fault(tmp_path):
    test = write(
        tmp_path / "test.jsonl", [{"nums": [2, 9], "target": 11}, {"nums": "4 5", "target": "20"}]
    )
    rows = [
        GOOD,
        {"nums": [1, 1, 1], "target": 99},  # 2: unsolvable
        {"nums": [1, "x"], "target": 99},  # 3: nums
        {"nums": [1, 2]},  # 4: target
        {"nums": [7, 3, 5], "target": "22"},  # 5: line 1 in another order
        {"nums": [9, 2], "target": 11},  # 6: in the test file
        {"nums": [5, 4], "target": 20},  # 7: in the test file, written otherwise
    ]
    train = write(tmp_path / "train.jsonl", rows)
    found = check_dataset(parse_source(str(train)), [parse_source(str(test))])
    assert found.rows == 7 and found.bad == 3
    assert (found.unusable, found.no_gold) == ({"nums": 1, "target": 1}, {"unsolvable": 1})
    assert (found.duplicates, found.shared) == (1, {str(test): 2})
    assert found.rewards["external_countdown"] == Paid(full=4)
    assert [line for line, _ in found.problems] == [
        2,
        3,
        4,
        6,
        7,
        5,
    ]  # what only repeats comes last
    shown = ran("check", train, "--against", test, code=1, columns=400)
    for text in (
        "unsolvable",
        "line 5: asks the same as line 1",
        "The datasets share rows",
        "3 of 7 rows are bad",
    ):
        assert text in shown
    assert "unsolvable" in ran("check", train)  # within the limit: few rows never are too many


@pytest.mark.parametrize("gold", ["$$", r"\frac{}{}", "???", "f(x)="])
def test_golds_that_the_verifier_cannot_read_are_counted_with_the_reason(tmp_path, gold):
    """Written again word for word they would earn the maximum, but a policy writes something
    else.
    """
    rows = [
        {"problem": "What?", "solution": rf"\boxed{{{gold}}}"},
        {"problem": "And?", "solution": r"\boxed{2}"},
    ]
    found = check_dataset(parse_source(str(write(tmp_path / "rows.jsonl", rows))))
    assert found.rewards["external_accuracy"] == Paid(
        full=1, none=1, ungraded=1, reasons=Counter({"bad gold": 1})
    )
    assert (found.bad, found.problems) == (
        1,
        [(1, "external_accuracy cannot read the gold: bad gold")],
    )


def test_a_gold_that_breaks_the_format_earns_less_than_the_maximum_and_is_reported(tmp_path):
    row = {"question": "1 + 1?", "answer": "Look: </think> is a tag.\n#### 2"}
    found = check_dataset(parse_source(f"gsm8k:{write(tmp_path / 'rows.jsonl', [row])}"))
    assert found.rewards["external_format_strict"].less == 1 and found.bad == 1 and found.too_many
    assert "external_format_strict gives the gold 0: repeated tag" in dict(found.problems)[1]


def test_a_solution_without_a_box_is_counted_and_rows_with_tests_need_no_known_answer(tmp_path):
    rows: list[dict] = [
        {"problem": "Prove it.", "solution": "Left to the reader."},
        {"problem": "1?", "solution": r"\boxed{1}"},
    ]
    found = check_dataset(parse_source(str(write(tmp_path / "rows.jsonl", rows))))
    assert (found.unusable, found.bad, found.too_many) == ({"no box": 1}, 1, False)
    asked = [{"role": "user", "content": "Write f."}]
    rows = [
        {"task": "code", "messages": asked, "tests": tests}
        for tests in ("assert f(1) == 1", "no tests (")
    ]
    found = check_dataset(parse_source(str(write(tmp_path / "code.jsonl", rows))))
    assert (found.no_gold, found.bad, found.rows) == ({}, 1, 2)


def test_tests_that_cannot_be_used_are_counted_and_named(tmp_path):
    sources: list[object] = [
        "assert f(1) == 7",
        "assert f(1) == g(1)\nwhile f(1): break",
        "x = f(1)",
        "import numpy\nassert numpy.all(f(1))",
        {"inputs": ["1"], "outputs": ["2"]},
    ]
    messages = [[{"role": "user", "content": f"Write f, number {n}."}] for n in range(len(sources))]
    rows = [
        {"task": "code", "messages": m, "tests": tests}
        for m, tests in zip(messages, sources, strict=True)
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    found = check_dataset(parse_source(f"mixed:{path}"))
    unusable = "tests cannot be used: "
    assert found.remarks == {
        "the prompt does not name a function or class that the tests use": 1,
        f"{unusable}tests import numpy for all, which is not in the standard library": 1,
        f"{unusable}tests contain no assert and no statement that does anything": 1,
    }
    assert {line for line, problem in found.problems if unusable in problem} == {3, 4}
    assert f"{unusable}tests import numpy" in ran("check", f"mixed:{path}", columns=400)


def test_the_limit(tmp_path, monkeypatch):
    bad = {"question": "1 + 1?", "answer": "2"}
    good = [{"question": f"{n} + 1?", "answer": f"#### {n + 1}"} for n in range(80)]
    path = write(tmp_path / "rows.jsonl", good + [bad] * 20)

    def output(*arguments, code=0) -> str:
        return ran("check", path, *arguments, code=code, columns=400)

    assert (
        "Too many bad rows: 20 of 100 rows are bad, and that is more than 10 rows and more than 10% of all."
        in output(code=1)
    )
    within = output("--limit", "0.2")
    assert "Within the limit: 20 of 100 rows are bad." in within
    assert (
        "The check fails if more than 10 rows and more than 20% of all, or more than half, are bad."
        in within
    )
    monkeypatch.setenv("SWIFT_RLVR_MAX_UNUSABLE", "0.5")
    half = output()
    assert "Within the limit" in half and "no number after ####" in half


@pytest.mark.parametrize("name", ["gsm8k", "numina_math_tir", "bespoke_stratos"])
def test_leaks_of_every_task_are_found_however_the_question_is_spaced(tmp_path, name):
    rows = [
        json.loads(line) for line in (DATASETS / name / "train.jsonl").read_text().splitlines()[:6]
    ]
    other = json.loads(json.dumps(rows[3]))
    if name == "bespoke_stratos":
        turn = other["conversations"][0]
        turn["value"] = turn["value"].upper().replace(" ", "\n ")
    else:
        column = "question" if name == "gsm8k" else "problem"
        other[column] = f"  {other[column].replace(' ', '  ')} ".replace("?", " ?")
    evaluation = write(tmp_path / "eval.jsonl", [other])
    found = check_dataset(
        parse_source(f"{name}:{write(tmp_path / 'train.jsonl', rows)}"),
        [parse_source(str(evaluation))],
    )
    assert found.shared == {str(evaluation): 1} and found.failed
    assert found.problems == [(4, f"is also in {evaluation}")]


def test_a_row_of_a_mixed_file_has_the_prompt_of_its_task():
    # JSON and nothing else is asked for, so no prompt may ask for thoughts first.
    for name in ("json", "instructions", "tool_calls", "math"):
        task = TASKS[name]
        row = dict(task.examples[0])
        assert ask(TASKS["mixed"], {"task": name, **row}).prompt == ask(task, row).prompt, name


def test_a_mixed_file(tmp_path):
    rows = [
        {"task": "countdown", **GOOD},
        {"task": "gsm8k", "question": "1 + 1?", "answer": "#### 2"},
    ]
    rows += [
        {"task": "chess"},
        {"task": "math", "messages": [{"role": "user", "content": "?"}], "solution": "2"},
    ]
    found = check_dataset(parse_source(str(write(tmp_path / "rows.jsonl", rows))))
    assert found.tasks == {"countdown": 1, "gsm8k": 1, "math": 1} and found.unusable == {"task": 1}
    assert (
        found.rewards["external_accuracy"].full,
        found.rewards["external_countdown"].full,
    ) == (2, 1)
    assert "countdown: 1, gsm8k: 1, math: 1" in ran("check", f"mixed:{tmp_path / 'rows.jsonl'}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (['{"goal": 3}'], "rows.jsonl: no task is sure to fit the columns goal; write math:"),
        ([], "rows.jsonl: no rows"),
    ],
)
def test_bad_files(tmp_path, content, message):
    assert message in refused("check", write(tmp_path / "rows.jsonl", content))


def test_a_folder_and_a_file_without_rows_that_can_be_read_are_told_what_can_be(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows.xlsx").write_bytes(b"PK")
    for task in ("", "math:"):
        message = refused("check", f"{task}{tmp_path / 'empty'}")
        assert f"{tmp_path / 'empty'}: no data files in this folder; expected a file" in message
        message = refused("check", f"{task}{tmp_path / 'rows.xlsx'}")
        assert "rows.xlsx: a .xlsx file cannot be read; save its rows as a file ending" in message


OWN_REWARDS = """
def never(completions, **kwargs):
    return [0.0 for _ in completions]

def half(completions, solution, **kwargs):
    return [0.5 * (each in text) for text, each in zip(completions, solution)]

def penalty(completions, solution, **kwargs):
    return [-float(each not in text) for text, each in zip(completions, solution)]

def abstains(completions, **kwargs):
    return [None for _ in completions]
"""


@pytest.mark.parametrize(
    ("names", "fails"),
    [
        (["never"], True),
        (["never", "abstains"], False),
        (["abstains", "half"], False),
        (["never", "half"], False),
        (["penalty"], False),
        (["never", "penalty"], False),
    ],
)
def test_rewards_that_pay_no_right_answer_anything_fail(tmp_path, names, fails):
    mine = tmp_path / "mine.py"
    mine.write_text(OWN_REWARDS)
    row = {"messages": [{"role": "user", "content": "What is 38 + 4?"}], "solution": "42"}
    rows = write(tmp_path / "rows.jsonl", [json.dumps(row)])
    flags = [f"--reward_funcs={mine}:{name}" for name in names]
    if fails:
        message = "Every right answer earns 0, as a wrong one does"
        assert message in ran("check", f"math:{rows}", *flags, code=1)
    else:
        assert "earns 0, as" not in ran("check", f"math:{rows}", *flags)


def test_rewards_that_grade_nothing_fail(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(OWN_REWARDS)
    dataset = asked(tmp_path, "math", "", "7", "8")
    flag = f"--reward_funcs={mine}:abstains"
    assert "No answer was graded, right or wrong" in ran("check", dataset, flag, code=1)
    # The reward may want a form that the prompt does not ask for.
    silent = asked(tmp_path, "math", "", "7", "8", system="Be brief.")
    assert "No answer was graded" not in ran("check", silent, flag)


def test_why_a_reference_fails_is_told(tmp_path):
    row = {"question": "Write `f`.", "tests": ["assert f(1) == 1", "assert f(2) == 2"]}
    row["solution"] = "import no_such_module_\ndef f(x): return x"
    rows = write(tmp_path / "rows.jsonl", [json.dumps(row)])
    assert "No module named 'no_such_module_'" in " ".join(
        ran("check", f"code:{rows}", code=1).split()
    )


def test_a_reward_for_a_form_of_its_own_does_not_fail(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "def verdict(completions, solution, **kwargs):\n"
        "    pairs = zip(completions, solution)\n"
        "    return [float(text.endswith(f'[[VERDICT]] {each}')) for text, each in pairs]\n"
    )
    system = {"role": "system", "content": "End with a line [[VERDICT]] and the number."}
    user = {"role": "user", "content": "What is 38 + 4?"}
    row = {"messages": [system, user], "solution": "42"}
    rows = write(tmp_path / "rows.jsonl", [json.dumps(row)])
    report = ran("check", f"math:{rows}", f"--reward_funcs={mine}:verdict")
    assert "can hardly be earned" in report and "earns 0, as" not in report


def test_what_save_to_disk_has_written_is_to_be_saved_in_another_way(tmp_path):
    rows = Dataset.from_list([{"question": "What is 3 + 4?", "answer": "#### 7"}])
    rows.save_to_disk(alone := tmp_path / "alone")
    DatasetDict(train=rows).save_to_disk(splits := tmp_path / "splits")
    for name in (str(alone), f"gsm8k:{alone}"):
        assert f'load_from_disk("{alone}").to_parquet("rows.parquet")' in refused("check", name)
    for name in (str(splits), f"gsm8k:{splits}", f"gsm8k:{splits}:train"):
        assert f'load_from_disk("{splits}")["train"].to_parquet(' in refused("check", name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gsm8k:rows.jsonl"], "cannot read rows.jsonl: No such file"),
        (["gsm8k:rows.parquet"], "cannot read rows.parquet: No such file"),
        (
            ["chess"],
            "chess: expected a file ending in .jsonl, .json, .parquet, .csv, .tsv or .txt, also with .gz,",
        ),
        (["gsm8k:validation"], "or one of the splits train, test"),
        (["mixed"], "mixed is not on a hub; give mixed:FILE or mixed:ID"),
        (["countdown:x.jsonl#0"], "expected a number of rows from 1 after #"),
        (
            [DATASETS / "gsm8k" / "test.jsonl", "--against", DATASETS / "countdown" / "test.jsonl"],
            ": expected a file of gsm8k, with the columns question, answer; its task is countdown",
        ),
        (
            [f"gsm8k:{DATASETS / 'countdown' / 'test.jsonl'}"],
            "column question, answer missing; the dataset has nums, target",
        ),
    ],
)
def test_mistakes(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("check", *arguments)


def test_a_name_is_read_from_the_hub_or_from_a_folder_of_that_name(tmp_path, monkeypatch):
    pytest.importorskip("swift", reason="needs the extra [train]")
    shutil.copytree(DATASETS / "numina_math_tir", tmp_path / "AI-MO" / "NuminaMath-TIR")
    monkeypatch.chdir(tmp_path)
    assert json.loads(ran("check", "numina_math_tir", "--json"))["rows"] == 23
    assert json.loads(ran("check", "numina_math_tir:test#5", "--json"))["rows"] == 5


def test_other_file_types(tmp_path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "rows.parquet"
    datasets.Dataset.from_list([GOOD, {"nums": [1, 1], "target": 9}]).to_parquet(str(path))
    assert check_dataset(parse_source(str(path))).no_gold == {"unsolvable": 1}
    (tmp_path / "rows.json").write_text("{nonsense")
    with pytest.raises(InputError, match="rows.json: cannot be read as json"):
        check_dataset(parse_source(f"countdown:{tmp_path / 'rows.json'}"))


def test_what_is_earned_without_work_is_said_with_the_rows_that_pay_it(tmp_path):
    golds = ["7", "0", "7", "7.0", r"\frac{1}{2}", "12"]
    rows = [
        {"problem": f"What is it{'?' * n}", "solution": rf"\boxed{{{gold}}}"}
        for n, gold in enumerate(golds, start=1)
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    found = json.loads(ran("check", f"math:{path}", "--json"))
    assert found["attacked"] == len(golds)
    means = {earned["strategy"]: earned["mean"] for earned in found["earned"]}
    # 7 also where the gold is written 7.0; 12 stands once, and is no constant of this file
    assert means == {"the constant 7": 3 / 6, "the constant 0": 1 / 6, "the constant 1/2": 1 / 6}
    assert found["earned"][0]["lines"] == [1, 3, 4]
    shown = ran("check", f"math:{path}", columns=200)
    text = "Without any work, the constant 7 earns 0.500 a row (the first 6 rows: line 1, 3, 4)."
    assert text in shown


def test_a_task_whose_answers_all_differ_pays_for_no_strategy():
    found = check_dataset(parse_source(str(DATASETS / "countdown" / "test.jsonl")))
    assert found.earned == []


def test_a_verifier_that_pays_what_does_not_state_the_answer_is_a_doubt(tmp_path):
    lenient = tmp_path / "lenient.py"
    lenient.write_text(
        "def contains(completion, solution):\n    return float(solution in completion)\n"
        "contains.role = 'verifier'\n"
    )
    path = write(tmp_path / "rows.jsonl", [{"problem": "What is 40 + 2?", "answer": "42"}])
    reward = import_reward(f"{lenient}:contains")()
    found = check_dataset(parse_source(f"math:{path}"), rewards=[reward])
    assert any("RIGHT" in doubt and "is paid" in doubt for doubt in found.doubts)
    # One line for all the others.
    assert sum("paid" in doubt for doubt in found.doubts) <= 4


@pytest.mark.parametrize(
    ("question", "gold", "way"),
    [
        ("What is {n} + {n}? It is {twice}.", "{twice}", "the last number of the question"),
        ("What is {n} - {n}?", "0", "the constant 0"),
    ],
)
def test_rows_that_guessing_solves_are_a_doubt(tmp_path, question, gold, way):
    rows = []
    for n in range(11, 41):
        values = {"n": n, "twice": 2 * n}
        rows.append({"problem": question.format(**values), "answer": gold.format(**values)})
    found = check_dataset(parse_source(f"math:{write(tmp_path / 'rows.jsonl', rows)}"))
    assert any(f"30 rows of 30: {way} is paid" in doubt for doubt in found.doubts), found.doubts


def test_of_two_answers_one_may_be_guessed(tmp_path):
    rows = [{"problem": f"Is {n} odd?", "answer": "yes" if n % 2 else "no"} for n in range(30)]
    assert not check_dataset(parse_source(f"qa:{write(tmp_path / 'rows.jsonl', rows)}")).doubts


def test_what_pays_on_the_one_row_that_it_applies_to_is_no_doubt(tmp_path):
    rows = [{"problem": f"Which {word}?", "answer": f"a {word}"} for word in ("cat", "dog", "fox")]
    rows.append({"problem": "Which year comes after 1999, or is it 2000?", "answer": "2000"})
    assert not check_dataset(parse_source(f"qa:{write(tmp_path / 'rows.jsonl', rows)}")).doubts


def test_a_reward_is_handed_the_level_of_a_row(tmp_path):
    """As in a training, where a curriculum needs it."""
    by_level = tmp_path / "by_level.py"
    by_level.write_text(
        "def hard(completions, solution, level):\n"
        "    return [float(s in c and each == 'hard') for c, s, each in zip(completions, solution, level)]\n"
        "hard.role = 'verifier'\n"
    )
    row = {"problem": "What is 40 + 2?", "answer": "42", "level": "hard"}
    path = write(tmp_path / "rows.jsonl", [row])
    reward = import_reward(f"{by_level}:hard")()
    found = check_dataset(parse_source(f"math:{path}"), rewards=[reward])
    assert not found.bad and not found.unread


def test_a_verifier_that_pays_less_than_it_declares_is_told_so(tmp_path):
    halves = tmp_path / "halves.py"
    halves.write_text(
        "def half(completion, solution):\n    return 0.5 * (f'<answer>{solution}' in completion)\n"
        "half.role = 'verifier'\n"
    )
    path = write(tmp_path / "rows.jsonl", [{"problem": "What is 40 + 2?", "answer": "42"}])
    reward = import_reward(f"{halves}:half")()
    found = check_dataset(parse_source(f"math:{path}"), rewards=[reward])
    ((_, problem),) = found.problems
    assert "a wrong answer 0; its full_reward is 1" in problem


def test_an_answer_that_is_in_no_column_of_a_reward_is_none(tmp_path):
    """As ms-swift leaves `answer`: it is the assistant's turn, and there is no `solution`."""
    question = {"role": "user", "content": "1 + 1? End with \\boxed{}."}
    answered = [question, {"role": "assistant", "content": "2"}]
    task = replace(TASKS["math"], preprocess=lambda row: {"messages": [question]})
    path = write(tmp_path / "rows.jsonl", [{"messages": answered}] * 2)
    found = check_dataset(replace(parse_source(f"math:{path}"), task=task))
    assert found.bad == 2


@pytest.mark.parametrize(("repeated", "doubted"), [(7, True), (3, False)])
def test_rows_of_which_most_ask_the_same_are_a_doubt(tmp_path, repeated, doubted):
    others = [{"nums": [3, 5, number], "target": 8 + number} for number in range(8, 12)]
    path = write(tmp_path / "rows.jsonl", [GOOD] * (repeated + 1) + others)
    found = check_dataset(parse_source(f"countdown:{path}"))
    assert (
        any("rows of 12: an earlier row asks the same" in each for each in found.doubts) == doubted
    )


# What the prompt asks for

DAPO = "The last line should be of the form Answer: $Answer (without quotes)."
BOXED = "Put your final answer within \\boxed{}."


def asked(tmp_path, kind, instruction, *answers, **columns):
    rows = [
        {"prompt": f"No. {n}? {instruction}", "answer": answer, **columns}
        for n, answer in enumerate(answers)
    ]
    return f"{kind}:{write(tmp_path / f'{kind}.jsonl', rows)}"


@pytest.mark.parametrize(
    ("instruction", "form"),
    [
        (DAPO, "marker"),
        (BOXED, "boxed"),
        ('Write the answer after "####".', "hash"),
        ("请将最终答案放在\\boxed{}中。", "boxed"),
    ],
)
def test_a_format_that_no_prompt_mentions_can_hardly_be_earned(tmp_path, instruction, form):
    dataset = asked(tmp_path, "math", instruction, "7", "8", "9")
    found = json.loads(ran("check", dataset, "--json"))
    assert found["forms"] == {form: 3} and found["bad"] == 0
    assert found["rewards"]["external_accuracy"]["full"] == 3
    (disagreement,) = found["disagreements"]
    assert disagreement == {
        "reward": "external_format",
        "form": form,
        "reason": "no think part",
        "rows": 3,
    }
    shown = ran("check", dataset, columns=400)
    assert "so external_format can hardly be earned (no think part)" in shown
    assert "Every gold earns the maximum" not in shown
    # The rewards of the run, not the task's.
    shown = ran("check", dataset, "--reward_funcs", "external_accuracy", columns=400)
    assert "Every gold earns the maximum of external_accuracy." in shown


def test_a_verifier_that_reads_another_form_refuses_every_row(tmp_path):
    dataset = asked(tmp_path, "math", "", "7", "8", "9")  # our prompt asks for tags
    shown = ran("check", dataset, "--reward_funcs", "external_boxed", code=1, columns=400)
    assert "external_boxed gives the gold 0: no box" in shown and "Too many bad rows" in shown
    dataset = asked(tmp_path, "math", BOXED, "7", "8", "9")
    shown = ran("check", dataset, "--reward_funcs", "external_boxed", columns=400)
    assert "Every gold earns the maximum of external_boxed." in shown


def test_a_reward_that_pays_everything_is_named(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from swift_rlvr.rewards import reward\n"
        "@reward('external_mine', role='verifier', columns=['solution'])\n"
        "def mine(completion, solution):\n"
        "    return 1.0\n"
    )
    dataset = asked(tmp_path, "math", "", "7", "8")
    shown = ran("check", dataset, "--reward_funcs", f"{path}:mine", code=1, columns=400)
    assert "external_mine pays the answer 271828183 in full too" in shown


def test_a_reward_that_pays_a_long_wrong_answer_more_than_a_right_one_is_named(
    tmp_path, monkeypatch
):
    dataset = asked(tmp_path, "math", "", "7", "8")
    flags = ["--reward_funcs", "external_accuracy", "--reward_funcs"]
    shown = ran("check", dataset, *flags, "external_length", columns=400)
    assert "2 rows of 2: a wrong answer of 5,878 characters earns" in shown
    assert "Every gold earns" not in shown
    assert "Every gold earns" in ran("check", dataset, *flags, "external_cosine", columns=400)
    rewards = [REWARDS["accuracy"](), REWARDS["length"]()]
    weights = {"external_length": 0.0001}
    assert not check_dataset(parse_source(dataset), rewards=rewards, weights=weights).long_wrong
    monkeypatch.setenv("EXTERNAL_LENGTH_GATE", "outcome")
    assert "Every gold earns" in ran("check", dataset, *flags, "external_length", columns=400)


def test_a_reward_without_its_column_is_refused(tmp_path):
    dataset = asked(tmp_path, "qa", "", "Rhine")
    message = refused("check", dataset, "--reward_funcs", "external_boxed")
    assert "external_boxed needs the column 'solution'; rows of qa have accepted_answers" in message


def test_what_was_not_graded_is_not_green(tmp_path):
    rows = [{"question": f"Write f{n}.", "tests": [f"assert f{n}(1) == 1"]} for n in range(2)]
    dataset = f"code:{write(tmp_path / 'code.jsonl', rows)}"
    shown = ran("check", dataset, columns=400)
    assert "2 rows: the tests were not tried, since there is no reference solution." in shown
    assert "Every gold earns" not in shown
    rows[0]["solution"] = "def f0(x):\n    return x"
    write(tmp_path / "code.jsonl", rows)
    shown = ran("check", dataset, columns=400)
    assert "1 row: the tests were not tried" in shown and "Every gold earns" not in shown


def test_how_references_pass_is_counted_and_what_they_need_is_named(tmp_path, monkeypatch):
    patched = "with unittest.mock.patch('solution.y', len): assert f1([3]) == 1"
    sources = {
        "f0": ("def f0(x): return x", "assert f0(1) == 1"),
        "f1": ("def f1(x): return y(x)\ndef y(x): return x", f"import unittest.mock\n{patched}"),
        "f2": ("import os\ndef f2(x): return os.fork()", "assert f2(1) == 1"),
        # A program that does nothing is not graded here; that says nothing of the reference.
        "F3": ("class F3: pass", "assert not isinstance(1, F3)"),
    }
    rows = [
        {"question": f"Write {name}.", "solution": code, "tests": tests}
        for name, (code, tests) in sources.items()
    ]
    dataset = f"code:{write(tmp_path / 'code.jsonl', rows)}"
    shown = ran("check", dataset, columns=400)
    assert "Rows whose reference passes its tests: 2 apart, 1 only together, 1 not at all." in shown
    assert "line 2: the reference passes only with external_code's together=true" in shown
    assert "line 3: external_code does not grade the reference: refused by the sandbox" in shown
    monkeypatch.setenv("EXTERNAL_CODE_TOGETHER", "true")
    shown = ran("check", dataset, columns=400)
    assert "2 apart, 1 only together" in shown and "line 2" not in shown


def test_a_task_of_a_mixed_file_that_nobody_grades_is_named(tmp_path):
    rows = []
    for n in range(12):
        rows.append({"task": "math", "question": f"{n} + 1?", "answer": str(n + 1)})
        rows.append({"task": "qa", "question": f"Which river, {n}?", "answer": f"Rhine {n}"})
    dataset = f"mixed:{write(tmp_path / 'rows.jsonl', rows)}"
    rewards = ["external_accuracy", "external_format"]
    flags = [word for name in rewards for word in ("--reward_funcs", name)]
    shown = ran("check", dataset, *flags, columns=400)
    assert "12 rows of qa: no verifier has graded a right answer." in shown
    assert "of math: no verifier" not in shown and "Every gold earns" not in shown
    shown = ran("check", dataset, *flags, "--reward_funcs", "external_exact_match", columns=400)
    assert "Every gold earns" in shown


def test_a_task_of_a_mixed_file_without_a_usable_row_is_named(tmp_path):
    rows = [{"task": "math", "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(12)]
    rows += [{"task": "qa", "question": f"Which river, {n}?"} for n in range(2)]
    rows += [{"task": "math", "question": "And?"}]
    shown = ran("check", f"mixed:{write(tmp_path / 'rows.jsonl', rows)}", columns=400)
    assert "2 rows of qa: none of them can be used." in shown
    assert "of math: none" not in shown


def test_a_prompt_that_says_nothing_of_the_answer_is_named(tmp_path):
    row = {"prompt": "1 + 1?", "system": "Be brief.", "answer": "2"}
    path = write(tmp_path / "rows.jsonl", [row])
    shown = ran("check", f"math:{path}", columns=400)
    assert "1 row: the prompt does not say what the answer looks like." in shown
    assert "Every gold earns" not in shown


@pytest.mark.parametrize("form", ["[[5]]", "<<answer>>", "{{X}}"])
def test_a_form_that_no_reward_reads_is_named(tmp_path, form):
    dataset = asked(tmp_path, "math", f"Write your answer as {form}.", "2", "3")
    shown = ran("check", dataset, columns=400)
    assert (
        f"2 rows: the prompt asks for {form} (line 1), which external_accuracy does not read:"
        in shown
    )
    assert "have the prompt ask for \\boxed{}, <answer> tags or 'Answer:' in its place" in shown
    assert "Every gold earns" not in shown
    dataset = asked(tmp_path, "math", f"Write your answer as {form} in \\boxed{{}}.", "2", "3")
    assert "does not read" not in ran("check", dataset, columns=400)


@pytest.mark.parametrize(
    ("kind", "instruction", "answer"),
    [
        ("math", "Your answer should be in the form #ANSWER#: x", "7"),
        ("math", "Give it in the form **7**.", "7"),
        ("math", "Put the answer in an ```answer block.", "7"),
        ("math", 'Respond with {"reasoning": ..., "final": n}.', "7"),
        ("qa", "Bold your final answer.", "Rhine"),
        # a list brings its brackets
        ("qa", "The answer must be in square brackets.", "[1, 2]"),
    ],
)
def test_a_form_of_the_prompt_that_is_read_is_no_doubt(tmp_path, kind, instruction, answer):
    assert "Every gold earns" in ran("check", asked(tmp_path, kind, instruction, answer))


def test_a_form_is_also_tried_within_the_tags_and_of_a_system_turn(tmp_path):
    # One's own reward that reads the answer behind its label alone, or in tags without it.
    ends = tmp_path / "ends.py"
    ends.write_text(
        "def at_end(completion, solution):\n"
        "    return float(completion.endswith((f'OUT: {solution}', f'<answer>{solution}</answer>')))\n"
        "at_end.role = 'verifier'\n"
    )
    dataset = asked(tmp_path, "math", "State the answer as `OUT: x`.", "3")
    reward = import_reward(f"{ends}:at_end")()
    (unread,) = check_dataset(parse_source(dataset), rewards=[reward]).unread_forms
    assert unread.completion == "<think>A guess.</think>\n<answer>OUT: 3</answer>"
    turns = [
        {"role": "system", "content": "End with the line: FINAL => number"},
        {"role": "user", "content": "What is 1 + 2?"},
    ]
    path = write(tmp_path / "turns.jsonl", [{"messages": turns, "answer": "3"}])
    (unread,) = check_dataset(parse_source(f"math:{path}")).unread_forms
    assert (unread.shown, unread.completion, unread.earned) == (
        "FINAL => number",
        "FINAL => 3",
        0.0,
    )


@pytest.mark.parametrize(
    ("instruction", "shown"),
    [
        ("Put the number between <value> and </value>.", "no answer"),
        ('Respond in JSON: {"total": N}', "wrong answer"),
        ("The last line must be 'FINAL: N'.", "wrong answer"),
    ],
)
def test_a_form_that_the_verifier_does_not_read_fails(tmp_path, instruction, shown):
    """No sentence beside the form may be read in its place."""
    dataset = asked(tmp_path, "math", instruction, "7", "8", "9")
    report = ran("check", dataset, "--reward_funcs", "external_accuracy", code=1, columns=400)
    assert f"external_accuracy gives the gold 0: {shown}" in report


@pytest.mark.parametrize(
    "instruction",
    [
        "Ende mit „Antwort: N“.",
        "Termine par « Résultat : N ».",
        "最後に「答えはNです。」と書いてください。",
        "마지막 줄에 '최종 답변: N' 형식으로 쓰세요.",
        "В последней строке напиши «Ответ: N».",
    ],
)
def test_a_form_in_another_language_is_the_one_that_is_graded(tmp_path, instruction):
    dataset = asked(tmp_path, "math", instruction, "7", "8", "9")
    report = json.loads(ran("check", dataset, "--reward_funcs", "external_accuracy", "--json"))
    assert report["forms"] == {"marker": 3} and not report["doubts"]
    assert report["rewards"]["external_accuracy"]["full"] == 3


def test_a_gold_with_what_may_be_a_decimal_comma_is_named(tmp_path):
    golds = ["3,75", "4,00 €", "0,5", "1.234,50", "12,5 %", "2,5 kg"]
    dataset = asked(tmp_path, "math", "", "7", *golds)
    shown = ran("check", dataset, columns=400)
    assert "6 rows: the gold has a comma that may be a decimal one, as 3,75 (line 2)" in shown
    assert "Every gold earns" not in shown
    others = asked(tmp_path, "math", "", "1,234", "1,5", "1, 25", "2,3,5", "1,234,567 m")
    assert "has a comma" not in ran("check", others, columns=400)
    assert "has a comma" not in ran("check", asked(tmp_path, "qa", "", *golds), columns=400)
    # 1,5 may be a pair, but not where most golds look so
    shown = ran("check", asked(tmp_path, "math", "", "1,5", "2,5", "12,5", "4"), columns=400)
    assert "3 rows: the gold has a comma that may be a decimal one, as 1,5 (line 1)" in shown


IRON = {"question": "Which is a metal?", "choices": ["salt", "iron", "wood"]}
WON = "Who won the race?"


@pytest.mark.parametrize(
    ("kind", "rows", "contradiction"),
    [
        (
            "qa",
            [{"question": WON, "answer": "Ann"}, {"question": WON, "answer": "Bob"}],
            "Bob and Ann",
        ),
        # one of several right answers is the same
        (
            "qa",
            [{"question": WON, "answer": ["A.", "Ann"]}, {"question": WON, "answer": "Ann"}],
            None,
        ),
        (
            "math",
            [{"question": "3/4?", "answer": "0.75"}, {"question": "3/4?", "answer": "3/4"}],
            None,
        ),
        (
            "math",
            [{"question": "3/4?", "answer": "0.75"}, {"question": "3/4?", "answer": "4/3"}],
            "4/3 and 0.75",
        ),
        # the same choice, in another place
        (
            "choice",
            [{**IRON, "answer": "B"}, {**IRON, "choices": ["wood", "salt", "iron"], "answer": "C"}],
            None,
        ),
        ("choice", [{**IRON, "answer": "B"}, {**IRON, "answer": "C"}], "wood and iron"),
    ],
)
def test_rows_that_ask_the_same_with_another_gold_are_named(tmp_path, kind, rows, contradiction):
    path = write(tmp_path / "rows.jsonl", list(map(json.dumps, rows)))
    shown = ran("check", f"{kind}:{path}", columns=400)
    if contradiction is None:
        assert "with another gold" not in shown
    else:
        expected = (
            f"1 row: an earlier row asks the same, with another gold (line 2: {contradiction})"
        )
        assert expected in shown
        assert "Every gold earns" not in shown


RHINE = {"passage": "The Rhine flows through Bonn.", "question": "Which?", "answer": "Rhine"}
EIGHT = {"question": "What is 2 * 4?"}
NUMBERS = {"question": "How many?", "choices": ["1", "2", "3"], "answer": 1}


@pytest.mark.parametrize(
    ("kind", "rows", "doubt"),
    [
        (
            "math",
            [{**EIGHT, "label": "3", "response": "8"}],
            "two columns do not agree on the right answer (line 1: 3 in 'label', which is used, and 8 in 'response')",
        ),
        # a word gives way to a value, and a sentence may end with any number
        ("math", [{**EIGHT, "label": "easy", "response": "8"}], None),
        ("math", [{**EIGHT, "answer": "8.0", "solution": r"So $2 * 4 = \boxed{8}$."}], None),
        (
            "math",
            [{**EIGHT, "answer": "8", "solution": "It is 8, which was to do in step 1"}],
            None,
        ),
        (
            "qa",
            [{"question": WON, "answer": "Ann", "response": "Bob"}],
            "Ann in 'answer', which is",
        ),
        ("choice", [{**IRON, "answer": "B", "label": 2}], "B in 'answer', which is used, and C in"),
        ("choice", [{**IRON, "answer": "B", "label": 1}], None),
        ("choice", [NUMBERS], "though another choice says it (line 1: 1, read as 2)"),
        # another row shows that they are counted, and a text is what a choice says
        ("choice", [NUMBERS, {**IRON, "answer": 1}], None),
        ("choice", [{**NUMBERS, "answer": "1"}], None),
        (
            "math",
            [{"prompt": "<|im_start|>user\n2 * 4?<|im_end|>\n", "answer": "8"}],
            "the question has a chat template's <|im_start|> (line 1)",
        ),
        # two roots are both wanted; two ways to write one are not, nor a choice and its letter
        (
            "math",
            [{"question": "Solve x^2 = 5x - 6.", "answer": ["2", "3"]}],
            "1 row: the gold is a list of different values, and one of them is paid (line 1: 2 | 3)",
        ),
        ("math", [{"question": "What is 3/4 of 1?", "answer": ["0.75", "3/4"]}], None),
        ("math", [{**EIGHT, "answer": ["8", "\\text{C}"]}], None),
        ("math", [{"question": "Solve x^2 = 5x - 6.", "answer": "[2, 3]"}], None),
        (
            "math",
            [
                {**EIGHT, "answer": "8", "split": "train"},
                {"question": "3 + 4?", "answer": "7", "split": "test"},
            ],
            "the column 'split' names several (train: 1, test: 1), and the training reads all of them",
        ),
        (
            "qa",
            [{"question": WON, "answer": "Ann / Anna"}],
            "1 row: the gold may be several in one text, as Ann / Anna (line 1), and none of them alone",
        ),
        ("qa", [{"question": WON, "answer": "Ann|Anna"}], "as Ann|Anna (line 1)"),
        ("qa", [{"question": WON, "answer": ["Ann", "Anna / Bob"]}], None),
        ("qa", [{"question": "How fast?", "answer": "7 km/h"}], None),
        # of a spreadsheet, not of a file where some questions need no passage
        ("qa", [{**RHINE, "question": WON, "passage": float("nan")}], None),
        (
            "qa",
            [RHINE, {"question": WON, "passage": float("nan"), "answer": "Ann"}],
            "1 row: the column 'passage' is empty, and 1 have one, as where a spreadsheet's cells",
        ),
        ("qa", [RHINE, {"question": WON, "passage": "", "answer": "Ann"}], None),
    ],
)
def test_a_row_that_may_mean_something_else_is_named(tmp_path, kind, rows, doubt):
    path = write(tmp_path / "rows.jsonl", list(map(json.dumps, rows)))
    shown = ran("check", f"{kind}:{path}", columns=400)
    assert (doubt or "Every gold earns the maximum") in shown
    assert ("Every gold earns" in shown) == (doubt is None)


def test_merged_cells_of_a_csv_file_are_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("passage;question;answer\nThe Rhine is long.;Which?;Rhine\n;Is it wide?;yes\n")
    shown = ran("check", f"qa:{path}", columns=400)
    assert "1 row: the column 'passage' is empty, and 1 have one" in shown


def test_a_right_answer_that_nobody_would_repeat_is_counted(tmp_path):
    long = " ".join(["Ann", *["who ran"] * 8])
    dataset = asked(tmp_path, "qa", "", long, "Ann", "Bob")
    shown = ran("check", dataset)
    assert "no other wording of a gold of more than 15 words is paid       1" in shown
    # Of a third of the rows.
    assert "Every gold earns" in shown
    shown = ran("check", asked(tmp_path, "qa", "", long, long, "Bob"), columns=400)
    assert "2 rows of 3: no other wording of a gold of more than 15 words is paid." in shown
    assert "Every gold earns" not in shown


@pytest.mark.parametrize(("first", "is_named"), [(1, True), (0, False)])
def test_golds_that_may_count_from_1_are_named(tmp_path, first, is_named):
    rows = []
    for number in range(24):
        choices = [f"{letter}{number}" for letter in "wxyz"]
        rows.append(
            {"question": f"No. {number}?", "choices": choices, "answer": first + number % 3}
        )
    path = write(tmp_path / "rows.jsonl", rows)
    shown = ran("check", f"choice:{path}", columns=400)
    assert ("24 rows: the right choice is never the first" in shown) == is_named
    assert ("Every gold earns" in shown) != is_named


def test_a_passage_that_no_prompt_shows_is_named(tmp_path):
    notes = "On Monday Tom went to the market, and on Tuesday he bought ten apples there."
    row = {"question": "What did Tom buy?", "answer": "apples", "Notes": notes}
    path = write(tmp_path / "rows.jsonl", [row])
    shown = ran("check", f"qa:{path}", columns=400)
    assert "1 row: the column 'Notes' is not used" in shown
    assert "Every gold earns" not in shown
    shown = ran("check", f"qa:{path}", "--columns", '{"Notes": "context"}', columns=400)
    assert "Every gold earns" in shown


def test_every_column_that_nobody_gets_is_named(tmp_path):
    row = {"question": "Who won?", "answer": "Smith", "scores": [["Jones", 3]], "id": 4}
    path = write(tmp_path / "rows.jsonl", [row])
    shown = ran("check", f"qa:{path}", columns=400)
    assert "Neither the prompt nor a reward gets: id, scores." in shown


def test_a_name_in_columns_that_no_row_has_is_named(tmp_path):
    row = {"Frage": "1 + 1?", "info": {"gold": "2"}}
    path = write(tmp_path / "rows.jsonl", [row])
    columns = {"frage": "problem", "info.gold": "answer", "Notes": "context", "info.note": "text"}
    shown = ran("check", f"math:{path}", "--columns", json.dumps(columns), columns=400)
    assert "no row has the column 'Notes', which --columns renames." in shown
    assert "no row has the column 'info.note'" in shown and "Every gold earns" not in shown
    assert "'frage'" not in shown and "'info.gold'" not in shown


def test_the_files_of_a_folder_are_named(tmp_path):
    for name in ("train-0.jsonl", "train-1.jsonl", "test.jsonl"):
        write(tmp_path / name, [{"problem": f"1 + 1, {name}?", "answer": "2"}])
    (tmp_path / "notes.md").touch()
    shown = ran("check", f"math:{tmp_path}", columns=400)
    assert "Read: train-0.jsonl, train-1.jsonl\nLeft out: notes.md, test.jsonl\n" in shown
    shown = ran("check", f"math:{tmp_path}:test", columns=400)
    assert ": 1 row of math" in shown
    assert "Read: test.jsonl\nLeft out: notes.md, train-0.jsonl, train-1.jsonl\n" in shown


def test_the_first_rows_are_looked_at_and_how_many_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("swift_rlvr.contract.datasets.FIRST_ROWS", 20)
    rows = [{"problem": f"{n} + 1?", "answer": str(n + 1)} for n in range(30)]
    rows[25]["answer"] = "no rule could ever grade a sentence such as this one"
    dataset = f"math:{write(tmp_path / 'rows.jsonl', rows)}"
    found = json.loads(ran("check", dataset, "--json"))
    assert (found["rows"], found["total"], found["unusable"]) == (20, 30, {})
    shown = ran("check", dataset, columns=400)
    assert "the first 20 of 30 rows of math" in shown
    assert "The rows after the first 20 were not looked at; --all looks at them." in shown
    # All of them where they are asked for, by number too, or where another file may share some.
    other = write(tmp_path / "other.jsonl", [rows[29]])
    for words in (["--all"], ["--against", f"math:{other}"]):
        found = json.loads(ran("check", dataset, *words, "--json", code=len(words) - 1))
        assert (found["rows"], found["total"], sum(found["unusable"].values())) == (30, 30, 1)
    assert json.loads(ran("check", f"{dataset}#24", "--json"))["rows"] == 24


@pytest.mark.parametrize("name", ["external_format", "external_repetition_penalty"])
def test_rewards_of_which_none_verifies_fail(name):
    flags = ["--reward_funcs", name]
    shown = ran("check", f"gsm8k:{DATASETS}/gsm8k/test.jsonl", *flags, code=1, columns=400)
    assert f"Nothing verifies these rows: of the rewards ({name})" in shown
    assert "Every gold earns" not in shown and "No row is bad" not in shown
    # Beside a verifier they are looked at as before.
    ran(
        "check", f"gsm8k:{DATASETS}/gsm8k/test.jsonl", *flags, "--reward_funcs", "external_accuracy"
    )


def test_a_reward_whose_maximum_is_not_known_is_not_called_paid_in_full(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(OWN_REWARDS)
    dataset = asked(tmp_path, "math", "", "7", "8")
    flags = ["--reward_funcs", "external_accuracy", "--reward_funcs", f"{mine}:half"]
    shown = ran("check", dataset, *flags, columns=400)
    assert "Every gold earns the maximum of external_accuracy, and something of " in shown
    assert "half, whose maximum is not known." in shown
