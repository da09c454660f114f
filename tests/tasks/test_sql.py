"""`sql:FILE`: rows in the columns of public datasets, databases in files and in statements."""

import json
import sqlite3

import pytest

from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.tasks import TASKS, RowError, unused_columns
from swift_rlvr.tasks.sources import parse_source

TASK = TASKS["sql"]
CREATE = "CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INT);"
INSERT = "INSERT INTO singer VALUES (1, 'Ann', 25), (2, 'Bob', 31), (3, 'Cy', 43);"
ASK, GOLD = "How many singers are older than 30?", "SELECT count(*) FROM singer WHERE age > 30"
SPIDER = {
    "db_id": "band",
    "query": GOLD,
    "query_toks": ["SELECT", "count", "(", "*", ")"],
    "query_toks_no_value": ["select", "count"],
    "question": ASK,
    "question_toks": ["How", "many"],
    "sql": {"from": {"table_units": []}, "select": [False, []]},
}
BIRD = {
    "question_id": 7,
    "db_id": "band",
    "question": ASK,
    "evidence": "older than 30 refers to age > 30",
    "SQL": GOLD,
    "difficulty": "simple",
}
GRETEL = {
    "id": 1,
    "domain": "music",
    "sql_complexity": "aggregation",
    "sql_task_type": "analytics and reporting",
    "sql_prompt": ASK,
    "sql_context": CREATE + INSERT,
    "sql": GOLD + ";",
    "sql_explanation": "This query counts the singers whose age is above thirty, as the question asks.",
}
B_MC2 = {"answer": GOLD, "question": ASK, "context": "CREATE TABLE singer (age INTEGER)"}
SYN = {"db_id": "band", "question": ASK, "external_knowledge": "", "sql": GOLD, "cot": "So " + GOLD}
SHAPES: dict[str, dict] = {
    "spider": SPIDER,
    "bird": BIRD,
    "gretel": GRETEL,
    "b-mc2": B_MC2,
    "synsql": SYN,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of databases as Spider and BIRD have it."""
    path = tmp_path / "database" / "band" / "band.sqlite"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(CREATE + INSERT)
    monkeypatch.setenv("SWIFT_RLVR_SQL_DATABASES", str(tmp_path / "database"))
    return path.parents[1]


@pytest.mark.parametrize("name", SHAPES)
def test_public_columns(folder, name):
    row = SHAPES[name]
    prepared = TASK.preprocess(row)
    system, user = prepared["messages"]
    assert "<answer>" in system["content"]
    assert ASK in user["content"] and "CREATE TABLE singer" in user["content"]
    assert GOLD not in user["content"] and prepared["gold_sql"] == GOLD
    assert ("refers to" in user["content"]) == (name == "bird")
    assert "'Bob'" not in user["content"] or name == "gretel"
    assert unused_columns(TASK, row) == []
    reward = REWARDS["external_sql"]()
    answers = [TASK.gold_completion(row), "<answer>SELECT 2 FROM singer LIMIT 1</answer>"]
    assert reward(answers, **columns_for(reward, [prepared] * 2)) == [1.0, 0.0]


def test_messages_stay_as_they_are_if_they_show_a_table(folder):
    for asks in ("Count the rows of Singer. Answer in one ```sql block.", f"{CREATE}\n\n{ASK}"):
        messages = [{"role": "user", "content": asks}]
        row = {
            "messages": [*messages, {"role": "assistant", "content": "..."}],
            "db_id": "band",
            "sql": GOLD,
        }
        assert TASK.preprocess(row)["messages"][-1:] == messages


def test_messages_without_a_table_get_the_schema_and_the_evidence(folder):
    # "singers" is no table.
    messages = [
        {"role": "system", "content": "You write SQL."},
        {"role": "user", "content": "How many singers are there?"},
    ]
    row = {"messages": messages, "db_id": "band", "sql": GOLD, "evidence": "a row is a person"}
    prepared = TASK.preprocess(row)
    system, user = prepared["messages"]
    assert system == messages[0]
    assert "CREATE TABLE singer" in user["content"] and "a row is a person" in user["content"]
    assert user["content"].endswith(messages[1]["content"])
    # ... once, also when a row that training has prepared is read again.
    assert TASK.preprocess(prepared)["messages"] == prepared["messages"]


def test_where_a_database_is(folder, tmp_path):
    place = str(folder / "band" / "band.sqlite")
    assert TASK.preprocess(SPIDER)["database"] == place
    assert TASK.preprocess({"question": ASK, "query": GOLD, "db_path": place})["database"] == place
    flat = tmp_path / "database" / "flat.db"
    flat.write_bytes((folder / "band" / "band.sqlite").read_bytes())
    assert TASK.preprocess({**SPIDER, "db_id": "flat"})["database"] == str(flat)
    # A row that training has prepared is read again as it is.
    prepared = TASK.preprocess(SPIDER)
    assert TASK.preprocess(prepared) == prepared
    of_statements = TASK.preprocess(B_MC2)
    assert TASK.preprocess(of_statements) == of_statements


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**SPIDER, "db_id": "none"}, r"column 'db_id': there is no file '.*/none/none\.sqlite'"),
        ({**SPIDER, "db_id": "../band"}, "column 'db_id': there is no file"),
        (
            {"question": ASK, "query": GOLD, "db_path": "x.sqlite"},
            "column 'db_path': there is no file 'x.sqlite'",
        ),
        (
            {"question": ASK, "query": GOLD},
            "column 'database': expected statements in sql_context, a path in db_path",
        ),
        (
            {"db_id": "band", "query": GOLD},
            "column 'question': no question in the columns .*QUESTION_COLUMN",
        ),
        (
            {**SPIDER, "query": None},
            "column 'gold_sql': no query in the columns query, sql; .*ANSWER_COLUMN",
        ),
        ({**GRETEL, "sql": "INSERT INTO singer VALUES (4, 'Di', 9)"}, "column 'sql': it writes"),
        (
            {**GRETEL, "sql_context": "CREATE TABLE t (a);" * 4000},
            "its schema has 76,000 characters",
        ),
    ],
)
def test_rows_that_cannot_be_used(folder, row, message):
    with pytest.raises(RowError, match=message):
        TASK.preprocess(row)


def test_the_variable_is_named(monkeypatch):
    monkeypatch.delenv("SWIFT_RLVR_SQL_DATABASES", raising=False)
    with pytest.raises(
        RowError, match="'band' is a database .* SWIFT_RLVR_SQL_DATABASES has to name"
    ):
        TASK.preprocess(SPIDER)


def test_a_file_that_is_no_database(folder):
    (folder / "band" / "band.sqlite").write_text("These are lines of text and no pages. " * 40)
    with pytest.raises(RowError, match="band.sqlite"):
        TASK.preprocess(SPIDER)


def test_other_names_of_the_columns(folder, monkeypatch):
    row = {"Frage": ASK, "Abfrage": GOLD, "db_id": "band"}
    monkeypatch.setenv("SWIFT_RLVR_QUESTION_COLUMN", "Frage")
    monkeypatch.setenv("SWIFT_RLVR_ANSWER_COLUMN", "Abfrage")
    assert TASK.preprocess(row)["gold_sql"] == GOLD


def test_the_check_grades_the_golds(folder, tmp_path):
    rows = [
        SPIDER,
        {
            **SPIDER,
            "question": "And older than 40?",
            "query": "SELECT count(*) FROM singer WHERE age > 40",
        },
        {**SPIDER, "question": "Who?", "query": "SELECT nome FROM singer"},
        {**SPIDER, "question": "Where?", "db_id": "none"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    findings = check_dataset(parse_source(f"sql:{path}"))
    assert findings.bad == 2
    assert findings.rewards["external_sql"].full == 2
    problems = [problem for _, problem in findings.problems]
    assert any("the gold does not run: no such column: nome" in problem for problem in problems)
    assert any("none.sqlite" in problem for problem in problems)
