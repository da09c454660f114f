"""The tasks through ms-swift's own loader: files, folders, names, ids, subsets, samples,
mixtures.
"""

import gzip
import json
import logging
import shutil
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
from datasets import Dataset
from swift.dataset import DATASET_MAPPING, RowPreprocessor, load_dataset
from swift.dataset.dataset_syntax import DatasetSyntax
from swift.rewards import orms
from swift.utils import import_external_file, remove_response

from commands import ran
from pictures import dots
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.own import TAKEN_ROLES
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import write_jsonl
from training.ms_swift.names import NOTES_DATASET, without_nulls

pytestmark = [pytest.mark.slow, pytest.mark.product]  # as a whole

ROOT = Path(__file__).parents[3]
DATASETS = ROOT / "datasets"
IDS = {
    "countdown": ("zouxuhong/Countdown-Tasks-3to4", "Jiayi-Pan/Countdown-Tasks-3to4"),
    "gsm8k": ("modelscope/gsm8k", "openai/gsm8k"),
    "numina_math_tir": ("AI-MO/NuminaMath-TIR", "AI-MO/NuminaMath-TIR"),
    "bespoke_stratos": ("bespokelabs/Bespoke-Stratos-17k", "bespokelabs/Bespoke-Stratos-17k"),
}
# Rows of the sample's train split.
USABLE = {"countdown": 64, "gsm8k": 28, "numina_math_tir": 23, "bespoke_stratos": 22}
COLUMNS = ("nums", "target", "solution", "task")
builtin_keys = set(DATASET_MAPPING)


@pytest.fixture(scope="module", autouse=True)
def plugin():
    import_external_file(str(ROOT / "plugin" / "rlvr_plugin.py"))


def load(names, **options):
    """As `swift rlhf` loads them: columns that the template does not use are for the rewards, and
    stay.
    """
    return load_dataset(names, remove_unused_columns=False, **options)[0]


def expected(name, split="train"):
    rows = [
        json.loads(line) for line in (DATASETS / name / f"{split}.jsonl").read_text().splitlines()
    ]
    return [
        TASKS[name].preprocess(row) for row in rows if "def " not in str(row.get("conversations"))
    ]


def content(dataset):
    return [
        {key: row[key] for key in COLUMNS if row.get(key) is not None}
        | {"messages": without_nulls(row["messages"])}
        for row in dataset
    ]


@pytest.mark.parametrize("name", IDS)
def test_local_file(name):
    dataset = load(f"{name}:{DATASETS / name / 'train.jsonl'}")
    assert content(dataset) == expected(name)
    assert len(dataset) == USABLE[name]
    columns = expected(name)[0].keys() | ({"dataset"} if NOTES_DATASET else set())
    assert {column for column in dataset.column_names if any(dataset[column])} == columns
    if name == "countdown":
        assert dataset.features["nums"].feature.dtype == dataset.features["target"].dtype == "int64"
    assert len(load(f"{name}:{DATASETS / name / 'train.jsonl'}#7")) == 7


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        (name, suffix)
        for name in IDS
        for suffix in (".json", ".parquet", ".csv")
        if (name, suffix) != ("bespoke_stratos", ".csv")  # a CSV file cannot hold conversations
    ],
)
def test_other_file_types(tmp_path, name, suffix):
    from datasets import Dataset

    rows = [json.loads(line) for line in (DATASETS / name / "test.jsonl").read_text().splitlines()]
    if suffix == ".csv":
        rows = [{key: str(value) for key, value in row.items()} for row in rows]
    path = tmp_path / f"rows{suffix}"
    {".json": Dataset.to_json, ".parquet": Dataset.to_parquet, ".csv": Dataset.to_csv}[suffix](
        Dataset.from_list(rows), str(path)
    )
    assert content(load(f"{name}:{path}")) == expected(name, "test")


