"""What the SQL reward pays, what it never pays, and what people see of a verdict."""

import sqlite3
import time

import pytest

from swift_rlvr.rewards import REWARDS

SCRIPT = """
CREATE TABLE author (author_id INTEGER PRIMARY KEY, name TEXT, country TEXT);
CREATE TABLE book (
    book_id INTEGER PRIMARY KEY, title TEXT, author_id INTEGER REFERENCES author(author_id), pages INTEGER
);
INSERT INTO author VALUES (1, 'Ada', 'Norway'), (2, 'Luis', 'Chile'), (3, 'Mei', 'Norway');
INSERT INTO book VALUES (1, 'Salt', 1, 210), (2, 'Ferry', 1, 340), (3, 'Hills', 2, 180), (4, 'Rain', 3, 410);
"""
COUNT = "SELECT count(*) FROM book WHERE pages > 200"  # 3
NAMES = "SELECT a.name FROM author a JOIN book b ON b.author_id = a.author_id GROUP BY a.author_id HAVING count(*) > 1"
LONGEST = "SELECT title FROM book ORDER BY pages DESC LIMIT 1"
ORDERED = "SELECT title, pages FROM book WHERE pages > 200 ORDER BY pages"
FOREVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
BOMB = ", ".join(f"book AS b{number}" for number in range(30))


def rows(gold, count, database=SCRIPT):
    return {"database": [database] * count, "gold_sql": [gold] * count}


def tagged(*queries):
    return [f"<think>Let me see.</think><answer>{query}</answer>" for query in queries]


