"""Statements that are wrong: whatever is written, the answer is a flow or an error of ours that says where."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock as ps
from penstock.errors import SqlError
from tests.sql.mutations import STATEMENTS, TABLES, mutated

MANY = 10_000
PARTS = 4
SEED = 20260501


def refusal(text: str, tables: dict[str, Any]) -> SqlError | None:
    """The error with which a statement is refused; any other error fails the test."""
    try:
        ps.sql_flow(text, tables)
    except SqlError as error:
        return error
    except Exception as error:
        pytest.fail(f"{type(error).__name__}: {error}\nfor the statement: {text[:500]!r}")
    return None


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mutated_statement_is_planned_or_refused_with_its_place(part: int) -> None:
    chance = random.Random(SEED + part)
    tables = {name: ps.items([], schema) for name, schema in TABLES.items()}
    refused = 0
    for _ in range(MANY // PARTS):
        text = mutated(chance)
        error = refusal(text, tables)
        if error is not None:
            refused += 1
            assert 1 <= error.line <= text.count("\n") + 1, text
            assert error.column >= 1, text
            assert error.reason, text
    assert refused > MANY // PARTS // 2, "mutations break statements"


def test_texts_that_are_made_to_hurt_are_refused_with_their_place() -> None:
    tables = {name: ps.items([], schema) for name, schema in TABLES.items()}
    for text in (
        "", ";", ";;;", "--", "/*", "'", "`", '"', "(" * 5000, "SELECT " + "(" * 3000 + "1" + ")" * 3000 + " FROM bids",
        "SELECT " + " + ".join(["1"] * 5000) + " FROM bids", "SELECT * FROM bids WHERE " + " AND ".join(["price > 1"] * 3000),
        "SELECT 'a' || '" + "'" * 999 + " FROM bids", "SELECT \x00 FROM bids", "SELECT * FROM bids; " * 300,
        f"SELECT {'9' * 5000} AS n FROM bids", "SELECT price AS `a``b` FROM bids", "SELECT x'zz' FROM bids",
    ):  # fmt: skip
        error = refusal(text, tables)
        assert error is None or error.line >= 1, text[:60]


@pytest.mark.parametrize("statement", STATEMENTS, ids=range(len(STATEMENTS)))
def test_each_statement_before_it_is_mutated_is_read(statement: str) -> None:
    """A statement that nobody can read would make its mutations worthless; what is not planned yet says so with its place."""
    tables = {name: ps.items([], schema) for name, schema in TABLES.items()}
    error = refusal(statement, tables)
    assert error is None or error.line >= 1


def test_the_parser_says_nothing_beside_the_error(caplog: pytest.LogCaptureFixture) -> None:
    error = refusal("CREATE TABLE a (x INT) AS COMMENT 'c' PARTITIONED BY (x) WITH ('connector' = 'print')", {})
    assert error is not None
    assert caplog.messages == []
