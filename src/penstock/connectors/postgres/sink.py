"""PostgreSQL as a sink: tasks copy into a staging table, and one transaction moves the batch and notes it in the ledger."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import REFUSED, Batch, SinkContext, StagedBatch
from penstock.connectors.delivery import Entry, LedgerSink
from penstock.connectors.postgres.ledger import WORKSPACE, Ledger
from penstock.connectors.postgres.table import Layout, Moves, layout_of
from penstock.connectors.postgres.types import Encoder
from penstock.connectors.postgres.wire import Address, Link, row_errors
from penstock.errors import DeliveryError, RunError
from penstock.faults import passing
from penstock.graph.endpoints.delivery import EXACTLY_ONCE
from penstock.graph.endpoints.sniff_postgres import driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.connectors.postgres.wire import Connection

BOUNDED = "bounded"
"""The lineage of bounded runs, which have no replays and so need no ledger."""
REPORT = pa.schema([("attempt", pa.int64()), ("rows", pa.int64()), ("crc", pa.int64()), ("refusal", pa.string())])


class RowRefused(RunError):
    """The server refuses a row. Told by a task as its result: a task that fails costs Spark many seconds."""


class PostgresSink(LedgerSink):
    """A table. Readers see complete batches, each once, and need to know nothing."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self.context: SinkContext | None = None
        self.layout: Layout | None = None
        self.ledger = Ledger()

    def open(self, context: SinkContext) -> Entry | None:
        """Checks the table, takes over from older drivers, removes what they have left."""
        self.close()
        self.context, self.ledger = context, Ledger(context.options.get("workspace") or WORKSPACE)
        self.link = Link(Address.of(context.options), f"sink {context.sink!r}")
        with self.link.talking("opening the table") as connection:
            self.layout = layout_of(context, connection)
            self.ledger.make(connection)
            if context.lineage == BOUNDED:
                return None
            if context.delivery == EXACTLY_ONCE:
                _check_durable(context, connection)
            self.fence, last = self.ledger.take_over(context, connection)
        self.clean()
        return last if context.delivery == EXACTLY_ONCE else None

    def clean(self) -> None:
        """Removes what attempts that never committed have left."""
        context, link, _ = self._opened()
        with link.talking("removing what older drivers staged") as connection:
            self.ledger.clean(context, self.fence, connection)

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Has every task copy its rows into a fresh staging table."""
        context, link, layout = self._opened()
        name = self.ledger.stage_name(context, self.fence, uuid.uuid4().hex[:12])
        moves = Moves(layout, self.ledger.stage(name))
        staged = StagedCopy(self, link, moves, batch)
        with link.talking("staging") as connection:
            text = f"{moves.create().as_string(connection)}; {self.ledger.note(name, context).as_string(connection)}"
            connection.execute(text.encode())
        try:
            copy = CopyTask(link.address, link.who, layout, moves.copy().as_string(link.connection))
            shape = "attempt bigint, rows bigint, crc bigint, refusal string"
            staged.reports = [Report(*row) for row in frame.mapInArrow(copy, shape).collect()]
            _check_refusals(staged.reports)
        except BaseException:
            staged.abort()
            raise
        staged.rows = sum(r.rows for r in staged.reports)
        return staged

    def _opened(self) -> tuple[SinkContext, Link, Layout]:
        assert self.context is not None, "a sink is opened before its first batch"
        assert self.link is not None
        assert self.layout is not None
        return self.context, self.link, self.layout

    def interrupt(self) -> bool:
        """Ends the driver's connection; the ledger tells later what became of a commit."""
        return self.link is not None and self.link.interrupt()

    def close(self) -> None:
        """Lets go of the connection."""
        if self.link is not None:
            self.link.close()


def _check_durable(context: SinkContext, connection: Connection) -> None:
    row = connection.execute("select current_setting('fsync')").fetchone()
    if row and row[0] == "off":
        raise DeliveryError(
            f"sink {context.sink!r}: the server runs with fsync = off, so it may forget what it has confirmed. Turn it on, or take "
            f"delivery='at_least_once'"
        )


@dataclass(frozen=True)
class Report:
    """What a task says of the rows it copied; the attempt tells them from those of a task that ran twice."""

    attempt: int
    rows: int
    crc: int
    refusal: str | None = None


def _check_refusals(reports: list[Report]) -> None:
    for report in reports:
        if report.refusal:
            raise RowRefused(report.refusal)