# What must not be paid: (the gold, the completion)
UNPAID = [
    # constants, and guesses that read a table
    *(
        (COUNT, text)
        for text in tagged("3", "SELECT 3", "VALUES (3)", "SELECT 3 WHERE 1", "SELECT 1 + 2")
    ),
    *(
        (COUNT, text)
        for text in tagged(
            "SELECT 3 FROM book LIMIT 1",
            "SELECT DISTINCT 3 FROM book",
            "SELECT max(3) FROM book",
            "SELECT count(*) - 1 FROM book",
            "SELECT count(*) FROM author",
            "SELECT max(author_id) FROM author",
            "SELECT count(*) FROM book WHERE pages <> 180",
            "SELECT count(*) FROM book WHERE book_id <> 3",
            "SELECT count(DISTINCT author_id) FROM book",
            "SELECT count(*) FROM book WHERE pages > 180",
            "SELECT sum(pages > 200 OR title = 'Hills') - 1 FROM book",
            "SELECT CASE WHEN count(*) = 4 THEN 3 ELSE 0 END FROM book",
            "SELECT 3 FROM json_each('[1]')",
            "WITH t AS (SELECT 3) SELECT * FROM t",
            "SELECT count(*) FROM (SELECT 1 UNION SELECT 2 UNION SELECT 3)",
        )
    ),
    *(
        (NAMES, text)
        for text in tagged("SELECT 'Ada'", "SELECT name FROM author WHERE name = 'Ada'")
    ),
    *(
        (NAMES, text)
        for text in tagged(
            "SELECT min(name) FROM author",
            "SELECT name FROM author LIMIT 1",
            "SELECT name FROM author ORDER BY name LIMIT 1",
            "SELECT name FROM author WHERE author_id = 1",
            "SELECT name FROM author JOIN book USING (author_id) WHERE pages > 300 AND name < 'B'",
        )
    ),
    *(
        (LONGEST, text)
        for text in tagged(
            "SELECT 'Rain' FROM book LIMIT 1",
            "SELECT title FROM book WHERE title = 'Rain'",
            "SELECT max(title, 'Rain') FROM book LIMIT 1",
            "SELECT title FROM book WHERE book_id = 4",
            "SELECT title FROM book ORDER BY book_id DESC LIMIT 1",
        )
    ),
    # all of it, more of it, less of it, in another order
    *(
        (ORDERED, text)
        for text in tagged(
            "SELECT title, pages FROM book",
            "SELECT title, pages FROM book ORDER BY pages",
            "SELECT title, pages FROM book WHERE pages > 200",
            "SELECT title, pages FROM book WHERE pages > 200 ORDER BY pages DESC",
            "SELECT title FROM book WHERE pages > 200 ORDER BY pages",
            "SELECT *, 1 FROM book WHERE pages > 200 ORDER BY pages",
            "SELECT title, pages FROM book WHERE pages > 200 UNION ALL SELECT title, pages FROM book WHERE pages > 400",
        )
    ),
    # the right query among others, commented out, denied, or in the thinking alone
    (COUNT, f"<think>{COUNT}</think>"),
    (COUNT, f"<think>{COUNT}</think>It is three."),
    (COUNT, f"<think>```sql\n{COUNT}\n```"),
    (COUNT, f"<think><answer>{COUNT}</answer></think><answer>SELECT 3</answer>"),
    (COUNT, f"```sql\n{COUNT}\n```\nor\n```sql\nSELECT 3 FROM book\n```"),
    (COUNT, f"```sql\nSELECT 3 FROM book\n```\nor\n```sql\n{COUNT}\n```"),
    (COUNT, f"```python\n{COUNT}\n```"),
    *(
        (COUNT, text)
        for text in tagged(
            f"-- {COUNT}",
            f"/* {COUNT} */ SELECT 3",
            f"SELECT 3 -- {COUNT}",
            f"SELECT 3; {COUNT}",
            f"{COUNT}; SELECT 3",
            f"{COUNT}; DROP TABLE book",
            f"not {COUNT}",
            f"{COUNT} or SELECT 3",
            f"EXPLAIN {COUNT}",
            f"SELECT ({COUNT}), 1",
            f"SELECT '{COUNT}'",
        )
    ),
    # more than reading
    *(
        (COUNT, text)
        for text in tagged(
            "ATTACH DATABASE ':memory:' AS gold",
            "PRAGMA table_info(book)",
            "SELECT count(*) FROM pragma_table_info('author')",
            "SELECT count(*) + 1 FROM sqlite_master",
            "SELECT load_extension('gold.so')",
            "SELECT abs(random()) % 2 + 3",
            "INSERT INTO book VALUES (9, 'x', 1, 300) RETURNING 3",
            "UPDATE book SET pages = 3 RETURNING pages",
            "DELETE FROM book RETURNING 3",
            "DROP TABLE book",
            "CREATE TABLE gold AS SELECT 3",
            "VACUUM INTO 'copy.sqlite'",
            "SELECT gold_sql FROM gold",
            "SELECT readfile('gold.sql')",
        )
    ),
    # no end and no room
    *(
        (COUNT, text)
        for text in tagged(
            f"{FOREVER} SELECT x FROM c",
            f"{FOREVER} SELECT count(*) FROM c",
            f"SELECT count(*) FROM {BOMB}",
            f"SELECT * FROM {BOMB}",
            "SELECT zeroblob(2000000000)",
            "SELECT length(hex(zeroblob(2000000000)))",
            "SELECT printf('%.*c', 1000000000, 'x')",
            f"{FOREVER} SELECT group_concat(hex(zeroblob(4000))) FROM c",
            "SELECT " + "(" * 2000 + "3" + ")" * 2000,
            "SELECT " + " + ".join(["1"] * 5000),
            "SELECT 3 " + "/* long */ " * 5000,
        )
    ),
    # nothing
    *(
        (COUNT, text)
        for text in (
            "",
            "<answer></answer>",
            "<answer>;</answer>",
            "```sql\n```",
            "SELECT",
            "three",
        )
    ),
]


def test_there_are_enough_of_them():
    assert len({*UNPAID}) == len(UNPAID) >= 80


