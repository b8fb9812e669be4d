"""Rows on their way to the driver: the first can be used while the last are still computed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ID = "__penstock_id"
"""The column by which rows are put in order, Spark's own growing ids; nobody else sees it."""
PART = 33
"""The bits of an id below the number of its part."""


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
        # The job is begun in this thread: it must belong to the query that asks for it, which stops it when it stops.
        serving = frame.selectExpr("*", f"monotonically_increasing_id() as {ID}")._jdf.collectAsArrowToPython()
        threading.Thread(target=self._receive, args=(serving,), daemon=True, name="penstock-arriving").start()

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

    def settle(self) -> None:
        """Waits for the end of the job, however it ends: for those who do not want its rows any more."""
        with suppress(Exception):
            for _ in self:
                pass

    def _receive(self, serving: Any) -> None:
        try:
            for batch in received(serving):
                with self._more:
                    self._order.take(*_ids_of(batch))
                    self._more.notify_all()
        except BaseException as error:
            self._failure = error
        with self._more:
            self._order.end()
            self._done = True
            self._more.notify_all()


class InOrder:
    """Puts batches in the order of their ids. Parts come in any order, the batches of one part behind each other.

    The ids of a part begin at its number times 2^33 and have no gaps. Spark may number a small table in one go, as one part, and
    still send it in several.
    """

    def __init__(self) -> None:
        self.ready: list[Any] = []
        self._held: dict[int, tuple[int, Any]] = {}
        self._turn, self._last = 0, -1

    def take(self, first: int, behind: int, batch: Any) -> None:
        """A batch of the ids from one up to another, which is not among them."""
        self._held[first] = (behind, batch)
        self._last = first >> PART
        while self._turn in self._held or self._is_through():
            if self._turn not in self._held:
                self._turn = ((self._turn >> PART) + 1) << PART
                continue
            self._turn, given = self._held.pop(self._turn)
            self.ready.append(given)

    def _is_through(self) -> bool:
        """Whether the part at hand is whole: begun, and another one has come behind it."""
        part = self._turn >> PART
        return self._turn != part << PART and self._last != part

    def end(self) -> None:
        """Nothing more comes: parts that are missing are empty."""
        self.ready += [self._held[first][1] for first in sorted(self._held)]
        self._held = {}


def _ids_of(batch: Any) -> tuple[int, int, Any]:
    """The first id of a batch, the one behind its last, and the batch without them."""
    last = batch.num_columns - 1
    first = batch.column(last)[0].as_py()
    return first, first + batch.num_rows, batch.remove_column(last)


def received(serving: Any) -> Iterator[Any]:
    """The batches of a job in the order in which Spark sends them; `serving` is where it does."""
    import pyarrow as pa
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.util import local_connect_and_auth

    port, secret, server = serving
    try:
        file, connection = local_connect_and_auth(port, secret)
        connection.settimeout(None)
        with closing(connection), closing(file):
            yield from (batch for batch in pa.ipc.open_stream(file) if batch.num_rows)
            file.read()  # the order of the batches, which the ids tell as well
    finally:
        with unwrap_spark_exception():
            server.getResult()
