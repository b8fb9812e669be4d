"""The sinks of a run: opened, fenced and reconciled before the first batch, then staged and committed batch by batch."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from penstock.connectors.base import Batch, Refusal, SinkConnector, SinkContext, StagedBatch
from penstock.connectors.delivery import Entry, LedgerSink
from penstock.connectors.registry import sink_connector
from penstock.errors import DeliveryError, Impossible, RunError
from penstock.faults import passing
from penstock.graph.endpoints.delivery import AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE
from penstock.graph.graph import Graph
from penstock.graph.nodes import Sink
from penstock.graph.nodes.changes import OPERATION
from penstock.graph.nodes.policy import FAIL
from penstock.live.answering import NotAnswered, SinkWatch
from penstock.location import Address
from penstock.spark.checkpoint.offsets import OffsetLog
from penstock.storage import Conflict, Storage, Version, exists, open_storage, read_if_present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


log = logging.getLogger("penstock")
T = TypeVar("T")
TRIES = 3
"""How often a sink that does not answer is asked."""


@dataclass
class Sinks:
    """The connectors of a flow's sinks, each with the delivery it holds.

    `claims` is where at-most-once sinks note a batch before they write it; None in a bounded run, which has no replays.
    """

    graph: Graph
    lineage: str
    claims: Address | None = None
    offsets: OffsetLog | None = None
    connectors: dict[str, SinkConnector] = field(default_factory=dict)
    contexts: dict[str, SinkContext] = field(default_factory=dict)
    watch: SinkWatch = field(default_factory=SinkWatch)
    _noted: set[str] = field(default_factory=set)
    _claims: dict[str, tuple[int, Version | None]] = field(default_factory=dict)
    """The last batch that each at-most-once sink has claimed, and the version of the note."""
    _batch: tuple[int, str, str] = (-1, "", "")

    def __post_init__(self) -> None:
        for sink in self.graph.sinks:
            self.connectors[sink.name] = sink_connector(sink.name, sink.endpoint)
            self.contexts[sink.name] = self._context(sink)
            self._check(sink)

    def _context(self, sink: Sink) -> SinkContext:
        output = self.graph.output(sink.inputs[0])
        options = dict(sink.endpoint.options)
        key = output.updates if sink.key is None else sink.key
        if OPERATION in output.schema:
            options |= {"mode": "changelog", "op": OPERATION, "key": key}
        delivery = sink.delivery or sink.endpoint.capabilities.deliveries[0]
        return SinkContext(sink.name, self.graph.name, options, output.schema, self.lineage, delivery, key)

    def _check(self, sink: Sink) -> None:
        connector, context = self.connectors[sink.name], self.contexts[sink.name]
        able = sink.endpoint.capabilities
        if not able.holds(context.delivery):
            raise Impossible(
                f"sink {sink.name!r} ({sink.line}) cannot hold delivery={context.delivery!r}; it holds {' and '.join(able.deliveries)}"
            )
        goes_on = sink.on_error is not None and sink.on_error.action != FAIL
        if goes_on and able.row_errors == "staged" and context.delivery == AT_MOST_ONCE:
            raise Impossible(
                f"sink {sink.name!r} ({sink.line}) finds rows that are refused by writing a batch before it is noted, so with on_error it holds "
                f"{EXACTLY_ONCE} and {AT_LEAST_ONCE}; {AT_MOST_ONCE!r} was asked for"
            )
        if goes_on and able.row_errors == "reported" and context.delivery != AT_LEAST_ONCE:
            raise Impossible(
                f"sink {sink.name!r} ({sink.line}) finds rows that are refused by delivering them, so with on_error it holds "
                f"delivery='at_least_once'; {context.delivery!r} was asked for"
            )
        why = connector.refuses(context)
        if why:
            raise Impossible(f"sink {sink.name!r} ({sink.line}) cannot hold delivery={context.delivery!r}: {why}")

    def open(self) -> dict[str, Entry]:
        """Opens every sink; returns the last ledger entry of those that have one and must deliver exactly once."""
        found: dict[str, Entry] = {}
        for sink in self.graph.sinks:
            context = self.contexts[sink.name]
            with self.watch.watching(f"{_named(sink)}, opening", self.connectors[sink.name].interrupt):
                entry = _opened(sink, self.connectors[sink.name], context)
            if context.delivery == EXACTLY_ONCE and isinstance(self.connectors[sink.name], LedgerSink):
                self._check_ledger(sink.name, entry)
                found |= {sink.name: entry} if entry is not None else {}
        return found

    def _check_ledger(self, sink: str, entry: Entry | None) -> None:
        """A ledger that was there must be there again: without it nobody knows what has arrived."""
        if entry is None and self.claims is not None and exists(self._ledgers(), sink):
            raise DeliveryError(
                f"sink {sink!r} has delivered batches of this flow, but its ledger is gone. Restore the sink, or start afresh with "
                f"--fresh and an empty sink"
            )

    def _note_ledger(self, sink: str) -> None:
        if self.claims is None or sink in self._noted or not isinstance(self.connectors[sink], LedgerSink):
            return
        self._noted.add(sink)
        self._ledgers().put_if_absent(sink, b"")

    def _ledgers(self) -> Storage:
        """Marks of the sinks that have a ledger."""
        assert self.claims is not None
        return open_storage(self.claims.parent / "ledgers")

    def stage(self, sink: Sink, frame: DataFrame, number: int) -> StagedBatch:
        """Does all of a batch that can fail."""
        context = self.contexts[sink.name]
        if context.delivery == AT_MOST_ONCE and self._claimed(sink.name) >= number:
            log.warning("batch %d runs again; sink %r, at most once, may lack it and skips it", number, sink.name)
            frame.write.format("noop").mode("overwrite").save()
            return StagedBatch()
        connector, about = self.connectors[sink.name], self._about(sink, number)
        staged = self._answered(sink, f"staging batch {number}", lambda: connector.stage(frame, about))
        passing("staged", number)
        return staged

    def stage_rows(self, sink: Sink, frame: DataFrame, number: int) -> tuple[StagedBatch, list[Refusal]] | None:
        """Has a sink tell the rows that it refuses; None when it takes or refuses a batch as a whole."""
        connector = self.connectors[sink.name]
        if sink.endpoint.capabilities.row_errors not in ("reported", "staged"):
            return None
        doing = "delivering" if sink.endpoint.capabilities.row_errors == "reported" else "staging"
        about = self._about(sink, number)
        partial = self._answered(sink, f"{doing} batch {number}", lambda: connector.stage_rows(frame, about))
        passing("staged", number)
        return partial

    def _about(self, sink: Sink, number: int) -> Batch:
        context = self.contexts[sink.name]
        return Batch(number, sink.name, context.options, self.lineage, context.delivery, *self._prints(number))

    def _prints(self, number: int) -> tuple[str, str]:
        """The fingerprint and the text of the batch's offsets, read once for all sinks."""
        if self.offsets is None:
            return "", ""
        if self._batch[0] != number:
            self._batch = (number, self.offsets.fingerprint(number), self.offsets.recorded(number))
        return self._batch[1:]

    def commit(self, staged: dict[str, StagedBatch], number: int) -> None:
        """Shows the batch, sink by sink."""
        for sink in self.graph.sinks:
            if self.contexts[sink.name].delivery == AT_MOST_ONCE:
                self._claim(sink.name, number)
            passing("before sink commit", number)
            self._answered(sink, f"committing batch {number}", staged[sink.name].commit)
            if self.contexts[sink.name].delivery == EXACTLY_ONCE:
                self._note_ledger(sink.name)
            passing("sink written", number)

    def _answered(self, sink: Sink, doing: str, work: Callable[[], T]) -> T:
        """Has a sink do something, under watch. One that does not answer is broken off, and asked again where that can do no harm."""
        for left in reversed(range(TRIES)):
            try:
                with self.watch.watching(f"{_named(sink)}, {doing}", self.connectors[sink.name].interrupt):
                    return work()
            except NotAnswered as error:
                if not left or not self._may_repeat(sink.name):
                    raise
                log.warning("%s; trying again", error)
        raise AssertionError("the last try returns or raises")

    def _may_repeat(self, sink: str) -> bool:
        """Whether a ledger tells if a batch has arrived, or one that arrives twice is allowed."""
        context = self.contexts[sink]
        if context.delivery == EXACTLY_ONCE:
            return self.claims is not None and isinstance(self.connectors[sink], LedgerSink)
        return context.delivery == AT_LEAST_ONCE

    def _claimed(self, sink: str) -> int:
        """The last batch that a sink has begun to show; read once, since whoever changes it otherwise is found out by `_claim`."""
        if self.claims is None:
            return -1
        if sink not in self._claims:
            found = read_if_present(open_storage(self.claims), sink)
            self._claims[sink] = (-1, None) if found is None else (int(found[0]), found[1])
        return self._claims[sink][0]

    def _claim(self, sink: str, number: int) -> None:
        """Notes that a batch is about to be shown, in one step with the check that nobody has noted it: of two drivers one writes it.

        Raises:
            DeliveryError: another driver has claimed the batch.
        """
        if self.claims is None:
            return
        self._claimed(sink)
        try:
            version = open_storage(self.claims).compare_and_swap(sink, self._claims[sink][1], str(number).encode())
        except Conflict:
            raise DeliveryError(
                f"sink {sink!r}, at most once: another driver has begun to write batch {number} or a later one; this one does not write it again"
            ) from None
        self._claims[sink] = (number, version)

    def close(self) -> None:
        """Closes the connectors."""
        with contextlib.ExitStack() as closing:
            for connector in self.connectors.values():
                closing.callback(connector.close)