def test_nothing_else_than_the_gold_is_paid():
    reward = REWARDS["external_sql"](million_steps=1, timeout=2)
    columns = {"database": [SCRIPT] * len(UNPAID), "gold_sql": [gold for gold, _ in UNPAID]}
    grades = reward.grades([text for _, text in UNPAID], **columns)
    paid = [case for case, grade in zip(UNPAID, grades, strict=True) if grade.reward != 0.0]
    assert paid == []
    # The same battery does not hit a right answer.
    golds = [COUNT, NAMES, LONGEST, ORDERED]
    columns = {"database": [SCRIPT] * 4, "gold_sql": golds}
    assert reward(tagged(*golds), **columns) == [1.0] * 4


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (COUNT, "select COUNT(book_id) from book where pages > 200;"),
        (COUNT, "```sql\nSELECT sum(pages > 200) FROM book\n```"),
        (
            NAMES,
            "SELECT name FROM author WHERE (SELECT count(*) FROM book WHERE author_id = author.author_id) > 1",
        ),
        (LONGEST, "SELECT title FROM book ORDER BY pages DESC, book_id LIMIT 1"),
        (
            ORDERED,
            "WITH long AS (SELECT * FROM book WHERE pages >= 201) SELECT title, pages FROM long ORDER BY 2",
        ),
    ],
)
def test_another_way_to_write_the_gold_is_paid(gold, answer):
    assert REWARDS["external_sql"]()(tagged(answer), **rows(gold, 1)) == [1.0]


STAFF = """
CREATE TABLE departments(id INT PRIMARY KEY, department_name TEXT, city TEXT);
CREATE TABLE employees(id INT PRIMARY KEY, name TEXT, department_id INT, salary DECIMAL(10,2), hired DATE,
    active BOOLEAN);
INSERT INTO departments VALUES (1,'Sales','Berlin'),(2,'IT','Paris'),(3,'HR','Berlin');
INSERT INTO employees VALUES (1,'Ann',1,1000,'2021-03-05',1),(2,'Bob',1,2000,'2022-01-10',0),
    (3,'Cy',2,3000,'2022-07-07',1),(4,'Di',2,2500,'2023-02-01',1),(5,'Ed',3,1200.5,'2020-12-31',0),(6,'Flo',3,990,'2022-05-05',1);
"""
# As in b-mc2/sql-create-context: no rows, no keys.
NO_KEYS = """
CREATE TABLE concert (stadium_id VARCHAR, year INTEGER);
CREATE TABLE stadium (name VARCHAR, capacity INTEGER, stadium_id VARCHAR);
"""


