"""Runs one batch of a plan: source frames in, sinks written, state version published."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.compiler.counts import complete, halves_of
from penstock.compiler.plan import Plan
from penstock.connectors.base import Batch, SinkConnector, SourceContext, StagedBatch
from penstock.connectors.files.disk import address_of_path
from penstock.connectors.registry import source_connector
from penstock.errors import RunError
from penstock.faults import passing
from penstock.graph.nodes import DEAD, Bolt, DeadLetters, Endpoint, Node, Sink
from penstock.graph.nodes.policy import FAIL, SKIP
from penstock.graph.state.key_groups import KEY_GROUPS
from penstock.graph.state.times import Wakes
from penstock.kernels.counts import PassCounts
from penstock.kernels.errors.dead_letters import dead_letter_rows
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.joins.refresh import Freshness
from penstock.kernels.topology.pending import merged
from penstock.kernels.topology.task_reports import log_errors
from penstock.live.ack_log import AckLog
from penstock.live.dead_letters.replay import Replayed, Replays
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from penstock.live.report import BatchReport, by_component
from penstock.live.sampling import SAMPLER
from penstock.live.timekeeper import RunTime
from penstock.location import Address
from penstock.spark.batch.result import BatchInput, BatchResult, Phases
from penstock.spark.batch.samples import native_samples
from penstock.spark.batch.sinks import Sinks
from penstock.spark.dead_letters.malformed import MOST_DEAD_LETTERS
from penstock.spark.dead_letters.row_errors import Refusals
from penstock.spark.jvm.reach import runs_here
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.lower import lower
from penstock.spark.lower.time import observed
from penstock.spark.tasks.counting import CountsParam
from penstock.spark.tasks.pack import Packer
from penstock.state.store import StateSize, StateStore
from penstock.storage import open_storage

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession


log = logging.getLogger("penstock")


BOUNDED = "bounded"
"""The lineage that all bounded runs share."""


@dataclass(frozen=True)
class RunFolders:
    """Where a run keeps what outlives it, and where it works.

    Attributes:
        kept: the checkpoint.
        work: a directory of this machine, which Spark reads and writes; the checkpoint itself, where that is one.
        epoch: the epoch in which the run writes to the checkpoint; 0 where no other can take over.
        is_apart: tasks do not see `work`.
    """

    kept: Address
    work: Path
    epoch: int = 0
    is_apart: bool = False


@dataclass
class BatchRunner:
    """What stays the same from batch to batch."""

    plan: Plan
    packer: Packer
    tasks: int
    live: bool
    at: RunFolders
    lineage: str
    time: RunTime
    sinks: Sinks
    store: StateStore | None = None
    loops: dict[str, SinkConnector] = field(default_factory=dict)
    groups: int = KEY_GROUPS
    """The number of key groups."""
    acks: AckLog | None = None
    """What is known of the messages of spouts; None where no spout is reliable."""
    _tables: dict[str, DataFrame] = field(default_factory=dict)
    _fresh: dict[str, Freshness] = field(default_factory=dict)
    _counts: Accumulator[PassCounts] | None = None
    _claimed: int | None = None
    """The batch that was run last."""

    def run(self, spark: SparkSession, given: BatchInput) -> BatchResult:
        """Runs one batch: all that it writes is committed when this returns."""
        phases, batch = Phases(), given.batch
        at = self._lowering(spark, given)
        at.counts.value = PassCounts(dead_letters=list(given.dead_letters))
        staged: dict[str, StagedBatch] = {}
        try:
            with phases.timed("plan"):
                at = replace(at, states=self._states(batch, given.base))
                lower(at)
                self._give_back(batch, at.replays)
            with phases.timed("compute"):
                self._stage(at, batch, staged, given.times.now)
                if at.looks.streams:
                    at.counts.value.samples |= native_samples(at)
                passing("state staged", batch)
                if self.acks is not None:
                    self.acks.stage(batch, given.base, merged(at.counts.value.acks))
            with phases.timed("state"):
                bad, wakes = self._publish(batch, at)
                passing("manifest published", batch)
            with phases.timed("sinks"):
                self.sinks.commit(staged, batch)
                for own in (*self.loops, DEAD_LETTERS):
                    if own in staged:
                        staged[own].commit()
        except BaseException:
            _abort(staged)
            raise
        finally:
            at.release()
        if self.acks is not None:
            self.acks.commit(batch)
        for (step, task), errors in at.counts.value.bolt_errors.items():
            log_errors("bolt", step, task, errors)
        SAMPLER.show(batch, at.counts.value)
        return BatchResult(self._report(batch, at.counts.value, staged, bad, phases.seconds), wakes)

    def _lowering(self, spark: SparkSession, given: BatchInput) -> Lowering:
        return Lowering(
            spark,
            self.plan,
            self.packer,
            self.tasks,
            self.live,
            self._counter(spark),
            partial(self._table, given.times.now),
            given.union,
            self._claim(given.batch),
            times=self.time.times(given.times),
            frames=dict(given.frames),
            reread=given.reread,
            groups=self.groups,
            batch=given.batch,
            looks=SAMPLER.wanted(),
            blocks_in=self._block_folder(spark),
        )

    def _block_folder(self, spark: SparkSession) -> str:
        """A folder for the blocks of a batch of a bounded run, whose directory goes away in any case; none where tasks run elsewhere, or no bolt reads a bolt."""
        bolts = [n for n in self.plan.graph.nodes if isinstance(n, Bolt)]
        if len(bolts) < 2 or self.at.kept != self.at.work or self.lineage != BOUNDED or not runs_here(spark):
            return ""
        return tempfile.mkdtemp(prefix="blocks-", dir=self.at.work)

    def _claim(self, batch: int) -> Replayed:
        """What a batch replays. Only the first batch of a run, and one that is tried again, can have claimed something before."""
        again, self._claimed = self._claimed in (None, batch), batch
        return self.replays.claim(batch, again=again)

    @property
    def replays(self) -> Replays:
        """The requests to replay dead letters."""
        return Replays(self.at.kept / "replay")

    def _give_back(self, batch: int, left: Replayed) -> None:
        """Dead letters for which there is no step: they count as not replayed."""
        for (step, _), rows in left.items():
            log.warning(
                "%d dead letters were not replayed: no step %r runs; they stay among the dead letters", len(rows), step
            )
        if left:
            self.replays.give_back(batch, {step for step, _ in left})

    def attempt(self, spark: SparkSession, given: BatchInput) -> Exception | None:
        """Tries a batch, and shows and keeps nothing; returns what went wrong, or None."""
        at = self._lowering(spark, given)
        try:
            at = replace(at, states=self._states(given.batch, given.base))
            lower(at)
            for sink in self.plan.graph.sinks:
                if sink.inputs[0] in at.frames:
                    at.input(sink).write.format("noop").mode("overwrite").save()
        except Exception as error:
            return error
        finally:
            at.release()
        return None

    def _counter(self, spark: SparkSession) -> Accumulator[PassCounts]:
        """One accumulator for the whole run, since Spark never forgets one; each batch begins with nothing in it."""
        if self._counts is None:
            self._counts = spark.sparkContext.accumulator(PassCounts(), CountsParam())
        self._counts.value = PassCounts()
        return self._counts

    def _states(self, batch: int, base: int) -> dict[str, Any]:
        if self.store is None:
            return {}
        kept = {
            store: n.parallelism or self.tasks
            for s in self.plan.stages
            if s.state
            for n in s.nodes
            for store in n.stores
        }
        return self.store.begin(batch, kept, base)

    def _publish(self, batch: int, at: Lowering) -> tuple[dict[str, int], Wakes]:
        """Makes the new state real, with the times of the batch; returns the number of bad records by step, and when steps have work."""
        found = {step: observed(observation) for step, observation in at.observed.items()}
        stored = self.time.finish(batch, {step: highs for step, (highs, _) in found.items()})
        if self.store is None:
            wakes = Wakes()
        else:
            self.store.report(at.counts.value.notes)
            wakes = self.store.publish(batch, stored)
        return {step: bad for step, (_, bad) in found.items() if bad}, wakes

    def _stage(self, at: Lowering, batch: int, staged: dict[str, StagedBatch], now: int) -> None:
        dead = [s for s in self.plan.graph.sinks if isinstance(self.plan.graph.node(s.inputs[0].step), DeadLetters)]
        for sink in (s for s in self.plan.graph.sinks if s not in dead):
            staged[sink.name] = self._stage_sink(at, sink, batch)
        for loop in self.plan.graph.loops:
            if loop.fed_by is not None:
                about = Batch(
                    batch,
                    loop.name,
                    {"path": address_of_path(self.at.work / "loops" / loop.name), "format": "parquet"},
                    self.lineage,
                )
                staged[loop.name] = self.loops[loop.name].stage(at.frames[loop.fed_by], about)

        _take_malformed(at)
        self._stage_dead_letters(at, batch, dead, staged, now)

    def _stage_sink(self, at: Lowering, sink: Sink, batch: int) -> StagedBatch:
        """A sink's rows, staged; with a policy, without those that it refuses.

        Then they are computed first, by a job that cannot fail on what the sink says: what tasks have counted is lost when they fail.
        """
        if sink.on_error is None or sink.on_error.action == FAIL:
            return self.sinks.stage(sink, at.input(sink), batch)
        frame = at.keep(at.input(sink))
        frame.write.format("noop").mode("overwrite").save()
        made, dead_letters = self._staged_without_refused(sink, frame, batch)
        skips = sink.on_error.action == SKIP
        if skips:
            at.counts.value.of(sink.name).skipped += len(dead_letters)
        else:
            at.counts.value.dead_letters += dead_letters
        return made

    def _staged_without_refused(self, sink: Sink, frame: DataFrame, batch: int) -> tuple[StagedBatch, list[DeadLetter]]:
        """The batch, staged without the rows that its sink refuses, and those as dead letters."""
        schema = self.plan.graph.output(sink.inputs[0]).schema
        notes = open_storage(self.at.kept / "refused" / sink.name)
        refusals = Refusals(sink, schema, lambda rows: self.sinks.stage(sink, rows, batch), notes, str(batch))
        partial = self.sinks.stage_rows(sink, frame, batch)
        return refusals.staged(frame) if partial is None else (partial[0], refusals.of_rows(*partial))

    def _stage_dead_letters(
        self, at: Lowering, batch: int, dead: list[Sink], staged: dict[str, StagedBatch], now: int
    ) -> None:
        """What steps have put aside is known when all else is computed; it goes to its sinks, or into the dead-letter store."""
        dead_letters = at.counts.value.dead_letters
        if len(dead_letters) > MOST_DEAD_LETTERS:
            raise RunError(
                f"{len(dead_letters)} records of batch {batch} failed, the first in step {dead_letters[0].step!r} ({dead_letters[0].cause}); more than "
                f"{MOST_DEAD_LETTERS} in one batch are taken for a broken flow, not for bad records"
            )
        rows = dead_letter_rows(dead_letters, self.plan.graph.name, self.lineage, batch, now)
        for sink in dead:
            frame = at.spark.createDataFrame([tuple(r) for r in rows], str(DEAD))
            staged[sink.name] = self.sinks.stage(sink, frame, batch)
        if rows and not dead:
            staged[DEAD_LETTERS] = DeadLetterStore(self.at.kept / DEAD_LETTERS).stage(rows, batch)

    def _table(self, now: int, node: Node, endpoint: Endpoint) -> DataFrame:
        """A static table: read at its first use and kept, and read again when the step says so."""
        from pyspark.sql import SparkSession

        if self._fresh.setdefault(node.name, Freshness(node)).stale(now):  # type: ignore[arg-type]
            spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
            _let_go(spark, self._tables.pop(node.name, None), endpoint)
            assert endpoint.schema is not None
            context = SourceContext(node.name, endpoint, endpoint.schema, self.at.work / "tables" / node.name)
            self._tables[node.name] = source_connector(node.name, endpoint).bounded(spark, context).persist()
        return self._tables[node.name]

    def _report(
        self,
        batch: int,
        counts: PassCounts,
        staged: dict[str, StagedBatch],
        bad: dict[str, int],
        seconds: dict[str, float],
    ) -> BatchReport:
        halves, given = halves_of(self.plan.graph), counts.emitted()
        taken = counts.taken() | {halves[step]: many for step, many in counts.native().items()}
        taken |= {s: w.rows for s, w in staged.items() if w.rows is not None}
        steps = complete(self.plan.graph, taken, given)
        fed = {n.name: taken[n.name] for n in self.plan.graph.loops}
        return BatchReport(
            batch,
            {},
            steps,
            seconds,
            finished=time.time(),
            taken=taken,
            given=given,
            fed=fed,
            late=counts.late(),
            bad=bad,
            dead=dict(Counter(made.step for made in counts.dead_letters)),
            skipped=counts.skipped(),
            runs=counts.runs(),
            active_runs={} if self.store is None else self.store.figures(),
            watermarks=dict(self.time.keeper.marks.at),
            load=counts.loads(),
            state={} if self.store is None else self._sizes(self.store),
            timers=counts.timers(),
            metrics=by_component(counts.bolt_metrics),
            errors=by_component(counts.bolt_errors),
        )

    def _sizes(self, store: StateStore) -> dict[str, StateSize]:
        """How much each step keeps, in all its stores."""
        found = store.sizes()
        mine = {n.name: [found[s] for s in n.stores if s in found] for n in self.plan.graph.nodes if n.stores}
        return {
            step: {"rows": sum(size["rows"] for size in sizes), "bytes": sum(size["bytes"] for size in sizes)}
            for step, sizes in mine.items()
            if sizes
        }

    def close(self) -> None:
        """Closes the sinks and lets go of the tables."""
        self.sinks.close()
        for table in self._tables.values():
            table.unpersist()


def _take_malformed(at: Lowering) -> None:
    """Puts the records that sources could not read among the dead letters, and those left out among the counts."""
    for name, seen in at.malformed.items():
        at.counts.value.dead_letters += seen.dead_letters()
        if many := seen.skipped():
            at.counts.value.of(name).skipped += many


def _let_go(spark: SparkSession, table: DataFrame | None, endpoint: Endpoint) -> None:
    """Has Spark forget a table that is read again: what it keeps of the same path would be taken for new."""
    if table is None:
        return
    table.unpersist(blocking=True)
    if "path" in endpoint.options:
        spark.catalog.refreshByPath(endpoint.options["path"])


def _abort(staged: dict[str, StagedBatch]) -> None:
    for work in staged.values():
        try:
            work.abort()
        except Exception:
            continue
