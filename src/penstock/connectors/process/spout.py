"""Spouts: the driver calls them, and puts what they give on disk before the topology sees it.

Beside each file of tuples stands where every task was when the file was written. A run that starts again takes the
newest file of tuples and goes on from there, so nothing is given twice and nothing is left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import SourceContext
from penstock.connectors.process.fed import fed_frame
from penstock.connectors.process.feed import Feed, FeedSource
from penstock.errors import PenstockError, RunError, StateError, StepError
from penstock.graph.nodes import Output, Source
from penstock.kernels.base import RecordFailed
from penstock.kernels.topology.spout import SpoutRecord, SpoutTasks
from penstock.storage import names_under, read_if_present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RUNNING: dict[Path, SpoutSource] = {}


class SpoutSource(FeedSource):
    """A spout of the user's. `failure` is what ended it, if that was an error."""

    head_start = 2.0
    """How long a start waits for a spout to say what it has, so that a run that only drains finds it."""

    def __init__(self) -> None:
        super().__init__()
        self.caught_up = threading.Event()

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """Starts the thread, gives it a moment, and reads what it writes."""
        before = _RUNNING.pop(context.folder, None)
        if before is not None:
            before.close()
        _RUNNING[context.folder] = self
        frame = super().stream(spark, context)
        self.caught_up.wait(0.2 if context.endpoint.options["spout"].endless else self.head_start)
        if self.failure is not None:
            raise self.failure
        return frame

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """All that the spout emits until it is done."""
        feed = Feed(context.folder / "feed", context.schema)
        try:
            records: Iterator[SpoutRecord] = SpoutTasks(_node(context)).drained()
            while held := list(islice(records, 50_000)):
                feed.append(held)
        except RecordFailed as failed:
            raise _blamed(failed) from failed.error
        names = names_under(feed.storage, f"{feed.folder.name}/feed-")
        if not names:
            return spark.createDataFrame([], schema=str(context.schema))
        return fed_frame(spark, context.folder, names, context.schema)

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
        tasks = SpoutTasks(_node(context), _kept(feed, context))
        held: list[SpoutRecord] = []
        since = time.monotonic()
        while not self.stopped.is_set() and (records := tasks.pull()) is not None:
            since = since if held else time.monotonic()
            held += records
            if held and (not records or len(held) >= self.most or time.monotonic() - since > self.pause):
                self._save(feed, held, context, tasks)
                held = []
            if not records:
                self.caught_up.set()
                self.stopped.wait(self.pause / 5)
        self._save(feed, held, context, tasks)
        tasks.close()

    def _save(self, feed: Feed, held: list[SpoutRecord], context: SourceContext, tasks: SpoutTasks) -> None:
        """Where the tasks stand first, then the tuples: the tuples make it count."""
        if held:
            feed.storage.write(_stand(feed.number), _dumped(context, tasks.kept()))
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
    return kept


def _dumped(context: SourceContext, kept: dict[str, Any]) -> bytes:
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps(kept))
    except Exception as error:
        raise StateError(
            f"spout {context.step!r} keeps something that cannot be saved ({error}); give that attribute a name that begins "
            f"with an underscore and make it in open, or say stateful = False in the class"
        ) from None
