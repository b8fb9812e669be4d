"""The console: the first rows of each batch, as a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Batch, RowSink, SinkConnector, StagedBatch, StagedRows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(RowSink):
    """Prints."""

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Computes the whole batch, and takes its first rows."""
        mine = not frame.is_cached
        kept = frame.persist() if mine else frame
        try:
            rows = kept.count()
            about = replace(batch, options={**batch.options, "total": rows})
            staged = StagedRows(self, rows_of(kept.limit(batch.options["rows"])), about)
        finally:
            if mine:
                kept.unpersist()
        staged.rows = rows
        return staged

    def write(self, rows: list[Any], batch: Batch) -> None:
        """Prints the rows under their names."""
        if rows:
            sys.stdout.write(table_text(rows, f"-- {batch.sink}, batch {batch.id}{_part(rows, batch)} --") + "\n")
            sys.stdout.flush()


def _part(rows: list[Any], batch: Batch) -> str:
    total = batch.options.get("total", len(rows))
    return f", {len(rows)} of {total} rows" if total > len(rows) else ""


def table_text(rows: list[Any], title: str) -> str:
    """Rows as a plain table."""
    names = type(rows[0]).names
    cells = [[str(v) for v in row] for row in rows]
    widths = [max(len(c) for c in column) for column in zip(names, *cells, strict=True)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in (names, *cells)]
    return "\n".join([title, *lines])


class CallbackSink(RowSink):
    """Calls a function of the user's, in the driver."""

    def write(self, rows: list[Any], batch: Batch) -> None:
        """One call for each batch, also an empty one."""
        batch.options["function"](rows, batch)


class NothingSink(SinkConnector):
    """Computes everything and keeps nothing; for measurements."""

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Spark's noop writer."""
        frame.write.format("noop").mode("overwrite").save()
        return StagedBatch()