@pytest.mark.parametrize(
    ("script", "gold", "right", "wrong"),
    [
        (  # a year is no value of a date
            STAFF,
            "SELECT name FROM employees WHERE strftime('%Y', hired) = '2022'",
            "SELECT name FROM employees WHERE hired LIKE '2022-%'",
            "SELECT name FROM employees WHERE id IN (2, 3, 6)",
        ),
        (  # 2 is no value of a flag
            STAFF,
            "SELECT name FROM employees WHERE active = 1",
            "SELECT name FROM employees WHERE active",
            "SELECT name FROM employees WHERE active AND id < 7",
        ),
        (  # ")" is none of a number
            STAFF,
            "SELECT name || ' (' || department_id || ')' FROM employees",
            "SELECT printf('%s (%d)', name, department_id) FROM employees",
            "SELECT printf('%s (%d)', name, id) FROM employees",
        ),
        (  # two employees who are alike are a tie
            STAFF,
            "SELECT name FROM employees ORDER BY salary DESC LIMIT 1",
            "SELECT name FROM employees WHERE salary = (SELECT max(salary) FROM employees)",
            "SELECT name FROM employees WHERE salary >= 3000 LIMIT 1",
        ),
        (  # departments have different names
            STAFF,
            "SELECT d.department_name, avg(e.salary) FROM employees e JOIN departments d ON e.department_id = d.id "
            "GROUP BY d.department_name",
            "SELECT d.department_name, avg(e.salary) FROM employees e JOIN departments d ON e.department_id = d.id "
            "GROUP BY d.id",
            "SELECT d.department_name, avg(e.salary) FROM employees e JOIN departments d ON e.department_id = d.id "
            "GROUP BY d.city, d.id HAVING count(*) = 2",
        ),
        (
            NO_KEYS,
            "SELECT T2.name, count(*) FROM concert AS T1 JOIN stadium AS T2 ON T1.stadium_id = T2.stadium_id "
            "GROUP BY T1.stadium_id",
            "SELECT name, count(*) FROM stadium JOIN concert USING (stadium_id) GROUP BY name",
            "SELECT name, count(DISTINCT year) FROM stadium JOIN concert USING (stadium_id) GROUP BY name",
        ),
        (
            NO_KEYS,
            "SELECT T2.name, T2.capacity FROM concert AS T1 JOIN stadium AS T2 ON T1.stadium_id = T2.stadium_id "
            "WHERE T1.year >= 2014 GROUP BY T2.stadium_id ORDER BY count(*) DESC LIMIT 1",
            "SELECT s.name, s.capacity FROM stadium s JOIN concert c ON c.stadium_id = s.stadium_id "
            "WHERE c.year > 2013 GROUP BY c.stadium_id ORDER BY count(*) DESC LIMIT 1",
            "SELECT s.name, s.capacity FROM stadium s JOIN concert c ON c.stadium_id = s.stadium_id "
            "GROUP BY c.stadium_id ORDER BY count(*) DESC LIMIT 1",
        ),
        (
            NO_KEYS,
            "SELECT name FROM stadium WHERE stadium_id NOT IN (SELECT stadium_id FROM concert)",
            "SELECT name FROM stadium EXCEPT SELECT name FROM stadium JOIN concert USING (stadium_id)",
            "SELECT name FROM stadium",
        ),
        (  # of empty tables the one gives NULL, the other nothing
            NO_KEYS,
            "SELECT max(capacity) FROM stadium WHERE name = 'Wembley'",
            "SELECT capacity FROM stadium WHERE name = 'Wembley' ORDER BY capacity DESC LIMIT 1",
            "SELECT capacity FROM stadium WHERE name = 'Wembley' ORDER BY capacity LIMIT 1",
        ),
    ],
)
def test_made_rows_are_such_as_a_table_may_have(script, gold, right, wrong):
    columns = rows(gold, 3, script)
    assert REWARDS["external_sql"]()(tagged(gold, right, wrong), **columns) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("limit", "order", "expected"),
    [
        (1, "points DESC, name", 1.0),
        (2, "points DESC, name", 1.0),
        (4, "points DESC, name DESC", 1.0),
    ]
    + [(1, "points", 0.0), (2, "name", 0.0), (4, "points DESC, name LIMIT 3 --", 0.0)],
)
def test_any_of_the_tied_rows_may_be_taken(limit, order, expected):
    """Three have the most points: the gold's own order of reading shows the first or the last."""
    script = (
        "CREATE TABLE player(id INT PRIMARY KEY, name TEXT, points INT); INSERT INTO player VALUES "
        "(1,'Zoe',5),(2,'Ann',5),(3,'Mia',5),(4,'Bob',3),(5,'Al',1)"
    )
    gold = f"SELECT name FROM player ORDER BY points DESC LIMIT {limit}"
    answer = f"SELECT name FROM player ORDER BY {order} LIMIT {limit}"
    assert REWARDS["external_sql"]()(tagged(answer), **rows(gold, 1, script)) == [expected]


def test_a_process_that_is_ended_ends_no_other_answer():
    """What SQLite does in one step is not counted in steps: the process has only so much time."""
    zeros = "hex(zeroblob(20000))"
    search = f"instr({zeros} || {zeros}, {zeros} || '%d') = 0"
    slow = "SELECT count(*) FROM book WHERE " + " AND ".join(search % n for n in range(1, 200))
    reward = REWARDS["external_sql"](timeout=0.5)
    grades = reward.grades(tagged(COUNT, slow, COUNT + " "), **rows(COUNT, 3))
    assert [grade.reason for grade in grades] == ["correct", "too slow", "correct"]


SINGERS = """
CREATE TABLE singer(id INTEGER PRIMARY KEY, name TEXT, age INT, born TEXT, pay REAL);
INSERT INTO singer VALUES (1,'Ann',25,'1999-04-01',1.5),(2,'Bo',31,'1993-08-09',2.5),(3,'Cy',43,'1981-01-30',4.0),
    (4,'Di',31,'1993-12-31',0.5);
"""


