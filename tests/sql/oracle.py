"""DuckDB as an oracle: the answer of a query over rows, as a multiset that does not depend on order."""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb

Tables = Mapping[str, tuple[Sequence[tuple[str, str]], Sequence[tuple[Any, ...]]]]
"""Columns (name and type of DuckDB) and rows, by table."""


def oracle(tables: Tables) -> duckdb.DuckDBPyConnection:
    """A database with some tables."""
    made = duckdb.connect(":memory:", config={"threads": "1"})
    made.execute("SET TimeZone = 'UTC'")
    for name, (columns, rows) in tables.items():
        made.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {kind}' for c, kind in columns)})")
        if rows:
            made.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    return made


def answered(database: duckdb.DuckDBPyConnection, query: str) -> Counter[Any]:
    """What the oracle answers."""
    return multiset(database.execute(query).fetchall())


def multiset(rows: Iterable[Sequence[Any]]) -> Counter[Any]:
    """Rows without their order, with values that are equal where SQL says so."""
    return Counter(tuple(map(plain, row)) for row in rows)


def plain(value: Any) -> Any:
    """A value in a form that compares across engines: whole decimals and floats as numbers, moments in UTC."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 9) + 0.0
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)).timestamp()
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value