def _opened(sink: Sink, connector: SinkConnector, context: SinkContext) -> Entry | None:
    """Opens a sink; an error of the system names the sink and the file that it is about."""
    try:
        return connector.open(context)
    except OSError as error:
        about = f" ({error.filename})" if error.filename else ""
        raise RunError(f"{_named(sink)} cannot be opened: {error.strerror or error}{about}") from None


def _named(sink: Sink) -> str:
    return f"sink {sink.name!r} ({sink.endpoint.kind})"


def reconcile(entries: dict[str, Entry], log: OffsetLog, versions: list[int]) -> Iterator[str]:
    """Brings Spark's checkpoint in line with the ledgers, which are the truth; says what it did.

    A ledger may be ahead (the offsets of its batch were lost with the power) or behind (the sink was restored from a backup).
    """
    if not entries:
        return
    ahead = max(entries.items(), key=lambda e: e[1].batch)
    if ahead[1].batch > log.begun():
        yield _restore(*ahead, log)
    behind = min(entries.items(), key=lambda e: e[1].finished)
    if behind[1].finished < log.last():
        yield _rewind(*behind, entries, log, versions)


def _restore(sink: str, entry: Entry, log: OffsetLog) -> str:
    if entry.batch != log.begun() + 1:
        raise DeliveryError(
            f"sink {sink!r} holds batch {entry.batch}, but the checkpoint knows only of batch {log.begun()}. It is older than "
            f"the sink; restore the newer one, or start afresh with --fresh and an empty sink"
        )
    log.restore(entry.batch, entry.offsets)
    return f"the offsets of batch {entry.batch} were lost; written again from the ledger of sink {sink!r}"


def _rewind(sink: str, entry: Entry, entries: dict[str, Entry], log: OffsetLog, versions: list[int]) -> str:
    where = f"sink {sink!r} holds everything up to batch {entry.finished}, the checkpoint says {log.last()}"
    others = [name for name, e in entries.items() if e.finished > entry.finished + 1]
    if others:
        raise DeliveryError(
            f"{where}, and sink {others[0]!r} is further on. Restore the sinks to one state, or start afresh"
        )
    if versions and entry.finished >= 0 and entry.finished not in versions:
        raise DeliveryError(
            f"{where}; the state of batch {entry.finished} is not kept any more (there are {versions[0]} to {versions[-1]}). Restore the "
            f"sink from a newer backup, or start afresh"
        )
    if not log.text(entry.finished + 1):
        raise DeliveryError(
            f"{where}; Spark does not keep the offsets of batch {entry.finished + 1} any more. Start afresh"
        )
    log.rewind(entry.finished)
    return f"{where}; the checkpoint goes back to batch {entry.finished}"
