"""Drivers of a flow without Spark, to pause and replace: `python -m tests.connectors.drivers KIND WHERE FIRST CUT`.

The input is 60 records. A driver opens its sink, follows the ledger as a start does, and delivers batch after batch: FIRST is the batch its checkpoint
begins with, ten records of the input for each before it, and CUT is how many records it takes at a time. It prints what it has done.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.connectors.base import Batch, SinkConnector, SinkContext, StagedBatch
from penstock.connectors.delivery import LedgerSink
from penstock.errors import DeliveryError
from penstock.faults import passing
from penstock.graph.schema import schema_of

RECORDS, BEFORE = 60, 10
LINEAGE = "life"


@dataclass(frozen=True)
class Frame:
    """As much of a frame as sinks use that write from tasks: one task, here."""

    rows: Any

    def mapInArrow(self, task: Callable[[Iterable[Any]], Iterable[Any]], _: str) -> Any:  # noqa: N802 - Spark's name
        made = [tuple(row.values()) for batch in task([self.rows]) for row in batch.to_pylist()]
        return type("Collected", (), {"collect": lambda self: made})()


Opened = tuple[LedgerSink, dict[str, Any]]


def log_sink(where: str) -> Opened:
    from penstock.connectors.log.sink import LogSink

    return LogSink(), {"topic": "to", "path": where, "format": "json", "key": "id", "partitions": 2}


def log_staged(sink: Any, ids: list[int], batch: Batch) -> StagedBatch:
    from penstock.connectors.log.sink import StagedRecords

    raw: list[bytes | None] = [str(n).encode() for n in ids]
    return StagedRecords(sink, raw, raw, batch)


def files_sink(where: str) -> Opened:
    from penstock.connectors.files.sink import FilesSink

    return FilesSink(), {"path": where, "format": "json"}


def files_staged(sink: Any, ids: list[int], batch: Batch) -> StagedBatch:
    from penstock.connectors.files.sink import StagedFiles

    aside = f"_penstock/{batch.sink}-{batch.id}-{sink.fence}-{uuid.uuid4().hex[:8]}"
    staged = StagedFiles(batch.options["path"], aside, batch, sink.fence, sink.seen)
    folder = Path(staged.aside)
    folder.mkdir(parents=True)
    (folder / "part-00000.json").write_text("".join(f"{json.dumps({'id': n})}\n" for n in ids))
    staged.rows = len(ids)
    return staged


def stored_files_staged(sink: Any, ids: list[int], batch: Batch) -> StagedBatch:
    from penstock.connectors.files.parts import WrittenFile
    from penstock.connectors.files.sink import StagedFiles
    from penstock.storage import storage_at

    aside = f"_penstock/{batch.sink}-{batch.id}-{sink.fence}-{uuid.uuid4().hex[:8]}"
    lines = "".join(f"{json.dumps({'id': n})}\n" for n in ids)
    storage_at(batch.options["path"]).write(f"{aside}/part-00000.json", lines.encode())
    staged = StagedFiles(batch.options["path"], aside, batch, sink.fence, sink.seen)
    staged.take([WrittenFile("part-00000.json", len(ids))])
    return staged


def framed(sink: SinkConnector, ids: list[int], batch: Batch) -> StagedBatch:
    import pyarrow as pa

    frame: Any = Frame(pa.record_batch({"id": pa.array(ids, pa.int64())}))
    return sink.stage(frame, batch)


def kafka_sink(where: str) -> Opened:
    from penstock.connectors.kafka.sink import KafkaSink

    servers, topic = where.split("|")
    return KafkaSink(), {"servers": servers, "client": {}, "topic": topic, "ledger": f"{topic}-ledger", "via": "python"}


def kafka_staged(sink: Any, ids: list[int], batch: Batch) -> StagedBatch:
    import pyarrow as pa

    from penstock.connectors.kafka.sink import StagedTransaction

    raw = [str(n).encode() for n in ids]
    return StagedTransaction(sink.writer.send(pa.table({"key": raw, "value": raw}), batch), len(ids))


def redis_sink(where: str) -> Opened:
    from penstock import write_redis
    from penstock.connectors.redis.sink import RedisSink

    return RedisSink(), dict(write_redis(where, "list", name="out").options)


def postgres_sink(where: str) -> Opened:
    from penstock import write_postgres
    from penstock.connectors.postgres.sink import PostgresSink

    return PostgresSink(), dict(write_postgres(where, "out").options)


Make = Callable[[str], Opened]
Stage = Callable[[Any, list[int], Batch], StagedBatch]
KINDS: dict[str, tuple[Make, Stage]] = {
    "log": (log_sink, log_staged),
    "files": (files_sink, files_staged),
    "stored files": (files_sink, stored_files_staged),
    "postgres": (postgres_sink, framed),
    "redis": (redis_sink, framed),
    "kafka": (kafka_sink, kafka_staged),
}


class Driver:
    """A driver with a sink."""

    schema = schema_of("id bigint")

    def __init__(self, kind: str | tuple[Make, Stage], where: str, first: int, cut: int) -> None:
        make, self.stage = KINDS[kind] if isinstance(kind, str) else kind
        self.sink, self.options = make(where)
        self.batch, self.next, self.cut = first, first * BEFORE, cut
        context = SinkContext("out", "flow", self.options, self.schema, LINEAGE, "exactly_once")
        self.entry = self.sink.open(context)

    def run(self) -> None:
        """Delivers all that is left."""
        passing("opened", 0)
        while self.next < RECORDS:
            self.deliver(*self._range())

    def _range(self) -> tuple[int, int]:
        """The offsets of the next batch: those of the ledger, if it holds the batch, in whole or in part."""
        if self.entry is not None and self.entry.batch == self.batch:
            begin, end = json.loads(self.entry.offsets)
            return begin, end
        return self.next, min(self.next + self.cut, RECORDS)

    def deliver(self, begin: int, end: int) -> None:
        offsets = json.dumps([begin, end])
        batch = Batch(self.batch, "out", self.options, LINEAGE, "exactly_once", offsets, offsets)
        self.commit(list(range(begin, end)), batch)
        self.batch, self.next = self.batch + 1, end

    def commit(self, ids: list[int], batch: Batch) -> None:
        staged = self.stage(self.sink, ids, batch)
        passing("staged", batch.id)
        passing("before sink commit", batch.id)
        staged.commit()
        passing("sink written", batch.id)

    def close(self) -> None:
        self.sink.close()


def drive(make: Callable[[str, str, int, int], Driver], kind: str, where: str, first: str, cut: str) -> None:
    driver = None
    try:
        driver = make(kind, where, int(first), int(cut))
        driver.run()
    except DeliveryError as error:
        print("fenced" if "another driver of this flow has taken over" in str(error) else str(error), flush=True)
    else:
        print("done", flush=True)
    finally:
        if driver is not None:
            driver.close()


if __name__ == "__main__":
    drive(Driver, *sys.argv[1:])
