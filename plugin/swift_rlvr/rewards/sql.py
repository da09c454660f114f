"""Reward for questions about a database: the completion's query has to give what the gold gives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from swift_rlvr.rewards.base import (
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    Rule,
    one_row,
    rules_in_order,
)
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks.task import turns_text
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.sql.grading import Limits
from swift_rlvr.verifiers.sql.verifier import (
    BAD_GOLD,
    CORRECT,
    LIMITS,
    MEMORY_MB,
    RULES,
    SECONDS,
    Verdict,
    remarks_on,
    verify_all,
)

_ROW = {
    "database": "CREATE TABLE singer(name TEXT, age INT); INSERT INTO singer VALUES ('Ann', 25), ('Bo', 31)",
    "gold_sql": "SELECT count(*) FROM singer",
}
# What a query reads, with or without quotes around its name.
_TABLE = re.compile(r"\b(?:from|join)\s+[\"'`\[]?(\w+)")


class SqlReward(Reward):
    """1.0 for a query that gives the same rows as the gold, on the row's database and on further ones
    with its schema; else 0.0.

    Rows that occur twice have to occur twice, and their order counts where the gold's outermost
    query has ORDER BY, but for ties. None if the gold does not run, or gives the same on every
    database, as a constant does. `swift_rlvr.verifiers.sql` says what a query cannot do, and
    `verifiers.sql.further` how databases are made. ValueError if the file of a database is not
    there. The metric is execution accuracy, on a test suite as in Zhong et al. 2020 (arXiv
    2010.02840).

    >>> reward = SqlReward()
    >>> answers = ["SELECT count(name) FROM singer", "SELECT 2 FROM singer LIMIT 1", "SELECT max(age) FROM singer"]
    >>> reward([f"<answer>{each}</answer>" for each in answers], **{name: [value] * 3 for name, value in _ROW.items()})
    [1.0, 0.0, 0.0]
    """

    name = "external_sql"
    role = VERIFIER
    columns = ("database", "gold_sql")
    columns_elsewhere = {
        "database": ("db_path", "sql_context", "context", "schema"),
        "gold_sql": ("sql", "query", "gold_query", "ground_truth"),
    }
    reasons = (*RULES, CORRECT)
    examples = (
        Example("<answer>SELECT count(name) FROM singer</answer>", _ROW, 1.0),
        Example("<answer>SELECT 2 FROM singer LIMIT 1</answer>", _ROW, 0.0),
        Example("<answer>SELECT 2</answer>", {**_ROW, "gold_sql": "SELECT sum(a) FROM x"}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        databases: int = setting(
            LIMITS.databases,
            "further databases, at most, on which a query has to give the gold's rows too; 0: only the row's own",
            at_least=0,
            at_most=10,
        )
        any_column_order: bool = setting(
            LIMITS.any_column_order, "accept the gold's columns in any order"
        )
        tolerance: float = setting(
            LIMITS.tolerance,
            "the share by which two numbers may differ, where one of them is no whole number",
            at_least=0,
            less_than=1,
        )
        million_steps: int = setting(
            LIMITS.million_steps,
            "steps of SQLite's machine for a query, and for a gold, in millions; a second has some 20 to 50",
            at_least=1,
        )
        max_rows: int = setting(
            LIMITS.most_rows, "rows that a gold may give; an answer may give one more", at_least=1
        )
        timeout: float = setting(
            SECONDS,
            "CPU seconds, at most, for a query on all databases, after which its process is ended; "
            "it has 0.3 of them, or ten times what the gold took",
            more_than=0,
            at_most=3600,
        )
        memory_mb: int = setting(MEMORY_MB, "memory of SQLite, in MiB", at_least=32)
        max_workers: int = setting(
            0, "how many rows are graded at a time; 0: one per core of the rank", at_least=0
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        found = remarks_on(row["database"], row["gold_sql"])
        # A prompt of the row's own stays as it is if it names a table, which may be another one.
        prompt = turns_text(row.get("messages") or []).casefold()
        tables = _TABLE.findall(str(row["gold_sql"]).casefold())
        if prompt and tables and not any(table in prompt for table in tables):
            found = [*found, "the prompt shows none of the tables of the gold"]
        return found

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        grades = []
        for verdict in self._verdicts(texts, columns):
            grades.append(Grade(_reward(verdict), verdict.reason))
        return grades

    def grade(self, text: str | None, row: Row) -> Explanation:
        (verdict,) = self._verdicts([text], one_row(row))
        detail = verdict.detail
        if verdict.place:
            detail = f"on further database {verdict.place}: {detail}"
        rules = rules_in_order(RULES, verdict.reason, detail)
        for name, rows in (
            ("only the gold gives", verdict.missing),
            ("only the answer gives", verdict.further),
        ):
            rules += [Rule(name, None, row_of_result) for row_of_result in rows]
        return Explanation(_reward(verdict), verdict.reason, verdict.query, rules)

    def _verdicts(self, texts: Sequence[str | None], columns: Columns) -> list[Verdict]:
        parameters = self.parameters
        limits = Limits(
            parameters.million_steps,
            parameters.max_rows,
            parameters.databases,
            parameters.tolerance,
            parameters.any_column_order,
        )
        return verify_all(
            texts,
            list(zip(columns["database"], columns["gold_sql"], strict=True)),
            limits,
            parameters.timeout,
            parameters.memory_mb,
            parameters.max_workers,
        )


def _reward(verdict: Verdict) -> float | None:
    if verdict.reason == BAD_GOLD:
        return None
    return float(verdict.reason == CORRECT)
