"""What a query asks of the tables it reads, as far as its text alone says it: their names, and the values of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

Values = dict[str, list[object]]
"""Of some columns, by their names in lower case, all values that rows may have which the query looks at."""


def tables_in(query: Any) -> list[str]:
    """The tables that a query reads, each once; the views of WITH are not among them."""
    views = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    names = (table.name for table in query.find_all(exp.Table))
    return list(dict.fromkeys(name for name in names if name and name.lower() not in views))


def asked_values(query: Any) -> dict[str, Values]:
    """For tables that are read once, by a SELECT of their own: the values that WHERE allows for columns, as `word = 'x' AND n IN (1, 2)`.

    Rows of other values are of no use to the query, so whoever has the table need not read them.
    """
    reads = [table.name.lower() for table in query.find_all(exp.Table)]
    made: dict[str, Values] = {}
    for select in query.find_all(exp.Select):
        table = _only_table(select)
        if table is not None and reads.count(table.name.lower()) == 1:
            made[table.name.lower()] = _allowed(select, table.alias_or_name.lower())
    return made


def _only_table(select: exp.Select) -> exp.Table | None:
    source = select.args.get("from_") or select.args.get("from")
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    table = source.this
    plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier) and not table.args.get("joins")
    return table if plain else None


def _allowed(select: exp.Select, name: str) -> Values:
    where = select.args.get("where")
    made: Values = {}
    for condition in _conjuncts(where.this) if where is not None else ():
        found = _equality(condition)
        if found is not None and (found[0].table.lower() or name) == name:
            made.setdefault(found[0].name.lower(), found[1])
    return made


def _conjuncts(tree: Any) -> Iterator[Any]:
    if isinstance(tree, exp.Paren):
        yield from _conjuncts(tree.this)
    elif isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    else:
        yield tree


def _equality(tree: Any) -> tuple[exp.Column, list[object]] | None:
    """A column and the values that it may have; None where the condition says something else."""
    if isinstance(tree, exp.EQ):
        for column, value in ((tree.this, tree.expression), (tree.expression, tree.this)):
            if isinstance(column, exp.Column) and isinstance(value, exp.Literal):
                return column, [_value(value)]
    if isinstance(tree, exp.In) and isinstance(tree.this, exp.Column) and tree.expressions:
        literals = tree.expressions
        if all(isinstance(each, exp.Literal) for each in literals):
            return tree.this, [_value(each) for each in literals]
    return None


def _value(literal: exp.Literal) -> object:
    if literal.is_string:
        return literal.this
    return int(literal.this) if literal.is_int else float(literal.this)
