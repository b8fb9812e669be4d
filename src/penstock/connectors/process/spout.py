"""Spouts: the driver calls them, and puts what they give on disk before the topology sees it.

Beside each file of tuples stands where every task was when the file was written. A run that starts again takes the
newest file of tuples and goes on from there, so nothing is given twice and nothing is left out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from penstock.connectors.base import SourceContext
from penstock.connectors.malformed import ARROW, MALFORMED, kept_schema, raw_rows
from penstock.connectors.process.fed import fed_frame
from penstock.connectors.process.feed import Feed, FeedSource
from penstock.connectors.process.followed import FollowedFiles
from penstock.connectors.process.own_jobs import SpoutJobs
from penstock.errors import PenstockError, RunError, StateError, StepError
from penstock.graph.nodes import Output, Source
from penstock.kernels.base import RecordFailed
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import to_batch
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.topology.blocks import FIELDS, TupleRoute
from penstock.kernels.topology.pending import Settlement
from penstock.kernels.topology.spout import SpoutTasks
from penstock.kernels.topology.spout_records import SpoutColumns, SpoutShape, joined_columns
from penstock.kernels.topology.task_reports import log_errors
from penstock.storage import names_under, number_of, read_if_present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
Metrics = dict[tuple[str, int], dict[str, Any]]
"""The metrics of tasks, by component and task."""
Errors = dict[tuple[str, int], list[str]]
"""What tasks reported as errors, by component and task."""
_FILE = 50_000
"""So many records are put into a file of a bounded run, or a few more."""
_PIECE = 10_000
"""So many are put together before bolts get them, or a few more."""
_WAITS = (
    "spout {!r} asks Spark in next_tuple, and its bolts hold all cores until it ends, so its job would wait for ever. Ask in open(self, context), "
    "which is called before, give the run more cores than its first bolts have tasks, or run it live"
)
_RUNNING: dict[Path, SpoutSource] = {}


class SpoutSource(FeedSource):
    """A spout of the user's. `failure` is what ended it, if that was an error."""

    head_start = 2.0
    """How long a start waits for a spout to say what it has, so that a run that only drains finds it."""

    is_reliable = False
    """Whether the spout emits messages, and hears what becomes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.caught_up = threading.Event()
        self.inbox: SimpleQueue[Settlement] = SimpleQueue()
        self.outbox: SimpleQueue[set[int]] = SimpleQueue()
        self.tasks: SpoutTasks | None = None
        self.feed: Feed | None = None
        self.is_active = True
        """Whether its tasks are asked for tuples; the thread of the spout sees a change before it asks again."""
        self.measured: SimpleQueue[Metrics] = SimpleQueue()
        self.errors: SimpleQueue[Errors] = SimpleQueue()
        self.wants_metrics = threading.Event()
        self.routes: Sequence[TupleRoute] | None = None
        """The way to each bolt that reads the spout, where a bounded run hands its tuples over in blocks."""
        self.rounds = self.pieces = 0

    def settle(self, given: Settlement) -> None:
        """Takes in what a committed batch says; the thread of the spout tells its tasks."""
        self.inbox.put(given)

    def confirmed(self) -> set[int]:
        """The roots of messages that have failed, and of which that is saved, since the last time."""
        return set().union(*_taken(self.outbox))

    def reported(self) -> tuple[Metrics, Errors]:
        """The metrics of the tasks, and what they reported as errors, since the last time; metrics are taken by the thread of the spout, for the next time."""
        metrics, errors = _taken(self.measured), _taken(self.errors)
        self.wants_metrics.set()
        return {k: v for each in metrics for k, v in each.items()}, {
            k: [text for each in errors for text in each.get(k, [])]
            for k in dict.fromkeys(k for e in errors for k in e)
        }

    def _note(self, tasks: SpoutTasks, *, metrics: bool) -> None:
        """Logs what tasks report as errors, and keeps it with their metrics for the report of a batch."""
        if errors := tasks.taken_errors():
            for (step, task), texts in errors.items():
                log_errors("spout", step, task, texts)
            self.errors.put(errors)
        if metrics and (values := tasks.taken_metrics()):
            self.measured.put(values)

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """Starts the thread, gives it a moment, and reads what it writes."""
        before = _RUNNING.pop(context.folder, None)
        if before is not None:
            before.close()
        _RUNNING[context.folder] = self
        self.is_reliable = bool(context.endpoint.options["spout"].reliable)
        frame = super().stream(spark, context)
        self.caught_up.wait(0.2 if context.endpoint.options["spout"].endless else self.head_start)
        if self.failure is not None:
            raise self.failure
        return frame

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """All that the spout emits until it is done, or must wait for acks."""
        self.is_reliable = bool(context.endpoint.options["spout"].reliable)
        if self.routes is not None:
            self.tasks = self._made(context)
            return self._followed(spark, context, self.tasks.drained_columns(), self.routes)
        names = self._drained(context)
        schema = kept_schema(context.schema, keeps_malformed=context.keeps_malformed)
        if not names:
            return spark.createDataFrame([], schema=str(schema))
        return fed_frame(spark, context.folder, names, schema)

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the tuples of dead letters, as those of the first task; nobody waits for their acks."""
        shape = SpoutShape(_node(context))
        values = [bytes(value) for (value,) in raw_rows(dead_letters, ("value",))]
        held = [shape.reread(value, number) for number, value in enumerate(values)]
        made = to_batch(joined_columns(held), context.schema)
        table = pa.Table.from_batches([made]).append_column(
            MALFORMED, pa.array(_malformed(held) or [None] * len(held), ARROW)
        )
        return spark.createDataFrame(table, str(kept_schema(context.schema, keeps_malformed=True)))

    def next_round(self, spark: SparkSession, context: SourceContext, given: Settlement) -> DataFrame | None:
        """Tells the tasks what a batch of a bounded run says, and returns what they emit then; None when that is nothing."""
        assert self.tasks is not None, "the first round comes first"
        self._join()
        files = self.pieces if self.feed is None else self.feed.number
        try:
            self.tasks.settle(replace(given, files=range(files)))
            if self.routes is not None:
                parts = self.tasks.drained_columns()
                first = next((part for part in parts if part.many), None)
                return first and self._followed(spark, context, chain([first], parts), self.routes)
        except RecordFailed as failed:
            raise _blamed(failed) from failed.error
        names = self._drained(context)
        schema = kept_schema(context.schema, keeps_malformed=context.keeps_malformed)
        return fed_frame(spark, context.folder, names, schema) if names else None

    def _followed(
        self, spark: SparkSession, context: SourceContext, parts: Iterator[SpoutColumns], routes: Sequence[TupleRoute]
    ) -> DataFrame:
        """Has a thread call the spout until it is done, or must wait for acks. Returns blocks that tasks read while it goes on."""
        files = FollowedFiles(context.folder / f"blocks-{self.rounds}", routes)
        self.rounds += 1
        jobs = SpoutJobs(spark, context.step)
        self.thread = threading.Thread(
            target=self._follow, args=(files, context, parts, jobs), daemon=True, name=f"feed-{context.step}"
        )
        self.thread.start()
        waits = partial(self._fail, RunError(_WAITS.format(context.step)))
        threading.Thread(target=jobs.watch, args=(self.thread, waits), daemon=True).start()
        return spark.createDataFrame(files.references(), schema=FIELDS)

    def _follow(
        self, files: FollowedFiles, context: SourceContext, parts: Iterator[SpoutColumns], jobs: SpoutJobs
    ) -> None:
        try:
            jobs.begin()
            if self._hand_over(files, context, parts):
                files.end(is_whole=True)
        except RecordFailed as failed:
            self._fail(_blamed(failed))
        except Exception as error:
            self._fail(error if isinstance(error, PenstockError) else RunError(f"spout {context.step!r}: {error}"))
        finally:
            files.end(is_whole=False)

    def _hand_over(self, files: FollowedFiles, context: SourceContext, parts: Iterator[SpoutColumns]) -> bool:
        """Writes what the spout emits; false where the run has ended before that."""
        assert self.tasks is not None, "the first round made them"
        shape = shape_of(context.schema)
        for held in _gathered(parts, _PIECE):
            if self.stopped.is_set():
                return False
            columns = joined_columns(held)
            self.tasks.taken_messages(self.pieces)
            self.pieces += 1
            files.add(to_batch(shape.checked(columns) if self.tasks.shape.tagged else columns, context.schema))
        self._note(self.tasks, metrics=True)
        return True

    def _join(self) -> None:
        if self.thread is not None:
            self.thread.join()

    def _made(self, context: SourceContext) -> SpoutTasks:
        try:
            return SpoutTasks(_node(context))
        except RecordFailed as failed:
            raise _blamed(failed) from failed.error

    def _drained(self, context: SourceContext) -> list[str]:
        """Puts what the spout emits on disk; returns the names of the files."""
        feed = self.feed = self.feed or Feed(context.folder / "feed", context.schema)
        before = feed.number
        try:
            tasks = self.tasks = self.tasks or SpoutTasks(_node(context), keeps_malformed=context.keeps_malformed)
            for held in _gathered(tasks.drained_columns(), _FILE):
                tasks.taken_messages(feed.number)
                feed.append_columns(joined_columns(held), _malformed(held), is_checked=not tasks.shape.tagged)
                tasks.ack_set_aside()
            self._note(tasks, metrics=True)
        except RecordFailed as failed:
            raise _blamed(failed) from failed.error
        return [f"{feed.folder.name}/feed-{number:09d}.parquet" for number in range(before, feed.number)]

    def _run(self, feed: Feed, context: SourceContext) -> None:
        try:
            self._feed(feed, context)
        except RecordFailed as failed:
            self._fail(_blamed(failed))
        except Exception as error:
            self._fail(error if isinstance(error, PenstockError) else RunError(f"spout {context.step!r}: {error}"))
        finally:
            self.caught_up.set()

    def _fail(self, error: PenstockError) -> None:
        self.failure = self.failure or error

    def _feed(self, feed: Feed, context: SourceContext) -> None:
        kept = _kept(feed, context)
        tasks = SpoutTasks(_node(context), kept, is_active=self.is_active, keeps_malformed=context.keeps_malformed)
        _restore(tasks, feed, kept or {})
        held: list[SpoutColumns] = []
        settled: set[int] | None = None
        since = time.monotonic()
        while not self.stopped.is_set():
            tasks.activate(self.is_active)
            settled = _either(settled, self._settled(tasks))
            records = tasks.pull_columns()
            if records is None:
                break
            since = since if held or settled is not None else time.monotonic()
            held += records
            is_time = not records or _size(held) >= self.most or time.monotonic() - since > self.pause
            if (held or settled is not None) and is_time:
                self._save(feed, held, context, tasks, settled)
                held, settled = [], None
            self._note(tasks, metrics=self.wants_metrics.is_set())
            self.wants_metrics.clear()
            if not records:
                self.caught_up.set()
                self.stopped.wait(self.pause / 5)
        settled = _either(settled, self._settled(tasks))
        self._save(feed, held, context, tasks, settled)
        tasks.close()
        self._note(tasks, metrics=True)

    def _settled(self, tasks: SpoutTasks) -> set[int] | None:
        """Tells the tasks what batches and time have decided; returns the roots of the messages that failed, None where nothing was decided."""
        outcomes = [tasks.settle(given) for given in _taken(self.inbox)]
        failed = [*(m for outcome in outcomes for m in outcome.failed), *tasks.expire(time.time())]
        is_decided = failed or any(outcome.acked for outcome in outcomes)
        return {message.root for message in failed} if is_decided else None

    def _save(
        self, feed: Feed, held: list[SpoutColumns], context: SourceContext, tasks: SpoutTasks, settled: set[int] | None
    ) -> None:
        """Where the tasks stand first, then the tuples: the tuples make it count. What only acks have changed is noted beside the newest tuples."""
        if held:
            self._append(feed, held, context, tasks)
        elif settled is not None and feed.number:
            note = {"file": feed.number - 1, **tasks.kept(), "open": tasks.pending.saved()}
            feed.storage.write(_settled(feed.number - 1), _dumped(context, note))
        if settled is not None:
            self.outbox.put(settled)
            names = [n for n in names_under(feed.storage, "ids-") if number_of(n) not in tasks.pending.files]
            feed.storage.delete(*(n for n in names if number_of(n) < feed.number))

    def _append(self, feed: Feed, held: list[SpoutColumns], context: SourceContext, tasks: SpoutTasks) -> None:
        messages = tasks.taken_messages(feed.number)
        if messages:
            feed.storage.write(_ids(feed.number), _dumped(context, messages.saved()))
        feed.storage.write(_stand(feed.number), _dumped(context, {**tasks.kept(), "open": tasks.pending.saved()}))
        feed.append_columns(joined_columns(held), _malformed(held), is_checked=not tasks.shape.tagged)
        tasks.ack_set_aside()
        if feed.number >= 3:
            feed.storage.delete(_stand(feed.number - 3), _settled(feed.number - 3), SETTLED)

    def close(self) -> None:
        """Stops the thread."""
        super().close()
        for folder in [f for f, source in _RUNNING.items() if source is self]:
            del _RUNNING[folder]


