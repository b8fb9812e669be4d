"""PostgreSQL without a JVM: the same statements, by psycopg, from this process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.connectors.postgres.changes import Changes
from penstock.connectors.postgres.preflight import check_server
from penstock.connectors.postgres.sink import CopyTask, PostgresSink, StagedCopy
from penstock.connectors.postgres.source import rows_of
from penstock.connectors.postgres.table import Moves
from penstock.connectors.ranges import Ranges
from penstock.graph.row import Row
from penstock.kernels.records.arrow import to_columns
from penstock.kernels.records.reading import MalformedRecord


def read_rows(source: LocalSource) -> Iterator[Record]:
    """The rows that are there, in the order of the growing column."""
    check_server(source.preflight())
    return _records(rows_of(source.options, source.schema, source.step))


def read_changes(source: LocalSource) -> Iterator[Record]:
    """The changes that wait in the replication slot, in the order of commits. The slot stays where it is, and none is made."""
    check_server(source.preflight())
    changes = Changes(source.options, source.schema, source.step, keeps_malformed=True)
    return map(_read, _records(changes)) if changes.find() else iter(())


def _read(values: tuple[Any, ...]) -> Record:
    """A change without the column of what could not be read, or the change that could not."""
    *fields, wrong = values
    return tuple(fields) if wrong is None else MalformedRecord(wrong["raw"], wrong["position"], wrong["cause"])


def _records(ranges: Ranges) -> Iterator[tuple[Any, ...]]:
    for stretch in ranges.stretches(ranges.first(), ranges.everything()):
        for batch in ranges.read(stretch):
            yield from zip(*to_columns(batch), strict=True)


def write_rows(sink: LocalSink, rows: Sequence[Row]) -> None:
    """All rows in one transaction: appended, or replacing those with the same key."""
    made = PostgresSink()
    made.open(sink.context())
    try:
        _staged(made, sink, rows).commit()
    finally:
        made.close()


def _staged(made: PostgresSink, sink: LocalSink, rows: Sequence[Row]) -> StagedCopy:
    """The rows in a staging table, ready to be moved."""
    context, link, layout = sink.context(), made.link, made.layout
    assert link is not None, "the sink is open"
    assert layout is not None
    name = made.ledger.stage_name(context, made.fence, uuid.uuid4().hex[:12])
    moves = Moves(layout, made.ledger.stage(name))
    staged = StagedCopy(made, link, moves, sink.batch())
    with link.talking("staging") as connection:
        connection.execute(moves.create())
        connection.execute(made.ledger.note(name, context))
    try:
        copy = CopyTask(link.address, link.who, layout, moves.copy().as_string(link.connection))
        staged.reports = [copy.copy([sink.arrow(rows)], 0)]
    except BaseException:
        staged.abort()
        raise
    staged.rows = sum(report.rows for report in staged.reports)
    return staged
