"""Reliable spouts in a local run: they emit, a batch ends, and they hear what became of their messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from penstock.errors import Impossible, StepError
from penstock.graph.endpoints.parsing import keeps_malformed
from penstock.graph.nodes import Source
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.reading import MalformedRecord
from penstock.kernels.topology.pending import Outcome, Settlement
from penstock.kernels.topology.spout import SpoutTasks
from penstock.kernels.topology.spout_records import SpoutRecord
from penstock.local.run import LocalRun

ROUNDS = 10_000
"""How often spouts may emit again after a failure."""
PIECE = 10_000


class SpoutHost:
    """The tasks of one reliable spout, and the run into which they emit."""

    def __init__(self, node: Source, *, ends: bool = True) -> None:
        self.node, self.ends = node, ends
        self.outcomes: list[Outcome] = []
        try:
            self.tasks = SpoutTasks(node, keeps_malformed=keeps_malformed(node))
        except RecordFailed as failed:
            raise StepError(failed.failure("the spout itself")) from failed.error
        self.tasks.at_once = self.outcomes.append

    def emit(self, run: LocalRun) -> bool:
        """Has the spout emit what it may; false when there was nothing."""
        self.expire(run)
        try:
            records = self.tasks.drained() if self.ends else self._pulled()
            some = False
            while piece := list(islice(records, PIECE)):
                self.tasks.taken_messages(run.batches)
                run.push(self.node.name, *piece)
                self.tasks.ack_set_aside()
                some = True
        except RecordFailed as failed:
            raise StepError(failed.failure("the spout itself")) from failed.error
        return some

    def _pulled(self) -> Iterator[SpoutRecord | MalformedRecord]:
        """What the tasks have just now: each is asked until all say that there is nothing."""
        silent = 0
        while silent <= len(self.tasks.waiting) and (records := self.tasks.pull()) is not None:
            yield from records
            silent = 0 if records else silent + 1

    def settle(self, run: LocalRun) -> Outcome:
        """Tells the spout what the committed batches have decided."""
        ledger = run.committed.ledger
        given = Settlement(range(run.batches), ledger.open.keys(), tuple(ledger.failed), run.renewed)
        return self._noted(self.tasks.settle(given), run)

    def expire(self, run: LocalRun) -> Outcome:
        """Fails messages whose time is over."""
        return self._noted(Outcome([], self.tasks.expire(run.clock())), run)

    def _noted(self, made: Outcome, run: LocalRun) -> Outcome:
        run.committed.ledger.forget(m.root for m in (*made.acked, *made.failed))
        self.outcomes.append(made)
        return made


def run_spouts(run: LocalRun, hosts: list[SpoutHost]) -> None:
    """Lets spouts emit, and batches pass, until all their messages are acked, or are held by bolts."""
    for _ in range(ROUNDS):
        emitted = [host.emit(run) for host in hosts]
        if not any(emitted):
            return
        run.barrier(waiting=True)
        for host in hosts:
            host.settle(run)
    raise Impossible(
        f"flow {run.graph.name!r}: its spouts emitted failed messages again {ROUNDS:,} times; a bolt fails them every time"
    )