def _node(context: SourceContext) -> Source:
    return Source(context.step, (), context.endpoint, context.schema, outputs=(Output(context.schema),))


def _blamed(failed: RecordFailed) -> StepError:
    return StepError(failed.failure("in the driver, where spouts run"))


SETTLED = "settled.pickle"
"""What earlier releases have called `settled-`, of whatever file of tuples was the newest."""


def _settled(number: int) -> str:
    """Where the tasks stand after acks that arrived when there were no new tuples; it counts while that file of tuples is the newest."""
    return f"settled-{number:09d}.pickle"


def _ids(number: int) -> str:
    """The messages in a file of tuples."""
    return f"ids-{number:09d}.pickle"


def _either(one: set[int] | None, other: set[int] | None) -> set[int] | None:
    """Two sets together; None where both are."""
    return other if one is None else one if other is None else one | other


def _size(held: list[SpoutColumns]) -> int:
    return sum(part.many for part in held)


def _gathered(parts: Iterable[SpoutColumns], most: int) -> Iterator[list[SpoutColumns]]:
    """The same parts in lists of about so many records."""
    given = iter(parts)
    while held := _next_of(given, most):
        yield held


def _next_of(parts: Iterator[SpoutColumns], most: int) -> list[SpoutColumns]:
    """The next parts, of about so many records together."""
    held: list[SpoutColumns] = []
    many = 0
    with quiet():
        for part in parts:
            held.append(part)
            many += part.many
            if many >= most:
                break
    return held


