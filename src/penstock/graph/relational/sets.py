"""Set operations, subqueries and grouping sets, made of steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import FlowError
from penstock.graph.aggregates.calls import AggregateCall, aggregate_call
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput, add_aggregate, add_total, second_reader, star
from penstock.graph.expr import Call, Case, Expr, col, lit
from penstock.graph.ids import child
from penstock.graph.nodes import Distinct, Explode, Port, Select, TableJoin, Where, WithColumns
from penstock.graph.nodes.base import ON, TOGETHER, is_plain
from penstock.graph.nodes.relational.sets import DISTINCT, SetOperation

GROUPING = "__grouping"
"""The hidden field that says which grouping set a row is for."""


def add_distinct_rows(builder: GraphBuilder, name: str, port: Port, ttl: int | None = None) -> Port:
    """Each different row once; of a table while it is there. `ttl` is after how many microseconds a record comes through again; None is never."""
    given = builder.output(port)
    if all(map(is_plain, given.schema.fields)):
        return builder.add(Distinct(name, (port,), given.schema.names, ttl=ttl))
    return builder.add(SetOperation(name, (port,), operation=DISTINCT))


def add_set_operation(
    builder: GraphBuilder, name: str, left: Port, right: Port, operation: str, *, every: bool = False
) -> Port:
    """INTERSECT or EXCEPT, with `every` ALL; a stream may be on both sides."""
    if left == right:
        right = builder.add(second_reader(name, right, builder.output(right)))
    return builder.add(SetOperation(name, (left, right), operation=operation, every=every))


def add_scalar(
    builder: GraphBuilder, name: str, port: Port, subquery: Port, fields: tuple[str, ...], prefix: str = ""
) -> Port:
    """Each row with the fields of a table of at most one row; nulls where it has none. All rows meet in one task.

    Args:
        builder: where steps are added.
        name: the name of the step.
        port: the rows.
        subquery: the table, as `add_total` makes it.
        fields: its fields that are wanted.
        prefix: what is put before their names.
    """
    return _beside(builder, name, port, subquery, {f"{prefix}{field}": field for field in fields})


def add_not_in(builder: GraphBuilder, name: str, port: Port, key: str, subquery: Port, member: str) -> Port:
    """The rows whose `key` is NOT IN the values of a subquery, as SQL means it.

    All rows where the subquery has none; none where it has a null; else those whose key is not null and not among its values.
    """
    nulls, many = (_free(builder, port, name) for name in ("nulls", "many"))
    values = builder.add(Select(child(name, "members"), (subquery,), (("member", col(member)),)))
    calls = (aggregate_call("many", "count(*)"), aggregate_call("nulls", "count_if(member is null)"))
    total = add_total(builder, child(name, "all"), values, calls)
    beside = _beside(builder, child(name, "seen"), port, total, {many: "many", nulls: "nulls"})
    meant = col(many).is_null() | (col(many) == 0) | ((col(nulls) == 0) & col(key).is_not_null())
    open_ = builder.add(Where(child(name, "open"), (beside,), meant))
    kept = builder.add(Select(child(name, "rows"), (open_,), star(builder.output(port).schema)))
    return builder.add(TableJoin(name, (kept, values), (key,), ("member",), "anti"))


def _free(builder: GraphBuilder, port: Port, name: str) -> str:
    """A name that no field of a stream has."""
    taken = {each.lower() for each in builder.output(port).schema.names}
    return next(found for n in range(len(taken) + 1) if (found := f"{name}_{n}") not in taken)


def _beside(builder: GraphBuilder, name: str, port: Port, total: Port, names: dict[str, str]) -> Port:
    """Each row with the fields of a one-row table under other names."""
    one = ((TOGETHER, lit(0)),)
    left = builder.add(WithColumns(child(name, "left"), (port,), one, hidden=True))
    picked = builder.add(Select(child(name, "picked"), (total,), tuple((n, col(f)) for n, f in names.items())))
    right = builder.add(WithColumns(child(name, "right"), (picked,), one, hidden=True))
    return builder.add(TableJoin(name, (left, right), (TOGETHER,), (TOGETHER,), "left"))


AddGroups: TypeAlias = Callable[[GraphBuilder, str, KeyedInput, tuple[AggregateCall, ...]], Port]
"""What adds the step of groups: its name, its input by key, and its aggregates."""


@dataclass(frozen=True)
class GroupingSets:
    """The sets of fields by which rows are grouped, all at once.

    Args:
        fields: all fields that stand in a set, in order.
        sets: the sets, each of some of the fields.
    """

    fields: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        unknown = [name for each in self.sets for name in each if name not in self.fields]
        if not self.sets or unknown:
            raise FlowError(f"expected grouping sets of {', '.join(self.fields)}, got {self.sets}")

    def number(self, at: int) -> int:
        """What GROUPING_ID says of a set: a bit for each field that is not in it, the first field the highest."""
        return sum(1 << (len(self.fields) - 1 - i) for i, name in enumerate(self.fields) if name not in self.sets[at])


def add_grouping_sets(
    builder: GraphBuilder,
    name: str,
    port: Port,
    groups: GroupingSets,
    calls: tuple[AggregateCall, ...],
    into: str = "",
    add: AddGroups = add_aggregate,
) -> Port:
    """Aggregates by several sets of fields at once: a row for each group of each set, null in the fields that are not of the set.

    Rows are repeated, once for each set, then grouped once. `into` is the field of GROUPING_ID, where it is wanted; two equal sets count as two.
    `add` makes the step of the groups; fields that are in every set, such as those of a window, keep their names in it.
    """
    numbers = Call("array", tuple(lit(at) for at in range(len(groups.sets))))
    repeated = builder.add(_hidden_explode(builder, name, port, numbers))
    shared = {f for f in groups.fields if all(f in each for each in groups.sets)}
    written = {f: f if f in shared else f"{ON}{f}" for f in groups.fields}
    columns = tuple((hidden, _in_sets(f, groups)) for f, hidden in written.items() if f not in shared)
    expanded = builder.add(WithColumns(child(name, "expanded"), (repeated,), columns, hidden=True))
    keyed = KeyedInput(expanded, (*written.values(), GROUPING))
    made = add(builder, child(name, "groups"), keyed, calls)
    results = tuple((n, col(n)) for n in builder.output(made).schema.names if n not in keyed.keys)
    fields = tuple((f, col(hidden)) for f, hidden in written.items())
    number = ((into, _numbers(groups)),) if into else ()
    return builder.add(Select(name, (made,), (*fields, *number, *results)))


def _hidden_explode(builder: GraphBuilder, name: str, port: Port, numbers: Expr) -> Explode:
    marked = builder.add(WithColumns(child(name, "sets"), (port,), ((GROUPING, lit(0)),), hidden=True))
    return Explode(child(name, "each"), (marked,), GROUPING, numbers)


def _in_sets(name: str, groups: GroupingSets) -> Expr:
    """A field in the sets that have it, else null."""
    held = [at for at, each in enumerate(groups.sets) if name in each]
    if not held:
        return Case(((lit(False), col(name)),))
    return Case(((col(GROUPING).isin(*held), col(name)),))


def _numbers(groups: GroupingSets) -> Expr:
    cases = tuple((col(GROUPING) == lit(at), lit(groups.number(at))) for at in range(len(groups.sets)))
    return Case(cases).cast("bigint")


__all__ = ["GroupingSets", "add_distinct_rows", "add_grouping_sets", "add_not_in", "add_scalar", "add_set_operation"]
