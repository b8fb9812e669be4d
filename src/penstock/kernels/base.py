"""What a kernel is: the work of a step, in plain Python, that does not know its host.

Three hosts call kernels: the local runtime, a Spark stage, and (later) a resident task that passes on record by record. Spark,
processing time, files and offsets are not visible from inside. A host calls

    open(context) begin(times) ( take(chunk, input) | advance(times) )* barrier() ... close()

and these hold:

1. Chunks may be of any size, and `advance` may be called at any moment between two of them, any number of times, with the same times
   too. How a stream is cut changes neither the records that come out nor what is kept; steps that emit running totals
   emit fewer or more of them, and the last one of each key is the same.
2. After `advance(times)` nothing is held back that follows from the records taken so far and from those times. A kernel may emit in
   `take` already; it must not where its answer is sure only when time has moved.
3. Event time stands still between two calls of `begin` or `advance`. A record is late if its time is before `times.previous`, the previous watermark,
   of the last of them. A host that goes on after `advance` says so with `begin`: then `previous` is where time has moved to. Time never goes back.
4. What `advance` emits reaches the next kernel as records that are not late, if that one has not been advanced yet. So a host advances the
   kernels of a pass one after the other, the first ones first (`Pipeline.advance`).
5. After `barrier()` the state, the tables and the timers that `context` has given are complete: a kernel that is opened over them anew goes
   on where this one was. Between two barriers a kernel may keep what it likes in itself.
6. `wake(clock)` is the earliest time at which `advance` would have something to do although no record arrives.

A batch host calls `begin` with the times of the batch, `take` for its records, then `advance` with the same times and `barrier`: so
event time moves between batches only, as decision 7 says.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from penstock.errors import Failure
from penstock.graph.nodes import Node
from penstock.graph.state.active_runs import RunChanges
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.table import TimeTable
from penstock.graph.state.timers import EVENT, STEP, Timers
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.counts import PassCounts, StepCounts
from penstock.kernels.records.brief import brief, error_text, printable
from penstock.kernels.records.chunk import Chunk

if TYPE_CHECKING:
    from penstock.kernels.errors.guard import Guard
    from penstock.kernels.topology.routing import Router

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
    timers: Callable[[str], Timers] = _nothing
    scratch: Callable[[], KeyedState] = lambda: _nothing("scratch")
    """State that lives for one batch."""
    batch: Callable[[], int] = lambda: 0
    """The id of the batch at hand; a batch that runs again has the same."""
    forget: Callable[[str, frozenset[object]], None] = lambda step, keys: None
    """Says which rules of a step are gone or begin anew: what later steps keep for them goes, before they see a record of the batch."""
    routers: dict[str, Router] = field(default_factory=dict)
    """What chooses tasks where only Python can, by the name of the route: the tasks before it ask it too."""
    reuses: bool = False
    """Whether what a step has opened, such as an HTTP client, serves the next task of this process too."""


class Kernel:
    """The base of all kernels. `take`, `advance` and `barrier` emit (output name, chunk) pairs.

    The module says what holds between a kernel and its host.
    """

    arrow = False
    """Whether it takes records as Arrow batches."""
    leaving = False
    """Whether all that comes out is wanted as Arrow batches next; the host says so."""
    unread: frozenset[str] = frozenset()
    """The outputs that nobody reads, so that what they carry need not be made; the host says so."""
    handles_errors = False
    """Whether the kernel puts records that it fails on aside itself, by its guard; `take` is not called again for them."""
    guard: Guard | None = None
    """The policy of a kernel that handles errors itself; None where a record that fails ends the pass."""
    guarded = False
    """Whether the pass goes on without a record that the step fails on; the host says so."""
    times = Times()
    since = NEVER
    """To where event time has moved; kernels that read rows of a span of time move it on when they advance."""
    timers: Timers | None = None
    """The timers of the step, if it has any; it takes them from its context."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.counters = StepCounts()
        self.run_changes: dict[str, RunChanges] = {}
        """What a step that looks for patterns has changed of the runs under way since the batch began, by pattern."""

    def open(self, context: Context) -> None:
        """Called once, before anything else."""

    def begin(self, times: Times) -> None:
        """Says where time stands for the records that follow (`previous`, `now`), and to where it will move (`watermark`)."""
        self.move(times)
        self.since = times.previous

    def move(self, times: Times) -> None:
        """Takes in new times."""
        self.times = times

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Takes records of the input number `source`, and emits what is sure already."""
        raise NotImplementedError

    def advance(self, times: Times) -> Out:
        """Moves time from `times.previous` to `times.watermark`, and processing time to `times.now`; emits all that is due or held back."""
        self.move(times)
        return ()

    def barrier(self) -> Out:
        """Completes the state, as far as `advance` has not."""
        return ()

    def wake_at(self, time: int) -> None:
        """Sets the one timer of a step whose rows stand in a table: when event time has work for them; FOREVER is never."""
        assert self.timers is not None, "open takes the timers from the context"
        self.timers.set(STEP, EVENT, time)

    def wake(self, clock: str) -> int:
        """The earliest time by a clock at which the step has work although no record arrives; FOREVER when there is none."""
        return FOREVER if self.timers is None else self.timers.next(clock)

    def changes_of(self, pattern: str) -> RunChanges:
        """What has changed of the runs of a pattern, to be counted on."""
        return self.run_changes.setdefault(pattern, RunChanges())

    def report(self, counts: PassCounts) -> None:
        """Adds what the host must know of the batch beside counts, after a barrier."""

    def close(self) -> None:
        """Called once, after the last record."""

    def abandon(self) -> None:
        """Called where a pass ends early: lets go of threads and connections. After `close` there is nothing to do."""


class RecordFailed(Exception):
    """The user's code failed on a record. The host knows where the record stood, and makes a StepError of it.

    `at` is its index in the chunk; None where that is not known, or where it may have been in an earlier one. `made` has what a keyed step gave for the records before it, which it has
    taken and cannot take again.
    """

    made: list[tuple[str, Chunk]] | None = None

    def __init__(self, node: Node, record: object, at: int | None, error: BaseException) -> None:
        super().__init__(f"{node.name}: {error_text(error)}")
        self.node, self.record, self.at, self.error = node, record, at, error

    def failure(self, position: str) -> Failure:
        """All that the user needs to see, as plain text."""
        kind = type(self.error).__name__
        said = error_text(self.error)
        shown = kind if said == kind else f"{kind}: {said}"
        return Failure(self.node.name, shown, short(self.record), position, user_traceback(self.error), self.node.line)


def short(record: object, limit: int = 2000) -> str:
    """A record as text, cut when it is very long."""
    return brief(record, limit)


def user_traceback(error: BaseException) -> str:
    """The traceback without Penstock's own frames."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_HERE)]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return printable("".join([*lines, *traceback.format_exception_only(error)]).rstrip())