@pytest.mark.parametrize(
    ("condition", "right", "wrong"),
    [
        (
            "age > 30",
            ["age >= 31", "NOT age <= 30"],
            ["age IN (31,43)", "age = 31 OR age = 43", "age BETWEEN 31 AND 43", "age <> 25"],
        ),
        (
            "born < '1994-01-01'",
            ["born <= '1993-12-31'", "NOT born >= '1994-01-01'"],
            [
                "born IN ('1993-08-09', '1981-01-30', '1993-12-31')",
                "born BETWEEN '1981-01-30' AND '1993-12-31'",
            ],
        ),
        ("pay > 1", ["NOT pay <= 1"], ["pay IN (1.5, 2.5, 4)", "pay BETWEEN 1.5 AND 4"]),
    ],
)
@pytest.mark.parametrize("filler", [0, 30])
def test_values_between_and_beyond_those_of_a_column_are_tried(condition, right, wrong, filler):
    script = SINGERS
    if filler:  # none of whose rows are made
        script += f"""WITH RECURSIVE c(x) AS (SELECT 5 UNION ALL SELECT x + 1 FROM c LIMIT {filler})
            INSERT INTO singer SELECT x, 'n' || x, 25 + x % 3 * 6 * (1 + x % 2), '1993-08-09', 1.5 FROM c;"""
    if filler and condition.startswith("age"):
        wrong = [*wrong, "age IN (31,37,43,49)", "age BETWEEN 31 AND 49"]
        wrong = [each for each in wrong if "43)" not in each or "37" in each]
    queries = [f"SELECT name FROM singer WHERE {each}" for each in [condition, *right, *wrong]]
    rewards = REWARDS["external_sql"]()(tagged(*queries), **rows(queries[0], len(queries), script))
    expected = [1.0] * (1 + len(right)) + [0.0] * len(wrong)
    assert dict(zip(queries, rewards, strict=True)) == dict(zip(queries, expected, strict=True))


@pytest.mark.parametrize("value", ["9223372036854775807", "-9223372036854775808", "9e999", "1e300"])
def test_the_largest_numbers_and_days_have_none_beside_them(value):
    insert = ", ".join(f"({n}, {value if n == 1 else n}, '9999-12-3{n % 2}')" for n in range(12))
    script = f"CREATE TABLE t (id INTEGER PRIMARY KEY, a, b DATE); INSERT INTO t VALUES {insert}"
    for condition in ("a > 5", "b < '9999-12-31'"):
        gold = f"SELECT id FROM t WHERE {condition}"
        assert REWARDS["external_sql"]()(
            tagged(gold, "SELECT 1 FROM t"), **rows(gold, 2, script)
        ) == [1.0, 0.0]


def long_texts(haystack, needle):
    texts = [f"replace(hex(zeroblob({size})), '0', 'a')" for size in (haystack, needle)]
    return f"SELECT instr({texts[0]}, {texts[1]} || 'b')"


def test_long_texts_take_no_time():
    """One step that computes for many seconds."""
    began = time.monotonic()
    answers = tagged(*(f"{long_texts(2000000 + n, 1000000)} FROM book" for n in range(3)))
    grades = REWARDS["external_sql"]().grades(answers, **rows(COUNT, 3))
    assert [grade.reason for grade in grades] == ["result too large"] * 3
    assert time.monotonic() - began < 8


def test_an_answer_has_time_as_its_gold_needs_it():
    began = time.process_time()
    many = " + ".join(f"instr(b.title, ({long_texts(62000, 31000 + n)}))" for n in range(60))
    grades = REWARDS["external_sql"]().grades(
        tagged(f"SELECT {many} FROM book b, book c, book d, book e, book f", COUNT),
        **rows(COUNT, 2),
    )
    assert [grade.reason for grade in grades] == ["too slow", "correct"]
    assert time.process_time() - began < 8


def test_a_gold_with_long_texts_has_them():
    script = (
        "CREATE TABLE t (a, b INT); INSERT INTO t VALUES (printf('%.*c', 600000, 'x'), 1), ('y', 2)"
    )
    gold = "SELECT a FROM t WHERE b < 2"
    answers = tagged("SELECT a FROM t WHERE b <= 1", "SELECT 'x' FROM t")
    assert REWARDS["external_sql"]()(answers, **rows(gold, 2, script)) == [1.0, 0.0]


