"""The shape of a standing query: what is left of it when the constants of its conditions are taken out.

Queries of one shape differ in constants alone, so one plan serves all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp

from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.standing import constants_in
from penstock.frontends.sql.text.statements import CreateStandingQuery, StandingForm
from penstock.graph import types as t

QUERY = "query"
"""The column that says of which query a row is."""
VERSION = f"{QUERY}_version"
"""The column that tells the rows of a query with a snapshot from those of the query that it replaces."""
KINDS: dict[str, t.DataType] = {"s": t.STRING, "i": t.BIGINT, "f": t.DOUBLE}
_AGGREGATES = {"count", "sum", "min", "max", "avg"}


@dataclass(frozen=True)
class Shape:
    """A query without the constants of its conditions.

    Args:
        table: the table that it reads.
        tree: the query, with a column in place of each constant, and the column of the query's name.
        kinds: the kind of each constant: text, whole number or other number.
        equal: columns that must have the value of a constant, each with its number.
        form: what stands beside the query; its conditions have columns in place of constants.
        added: the columns of constants after those of the query, which its conditions need.
    """

    table: str
    tree: Any
    kinds: str
    equal: tuple[tuple[str, int], ...]
    form: StandingForm
    added: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """What two queries of one shape share."""
        form = self.form
        parts = [self.tree.sql(copy=False), self.kinds, f"into {form.sink.lower()}"]
        parts += [
            f"{word} {part.sql(copy=False)}" for word, part in (("when", form.when), ("until", form.until)) if part
        ]
        words = {
            "every": form.repeats,
            "proctime": form.by_proctime,
            "snapshot": form.snapshot,
            "moment": form.has_moment,
        }
        return " ".join((*parts, *(word for word, is_there in words.items() if is_there)))

    @cached_property
    def id(self) -> str:
        """A short name that two queries of one shape share, today and tomorrow: steps and state are named by it."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:10]

    @property
    def parameters(self) -> tuple[t.Field, ...]:
        """The fields of the constants."""
        return tuple(t.Field(parameter(at), KINDS[kind]) for at, kind in enumerate(self.kinds))

    @property
    def is_aggregated(self) -> bool:
        """Whether rows are grouped, so that results change."""
        return self.tree.args.get("group") is not None or self.tree.args.get("distinct") is not None


def parameter(number: int) -> str:
    """The name of the column of a constant."""
    return f"{QUERY}_c{number}"


def shape_of(text: SqlText, statement: CreateStandingQuery) -> Shape:
    """The shape of a query.

    Raises:
        SqlError: it is no query that can share a plan.
    """
    form = _copied(statement.form)
    tree = form.query
    table = _table(text, tree)
    literals = constants_in(form)
    numbers = {id(literal): at for at, literal in enumerate(literals)}
    equal = tuple((column, numbers[id(literal)]) for column, literal in _equalities(tree) if id(literal) in numbers)
    is_total = _is_total(tree)
    needed = _numbers_in(numbers, form.when, form.until)
    grouped = tree.args.get("group") is not None or is_total
    for at, literal in enumerate(literals):
        literal.replace(_constant(at, is_grouped=grouped and _stands_in(literal, tree.args.get("having"))))
    _name_queries(tree, is_total, (QUERY, VERSION) if form.emits_changes_of_snapshot else (QUERY,))
    added = [exp.alias_(_constant(at, is_grouped=grouped), parameter(at)) for at in needed]
    tree.set("expressions", [*tree.expressions, *added])
    kinds = "".join(constant[0] for constant in statement.constants)
    return Shape(table, tree, kinds, equal, form, tuple(map(parameter, needed)))


def _copied(form: StandingForm) -> StandingForm:
    """A form whose trees may be changed. A condition that stands alone gets a parent, so that it can be replaced as a whole."""
    when, until = (None if e is None else exp.Paren(this=e.copy()) for e in (form.when, form.until))
    return replace(form, query=form.query.copy(), when=when, until=until)


def _constant(number: int, *, is_grouped: bool) -> exp.Expr:
    """The column of a constant; among groups, where it is the same in every row, as an aggregate."""
    column = exp.column(parameter(number))
    return exp.Anonymous(this="max", expressions=[column]) if is_grouped else column


def _stands_in(literal: exp.Literal, part: Any) -> bool:
    above: Any = literal
    while above is not None and above is not part:
        above = above.parent
    return part is not None and above is part


def _numbers_in(numbers: dict[int, int], *parts: Any) -> list[int]:
    """The numbers of the constants in conditions on results."""
    return [
        numbers[id(each)]
        for part in parts
        if part is not None
        for each in part.find_all(exp.Literal)
        if id(each) in numbers
    ]


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


def _name_queries(tree: Any, is_total: bool, names: tuple[str, ...]) -> None:
    """Every row says of which query it is, and groups are those of one query."""
    tree.set("expressions", [exp.column(names[0]), *tree.expressions, *map(exp.column, names[1:])])
    group = tree.args.get("group")
    if group is not None:
        group.set("expressions", [*map(exp.column, names), *group.expressions])
    elif is_total:
        tree.set("group", exp.Group(expressions=[*map(exp.column, names)]))


def _is_total(tree: Any) -> bool:
    """Whether a query without GROUP BY has aggregates."""
    if tree.args.get("group") is not None:
        return False
    calls = (each for item in tree.expressions for each in item.find_all(exp.Anonymous, exp.Func))
    return any(str(getattr(call, "name", "") or call.sql_name()).lower() in _AGGREGATES for call in calls)
