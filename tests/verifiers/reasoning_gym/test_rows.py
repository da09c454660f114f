"""Dataset strings and rows of reasoning-gym: what is accepted, what is drawn, and that the splits
share nothing.
"""

import json
import re
from importlib.util import find_spec
from itertools import islice

import pytest

from commands import ran, refused
from distributions import python
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError, how_to_install
from swift_rlvr.utils.jsonl import read_jsonl
from swift_rlvr.verifiers.reasoning_gym import library, naming, rows
from swift_rlvr.verifiers.reasoning_gym.library import REFUSED
from swift_rlvr.verifiers.reasoning_gym.naming import SPLITS, Part

pytestmark = pytest.mark.skipif(
    find_spec("reasoning_gym") is None, reason="needs the extra [reasoning-gym]"
)
TASK = TASKS["reasoning_gym"]
GCD_WITH = '{"task": "gcd", "question": "?", "answer": "1", "settings": {}, "metadata": '


def usable():
    return [name for name in library.datasets() if library.why_refused(name) is None]


def drawn(text, count):
    return [rows.read_entry(row["entry"]) for row in islice(rows.rows(*naming.parse(text)), count)]


def test_names_and_splits():
    parts, split = naming.parse("gcd?seed=3+lcm:test")
    assert parts == [Part("gcd", {}, 3), Part("lcm")] and split == "test"
    assert naming.parse("gcd")[1] == "train"
    assert [part.name for part in naming.parse("all")[0]] == usable()
    games = [part.name for part in naming.parse("games")[0]]
    assert {"countdown", "sudoku"} <= set(games) and not set(games) & set(REFUSED)
    assert naming.parse("rush_hour?refused=yes")[0] == [Part("rush_hour", {}, 0, True)]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("chain_sum?min_terms=3&max_terms=4", {"min_terms": 3, "max_terms": 4}),
        ("chain_sum?allow_negation=yes", {"allow_negation": True}),
        ("basic_arithmetic?operators=%2B,-", {"operators": ["+", "-"]}),
        ("binary_matrix?p_zero=0.5", {"p_zero": 0.5}),
        # INCLUSIVE, as in reasoning-gym: from the first level to this one
        ("chain_sum?level=2", {"min_terms": 2, "max_terms": 4, "min_digits": 1, "max_digits": 3}),
        (
            "chain_sum?level=2&max_terms=9",
            {"min_terms": 2, "max_terms": 9, "min_digits": 1, "max_digits": 3},
        ),
    ],
)
def test_settings_and_levels(text, settings):
    ((part,), _) = naming.parse(text)
    assert {
        name: list(v) if isinstance(v, tuple) else v for name, v in part.settings.items()
    } == settings
    assert drawn(text, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chain_sun", "there is no task 'chain_sun'; did you mean chain_sum?"),
        ("", "there is no task ''"),
        ("gcd+gcd", "gcd occurs twice"),
        ("arithmetic+gcd", "gcd occurs twice"),
        ("gcd:validation", "expected one of the splits train, test, got 'validation'"),
        ("gcd:", "expected one of the splits"),
        ("gcd?", None),
        ("gcd?seed", "expected SETTING=VALUE, got 'seed'"),
        ("gcd?seed=x", "seed: must be a whole number, got 'x'"),
        ("gcd?seed=1&seed=2", "a setting is given twice"),
        ("gcd?min_number=3", "has no setting 'min_number'; the nearest is min_numbers"),
        ("gcd?size=3", "has no setting 'size'"),
        ("gcd?min_numbers=three", "gcd: min_numbers: must be a whole number, got 'three'"),
        ("chain_sum?allow_negation=2", "allow_negation: must be true or false, got '2'"),
        ("binary_matrix?p_zero=nan", "p_zero: must be a finite number, got 'nan'"),
        (
            "chain_sum?min_terms=9&max_terms=3",
            "rejects its settings: max_terms must be >= min_terms",
        ),
        ("chain_sum?level=99", "level must be from 0 to 10, got 99"),
        ("acre?level=1", "acre has no curriculum"),
        ("rush_hour", "rush_hour is refused: no right answer is known.*refused=yes"),
        ("composite", "there is no task 'composite'"),
    ],
)
def test_what_is_not_accepted(text, message):
    if message is None:
        assert naming.parse(text)
        return
    with pytest.raises(InputError, match=message):
        naming.parse(text)


def test_a_task_without_its_dependency_names_it(monkeypatch):
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    with pytest.raises(
        InputError, match="zebra_puzzles is refused: it needs pycosat, .*: pip install pycosat"
    ):
        naming.parse("zebra_puzzles?refused=yes")
    assert "zebra_puzzles" not in [part.name for part in naming.parse("all?refused=yes")[0]]


def test_without_reasoning_gym_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("swift_rlvr.utils.errors.find_spec", lambda name: None)
    library.load.cache_clear()
    with pytest.raises(InputError, match=re.escape(how_to_install("reasoning-gym"))):
        naming.parse("gcd")
    library.load.cache_clear()


def test_an_item_is_a_function_of_task_settings_seed_split_and_number():
    wanted = [0, 1, rows.BLOCK, 3 * rows.BLOCK + 7]
    for name in ("gcd", "list_functions", "pool_matrix"):
        first = [rows.item(Part(name), "test", number) for number in wanted]
        rows.dataset.cache_clear()
        assert [rows.item(Part(name), "test", number) for number in reversed(wanted)] == first[::-1]
    questions = {
        seed: [entry["question"] for entry in drawn(f"gcd?seed={seed}", 50)] for seed in (0, 1, 2)
    }
    assert drawn("gcd", 5) == drawn("gcd", 50)[:5]
    assert len({question for each in questions.values() for question in each}) > 140


