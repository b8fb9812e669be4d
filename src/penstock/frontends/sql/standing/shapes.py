"""The shape of a standing query: what is left of it when the constants of its conditions are taken out.

Queries of one shape differ in constants alone, so one plan serves all of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp

from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateStandingQuery
from penstock.graph import types as t

QUERY = "query"
"""The column that says of which query a row is."""
_KINDS: dict[str, t.DataType] = {"s": t.STRING, "i": t.BIGINT, "f": t.DOUBLE}


@dataclass(frozen=True)
class Shape:
    """A query without the constants of its conditions.

    Args:
        table: the table that it reads.
        tree: the query, with a column in place of each constant, and the column of the query's name.
        kinds: the kind of each constant: text, whole number or other number.
        equal: columns that must have the value of a constant, each with its number.
        sink: the table into which results go.
    """

    table: str
    tree: Any
    kinds: str
    equal: tuple[tuple[str, int], ...]
    sink: str

    @cached_property
    def key(self) -> str:
        """What two queries of one shape share."""
        return f"{self.tree.sql(copy=False)} {self.kinds} into {self.sink.lower()}"

    @property
    def parameters(self) -> tuple[t.Field, ...]:
        """The fields of the constants."""
        return tuple(t.Field(parameter(at), _KINDS[kind]) for at, kind in enumerate(self.kinds))


def parameter(number: int) -> str:
    """The name of the column of a constant."""
    return f"{QUERY}_c{number}"


def shape_of(text: SqlText, statement: CreateStandingQuery) -> tuple[Shape, list[str]]:
    """The shape of a query, and its constants as texts with a letter for their kind.

    Raises:
        SqlError: it is no query that can share a plan.
    """
    tree = statement.query.copy()
    table = _table(text, tree)
    constants: list[str] = []
    equal = list(_equalities(tree))
    positions: dict[int, int] = {}
    for literal in list(_literals(tree)):
        positions[id(literal)] = len(constants)
        constants.append(_text(literal))
    pairs = tuple((column, positions[id(literal)]) for column, literal in equal if id(literal) in positions)
    for literal in list(_literals(tree)):
        literal.replace(exp.column(parameter(positions[id(literal)])))
    _name_queries(tree)
    return Shape(table, tree, "".join(c[0] for c in constants), pairs, statement.sink), constants


def _table(text: SqlText, tree: Any) -> str:
    source = (tree.args.get("from_") or tree.args.get("from")) if isinstance(tree, exp.Select) else None
    plain = source is not None and isinstance(source.this, exp.Table) and isinstance(source.this.this, exp.Identifier)
    refused = ("joins", "laterals", "order", "limit", "with_", "qualify")
    if not plain or any(tree.args.get(name) for name in refused) or list(tree.find_all(exp.Subquery)):
        raise text.error(
            tree, "expected a standing query over one table or view: SELECT ... FROM table [WHERE ...] [GROUP BY ...] [HAVING ...]; "
            "put joins and subqueries into a view"
        )  # fmt: skip
    assert source is not None
    return str(source.this.name)


def _literals(tree: Any) -> Iterator[exp.Literal]:
    """The constants of the conditions, in order."""
    for part in ("where", "having"):
        if tree.args.get(part) is not None:
            yield from (
                each for each in tree.args[part].find_all(exp.Literal) if not each.find_ancestor(exp.Interval, exp.Cast)
            )


def _equalities(tree: Any) -> Iterator[tuple[str, exp.Literal]]:
    """Columns that must equal a constant, where all of WHERE must hold."""
    where = tree.args.get("where")
    waiting = [where.this] if where is not None else []
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, exp.Paren):
            waiting.append(each.this)
        elif isinstance(each, exp.And):
            waiting += [each.this, each.expression]
        elif isinstance(each, exp.EQ):
            for column, literal in ((each.this, each.expression), (each.expression, each.this)):
                if isinstance(column, exp.Column) and isinstance(literal, exp.Literal):
                    yield column.name, literal


def _name_queries(tree: Any) -> None:
    """Every row says of which query it is, and groups are those of one query."""
    tree.set("expressions", [exp.column(QUERY), *tree.expressions])
    group = tree.args.get("group")
    if group is not None:
        group.set("expressions", [exp.column(QUERY), *group.expressions])
    elif any(each.find(exp.AggFunc, exp.Anonymous) for each in tree.expressions[1:]) and _is_total(tree):
        tree.set("group", exp.Group(expressions=[exp.column(QUERY)]))


def _is_total(tree: Any) -> bool:
    """Whether a query without GROUP BY has aggregates."""
    names = {"count", "sum", "min", "max", "avg"}
    calls = (each for item in tree.expressions for each in item.find_all(exp.Anonymous, exp.Func))
    return any(str(getattr(call, "name", "") or call.sql_name()).lower() in names for call in calls)


def _text(literal: exp.Literal) -> str:
    if literal.is_string:
        return f"s{literal.this}"
    return f"i{literal.this}" if literal.is_int else f"f{literal.this}"


def moment(text: SqlText, written: str, at: int) -> datetime.datetime:
    """The moment at which a query ends.

    Raises:
        SqlError: it is none.
    """
    try:
        made = datetime.datetime.fromisoformat(written)
    except ValueError:
        raise text.error(at, f"expected a moment such as '2026-05-01 12:00:00', got {written!r}") from None
    return made if made.tzinfo is not None else made.replace(tzinfo=datetime.UTC)