def test_the_databases_of_other_rows_take_no_memory_from_a_row():
    """Each of these fits alone, and not all of them."""
    large = "CREATE TABLE t (a); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 30)"
    insert = "INSERT INTO t SELECT printf('%.*c', 90000 + x, 'x') FROM c;"
    scripts = [f"{large} {insert} -- {number}" for number in range(8)]
    scripts.insert(4, f"{large.replace('30', '900')} {insert}")
    gold = "SELECT count(*) FROM t WHERE length(a) > 5"
    reward = REWARDS["external_sql"](memory_mb=32, max_workers=1)
    for _ in range(2):
        grades = reward.grades(tagged(gold) * 9, database=scripts, gold_sql=[gold] * 9)
        assert [grade.reward for grade in grades] == [1.0] * 4 + [None] + [1.0] * 4
    explanation = reward.explain(tagged(gold)[0], {"database": scripts[4], "gold_sql": gold})
    assert explanation.rules[0].detail == "the database: too much memory"


def test_databases_in_files(tmp_path):
    path = tmp_path / "library.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCRIPT)
    reward = REWARDS["external_sql"]()
    answers = tagged(COUNT, "SELECT 3 FROM book LIMIT 1", "DELETE FROM book")
    assert reward(answers, **rows(COUNT, 3, str(path))) == [1.0, 0.0, 0.0]
    missing = str(tmp_path / "none.sqlite")
    with pytest.raises(ValueError, match=f"there is no file '{missing}'"):
        reward(answers, **rows(COUNT, 3, missing))
    path.with_name("empty.sqlite").touch()
    grades = reward.grades(answers[:1], **rows(COUNT, 1, str(path.with_name("empty.sqlite"))))
    assert grades == [(None, "bad gold")]


@pytest.mark.parametrize(
    ("gold", "remark"),
    [
        ("SELECT titel FROM book", "the gold does not run: no such column: titel"),
        ("SELECT 1", "the gold gives the same on every database, as a constant does"),
        (
            "SELECT title FROM book WHERE author_id = 1 ORDER BY author_id LIMIT 1",
            "ties decide which rows",
        ),
    ],
)
def test_what_is_said_of_a_gold(gold, remark):
    (said,) = REWARDS["external_sql"].remarks({"database": SCRIPT, "gold_sql": gold})
    assert said.startswith(remark)
    explanation = REWARDS["external_sql"]().explain(
        tagged(COUNT)[0], {"database": SCRIPT, "gold_sql": gold}
    )
    assert (explanation.reward is None) == ("ties" not in remark)


def test_an_explanation_names_the_rows_that_differ():
    (answer,) = tagged(
        "SELECT title, pages FROM book WHERE pages > 300 OR book_id = 3 ORDER BY pages"
    )
    explanation = REWARDS["external_sql"]().explain(
        answer, {"database": SCRIPT, "gold_sql": ORDERED}
    )
    assert (explanation.reward, explanation.reason) == (0.0, "wrong rows")
    shown = [(rule.name, rule.detail) for rule in explanation.rules[-2:]]
    assert shown == [
        ("only the gold gives", "Salt | 210"),
        ("only the answer gives", "Hills | 180"),
    ]


def test_parameters():
    swapped = tagged("SELECT pages, title FROM book WHERE pages > 200 ORDER BY pages")
    chance = tagged("SELECT count(*) FROM book WHERE book_id <> 3")
    sql = REWARDS["external_sql"]
    assert sql(any_column_order=True)(swapped, **rows(ORDERED, 1)) == [1.0]
    assert sql(databases=0)(chance, **rows(COUNT, 1)) == [1.0]
    rounded = tagged("SELECT round(avg(pages), 1) FROM book")
    assert [
        sql(tolerance=share)(rounded, **rows("SELECT avg(pages) FROM book", 1))
        for share in (0.01, 0)
    ] == [
        [1.0],
        [0.0],
    ]
    assert sql(max_rows=2).grades(swapped, **rows(ORDERED, 1)) == [(None, "bad gold")]


def test_a_prompt_that_shows_no_table_is_remarked_on() -> None:
    row = {"database": SCRIPT, "gold_sql": "SELECT count(*) FROM book WHERE pages > 200"}
    remarks = REWARDS["external_sql"].remarks
    asked = {"messages": [{"role": "user", "content": "How many have over 200 pages?"}]}
    assert remarks(row) == [] == remarks({**row, "messages": [{"role": "user", "content": SCRIPT}]})
    assert remarks({**row, **asked}) == ["the prompt shows none of the tables of the gold"]
