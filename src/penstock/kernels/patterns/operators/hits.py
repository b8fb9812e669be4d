"""Which filters of a pattern each event fits, as far as it alone decides: by columns where Arrow can, else row by row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray
from penstock.graph.expr import Expr
from penstock.graph.patterns.operator_conditions import FilterCondition
from penstock.graph.schema import Schema
from penstock.kernels.expr.arrays import compile_arrays
from penstock.kernels.expr.evaluate import compile_expr

Rows = list[tuple[object, ...]]
Fails = Callable[[int, Exception], None]
"""Takes the error of a row by its number, which fits nothing then; or raises it."""


class _Test:
    """One condition."""

    def __init__(self, condition: Expr, schema: Schema) -> None:
        self.array = compile_arrays(condition, schema)
        self.run = compile_expr(condition, schema)

    def flags(self, batch: pa.RecordBatch, rows: Rows, among: BoolArray, fails: Fails) -> BoolArray:
        """Where the condition is true, of the rows among which it counts."""
        try:
            made = None if self.array is None else self.array(batch)
        except pa.ArrowInvalid:
            made = None
        if made is not None:
            found: BoolArray = pc.fill_null(made, False).to_numpy(zero_copy_only=False)
            return found & among
        flags = np.zeros(len(rows), bool)
        for at in np.flatnonzero(among).tolist():
            try:
                flags[at] = self.run(rows[at]) is True
            except Exception as error:
                fails(at, error)
        return flags


class Hits:
    """The filters of a pattern as bits."""

    def __init__(self, filters: tuple[FilterCondition, ...], schema: Schema) -> None:
        self.filters = [[_Test(e, schema) for e in (f.type, f.plain) if e is not None] for f in filters]

    def of(self, batch: pa.RecordBatch, rows: Rows, fails: Fails) -> list[int]:
        """The filters that each row fits."""
        made = [0] * len(rows)
        for bit, tests in enumerate(self.filters):
            flags = np.ones(len(rows), bool)
            for test in tests:
                flags = test.flags(batch, rows, flags, fails)
            for at in np.flatnonzero(flags).tolist():
                made[at] |= 1 << bit
        return made
