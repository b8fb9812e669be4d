"""Rows on their way to the driver: the first can be used while the last are still computed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PART = "__penstock_part"
"""The column that says which of Spark's tasks has made a row; nobody else sees it."""


class Arriving:
    """The rows of a frame as Arrow batches, in the order of `frame.toArrow()`.

    Spark sends what a task has made when that task is done, whichever comes first. An iterator gives a batch as soon as all before
    it are there, and can be taken again from the start. Whoever is through has seen the whole job end: what fails in a task is
    raised there.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._order = InOrder()
        self._done = False
        self._failure: BaseException | None = None
        self._more = threading.Condition()
        marked = frame.selectExpr("*", f"spark_partition_id() as {PART}")
        threading.Thread(target=self._receive, args=(marked,), daemon=True, name="penstock-arriving").start()

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while fresh := self._after(at):
            yield from fresh
            at += len(fresh)
        if self._failure is not None:
            raise self._failure

    def _after(self, at: int) -> list[Any]:
        """The batches behind the first so many; waits for at least one, and gives none at the end."""
        with self._more:
            self._more.wait_for(lambda: len(self._order.ready) > at or self._done)
            return self._order.ready[at:]

    def _receive(self, frame: DataFrame) -> None:
        try:
            for batch in received(frame):
                with self._more:
                    self._order.take(*_part_of(batch))
                    self._more.notify_all()
        except BaseException as error:
            self._failure = error
        with self._more:
            self._order.end()
            self._done = True
            self._more.notify_all()


class InOrder:
    """Puts batches in the order of their parts. Parts come in any order, the batches of one part behind each other."""

    def __init__(self) -> None:
        self.ready: list[Any] = []
        self._held: dict[int, list[Any]] = {}
        self._turn, self._last = 0, -1

    def take(self, part: int, batch: Any) -> None:
        """A batch; that it is of another part than the one before says that the other is whole."""
        if part != self._last and self._last == self._turn:
            self._turn += 1
            while self._turn in self._held:
                self.ready += self._held.pop(self._turn)
                self._turn += 1
        self._last = part
        if part == self._turn:
            self.ready.append(batch)
        else:
            self._held.setdefault(part, []).append(batch)

    def end(self) -> None:
        """Nothing more comes: parts that are missing are empty."""
        for part in sorted(self._held):
            self.ready += self._held[part]
        self._held = {}


def _part_of(batch: Any) -> tuple[int, Any]:
    """The part that a batch is of, and the batch without the column that says so."""
    last = batch.num_columns - 1
    return batch.column(last)[0].as_py(), batch.remove_column(last)


def received(frame: DataFrame) -> Iterator[Any]:
    """The batches of a frame in the order in which Spark sends them."""
    import pyarrow as pa
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.util import local_connect_and_auth

    port, secret, server = frame._jdf.collectAsArrowToPython()
    try:
        file, connection = local_connect_and_auth(port, secret)
        connection.settimeout(None)
        with closing(connection), closing(file):
            yield from (batch for batch in pa.ipc.open_stream(file) if batch.num_rows)
    finally:
        with unwrap_spark_exception():
            server.getResult()