def _malformed(held: list[SpoutColumns]) -> list[dict[str, Any] | None] | None:
    """What describes the records that are none, beside each; None where all are records."""
    if all(part.malformed is None for part in held):
        return None
    described = [[vars(each) for each in part.malformed] if part.malformed else [None] * part.many for part in held]
    return list(chain.from_iterable(described))


def _taken(queue: SimpleQueue[T]) -> list[T]:
    """All that waits in a queue."""
    made: list[T] = []
    with contextlib.suppress(Empty):
        while True:
            made.append(queue.get_nowait())
    return made


def _restore(tasks: SpoutTasks, feed: Feed, kept: dict[str, Any]) -> None:
    """The messages that were open come from the files beside the tuples."""
    from pyspark import cloudpickle

    for file, packed in kept.get("open", {}).items():
        found = read_if_present(feed.storage, _ids(file))
        if found is None:
            raise StateError(
                f"{_ids(file)} of a spout is missing, so nobody knows its open messages; start over with --fresh"
            )
        tasks.pending.restore(file, cloudpickle.loads(found[0]), packed)


def _stand(number: int) -> str:
    """Where the tasks stood when a file of tuples was written."""
    return f"stand-{number:09d}.pickle"


def _kept(feed: Feed, context: SourceContext) -> dict[str, Any] | None:
    """Where the tasks stood when the newest tuples were written."""
    from pyspark import cloudpickle

    if feed.number == 0:
        return None
    name = _stand(feed.number - 1)
    found = read_if_present(feed.storage, name)
    if found is None:
        raise StateError(
            f"{context.folder / name} is missing, so nobody knows where spout {context.step!r} stood; start afresh with --fresh"
        )
    kept: dict[str, Any] = cloudpickle.loads(found[0])
    later = read_if_present(feed.storage, _settled(feed.number - 1)) or read_if_present(feed.storage, SETTLED)
    settled: dict[str, Any] = cloudpickle.loads(later[0]) if later is not None else {}
    return settled if settled.get("file") == feed.number - 1 else kept


def _dumped(context: SourceContext, kept: object) -> bytes:
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps(kept))
    except Exception as error:
        raise StateError(
            f"spout {context.step!r} keeps something that cannot be saved ({error}); give that attribute a name that begins "
            f"with an underscore and make it in open, or say stateful = False in the class"
        ) from None