def test_rows_that_a_probe_has_kept(tmp_path):
    """They have the probe's pass rate, and the columns that the prompt and the rewards need."""
    row = {"nums": [3, 1], "target": 4, "note": "row 3"}
    rows = [{**row, "pass_rate": rate} for rate in (0.25, 0.5, 0.75)]
    write_jsonl(tmp_path / "keep.jsonl", rows)
    loaded = load([f"countdown:{tmp_path / 'keep.jsonl'}"], load_from_cache_file=False)
    assert [row["pass_rate"] for row in loaded] == [0.25, 0.5, 0.75]
    assert loaded[2]["nums"] == [3, 1]
    assert "[3, 1]" in loaded[2]["messages"][-1]["content"]


@pytest.mark.parametrize("name", IDS)
def test_streaming(name):
    rows = list(load(f"{name}:{DATASETS / name / 'train.jsonl'}", streaming=True))
    assert content(rows) == expected(name)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("use_hf", [False, True])
def test_ids_find_our_entry_and_ms_swifts_own_stay(name, use_hf):
    entry = DatasetSyntax.parse(f"{IDS[name][use_hf]}#1000").get_dataset_meta(use_hf)
    assert entry.dataset_name == name
    assert builtin_keys <= set(DATASET_MAPPING)
    builtin = [
        meta
        for key, meta in DATASET_MAPPING.items()
        if isinstance(key, tuple) and IDS[name][0] in key
    ]
    assert len(builtin) == 1 and builtin[0].dataset_name is None


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A working folder with folders named as the datasets' ids; ms-swift takes these instead of the
    hub.
    """
    for name, (modelscope, _) in IDS.items():
        shutil.copytree(DATASETS / name, tmp_path / modelscope)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("given", "name", "split", "count"),
    [
        ("gsm8k", "gsm8k", "train", 28),
        ("gsm8k:test", "gsm8k", "test", 12),
        (
            "gsm8k:main",
            "gsm8k",
            "train",
            28,
        ),  # the subset's name on the hub, as for ms-swift's entry
        ("gsm8k:main#10", "gsm8k", "train", 10),
        ("gsm8k:test#5", "gsm8k", "test", 5),
        ("gsm8k#1000", "gsm8k", "train", 1000),  # more than there are: ms-swift repeats them
        ("modelscope/gsm8k", "gsm8k", "train", 28),
        ("modelscope/gsm8k:main#3", "gsm8k", "train", 3),
        ("numina_math_tir", "numina_math_tir", "train", 23),
        ("AI-MO/NuminaMath-TIR:test#4", "numina_math_tir", "test", 4),
        ("bespoke_stratos", "bespoke_stratos", "train", 22),
        ("bespokelabs/Bespoke-Stratos-17k#6", "bespoke_stratos", "train", 6),
    ],
)
def test_names_ids_subsets_and_counts(hub, given, name, split, count):
    rows = content(load(given))
    assert len(rows) == count
    assert all(row in expected(name, split) for row in rows)
    if "#" not in given:
        assert rows == expected(name, split)


def test_one_shot_by_name(hub):
    (row,) = load("gsm8k_one_shot#1")
    assert [message["role"] for message in row["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert row["task"] == "gsm8k"


def test_several_tasks_in_one_dataset_list_are_graded_by_their_own_rewards():
    names = list(IDS)
    dataset = load([f"{name}:{DATASETS / name / 'train.jsonl'}#8" for name in names], shuffle=True)
    assert sorted(dataset["task"]) == sorted(names * 8)
    columns = {name: dataset[name][:] for name in ("task", "nums", "target", "solution")}
    nothing = ["<answer>no idea</answer>"] * len(dataset)
    mine = [0.0 if task == "countdown" else None for task in columns["task"]]
    assert orms["external_countdown"]()(nothing, **columns) == mine
    assert orms["external_accuracy"]()(nothing, **columns) == [
        0.0 if value is None else None for value in mine
    ]


def test_a_file_of_several_tasks(tmp_path):
    names = list(IDS)
    lines = []
    for name in names:
        for line in (DATASETS / name / "train.jsonl").read_text().splitlines()[:5]:
            lines.append(json.dumps({"task": name, **json.loads(line)}))
    lines.append(
        json.dumps(
            {
                "task": "code",
                "messages": [{"role": "user", "content": "?"}],
                "tests": ["assert f()"],
            }
        )
    )
    path = tmp_path / "mixed.jsonl"
    path.write_text("\n".join(lines) + "\n")
    dataset = load(f"mixed:{path}")
    assert dataset["task"][:] == [name for name in names for _ in range(5)] + ["code"]
    assert (
        dataset["nums"][0]
        and dataset["nums"][5] is None
        and dataset["solution"][5]
        and dataset["tests"][20]
    )
    assert content(dataset)[:20] == [row for name in IDS for row in expected(name)[:5]]
    columns = {name: dataset[name][:] for name in dataset.column_names}
    rewards = orms["external_accuracy"]()(["<answer>no idea</answer>"] * 21, **columns)
    assert rewards == [None] * 5 + [0.0] * 15 + [None]
    with pytest.raises(ValueError, match="mixed is not on a hub; give mixed:FILE"):
        load("mixed")


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"gsm8k:{path}"


USER = {"role": "user", "content": "1?"}
GOOD, BAD = {"question": "1 + 1?", "answer": "#### 2"}, {"question": "1 + 1?", "answer": "two"}


@pytest.mark.parametrize(
    ("rows", "options", "kept", "said"),
    [
        (
            [GOOD, BAD, GOOD],
            {},
            2,
            "rows.jsonl: gsm8k: 1 of 3 rows cannot be used (no number after ####: 1)\n  line 2: column 'answer':",
        ),
        (
            [BAD, *[GOOD] * 3, *[BAD] * 9],
            {"streaming": True},
            3,
            "gsm8k: rows left out so far: 10;",
        ),
    ],
)
def test_left_out_rows_are_counted_with_file_row_and_reason(
    tmp_path, caplog, rows, options, kept, said
):
    logger = logging.getLogger("swift")
    logger.addHandler(
        caplog.handler
    )  # it does not hand records on to the root logger, where caplog listens
    try:
        assert len(list(load(write(tmp_path / "rows.jsonl", rows), **options))) == kept
    finally:
        logger.removeHandler(caplog.handler)
    assert said in caplog.text


def test_too_many_unusable_rows_end_the_run_unless_allowed(tmp_path, monkeypatch):
    name = write(tmp_path / "rows.jsonl", [GOOD] * 50 + [BAD] * 11)
    with pytest.raises(
        ValueError,
        match="(?s)11 of 61 rows cannot be used .*more than 10% of all; set SWIFT_RLVR_MAX_UNUSABLE",
    ):
        load(name)
    monkeypatch.setenv("SWIFT_RLVR_MAX_UNUSABLE", "0.2")
    assert len(load(name)) == 50
    with pytest.raises(ValueError, match="11 of 61"):
        load(name, strict=True)


def test_columns_are_renamed_as_our_own_commands_do(tmp_path):
    rows = [{"Text of the problem": "1 + 1?", "Right": "2", "note": "x"}]
    write(tmp_path / "rows.jsonl", rows)
    columns = {"TEXT of the problem": "problem", "Right": "answer", "absent": "note"}
    (row,) = load(f"math:{tmp_path / 'rows.jsonl'}", columns=columns)
    ((_, raw),) = parse_source(f"math:{tmp_path / 'rows.jsonl'}", columns=columns).rows()
    assert raw == {"problem": "1 + 1?", "answer": "2", "note": "x"}
    assert row["solution"] == TASKS["math"].preprocess(raw)["solution"] == "2"


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "2"}]},
        {"conversations": [{"from": "human", "value": "1?"}, {"from": "gpt", "value": "2"}]},
        {"system": "Think.", "conversations": [{"from": "human", "value": "1?"}]},
        {"system": "Think.", "conversation": [{"human": "1?", "assistant": "2"}]},
        {"system": "No.", "messages": [{"role": "system", "content": "Think."}, USER]},
        {"messages": [USER, {"role": "assistant", "content": "2"}, USER]},
    ],
)
def test_conversations_become_the_prompts_that_ms_swift_makes_of_them(tmp_path, row):
    path = tmp_path / "rows.jsonl"
    write(path, [{**row, "solution": "2"}])
    (theirs,) = load(str(path))
    (ours,) = load(f"math:{path}")
    # As before it samples: an answer at the end is no part of the prompt.
    messages = without_nulls(theirs["messages"])
    remove_response(messages)
    # Where the row says nowhere what the answer looks like, ours says it.
    if messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": TASKS["math"].system})
    assert without_nulls(ours["messages"]) == messages
    assert ours["solution"] == theirs["solution"] == "2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question"\n', r"no row is left|line 1: column 'row': not JSON"),
        ("", "rows.jsonl: no rows"),
        (
            json.dumps(GOOD) + '\n{"question": "' + "x" * 2**23 + '"}\n',
            "rows.jsonl, line 2: longer than",
        ),
        (
            '{"question": "?", "reply": "2"}\n',
            "gsm8k: column answer missing; the dataset has question, reply",
        ),
        (
            '{"question": 1, "answer": 2}\n',
            "rows.jsonl: gsm8k: 1 of 1 rows cannot be used (?s:.*)line 1: column 'question'",
        ),
    ],
)
def test_bad_files_end_with_file_and_line(tmp_path, text, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load(f"gsm8k:{path}")
    with pytest.raises(FileNotFoundError, match="--dataset gsm8k:no/such.jsonl: no such file"):
        load("gsm8k:no/such.jsonl")


def test_rows_that_are_made():
    """As `--dataset` and `--val_dataset` have them: as many as asked for, in ms-swift's order, of
    the split.
    """
    pytest.importorskip("zss", reason="needs the extra [reasoning-gym]")
    task = TASKS["reasoning_gym"]
    for split, options in (("", {}), (":test", {"streaming": True})):
        text = f"gcd?seed=2&max_value=50+lcm{split}"
        expected = [task.preprocess(row) for row in islice(task.make(text), 12)]
        rows = [
            {key: row[key] for key in ("entry", "task")}
            | {"messages": without_nulls(row["messages"])}
            for row in load(f"reasoning_gym:{text}#12", **options)
        ]
        assert sorted(map(repr, (sorted(row.items()) for row in rows))) == sorted(
            map(repr, (sorted(row.items()) for row in expected))
        )
    for name, message in (
        ("gcd", "to generate N rows"),
        ("gdc#5", "there is no task 'gdc'; did you mean gcd"),
    ):
        with pytest.raises(ValueError, match=message):
            load(f"reasoning_gym:{name}")


IRON = {"question": "Which is a metal?", "choices": ["oxygen", "iron"], "answer": "B"}
ASKED_IN_WORDS = {"question": "1 + 1?", "answer": "2"}
PASSAGE = "Cologne lies on the Rhine, which comes from the Alps and flows into the North Sea."


def logged(caplog, *arguments, **options):
    """The rows that `load` gives, and what ms-swift's logger says meanwhile: it does not hand records
    on to the root logger, where caplog listens.
    """
    logger = logging.getLogger("swift")
    logger.addHandler(caplog.handler)
    try:
        return load(*arguments, **options), caplog.text
    finally:
        logger.removeHandler(caplog.handler)


def test_the_passage_and_what_stands_beside_the_messages_reach_the_trainer(tmp_path, caplog):
    image = tmp_path / "a.png"
    dots(1).save(image)
    rows = [
        {
            "context": PASSAGE,
            "question": f"<image>Which river, {number}?",
            "answers": {"text": ["Rhine"], "answer_start": [1]},
            "image": str(image),
            "tools": [{"type": "function", "function": {"name": "look"}}],
            "chat_template_kwargs": {"enable_thinking": False},
            "notes": f"{PASSAGE} That is known.",
        }
        for number in range(3)
    ]
    write(tmp_path / "rows.jsonl", rows)
    dataset, text = logged(caplog, f"qa:{tmp_path / 'rows.jsonl'}")
    assert len(dataset) == 3
    assert dataset[1]["messages"][-1]["content"] == f"{PASSAGE}\n\n<image>Which river, 1?"
    assert [picture["path"] for picture in dataset[0]["images"]] == [str(image)]
    assert without_nulls(dataset[0]["tools"]) == rows[0]["tools"]
    assert dataset[0]["chat_template_kwargs"] == {"enable_thinking": False}
    said = "the column 'notes' looks like a part of the question, and no prompt shows it (in 3 of"
    assert said in text and "'context'" not in text.partition("notes")[0]


def test_rows_of_several_kinds_get_the_same_columns(tmp_path):
    """ms-swift takes the columns of the first 1,000 rows for those of all."""
    rows = [{"task": "countdown", "nums": [3, 5, 7], "target": 22}] * 1100
    rows += [{"task": "choice", **IRON}, {"task": "qa", "question": "Who?", "answer": "Tom"}]
    rows += [{"task": "math", **ASKED_IN_WORDS, "level": level} for level in (3, "hard")]
    write(tmp_path / "mixed.jsonl", rows)
    dataset = load(f"mixed:{tmp_path / 'mixed.jsonl'}")
    assert dataset[0]["options"] is None and dataset[1100]["options"] == ["oxygen", "iron"]
    assert dataset[0]["nums"] == [3, 5, 7] and dataset[1100]["nums"] is None
    assert dataset[1101]["accepted_answers"] == ["Tom"] and dataset[1102]["solution"] == "2"
    assert dataset["level"][-2:] == ["3", "hard"]


@pytest.mark.parametrize("suffix", ["jsonl.gz", "txt", "csv", "folder"])
def test_files_as_people_have_them(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    lines = "".join(json.dumps(row) + "\n" for row in [ASKED_IN_WORDS, {"x": 1}, ASKED_IN_WORDS])
    lines += "{no JSON\n"
    if suffix == "jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif suffix == "csv":
        path.write_text("question;answer\n1 + 1?;2\n;\n1 + 1?;2\n1;2;3\n")
    elif suffix == "folder":
        path.mkdir()
        (path / "one.jsonl").write_text(lines)
    else:
        path.write_text(lines)
    assert load(f"math:{path}")["solution"][:] == ["2", "2"]
    assert [row["solution"] for row in load(f"math:{path}", streaming=True)] == ["2", "2"]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_malformed_line_is_a_bad_row_with_its_number(tmp_path, caplog, streaming):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(GOOD) + '\n{"question"\n' + json.dumps(GOOD))
    rows, text = logged(caplog, f"gsm8k:{path}", streaming=streaming)
    assert len(list(rows)) == 2
    assert "line 2: column 'row': not JSON" in (caplog.text if streaming else text)
    with pytest.raises(ValueError, match="line 2: column 'row': not JSON"):
        list(load(f"gsm8k:{path}", strict=True))


def test_columns_may_lead_into_a_column(tmp_path):
    row = {"q": {"text": "1 + 1?"}, "extra_info": {"answer": "2"}, "answer": "It is easy to see."}
    write(tmp_path / "rows.jsonl", [row])
    columns = {"q.text": "problem", "extra_info.answer": "answer"}
    for streaming in (False, True):
        options = {"columns": columns, "streaming": streaming}
        (loaded,) = load(f"math:{tmp_path / 'rows.jsonl'}", **options)
        assert loaded["solution"] == "2"
        assert loaded["messages"][-1]["content"] == "1 + 1?"


class HubOfOurOwn:
    """Stands in for the loader of a hub: datasets by id, configuration and split."""

    KNOWN = {"openai/gsm8k": {"main": ["train", "test"], "socratic": ["train"]}}
    KNOWN |= {"org/one": {"plain": ["test"]}, "org/two": {"a": ["train"], "b": ["train"]}}

    def __init__(self):
        self.asked = []

    def load_dataset(self, name, subset, split, streaming=False, **options):
        self.asked.append((name, subset, split, sorted(options)))
        subsets = self.KNOWN[name]
        if subset not in subsets:
            raise ValueError(f"BuilderConfig {subset!r} not found. Available: {list(subsets)}")
        if split not in subsets[subset]:
            raise ValueError(f"Unknown split {split!r}. Should be one of {subsets[subset]}.")
        rows = [{"question": f"{name} {subset} {split}?", "answer": "#### 2"}] * 3
        dataset = Dataset.from_list(rows)
        return dataset.to_iterable_dataset() if streaming else dataset


@pytest.fixture
def stand_in(monkeypatch):
    stand_in = HubOfOurOwn()
    monkeypatch.setattr("swift.hub.get_hub", lambda use_hf=None: stand_in)
    return stand_in


@pytest.mark.parametrize(
    ("given", "count", "subset", "split"),
    [
        ("math:openai/gsm8k", 3, "main", "train"),
        ("math:openai/gsm8k:test#2", 2, "main", "test"),
        ("math:openai/gsm8k/socratic", 3, "socratic", "train"),
        ("qa:openai/gsm8k:train#1000", 1000, "main", "train"),
        ("math:org/one", 3, "plain", "test"),
        ("math:org/two/b", 3, "b", "train"),
    ],
)
@pytest.mark.parametrize("use_hf", [False, True])
def test_an_id_on_a_hub_stands_where_a_file_does(stand_in, given, count, subset, split, use_hf):
    name = given.partition(":")[2].partition("#")[0].partition(":")[0]
    question = f"{'/'.join(name.split('/')[:2])} {subset} {split}?"
    rows = load(given, use_hf=use_hf)
    assert len(rows) == count
    assert rows[0]["messages"][-1]["content"] == question
    # The run downloads as its flags say, and our commands read the same rows.
    assert {"download_mode", "hub_token"} <= set(stand_in.asked[-1][-1])
    read = [row["question"] for _, row in parse_source(given, use_hf).rows()]
    assert read == [question] * min(count, 3)
    (first, *_) = load(given.partition("#")[0], use_hf=use_hf, streaming=True)
    assert first["messages"][-1]["content"] == question


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("math:org/two", r"Available: \['a', 'b'\].*a configuration is math:org/two/CONFIGURATION"),
        ("math:org/one:train", r"Unknown split 'train'. Should be one of \['test'\]"),
        ("math:openai/gsm8k/other", r"Available: \['main', 'socratic'\]"),
    ],
)
def test_what_a_hub_leaves_open_is_said(stand_in, given, message):
    with pytest.raises(InputError, match=message):
        load(given)
    with pytest.raises(InputError, match=message):
        list(parse_source(given).rows())


def test_a_hub_out_of_reach(monkeypatch):
    """What ModelScope says without a network has brackets too, and is no list of configurations."""

    class OutOfReach:
        def load_dataset(self, *names, **options):
            raise ValueError("[E1001] 下载总时限已耗尽")

    monkeypatch.setattr("swift.hub.get_hub", lambda use_hf=None: OutOfReach())
    monkeypatch.setattr("swift_rlvr.tasks.sources.why_no_hub", lambda use_hf: "no way there")
    with pytest.raises(InputError, match=r"cannot be loaded from ModelScope \(no way there\)"):
        list(parse_source("math:org/one").rows())


@pytest.mark.parametrize(("variable", "is_hf"), [("1", True), ("0", False), (None, False)])
def test_our_commands_take_the_hub_that_the_training_takes(monkeypatch, variable, is_hf):
    hubs = []

    def get_hub(use_hf=None):
        hubs.append(use_hf)
        return HubOfOurOwn()

    monkeypatch.setattr("swift.hub.get_hub", get_hub)
    monkeypatch.delenv("USE_HF", raising=False)
    if variable:
        monkeypatch.setenv("USE_HF", variable)
    ran("dataset", "check", "math:openai/gsm8k")
    assert set(hubs) == {is_hf}


def test_a_local_folder_in_a_hubs_layout(tmp_path, monkeypatch):
    for split in ("train", "test"):
        (tmp_path / "org" / "name" / "data").mkdir(parents=True, exist_ok=True)
        rows = Dataset.from_list([{"Question": f"{split}?", "Final Answer": "2"}])
        rows.to_parquet(str(tmp_path / "org" / "name" / "data" / f"{split}-00000-of-00001.parquet"))
    monkeypatch.chdir(tmp_path)
    for name in ("math:org/name", f"math:{tmp_path}/org/name"):
        assert load(name)[0]["messages"][-1]["content"] == "train?"
        assert load(f"{name}:test#1")[0]["messages"][-1]["content"] == "test?"
        assert next(parse_source(f"{name}:test").rows())[1]["Question"] == "test?"


def test_tools_reach_the_model_as_a_column(tmp_path, monkeypatch):
    """From the file through the loader, a sample of GRPO and the template: the tools are in the
    prompt, and calls and results in the template's words.
    """
    from swift.model import get_processor
    from swift.rl_core.data import GRPOSample
    from swift.template import get_template

    monkeypatch.setenv("SWIFT_RLVR_NATIVE_TOOLS", "true")
    add = {"name": "add", "description": "", "parameters": {"a": {"type": "int", "default": 1}}}
    # A tool with other keys: a table of both would fill what is missing with null.
    clear = {"name": "clear", "description": "Clears.", "parameters": {}}
    call = {"name": "add", "arguments": {"a": 2}}
    turns = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "tool_call", "content": json.dumps(call)},
        {"role": "tool_response", "content": "2"},
        {"role": "assistant", "content": "2."},
        {"role": "user", "content": "And 1?"},
    ]
    path = tmp_path / "rows.jsonl"
    rows = [
        {"messages": turns, "tools": [add], "calls": [call]},
        {"messages": turns[:1], "tools": [clear], "calls": [{"name": "clear", "arguments": {}}]},
    ]
    write_jsonl(path, rows)

    processor = get_processor(str(TINY_MODEL), model_type="qwen2")
    template = get_template(processor, template_type="qwen2_5", max_length=4096)
    template.set_mode("vllm")
    for raw, row in zip(rows, load([f"tool_calls:{path}"]), strict=True):
        prepared = TASKS["tool_calls"].preprocess(raw)
        sample = GRPOSample.from_row(row)
        assert sample.to_infer_request().tools == json.loads(prepared["tools"])
        prompt = processor.decode(template.encode(sample.to_template_dict())["input_ids"])
        assert json.dumps(json.loads(prepared["tools"])[0]) in prompt
        assert prompt.count("<tool_response>\n2\n</tool_response>") == (raw is rows[0])
        # What the reward reads is there beside them.
        assert row["functions"] == prepared["functions"] and row["calls"] == prepared["calls"]


def test_the_roles_of_conversations_are_those_that_ms_swift_takes():
    for role in TAKEN_ROLES:
        RowPreprocessor._check_messages({"messages": [{"role": role, "content": "1 + 1?"}]})
    for turn in ({"role": "developer", "content": "?"}, {"role": "assistant", "content": None}):
        with pytest.raises(AssertionError):
            RowPreprocessor._check_messages({"messages": [turn]})
