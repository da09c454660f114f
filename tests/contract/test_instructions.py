"""What `dataset check`, `attack` and `explain` say of rows with constraints, which need no right answer."""

import json

from commands import ran
from paths import ROOT

PROMPT = {"prompt": "Describe a river of Germany."}
NO_COMMA = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
LONG = {"relation": "at least", "num_words": 30}
SHORT = {"relation": "less than", "num_words": 20}
TEXT = "The Rhine rises in the Alps and flows past Cologne to a cold grey sea"


def written(folder, *rows):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_check_names_constraints_that_are_unknown_and_pairs_that_contradict(tmp_path):
    names = ["length_constraints:number_words"] * 2
    rows = [{**PROMPT, **NO_COMMA, "prompt": f"Describe river {number}."} for number in range(10)]
    rows.append({**PROMPT, "instruction_id_list": ["new:thing"], "kwargs": [{}]})
    rows.append({"prompt": "Talk.", "instruction_id_list": names, "kwargs": [LONG, SHORT]})
    shown = ran("dataset", "check", f"instructions:{written(tmp_path, *rows)}", columns=300)
    assert "cannot be used: constraint new:thing" in shown
    assert "line 11: column 'constraints': new:thing: there is no such constraint" in shown
    assert "line 12: no answer can meet both: length_constraints:number_words and" in shown
    assert "at least 30 and at most 19" in shown
    # A row without a right answer is none that is bad.
    assert "11 rows: no response was tried, since the rows bring none that is right" in shown
    assert "1 of 12 rows are bad" in shown


def test_our_rows_are_right_and_no_strategy_is_paid():
    dataset = f"instructions:{ROOT}/datasets/instructions/train.jsonl"
    assert "Every gold earns the maximum of external_instructions." in ran(
        "dataset", "check", dataset
    )
    shown = ran("attack", "instructions", "--dataset", dataset)
    assert "None is paid." in shown and "paid on 25 of 25 rows" in shown


def test_a_raw_row_of_a_public_dataset_is_explained(tmp_path):
    rows = [
        {**PROMPT, **NO_COMMA},
        {**PROMPT, "ground_truth": json.dumps({"func_name": "validate_no_commas", "N": None})},
    ]
    path = written(tmp_path, *rows)
    for line in (1, 2):
        shown = ran("explain", TEXT, "--row", f"{path}:{line}")
        assert "external_instructions: reward 1.0 (all met)" in shown
        assert "punctuation:no_comma: commas: 0" in shown
