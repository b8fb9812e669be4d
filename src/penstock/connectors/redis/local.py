"""Redis without a JVM: the same commands, from this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.connectors.ranges import Stretch
from penstock.connectors.redis.preflight import check_server
from penstock.connectors.redis.sink import RedisSink
from penstock.connectors.redis.source import Entries
from penstock.connectors.redis.wire import Address, Layout, driver
from penstock.errors import RunError
from penstock.graph.row import Row
from penstock.kernels.records.arrow import to_columns
from penstock.kernels.records.reading import MalformedRecord


def read_entries(source: LocalSource) -> Iterator[Record]:
    """The entries that a stream holds now."""
    check_server(source.preflight())
    entries = Entries(source.options, source.schema, source.step, keeps_malformed=True)
    first, last = entries.first(), entries.everything()
    if first != last:
        for batch in entries.read(Stretch(first, last)):
            *columns, malformed = to_columns(batch)
            for values, wrong in zip(zip(*columns, strict=True), malformed, strict=True):
                yield values if wrong is None else MalformedRecord(wrong["raw"], wrong["position"], wrong["cause"])


def write_rows(sink: LocalSink, rows: Sequence[Row]) -> None:
    """All rows in one transaction."""
    RedisSink().open(sink.context())
    address = Address.of(sink.options)
    with address.client().pipeline(transaction=True) as pipe:
        for command in Layout.of(sink.options).commands(sink.arrow(rows)):
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]  # redis leaves it untyped
        try:
            pipe.execute()
        except driver().RedisError as error:
            raise RunError(f"sink {sink.step!r}: writing failed: {address.clean(error)}") from None