@dataclass(frozen=True)
class CopyTask:
    """Copies the rows of a task into the staging table, in a transaction of its own. Runs in a worker."""

    address: Address
    who: str
    layout: Layout
    statement: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes all batches, and returns one row that tells of them."""
        from pyspark import TaskContext

        task = TaskContext.get()
        attempt = task.taskAttemptId() if task is not None else 0
        try:
            report = self.copy(batches, attempt)
        except RowRefused as refused:
            report = Report(attempt, 0, 0, str(refused))
        if report.rows or report.refusal:
            values = [[report.attempt], [report.rows], [report.crc], [report.refusal]]
            yield pa.record_batch(values, schema=REPORT)

    def copy(self, batches: Iterable[pa.RecordBatch], attempt: int) -> Report:
        """Copies batches under an attempt's number."""
        encoder = Encoder([(c.name, c.type) for c in self.layout.staged])
        first, rows, crc = attempt << 32, 0, 0
        filled = (b for b in batches if b.num_rows)
        one = next(filled, None)
        if one is None:
            return Report(attempt, 0, 0)
        connection = self.address.kept(self.who)
        try:
            with connection.transaction(), connection.cursor().copy(self.statement.encode()) as copy:
                for batch in _from(one, filled):
                    data = encoder.encode(batch, first + rows)
                    copy.write(data)
                    rows, crc = rows + batch.num_rows, zlib.crc32(data, crc)
        except row_errors() as error:
            raise RowRefused(f"{self.who} {REFUSED} {self.address.clean(error).strip()}") from None
        except driver().Error as error:
            raise RunError(f"{self.who}: copying failed: {self.address.clean(error).strip()}") from None
        return Report(attempt, rows, crc)


def _from(first: pa.RecordBatch, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


class StagedCopy(StagedBatch):
    """Rows in a staging table."""

    def __init__(self, sink: PostgresSink, link: Link, moves: Moves, batch: Batch) -> None:
        self.sink, self.link, self.moves, self.batch = sink, link, moves, batch
        self.reports: list[Report] = []
        self.tried = False

    def commit(self) -> None:
        """Moves the rows and notes the batch, in one transaction.

        If the connection is lost, nobody knows whether the server has committed. Then the work is tried again on a new connection: the ledger's
        row waits for the old transaction to end, and tells.
        """
        try:
            self.link.until_answered(self._commit_on)
        except driver().Error as error:
            text = self.link.address.clean(error).strip()
            raise RunError(f"sink {self.batch.sink!r}: batch {self.batch.id} could not be written: {text}") from None
        passing("after sink commit", self.batch.id)

    def rehearse(self) -> str:
        """Moves the rows and rolls back; what the server says against them."""
        try:
            self.link.until_answered(self._rehearse_on)
        except row_errors() as error:
            return str(self.link.address.clean(error)).strip()
        except driver().Error as error:
            text = self.link.address.clean(error).strip()
            raise RunError(f"sink {self.batch.sink!r}: batch {self.batch.id} could not be tried: {text}") from None
        return ""

    def _rehearse_on(self, connection: Connection) -> None:
        with connection.transaction(force_rollback=True):
            connection.execute("set local lock_timeout = '60s'; set constraints all immediate")
            if self._exactly and (entry := self.sink.ledger.through(self.batch, self.sink.fence, connection)):
                self.through, self.refused = True, entry.refused
                return
            self._move(connection)

    def _commit_on(self, connection: Connection) -> None:
        again, self.tried = self.tried, True
        with connection.transaction():
            connection.execute(
                "set local lock_timeout = '60s'; set local idle_in_transaction_session_timeout = '60s'; "
                "select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'"
            )
            if self._exactly and self.sink.ledger.through(self.batch, self.sink.fence, connection):
                connection.execute(self.moves.drop())
                return
            if again and not self._exactly and self._gone(connection):
                return
            self._move(connection)
            if self._exactly:
                crc = 0
                for report in self.reports:
                    crc ^= report.crc
                entry = Entry.of(self.batch, self.sink.fence, self.rows or 0, crc, self.refused)
                self.sink.ledger.write(entry, self.batch, connection)

    @property
    def _exactly(self) -> bool:
        return self.batch.delivery == EXACTLY_ONCE and self.batch.lineage != BOUNDED

    def _gone(self, connection: Connection) -> bool:
        """Whether the staging table is gone: it goes in the transaction that shows the batch."""
        row = connection.execute("select to_regclass(%s) is null", [self.moves.stage.as_string(connection)]).fetchone()
        return bool(row and row[0])

    def _move(self, connection: Connection) -> None:
        attempts = [r.attempt for r in self.reports]
        if attempts:
            self._check(attempts, connection)
            for statement in self.moves.moves():
                done = connection.execute(statement, [attempts])
            if self.moves.layout.mode == "append":
                self._count(done.rowcount)
        connection.execute(self.moves.drop())

    def _check(self, attempts: list[int], connection: Connection) -> None:
        layout = self.moves.layout
        if layout.mode == "append":
            return
        row = connection.execute(self.moves.count(), [attempts]).fetchone()
        self._count(int(row[0]) if row else 0)
        odd = connection.execute(self.moves.unknown(), [attempts]).fetchone() if layout.op else None
        if odd:
            raise RunError(
                f"sink {self.batch.sink!r}: {layout.op} says {odd[0]!r} in batch {self.batch.id}; a change is insert, update or delete"
            )

    def _count(self, found: int) -> None:
        if found != self.rows:
            raise RunError(
                f"sink {self.batch.sink!r}: {self.rows} rows of batch {self.batch.id} were staged, and {found} are there. The server may "
                f"have restarted in between; nothing was written, and the batch can run again"
            )

    def abort(self) -> None:
        """Removes the staging table, if the server can be reached; else the janitor will."""
        try:
            self.link.connection.execute(self.moves.drop())
        except driver().Error:
            self.link.close()
