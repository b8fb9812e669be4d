"""Joins, ranks, windows and set operations over tables of which all rows are there, as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graph import nodes as n
from penstock.graph.nodes.base import COUNT, TimeField
from penstock.graph.nodes.changes import OPERATION, UPSERT, TopChanges, visible
from penstock.graph.nodes.join import LEFT, RIGHT
from penstock.graph.nodes.relational.sets import DISTINCT, EXCEPT
from penstock.graph.nodes.relational.whole import WholeStep
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.sql import to_sql
from penstock.spark.lower.window import whole_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANK = "__rank"
_HOWS = {"left": "left_outer", "right": "right_outer", "full": "full_outer", "semi": "left_semi", "anti": "left_anti"}


def whole_step(at: Lowering, node: WholeStep) -> None:
    """What the step means over rows that stand."""
    of = node.of
    if isinstance(of, n.StreamJoin):
        made = _Join(at, node, of).made()
    elif isinstance(of, n.SetOperation):
        made = _sets(at, node, of)
    elif isinstance(of, n.Top | TopChanges):
        made = _ranked(at, node, of)
    elif isinstance(of, n.Window):
        made = whole_window(at, node, of)
    else:
        made = _as_they_are(at, node)
    at.give(n.Port(node.name), made)


class _Join:
    """A join of two frames, whose columns have names of their own, so that a condition can name both."""

    def __init__(self, at: Lowering, node: WholeStep, of: n.StreamJoin) -> None:
        self.node, self.of = node, of
        self.frames = at.input(node), at.input(node, 1)
        given = [at.plan.graph.output(port) for port in node.inputs]
        self.names = [visible(output.schema).names for output in given]
        shown = of.pair_fields(tuple(n.Output(visible(output.schema)) for output in given))
        self.aliases: list[dict[str, str]] = [{}, {}]
        for field, (left, right) in shown:
            if left:
                self.aliases[LEFT][left] = field.name
            else:
                self.aliases[RIGHT][right] = field.name

    def made(self) -> DataFrame:
        """The joined rows with the fields of the result."""
        from pyspark.sql import functions as f

        left, right = (self._renamed(side) for side in (LEFT, RIGHT))
        joined = left.join(right, f.expr(" and ".join(self._conditions())), _HOWS.get(self.of.how, "inner"))
        return joined.selectExpr(*self._columns())

    def _name(self, side: int, name: str) -> str:
        hidden = f"__{'lr'[side]}{self.names[side].index(name)}"
        return quote(self.aliases[side].get(name, hidden))

    def _renamed(self, side: int) -> DataFrame:
        columns = [f"{quote(name)} as {self._name(side, name)}" for name in self.names[side]]
        return self.frames[side].selectExpr(*columns)

    def _conditions(self) -> list[str]:
        keys = zip(self.of.keys, self.of.right_keys, strict=True)
        made = [f"{self._name(LEFT, one)} = {self._name(RIGHT, other)}" for one, other in keys]
        if isinstance(self.of, n.IntervalJoin):
            apart = f"{self._micros(RIGHT)} - {self._micros(LEFT)}"
            made.append(f"{apart} between {self.of.low}L and {self.of.high}L")
        return made if self.of.condition is None else [*made, f"({to_sql(self.of.condition)})"]

    def _micros(self, side: int) -> str:
        timed: TimeField = self.of.timed_by[side]
        return f"(unix_micros({self._name(side, timed.column)}) + {timed.shift}L)"

    def _columns(self) -> list[str]:
        fields = [f for f in self.node.output().schema.fields if f.name != COUNT]
        into = getattr(self.of, "into", "")
        values = [self._value(*source) for source in self.of.columns]
        made = [
            f"{sql} as {quote(f.name)}" for sql, f in zip(values, (f for f in fields if f.name != into), strict=True)
        ]
        if into:
            made.append(f"timestamp_micros(greatest({self._micros(LEFT)}, {self._micros(RIGHT)})) as {quote(into)}")
        return [*made, *_counted(self.node)]

    def _value(self, left: str, right: str) -> str:
        if left and right and self.of.how in ("right", "full"):
            return f"coalesce({self._name(LEFT, left)}, {self._name(RIGHT, right)})"
        return self._name(LEFT, left) if left else self._name(RIGHT, right)


def _counted(node: WholeStep) -> list[str]:
    return [f"1L as {COUNT}"] if COUNT in node.output().schema else []


def _as_they_are(at: Lowering, node: WholeStep) -> DataFrame:
    """Rows that stand, as those that are added: each with its count, or as the row of its key."""
    schema = node.output().schema
    upsert = [f"'{UPSERT}' as {OPERATION}"] if OPERATION in schema else []
    names = [quote(name) for name in schema.names if name not in (COUNT, OPERATION)]
    return at.input(node).selectExpr(*names, *upsert, *_counted(node))


def _ranked(at: Lowering, node: WholeStep, of: n.Top | TopChanges) -> DataFrame:
    """The first rows of each key by a row number, of which Spark knows that few are wanted."""
    names = visible(at.plan.graph.output(node.inputs[0]).schema).names
    terms = [f"{quote(term.column)} {'desc' if term.descending else 'asc'}" for term in of.by]
    rest = [quote(name) for name in names if name not in {term.column for term in of.by} and name not in of.keys]
    order = ", ".join([*terms, *rest])
    number = f"row_number() over (partition by {', '.join(map(quote, of.keys))} order by {order}) as {_RANK}"
    first = at.input(node).selectExpr(*map(quote, names), number).where(f"{_RANK} <= {of.n}")
    rank = [f"{_RANK} as {quote(of.into)}"] if of.into else []
    return first.selectExpr(*map(quote, names), *rank, *_counted(node))


def _sets(at: Lowering, node: WholeStep, of: n.SetOperation) -> DataFrame:
    frames = [
        at.input(node, number).select(*map(quote, visible(at.plan.graph.output(port).schema).names))
        for number, port in enumerate(node.inputs)
    ]
    made = _compared(of, frames)
    return made.selectExpr("*", *_counted(node))


def _compared(of: n.SetOperation, frames: list[DataFrame]) -> DataFrame:
    if of.operation == DISTINCT:
        return frames[0].distinct()
    one, other = frames[0], frames[1].toDF(*frames[0].columns)
    if of.operation == EXCEPT:
        return one.exceptAll(other) if of.every else one.subtract(other)
    return one.intersectAll(other) if of.every else one.intersect(other)
