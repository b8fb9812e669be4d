"""Endpoints inside the process, without a JVM: items, numbers, spouts; callbacks and the console."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Iterator, Sequence

from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.connectors.process.console import table_text
from penstock.errors import SchemaError, StepError
from penstock.graph.nodes import Output, Source
from penstock.graph.row import Row
from penstock.kernels.base import RecordFailed
from penstock.kernels.topology.spout import SpoutTasks


def read_items(source: LocalSource) -> Iterable[Record]:
    """The rows of `ps.items`."""
    return list(source.options["rows"])


def read_generated(source: LocalSource) -> Iterator[Record]:
    """The records of `ps.generate`."""
    return map(source.options["function"], range(source.options["limit"]))


def read_numbers(source: LocalSource) -> Iterator[Record]:
    """The numbers of `ps.rate`, as if they had come at its pace; only the fields that are asked for, as a table of SQL may."""
    begin = datetime.datetime.now(datetime.UTC)
    step = datetime.timedelta(seconds=1 / source.options["rows_per_second"])
    made = {"timestamp": lambda n: begin + n * step, "value": lambda n: n}
    if unknown := [name for name in source.schema.names if name not in made]:
        raise SchemaError(f"source {source.step!r}: expected the fields timestamp and value, got {', '.join(unknown)}")
    return (tuple(made[name](n) for name in source.schema.names) for n in range(source.options["limit"]))


def read_lines(source: LocalSource) -> Iterator[Record]:
    """The lines of standard input, without their ends, up to the end of the input."""
    return ((line.rstrip("\n"),) for line in iter(sys.stdin.readline, ""))


def read_spout(source: LocalSource) -> Iterator[Record]:
    """What a spout emits until it says that it has ended."""
    node = Source(source.step, (), source.endpoint, source.schema, outputs=(Output(source.schema),))
    try:
        yield from SpoutTasks(node, keeps_malformed=source.keeps_malformed).drained()
    except RecordFailed as failed:
        raise StepError(failed.failure("the spout itself")) from failed.error


def call_back(sink: LocalSink, rows: Sequence[Row]) -> None:
    """One call with all rows."""
    sink.options["function"](list(rows), sink.batch())


def print_rows(sink: LocalSink, rows: Sequence[Row]) -> None:
    """The first rows, as a table."""
    shown = list(rows[: sink.options["rows"]])
    if shown:
        part = f", {len(shown)} of {len(rows)} rows" if len(rows) > len(shown) else ""
        sys.stdout.write(table_text(shown, f"-- {sink.step}{part} --") + "\n")


def write_nothing(sink: LocalSink, rows: Sequence[Row]) -> None:
    """Drops all rows."""
