"""What a kernel is: the work of a step, in plain Python, that does not know its host.

A host (the local runtime, a Spark stage, later a resident task) opens a kernel, gives it chunks, tells it of time
and of barriers, and takes what comes out. Spark, the clock, files and offsets are not visible from inside.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from penstock.errors import Failure
from penstock.graph.nodes import Node
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.table import TimeTable
from penstock.graph.times import Times
from penstock.kernels.counts import StepCounts
from penstock.kernels.records.chunk import Chunk

Out = Iterable[tuple[str, Chunk]]
_HERE = str(Path(__file__).resolve().parents[1])


def _nothing(store: str) -> NoReturn:
    raise LookupError(f"this host keeps no state, so there is no store {store!r}")


@dataclass
class Context:
    """What a kernel may know of where it runs."""

    task: int = 0
    tasks: int = 1
    now: Callable[[], float] = lambda: 0.0
    state: Callable[[str], KeyedState] = _nothing
    table: Callable[[str], TimeTable] = _nothing
    scratch: Callable[[], KeyedState] = lambda: _nothing("scratch")
    """State that lives for one batch."""


class Kernel:
    """The base of all kernels. `take` and `barrier` give (output name, chunk) pairs."""

    arrow = False
    """Whether it takes records as Arrow batches."""
    leaving = False
    """Whether all that comes out is wanted as Arrow batches next; the host says so."""
    guarded = False
    """Whether the pass goes on without a record that the step fails on; the host says so."""
    times = Times()

    def __init__(self, node: Node) -> None:
        self.node = node
        self.counters = StepCounts()

    def open(self, context: Context) -> None:
        """Called once, before anything else."""

    def begin(self, times: Times) -> None:
        """The beginning of a batch, with its times."""
        self.times = times

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Records of the input at place `source`."""
        raise NotImplementedError

    def barrier(self) -> Out:
        """The end of a batch: event time moves to `times.watermark`, what was held back comes out, and the state is
        complete.
        """
        return ()

    def close(self) -> None:
        """Called once, after the last record."""


class RecordFailed(Exception):
    """The user's code failed on a record. The host knows where the record stood, and makes a StepError of it.

    `at` is its place in the chunk, where that is known. `made` has what a keyed step gave for the records before it, which it has
    taken and cannot take again.
    """

    made: list[tuple[str, Chunk]] | None = None

    def __init__(self, node: Node, record: Any, at: int | None, error: BaseException) -> None:
        super().__init__(f"{node.name}: {error}")
        self.node, self.record, self.at, self.error = node, record, at, error

    def failure(self, position: str) -> Failure:
        """All that the user needs to see, as plain text."""
        kind = type(self.error).__name__
        shown = f"{kind}: {self.error}" if str(self.error) else kind
        return Failure(self.node.name, shown, short(self.record), position, user_traceback(self.error), self.node.line)


def short(record: Any, limit: int = 2000) -> str:
    """A record as text, cut when it is very long."""
    text = repr(record)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def user_traceback(error: BaseException) -> str:
    """The traceback without Penstock's own frames."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_HERE)]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join([*lines, *traceback.format_exception_only(error)]).rstrip()
