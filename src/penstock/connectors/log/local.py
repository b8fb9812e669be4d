"""Topics of the embedded log without a JVM."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Sequence

from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.connectors.log.preflight import make_if_asked
from penstock.connectors.log.sink import LogSink
from penstock.connectors.messages import Message, field_bytes, json_bytes, message_reader
from penstock.errors import RunError
from penstock.graph.row import Row
from penstock.log import Log, LogError, TopicExists
from penstock.log.produce.partitioner import partition_for
from penstock.log.record import Record as LogRecord

Write = Callable[[Row], bytes | None]


def read_topic(source: LocalSource) -> Iterator[Record]:
    """What a topic holds now from the start on, partition by partition. Raises RunError when there is no such topic."""
    read = message_reader(source.endpoint, source.schema)
    make_if_asked(source.options)
    with Log(source.options["path"]) as log:
        for partition, begin, end in _ranges(log, source):
            for record in log.read(source.options["topic"], partition, begin):
                if record.offset < end:
                    yield read(_message(source.options["topic"], partition, record))


def _ranges(log: Log, source: LocalSource) -> list[tuple[int, int, int]]:
    """From where to where each partition is read."""
    topic, start = source.options["topic"], source.options["start"]
    try:
        ends = log.offsets(topic)
        at = log.offsets_for_time(topic, start) if isinstance(start, int) else {}
    except LogError as error:
        raise RunError(f"source {source.step!r}: {error}") from None
    if isinstance(start, dict):
        return [(p, int(start.get(str(p), first)), end) for p, (first, end) in ends.items()]
    if start in ("earliest", "latest"):
        return [(p, end if start == "latest" else first, end) for p, (first, end) in ends.items()]
    found = {p: offset for p, offset in at.items() if offset is not None}
    return [(p, found.get(p, end), end) for p, (_, end) in ends.items()]


def _message(topic: str, partition: int, record: LogRecord) -> Message:
    at = _moment(record.timestamp)
    headers = [{"key": k, "value": v} for k, v in record.headers]
    return Message(topic, partition, record.offset, at, record.key, record.value, headers)


def _moment(milliseconds: int) -> datetime.datetime | None:
    """A time that Python knows, or None: producers may give a record any time."""
    try:
        return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def write_topic(sink: LocalSink, rows: Sequence[Row]) -> None:
    """Appends all rows: one batch for each partition, which is there as a whole or not at all."""
    LogSink().refuses(sink.context())
    topic = sink.options["topic"]
    key, value = _key(sink), _value(sink)
    with Log(sink.options["path"]) as log:
        with contextlib.suppress(TopicExists):
            log.create_topic(topic, sink.options["partitions"])
        partitions = len(log.offsets(topic))
        shares: dict[int, list[Row]] = {}
        for row in rows:
            at = key(row)
            shares.setdefault(0 if at is None else partition_for(at, partitions), []).append(row)
        with log.producer() as producer:
            for partition, mine in sorted(shares.items()):
                keys = [key(r) for r in mine] if sink.options.get("key") else None
                try:
                    producer.send_many(topic, [value(r) for r in mine], keys, partition=partition)
                except LogError as error:
                    raise RunError(f"sink {sink.step!r}: {error}") from None


def _key(sink: LocalSink) -> Write:
    name = sink.options.get("key")
    return field_bytes(sink.schema, name) if name else lambda row: None


def _value(sink: LocalSink) -> Write:
    names = sink.schema.names
    if sink.options["format"] == "json":
        return json_bytes(sink.schema, names)
    return field_bytes(sink.schema, "value" if "value" in names else names[0])
