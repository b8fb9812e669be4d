"""Spouts: the driver calls them, and puts what they give on disk before the topology sees it.

Beside each file of tuples stands where every task was when the file was written. A run that starts again takes the
newest file of tuples and goes on from there, so nothing is given twice and nothing is left out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.base import SourceContext
from penstock.connectors.process.fed import fed_frame
from penstock.connectors.process.feed import Feed, FeedSource
from penstock.errors import PenstockError, RunError, StateError, StepError
from penstock.graph.nodes import Output, Source
from penstock.kernels.base import RecordFailed
from penstock.kernels.topology.pending import Message, Settlement
from penstock.kernels.topology.spout import SpoutRecord, SpoutTasks
from penstock.storage import names_under, read_if_present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_RUNNING: dict[Path, SpoutSource] = {}


class SpoutSource(FeedSource):
    """A spout of the user's. `failure` is what ended it, if that was an error."""

    head_start = 2.0
    """How long a start waits for a spout to say what it has, so that a run that only drains finds it."""

    is_reliable = False
    """Whether the spout emits messages, and is told what becomes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.caught_up = threading.Event()
        self.inbox: SimpleQueue[Settlement] = SimpleQueue()
        self.outbox: SimpleQueue[set[int]] = SimpleQueue()
        self.tasks: SpoutTasks | None = None
        self.feed: Feed | None = None

    def settle(self, given: Settlement) -> None:
        """Takes in what a committed batch says; the thread of the spout tells its tasks."""
        self.inbox.put(given)

    def confirmed(self) -> set[int]:
        """The roots of messages that are acked or failed, and of which that is saved, since the last time."""
        return set().union(*_taken(self.outbox))

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
        names = self._drained(context)
        if not names:
            return spark.createDataFrame([], schema=str(context.schema))
        return fed_frame(spark, context.folder, names, context.schema)

    def next_round(self, spark: SparkSession, context: SourceContext, given: Settlement) -> DataFrame | None:
        """Tells the tasks what a batch of a bounded run says, and returns what they emit then; None when that is nothing."""
        assert self.tasks is not None, "the first round comes first"
        assert self.feed is not None, "the first round comes first"
        try:
            self.tasks.settle(replace(given, files=range(self.feed.number)))
        except RecordFailed as failed:
            raise _blamed(failed) from failed.error
        names = self._drained(context)
        return fed_frame(spark, context.folder, names, context.schema) if names else None

    def _drained(self, context: SourceContext) -> list[str]:
        """Puts what the spout emits on disk; returns the names of the files."""
        feed = self.feed = self.feed or Feed(context.folder / "feed", context.schema)
        before = feed.number
        try:
            tasks = self.tasks = self.tasks or SpoutTasks(_node(context))
            records: Iterator[SpoutRecord] = tasks.drained()
            while held := list(islice(records, 50_000)):
                tasks.taken_messages(feed.number)
                feed.append(held)
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
        self.failure = error

    def _feed(self, feed: Feed, context: SourceContext) -> None:
        kept = _kept(feed, context)
        tasks = SpoutTasks(_node(context), kept)
        _restore(tasks, feed, kept or {})
        held: list[SpoutRecord] = []
        settled: set[int] = set()
        since = time.monotonic()
        while not self.stopped.is_set():
            settled |= self._settled(tasks)
            records = tasks.pull()
            if records is None:
                break
            since = since if held or settled else time.monotonic()
            held += records
            is_time = not records or len(held) >= self.most or time.monotonic() - since > self.pause
            if (held or settled) and is_time:
                self._save(feed, held, context, tasks, settled)
                held, settled = [], set()
            if not records:
                self.caught_up.set()
                self.stopped.wait(self.pause / 5)
        settled |= self._settled(tasks)
        self._save(feed, held, context, tasks, settled)
        tasks.close()

    def _settled(self, tasks: SpoutTasks) -> set[int]:
        """Tells the tasks what batches and time have decided; returns the roots of these messages."""
        made = [m for given in _taken(self.inbox) for messages in tasks.settle(given) for m in messages]
        made += tasks.expire(time.time())
        return {message.root for message in made}

    def _save(
        self, feed: Feed, held: list[SpoutRecord], context: SourceContext, tasks: SpoutTasks, settled: set[int]
    ) -> None:
        """Where the tasks stand first, then the tuples: the tuples make it count. What only acks have changed is noted beside the newest tuples."""
        if held:
            self._append(feed, held, context, tasks)
        elif settled and feed.number:
            note = {"file": feed.number - 1, **tasks.kept(), "open": tasks.pending.saved()}
            feed.storage.write(SETTLED, _dumped(context, note))
        if settled:
            self.outbox.put(settled)
            names = [n for n in names_under(feed.storage, "ids-") if _file_of(n) not in tasks.pending.files]
            feed.storage.delete(*(n for n in names if _file_of(n) < feed.number))

    def _append(self, feed: Feed, held: list[SpoutRecord], context: SourceContext, tasks: SpoutTasks) -> None:
        messages = tasks.taken_messages(feed.number)
        if messages:
            feed.storage.write(_ids(feed.number), _dumped(context, [tuple(m) for m in messages]))
        feed.storage.write(_stand(feed.number), _dumped(context, {**tasks.kept(), "open": tasks.pending.saved()}))
        feed.append(list(held))
        if feed.number >= 3:
            feed.storage.delete(_stand(feed.number - 3))

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
"""Where the tasks stand after acks that came when there were no new tuples; it counts while the tuples it names are the newest."""


def _ids(number: int) -> str:
    """The messages in a file of tuples."""
    return f"ids-{number:09d}.pickle"


def _file_of(name: str) -> int:
    return int(name.rpartition("-")[2].split(".")[0])


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
        tasks.pending.restore((Message(*m) for m in cloudpickle.loads(found[0])), packed)


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
    later = read_if_present(feed.storage, SETTLED)
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
