"""Which golds can be graded, and which answers are right."""

from dataclasses import replace

import pytest

from swift_rlvr.verifiers.sql.grading import BadGold, Limits, grade, prepare

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, country TEXT, age INT, fee REAL);
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer_id INT REFERENCES singer(id), year INT);
INSERT INTO singer VALUES (1, 'Ann', 'France', 25, 10.5), (2, 'Bob', 'Spain', 31, 20.0), (3, 'Cy', 'France', 43, 7.25),
    (4, 'Dee', 'Italy', 31, NULL);
INSERT INTO concert VALUES (1, 1, 2014), (2, 1, 2015), (3, 3, 2014), (4, 4, 2015), (5, 2, 2014), (6, 1, 2016);
"""
LIMITS = Limits(
    million_steps=2, most_rows=1000, databases=4, tolerance=1e-6, any_column_order=False
)
FRENCH = "SELECT name FROM singer WHERE country = 'France'"
OLDEST_FIRST = "SELECT name FROM singer ORDER BY age DESC"
CONCERTS = (
    "SELECT s.name, count(*) FROM singer s JOIN concert c ON c.singer_id = s.id GROUP BY s.id"
)


def reason_of(gold, answer, script=SCRIPT, **changes):
    limits = replace(LIMITS, **changes)
    return grade(prepare(script, gold, limits), answer, limits)["reason"]


@pytest.mark.parametrize(
    ("gold", "answer", "reason"),
    [
        # written in another way
        (FRENCH, FRENCH, "correct"),
        (FRENCH, "select t.name from singer as t where t.country in ('France')", "correct"),
        (
            FRENCH,
            "SELECT name FROM singer EXCEPT SELECT name FROM singer WHERE country <> 'France'",
            None,
        ),
        (
            CONCERTS,
            "SELECT name, (SELECT count(*) FROM concert WHERE singer_id = s.id) AS n FROM singer s WHERE n > 0",
            "correct",
        ),
        (
            CONCERTS,
            "WITH c AS (SELECT singer_id, count(*) n FROM concert GROUP BY 1) SELECT name, n FROM singer, c "
            "WHERE singer_id = id",
            "correct",
        ),
        (
            "SELECT avg(age) FROM singer",
            "SELECT 1.0 * sum(age) / count(age) FROM singer",
            "correct",
        ),
        (
            "SELECT max(age) FROM singer",
            "SELECT age FROM singer ORDER BY age DESC LIMIT 1",
            "correct",
        ),
        (
            "SELECT name FROM singer WHERE id NOT IN (SELECT singer_id FROM concert WHERE year = 2014)",
            "SELECT name FROM singer s WHERE NOT EXISTS (SELECT 1 FROM concert WHERE singer_id = s.id AND year = 2014)",
            "correct",
        ),
        # ties
        (OLDEST_FIRST, "SELECT name FROM singer ORDER BY age DESC, name", "correct"),
        (OLDEST_FIRST, "SELECT name FROM singer ORDER BY age DESC, name DESC", "correct"),
        (OLDEST_FIRST, "SELECT name FROM singer ORDER BY age", "wrong order"),
        (OLDEST_FIRST, "SELECT name FROM singer", "wrong order"),
        (
            "SELECT age AS years, name FROM singer ORDER BY years",
            "SELECT age, name FROM singer ORDER BY 1, 2",
            "correct",
        ),
        (
            "SELECT name FROM singer s ORDER BY s.age, fee",
            "SELECT name FROM singer ORDER BY age, fee, name",
            "correct",
        ),
        (
            "SELECT country FROM singer GROUP BY country ORDER BY count(*)",
            "SELECT country FROM singer GROUP BY 1 ORDER BY count(*), country DESC",
            "correct",
        ),
        (
            "SELECT country FROM singer UNION SELECT name FROM singer ORDER BY 1",
            "SELECT country AS c FROM singer UNION SELECT name FROM singer ORDER BY c",
            "correct",
        ),
        # another question
        (FRENCH, "SELECT name FROM singer", "wrong rows"),
        (
            FRENCH,
            "SELECT name, country FROM singer WHERE country = 'France'",
            "wrong number of columns",
        ),
        (FRENCH, "SELECT country FROM singer WHERE country = 'France'", "wrong rows"),
        (FRENCH, "SELECT 'Ann' UNION SELECT 'Cy'", "reads no table"),
        (
            CONCERTS,
            "SELECT count(*), s.name FROM singer s JOIN concert c ON c.singer_id = s.id GROUP BY s.id",
            "wrong rows",
        ),
        # right on the row's database by chance
        (FRENCH, "SELECT name FROM singer WHERE name IN ('Ann', 'Cy')", "right by chance"),
        (FRENCH, "SELECT name FROM singer WHERE id <> 2 AND id <> 4", "right by chance"),
        (FRENCH, "SELECT DISTINCT name FROM singer WHERE country LIKE 'F%'", "right by chance"),
        (FRENCH, "SELECT name FROM singer WHERE country LIKE '%ce'", "right by chance"),
        (FRENCH, "SELECT name FROM singer WHERE country LIKE '%France%'", "right by chance"),
        (FRENCH, "SELECT name FROM singer WHERE instr(country, 'France')", "right by chance"),
        (
            FRENCH,
            "SELECT name FROM singer WHERE length(country) = 6 AND country LIKE 'F%'",
            "right by chance",
        ),
        (
            FRENCH,
            "SELECT name FROM singer WHERE unicode(country) = 70 AND length(country) < 7",
            "right by chance",
        ),
        (FRENCH, "SELECT name FROM singer WHERE country LIKE 'france'", "correct"),
        (FRENCH.replace("= 'France'", "LIKE '%France%'"), FRENCH, "right by chance"),
        (
            "SELECT count(*) FROM concert WHERE year > 2014",
            "SELECT 3 FROM concert LIMIT 1",
            "right by chance",
        ),
        (
            "SELECT count(*) FROM concert WHERE year > 2014",
            "SELECT count(*) FROM concert WHERE year < 2015",
            "right by chance",
        ),
        (
            "SELECT age FROM singer WHERE name = 'Cy'",
            "SELECT max(age) FROM singer",
            "right by chance",
        ),
        (
            "SELECT age FROM singer WHERE name = 'Cy'",
            "SELECT 43 FROM singer WHERE name = 'Cy'",
            "right by chance",
        ),
        (
            "SELECT name FROM singer WHERE age < 20",
            "SELECT name FROM singer WHERE 0",
            "right by chance",
        ),
        ("SELECT sum(fee) FROM singer", "SELECT 37.75 FROM singer LIMIT 1", "right by chance"),
        (
            "SELECT name FROM singer WHERE age >= 31",
            "SELECT name FROM singer WHERE age > 29",
            "right by chance",
        ),
    ],
)
def test_answers(gold, answer, reason):
    found = reason_of(gold, answer)
    # EXCEPT gives each name once: right only where no name occurs twice.
    assert found == (reason or "right by chance")


def test_the_own_database_alone_can_be_asked_for():
    answer = "SELECT name FROM singer WHERE name IN ('Ann', 'Cy')"
    assert reason_of(FRENCH, answer, databases=0) == "correct"


def test_columns_in_any_order():
    swapped = (
        "SELECT count(*), s.name FROM singer s JOIN concert c ON c.singer_id = s.id GROUP BY s.id"
    )
    assert reason_of(CONCERTS, swapped, any_column_order=True) == "correct"


@pytest.mark.parametrize(
    ("gold", "problem"),
    [
        ("SELECT x FROM singer", "the gold does not run: no such column: x"),
        ("SELECT name FROM band", "the gold does not run: no such table: band"),
        ("DELETE FROM singer", "the gold more than reading"),
        ("SELECT random() FROM singer", "the gold more than reading: it calls random"),
        ("SELECT name FROM singer; SELECT 1", "the gold several statements"),
        (
            "SELECT count(*) FROM singer a, singer b, singer c, concert d, concert e, concert f, concert g, concert h, "
            "concert i",
            "the gold too slow",
        ),
        (
            "SELECT a.id FROM concert a, concert b, concert c, concert d",
            "the gold result too large: more than 1,000",
        ),
        ("SELECT 1", "the gold gives the same on every database"),
        ("SELECT name FROM singer WHERE 1 = 0", "the gold gives the same on every database"),
    ],
)
def test_golds_that_cannot_be_graded(gold, problem):
    with pytest.raises(BadGold, match=problem):
        prepare(SCRIPT, gold, LIMITS)


def test_a_gold_whose_rows_are_a_matter_of_ties():
    prepared = prepare(
        SCRIPT, "SELECT name FROM singer WHERE age = 31 ORDER BY age LIMIT 1", LIMITS
    )
    assert prepared.remarks == ["ties decide which rows the gold gives"]
    for order in ("", "DESC"):
        answer = f"SELECT name FROM singer WHERE age = 31 ORDER BY name {order} LIMIT 1"
        assert grade(prepared, answer, LIMITS)["reason"] in ("correct", "right by chance")
    other = "SELECT name FROM singer WHERE age = 43 ORDER BY age LIMIT 1"
    assert grade(prepared, other, LIMITS)["reason"] == "wrong rows"


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("country LIKE 'F%'", "right by chance"),
        ("country BETWEEN 'E' AND 'G'", "right by chance"),
        ("length(country) = 6", "right by chance"),
        ("country LIKE 'france'", "correct"),
    ],
)
def test_a_column_of_two_texts_in_a_small_table_is_no_choice_between_them(condition, reason):
    script = SCRIPT.replace("'Italy'", "'Spain'")
    prepared = prepare(script, FRENCH, LIMITS)
    verdict = grade(prepared, f"SELECT name FROM singer WHERE {condition}", LIMITS)
    assert verdict["reason"] == reason


def test_what_differs_is_named():
    prepared = prepare(SCRIPT, FRENCH, LIMITS)
    verdict = grade(prepared, "SELECT name FROM singer WHERE country = 'Spain' OR id = 1", LIMITS)
    assert (verdict["place"], verdict["missing"], verdict["further"]) == (0, ["Cy"], ["Bob"])
    verdict = grade(prepared, "SELECT name FROM singer WHERE name IN ('Ann', 'Cy')", LIMITS)
    assert verdict["place"] > 0
    # Of a database where the gold gives no row, how many there are is said.
    assert (
        verdict.get("missing")
        or verdict.get("further")
        or verdict["detail"].startswith("more rows")
    )


def test_most_mutants_of_a_gold_are_told_from_it():
    prepared = prepare(SCRIPT, f"{FRENCH} AND age > 30 ORDER BY age DESC", LIMITS)
    assert prepared.told_apart >= prepared.mutants - 1 > 5
