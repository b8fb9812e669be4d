"""The conditions of a row pattern that are known for each row, whatever was matched before it: computed once for a batch, by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.graph import types as t
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.expr import Column, columns_of
from penstock.graph.expr.model import Expr, Literal
from penstock.graph.expr.rewrite import rewritten
from penstock.graph.nodes import Node
from penstock.graph.patterns.conditions import CLASSIFIER, Navigation, NavigationExpr
from penstock.graph.patterns.row_pattern import RowExpressions
from penstock.graph.schema import Schema
from penstock.kernels.patterns.rows.values import batch_of, column_maker, moved, true_rows


class ColumnCondition:
    """The condition of a variable over the rows of a batch."""

    def __init__(self, node: Node, variable: str, made: NavigationExpr, schema: Schema) -> None:
        self.made = made
        self.used = columns_of(made.expr)
        self.own = [name for name in schema.names if name in self.used]
        self.holds = column_maker(node, made.expr, made.schema)
        self.looks = [
            (f.name, look.step, column_maker(node, _of_variable(look, variable), schema))
            for f, look in zip(made.schema.fields[len(schema.fields) :], made.inputs, strict=True)
        ]

    def rows(self, batch: pa.RecordBatch, first: IntArray, after: IntArray) -> BoolArray:
        """Which rows it is true of. `first` and `after` say for each row where the rows of its key begin and end."""
        columns = {name: batch.column(name) for name in self.own}
        for name, step, value in self.looks:
            column = value(batch)
            columns[name] = moved(column, step, first, after) if step else column
        return true_rows(self.holds(batch_of(columns, batch.num_rows)))


def _of_variable(look: Navigation, variable: str) -> Expr:
    """The value of a look at a row that is classified as a variable."""
    assert look.value is not None
    named = Literal(variable, t.STRING)
    return rewritten(look.value, lambda e: named if isinstance(e, Column) and e.name == CLASSIFIER else None)


class RowMasks:
    """Which variables each row of a batch may be, as the bits of a number."""

    def __init__(self, node: Node, expressions: RowExpressions, schema: Schema) -> None:
        static = [
            (name, made)
            for name, made in expressions.define
            if all(expressions.is_static(name, look) for look in made.inputs)
        ]
        self.bits = {name: 1 << at for at, (name, _) in enumerate(static)}
        self.conditions = [ColumnCondition(node, name, made, schema) for name, made in static]

    def of(self, batch: pa.RecordBatch, first: IntArray, after: IntArray) -> Sequence[int]:
        """The bits of each row."""
        if len(self.conditions) > 62:
            return self._many(batch, first, after)
        masks = np.zeros(batch.num_rows, np.int64)
        for at, condition in enumerate(self.conditions):
            masks |= condition.rows(batch, first, after).astype(np.int64) << at
        made: list[int] = masks.tolist()
        return made

    def _many(self, batch: pa.RecordBatch, first: IntArray, after: IntArray) -> list[int]:
        """The same where a number of 64 bits is too small."""
        masks = [0] * int(batch.num_rows)
        for at, condition in enumerate(self.conditions):
            for row in np.flatnonzero(condition.rows(batch, first, after)).tolist():
                masks[row] |= 1 << at
        return masks
