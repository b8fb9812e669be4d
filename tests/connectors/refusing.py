"""Drivers of a flow whose sink refuses rows, which become records of a topic: `python -m tests.connectors.refusing KIND WHERE FIRST CUT`.

As `drivers`, but every tenth record is refused, and a driver has notes of its own, as it has that was started from a savepoint. WHERE is that of the sink, `>`, and
a directory.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.base import Batch, Refusal, SinkContext, StagedBatch
from penstock.connectors.log.sink import LogSink, StagedRecords
from penstock.faults import passing
from penstock.graph.endpoints.basic import console
from penstock.graph.nodes import Port, Sink
from penstock.graph.schema import schema_of
from penstock.kernels.errors.guard import DeadLetter
from penstock.spark.dead_letters.row_errors import NUMBER, Refusals
from penstock.storage import LocalStorage
from tests.connectors.drivers import LINEAGE, Driver, Opened, drive, kafka_sink, postgres_sink

SCHEMA = schema_of("id bigint, n bigint")


def is_refused(n: int) -> bool:
    return n % 10 == 9


@dataclass(frozen=True)
class Frame:
    """As much of a frame as the search for refused rows uses: one task, in this process."""

    rows: pa.Table

    @property
    def columns(self) -> list[str]:
        return list(self.rows.column_names)

    def mapInArrow(self, task: Callable[[Iterable[Any]], Iterable[Any]], _: str) -> Any:  # noqa: N802 - Spark's name
        made = [tuple(row.values()) for batch in task(self.rows.to_batches()) for row in batch.to_pylist()]
        return type("Collected", (), {"collect": lambda self: made})()

    def selectExpr(self, *_: str) -> Frame:  # noqa: N802 - Spark's name
        return Frame(self.rows.append_column(NUMBER, pa.array(range(self.rows.num_rows))))

    def select(self, name: str) -> Frame:
        return Frame(self.rows.select([name]))

    def drop(self, name: str) -> Frame:
        return Frame(self.rows.drop_columns([name]))

    def where(self, text: str) -> Frame:
        verb, numbers = re.fullmatch(rf"{NUMBER} (<=|=|not in) ([(), 0-9]+)", text).groups()  # type: ignore[union-attr]
        given = {int(n) for n in re.findall(r"\d+", numbers)}
        known: dict[str, Callable[[int], bool]] = {
            "<=": lambda n: n <= max(given),
            "=": lambda n: n in given,
            "not in": lambda n: n not in given,
        }
        keeps = known[verb]
        return Frame(self.rows.filter(pa.array([keeps(n) for n in self.rows[NUMBER].to_pylist()], pa.bool_())))

    def persist(self) -> Frame:
        return self

    def unpersist(self) -> None:
        pass

    def collect(self) -> list[Any]:
        kind = type("SparkRow", (tuple,), {"__fields__": self.columns})
        return [kind(row.values()) for row in self.rows.to_pylist()]


def redis_sink(where: str) -> Opened:
    from penstock import write_redis
    from penstock.connectors.redis.sink import RedisSink

    return RedisSink(), dict(write_redis(where, "list", key="id", name="row").options)


def frame_of(ids: list[int]) -> Frame:
    return Frame(pa.table({"id": [None if is_refused(n) else n for n in ids], "n": ids}))


def redis_rows(sink: Any, ids: list[int], batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
    from penstock.connectors.redis.refusals import Limits

    staged, refused = sink._staged(frame_of(ids).selectExpr(), batch, Limits(sink.largest, tells=True))
    staged.look()
    return staged, [Refusal(at, (None, ids[at]), said) for at, said in refused.items()]


def kafka_rows(sink: Any, ids: list[int], batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
    from penstock.connectors.kafka.refusals import RefusalSearch
    from penstock.connectors.kafka.sink import StagedTransaction

    keys = [None if is_refused(n) else str(n).encode() for n in ids]
    values = pa.table({"key": keys, "value": [str(n).encode() for n in ids], NUMBER: list(range(len(ids)))})
    transaction, refused = RefusalSearch(sink.writer, batch).send(values)
    staged = StagedTransaction(transaction, transaction.rows.num_rows)
    staged.through, staged.refused = transaction.producer is None, transaction.refused
    return staged, [Refusal(at, (None, ids[at]), said) for at, said in refused.items()]


Told = Callable[[Any, list[int], Batch], tuple[StagedBatch, list[Refusal]]]
KINDS: dict[str, tuple[Callable[[str], Opened], Told | None]] = {
    "redis": (redis_sink, redis_rows),
    "kafka": (kafka_sink, kafka_rows),
    "postgres": (postgres_sink, None),
}


class RefusingDriver(Driver):
    """A driver with a sink that refuses rows, and one for the dead letters."""

    schema = SCHEMA

    def __init__(self, kind: str, where: str, first: int, cut: int) -> None:
        outside, self.folder = where.split(">")
        make, self.told = KINDS[kind]
        super().__init__((make, lambda sink, ids, batch: sink.stage(frame_of(ids), batch)), outside, first, cut)
        self.notes = LocalStorage(Path(self.folder) / f"notes-{first}")
        self.about_dead = {"topic": "dead", "path": self.folder, "format": "json", "partitions": 1}
        self.dead = LogSink()
        context = SinkContext("dead", "flow", self.about_dead, schema_of("n bigint"), LINEAGE, "exactly_once")
        found = self.dead.open(context)
        if found is not None and found.batch == self.batch:
            self.entry = found

    def commit(self, ids: list[int], batch: Batch) -> None:
        sink = Sink("out", (Port("rows"),), console())
        refusals = Refusals(sink, SCHEMA, lambda frame: self.sink.stage(frame, batch), self.notes, str(batch.id))
        staged, letters = self._found(refusals, ids, batch)
        about = Batch(batch.id, "dead", self.about_dead, LINEAGE, "exactly_once", batch.fingerprint, batch.offsets)
        values: list[bytes | None] = [str(_number_of(each)).encode() for each in letters]
        dead = StagedRecords(self.dead, [None] * len(values), values, about)
        passing("staged", batch.id)
        staged.commit()
        passing("sink written", batch.id)
        dead.commit()
        passing("dead letters written", batch.id)

    def _found(self, refusals: Refusals, ids: list[int], batch: Batch) -> tuple[StagedBatch, list[DeadLetter]]:
        if self.told is None:
            frame: Any = frame_of(ids)
            return refusals.staged(frame)
        made, refused = self.told(self.sink, ids, batch)
        return made, refusals.of_rows(made, refused)

    def close(self) -> None:
        self.dead.close()
        super().close()


def _number_of(letter: DeadLetter) -> int:
    found = json.loads(letter.payload)["record"]["n"]
    return int(found)


if __name__ == "__main__":
    drive(RefusingDriver, *sys.argv[1:])