@pytest.mark.slow
def test_the_rows_do_not_depend_on_the_order_of_sets():
    """Two ranks have two PYTHONHASHSEED; these tasks choose from sets of texts, or quote code that
    draws at random.
    """
    tasks = "codeio intermediate_integration isomorphic_strings knight_swap list_functions polynomial_multiplication"
    program = f"""
import json
from itertools import islice
from swift_rlvr.tasks.reasoning_gym import TASK
print(json.dumps([row for name in "{tasks} ransom_note word_ladder".split() for row in islice(TASK.make(name), 4)]))
"""
    printed = [python("-c", program, path="", PYTHONHASHSEED=seed).stdout for seed in "12"]
    assert printed[0] == printed[1]
    assert len(json.loads(printed[0])) == 8 * 4


def test_several_tasks_take_turns():
    assert [entry["task"] for entry in drawn("gcd+lcm+ab", 7)] == ["gcd", "lcm", "ab"] * 2 + ["gcd"]
    assert drawn("gcd+lcm", 6)[::2] == drawn("gcd", 3)


def test_a_quarter_of_the_questions_is_for_tests():
    share = sum(rows.split_of(f"What is {number} + 1?") == "test" for number in range(4000)) / 4000
    assert share == pytest.approx(0.25, abs=0.03)
    assert rows.split_of("a b") == rows.split_of(" a\n b ")


def test_too_few_different_questions_for_two_splits(monkeypatch):
    monkeypatch.setattr(rows, "dataset", lambda *_: [{"question": "Always the same?"}] * rows.BLOCK)
    split = rows.split_of("Always the same?")
    (other,) = {*SPLITS} - {split}
    assert rows.item(Part("one"), split, 0)["question"] == "Always the same?"
    with pytest.raises(
        InputError, match=f"none of 64 questions is in the split {other}: .* too few different"
    ):
        rows.item(Part("one"), other, 0)


def test_metadata_survives_json():
    for name in (
        "graph_color",
        "arc_1d",
        "knights_knaves",
        "maze",
        "rearc",
    ):  # int keys, tuples, numpy's texts
        drawn_item = rows.item(Part(name), "train", 0)
        metadata = rows.read_entry(rows.to_entry(Part(name), drawn_item))["metadata"]
        assert metadata == {
            key: value for key, value in drawn_item["metadata"].items() if key not in rows._NOT_KEPT
        }
        assert len(metadata) > 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (None, "expected the JSON object"),
        ("[]", "expected the JSON object"),
        ("{", "column 'entry'"),
        ("[" * 100_000, "column 'entry'"),
        ('{"task": "gcd"}', "'question' must be a text"),
        ('{"task": "gcd", "question": "?", "answer": "1"}', "'settings' must be an object"),
        (
            '{"task": "gcd", "question": "?", "answer": "1", "settings": {}}',
            "'metadata' must be an encoded dict",
        ),
        (
            '{"task": "gcd", "question": " ", "answer": "1", "settings": {}, "metadata": ["dict"]}',
            "question is empty",
        ),
        (GCD_WITH + '["dict", [1]]}', "column 'entry'"),
        (GCD_WITH + '["int", "x"]}', "column 'entry'"),
    ],
)
def test_rows_that_are_refused(entry, message):
    for read in (TASK.preprocess, TASK.identity, TASK.gold):
        with pytest.raises(RowError, match=message):
            read({"entry": entry})


def test_sources():
    source = parse_source("reasoning_gym:gcd+lcm?seed=4:test#5")
    assert str(source) == "reasoning_gym:gcd+lcm?seed=4:test#5"
    assert [row for _, row in source.rows()] == list(
        islice(rows.rows(*naming.parse("gcd+lcm?seed=4:test")), 5)
    )
    for text in ("reasoning_gym:gcd", "reasoning_gym#5", "reasoning_gym"):
        with pytest.raises(
            InputError,
            match="expected reasoning_gym:FILE, or reasoning_gym:TASK#N to generate N rows",
        ):
            parse_source(text)
    with pytest.raises(InputError, match="there is no task 'gdc'"):
        parse_source("reasoning_gym:gdc#5")


def test_commands(tmp_path):
    out = tmp_path / "rows.jsonl"
    assert "6 rows written" in ran(
        "dataset", "make", "reasoning_gym", "gcd+lcm:test", "--rows", "6", "--out", str(out)
    )
    assert [row for _, row in read_jsonl(out)] == list(
        islice(rows.rows(*naming.parse("gcd+lcm:test")), 6)
    )
    assert parse_source(str(out)).task is TASK
    checked = ran(
        "dataset", "check", f"reasoning_gym:{out}", "--against", "reasoning_gym:gcd+lcm#20"
    )
    assert "Every gold earns the maximum of external_reasoning_gym" in checked
    unknown = refused(
        "dataset",
        "make",
        "reasoning_gym",
        "chess",
        "--rows",
        "6",
        "--out",
        str(tmp_path / "none.jsonl"),
    )
    assert "there is no task 'chess'" in unknown
    assert all(f" {name}" in unknown for name in (*library.datasets(), "games"))
