"""Parts of windows as Arrow rows: put together by key and window, and finished, a column at a time.

No Python runs per row, but for aggregates whose parts Arrow cannot put together (lists, structs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.aggregates.aggregate import Aggregate, Part
from penstock.graph.arrays import IntArray
from penstock.graph.nodes import AggregateBy, Window
from penstock.kernels.keyed.aggregates import finish, merge_of
from penstock.kernels.records.arrow import arrow_schema, arrow_type

_ARROW = {"add": "sum", "least": "min", "greatest": "max"}
_UTC = pa.timestamp("us", tz="UTC")
_GROUP = "__group"


class Rows:
    """How the part rows of a window step, or of a running aggregate, go together."""

    def __init__(self, node: Window | AggregateBy) -> None:
        self.keys = list(node.keys)
        self.aggregates: tuple[Aggregate, ...] = node.aggregates
        self.schema = arrow_schema(node.output().schema)
        self.fields = [f for a in node.aggregates for f in a.part_fields]
        merges: list[tuple[Part, Aggregate | None]] = [(p, a) for a in node.aggregates for p in a.recipe.parts]
        self.merges = dict(zip((f.name for f in self.fields), merges, strict=True))

    @property
    def parts(self) -> list[str]:
        """The names of the part fields."""
        return list(self.merges)

    def together(self, rows: pa.Table, by: list[str]) -> pa.Table:
        """The rows with the same values of `by` as one row, which has those and the parts."""
        easy = [n for n in self.parts if self._easy(n, rows.column(n))]
        hard = [n for n in self.parts if n not in easy]
        if hard:
            rows = rows.append_column(_GROUP, pa.array(np.arange(rows.num_rows)))
        asked = [(n, _ARROW[self.merges[n][0].merge]) for n in easy] + ([(_GROUP, "list")] if hard else [])
        made = rows.group_by(by, use_threads=False).aggregate(asked)
        columns = {n: made.column(n) for n in by}
        columns |= {n: made.column(f"{n}_{how}").cast(rows.schema.field(n).type) for n, how in asked if n != _GROUP}
        groups = made.column(f"{_GROUP}_list").to_pylist() if hard else []
        columns |= {n: self._merged(n, rows.column(n), groups) for n in hard}
        return pa.table({n: columns[n] for n in (*by, *self.parts)})

    def _easy(self, name: str, column: pa.ChunkedArray) -> bool:
        """Whether Arrow puts a part together as Spark does; it has other ideas of the largest where a value is no number."""
        if self.merges[name][0].merge not in _ARROW or pa.types.is_nested(column.type):
            return False
        if self.merges[name][0].merge == "add" and pa.types.is_integer(column.type):
            return _fits(column)
        if not pa.types.is_floating(column.type) or self.merges[name][0].merge == "add":
            return True
        return not pc.any(pc.is_nan(column)).as_py()

    def _merged(self, name: str, column: pa.ChunkedArray, groups: list[list[int]]) -> pa.Array:
        merge = merge_of(*self.merges[name])
        values = column.to_pylist()
        return pa.array([_folded(merge, [values[at] for at in each]) for each in groups], column.type)

    def results(self, rows: pa.Table, start: IntArray, end: IntArray) -> pa.RecordBatch:
        """The records of windows from their parts, and from when they begin and end."""
        bounds = [pa.array(np.asarray(each, np.int64)).cast(_UTC) for each in (start, end)]
        made = [rows.column(k) for k in self.keys] + bounds + [self._finished(a, rows) for a in self.aggregates]
        arrays = [_whole(array).cast(f.type) for array, f in zip(made, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _finished(self, aggregate: Aggregate, rows: pa.Table) -> pa.Array:
        parts = [rows.column(f.name) for f in aggregate.part_fields]
        how = aggregate.recipe.finish
        if how == "first":
            return parts[0]
        if how == "ratio":
            some = pc.if_else(pc.greater(parts[1], 0), parts[1], None)
            return pc.divide(parts[0], some.cast(pa.float64()))
        made = (finish(aggregate, each) for each in zip(*(p.to_pylist() for p in parts), strict=True))
        return pa.array(made, arrow_type(aggregate.type))


def _fits(column: pa.ChunkedArray) -> bool:
    """Whether no sum of these integers can pass 64 bits, which Arrow would not notice.

    >>> _fits(pa.array([1, 2, None])), _fits(pa.array([1 << 62, 1 << 62]))
    (True, False)
    """
    bounds = pc.min_max(column).as_py()
    return bool(max(abs(bounds["min"] or 0), abs(bounds["max"] or 0)) * len(column) < 1 << 63)


def _folded(merge: Callable[[Any, Any], object], values: list[Any]) -> object:
    """All values together, in pairs of pairs, so that long lists are not copied again for each short one."""
    while len(values) > 1:
        paired = [merge(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = paired + values[len(paired) * 2 :]
    return values[0]


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def concat(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    """Tables one after the other, those that are there."""
    there = [t for t in tables if t is not None and t.num_rows]
    return pa.concat_tables(there, promote_options="permissive").combine_chunks() if there else None
