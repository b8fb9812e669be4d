"""The course of a live run as a state machine: events in, commands out. It knows no Spark, no clock and no threads.

The shell (`live.py`) tells what has happened, with the time at which it did, and carries out what comes back. So every decision of a run
(when it goes on, when it has a batch run without records, when it ends and how) stands here, and is tested without a JVM.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from penstock.graph.times import NEVER


class Phase(enum.Enum):
    """Where a run stands."""

    RUNNING = "running"
    ENDING = "ending"
    """It is to end; the batch under way finishes first."""
    DRAINING = "draining"
    """One more batch runs, in which all time passes."""
    STOPPING = "stopping"
    """No further batch runs."""
    OVER = "over"


@dataclass(frozen=True)
class Course:
    """What the course of a run depends on: its options, as far as they say when it goes on and when it ends.

    Attributes:
        once: the run takes what is there, and ends.
        drains: at its end all time passes.
        has_ticks: the flow can have a batch run without records.
        duration: after how many seconds it ends.
        batches, records, time, idle: conditions, any of which ends it; `time` is an event time, `idle` how many seconds the sources had nothing.
        patience: how many seconds a batch may go on after the user has asked the run to stop.
    """

    once: bool = False
    drains: bool = False
    has_ticks: bool = False
    duration: float | None = None
    batches: int | None = None
    records: int | None = None
    time: int | None = None
    idle: float | None = None
    patience: float = 7.0


@dataclass(frozen=True)
class QueryStarted:
    """The streaming query runs."""

    now: float


@dataclass(frozen=True)
class BatchStarted:
    """Spark has chosen the records of a batch, and asks for its work."""

    batch: int


@dataclass(frozen=True)
class BatchFinished:
    """The work of the batch under way is done; `has_fed` says that a loop got records."""

    now: float
    has_fed: bool = False


@dataclass(frozen=True)
class BatchFailed:
    """The batch under way failed."""


@dataclass(frozen=True)
class BatchReported:
    """Spark has logged the commit of a batch; `is_goal` says that the user's own condition holds."""

    rows: int
    is_goal: bool = False


@dataclass(frozen=True)
class Poll:
    """What there is to see between events.

    Attributes:
        now: the time, in seconds.
        is_idle: all sources were asked, and had nothing.
        is_due: a batch without records would have work to do.
        has_replays: dead letters wait to be replayed.
        event_time: the event time that all steps have been brought to.
    """

    now: float
    is_idle: bool = False
    is_due: bool = False
    has_replays: bool = False
    event_time: int = NEVER


@dataclass(frozen=True)
class QueryEnded:
    """The streaming query has ended: because it was stopped, because it took all there was, or by an error.

    Attributes:
        has_failed: it ended by an error.
        is_due, has_replays: as in `Poll`.
        is_passing: the error is one of the machine at that moment, outside a batch; a query that is started again may not meet it.
    """

    has_failed: bool = False
    is_due: bool = False
    has_replays: bool = False
    is_passing: bool = False


@dataclass(frozen=True)
class SourceFailed:
    """A source that works beside the query has failed."""


@dataclass(frozen=True)
class StopRequested:
    """The user wants the run to end after the batch under way."""

    now: float


@dataclass(frozen=True)
class StopForced:
    """The run must end now, without a last batch."""

    now: float


Event = (
    QueryStarted
    | BatchStarted
    | BatchFinished
    | BatchFailed
    | BatchReported
    | Poll
    | QueryEnded
    | SourceFailed
    | StopRequested
    | StopForced
)


@dataclass(frozen=True)
class StartQuery:
    """Start the streaming query again."""


@dataclass(frozen=True)
class RunBatch:
    """Do the work of the batch; `ended` says that all time passes in it."""

    ended: bool = False


@dataclass(frozen=True)
class RefuseBatch:
    """Do not begin the batch: it runs at the next start."""


@dataclass(frozen=True)
class RunTick:
    """Have Spark run a batch although no record may wait."""


@dataclass(frozen=True)
class StopQuery:
    """Stop the streaming query; `abandons` says that a batch under way is lost, and runs again at the next start."""

    abandons: bool = False


RESTARTS = 3
"""How often in a row a query is started again after an error that may pass."""
Command = StartQuery | RunBatch | RefuseBatch | RunTick | StopQuery


@dataclass
class Machine:
    """A live run.

    >>> machine = Machine(Course(batches=1))
    >>> machine.handle(QueryStarted(0.0))
    ()
    >>> machine.handle(BatchStarted(0))
    (RunBatch(ended=False),)
    >>> machine.handle(BatchFinished(1.0)), machine.handle(BatchReported(10))
    ((), (StopQuery(abandons=False),))
    """

    course: Course = field(default_factory=Course)
    phase: Phase = Phase.RUNNING
    batch: int | None = None
    """The batch under way."""
    ran: int = 0
    """Batches whose work is done."""
    unreported: int = 0
    """Batches whose work is done and of which Spark has not logged the commit."""
    records: int = 0
    has_failed: bool = False
    has_abandoned: bool = False
    has_drained: bool = False
    has_answered: bool = False
    """Whether the sources were asked in this run: a batch began, or there was nothing."""
    _began: float | None = None
    _idle_since: float | None = None
    """When the sources first had nothing, after the last batch with records."""
    _deadline: float | None = None
    """Until when the batch under way may go on, and Spark may log the commit of the last; None: as long as it takes."""
    _ticked: int = -1
    """How many batches had run when the last tick was put."""
    _has_fed: bool = False
    _runs_last: bool = False
    """Whether all time passes in the batch under way."""
    _restarts: int = 0
    """How often the query was started again since the last batch."""

    def handle(self, event: Event) -> tuple[Command, ...]:
        """Takes in what has happened; returns what is to be done, in this order."""
        if isinstance(event, Poll):
            return self._polled(event)
        if isinstance(event, BatchStarted | BatchFinished | BatchReported | BatchFailed):
            return self._batch_event(event)
        if isinstance(event, StopRequested | StopForced):
            return self._stop_event(event)
        if isinstance(event, QueryEnded):
            return self._query_ended(event)
        return self._query_started(event.now) if isinstance(event, QueryStarted) else self._failed()

    def _batch_event(self, event: BatchStarted | BatchFinished | BatchReported | BatchFailed) -> tuple[Command, ...]:
        match event:
            case BatchStarted(batch):
                return self._batch_started(batch)
            case BatchFinished():
                return self._batch_finished(event)
            case BatchReported():
                return self._batch_reported(event)
            case BatchFailed():
                self.batch = None
                return self._failed()

    @property
    def is_over(self) -> bool:
        """Whether nothing happens any more."""
        return self.phase is Phase.OVER

    def _query_started(self, now: float) -> tuple[Command, ...]:
        self._began = now if self._began is None else self._began
        return ()

    def _batch_started(self, batch: int) -> tuple[Command, ...]:
        if self.phase in (Phase.ENDING, Phase.STOPPING, Phase.OVER) or (
            self.phase is Phase.DRAINING and self.has_drained
        ):
            return (RefuseBatch(),)
        self.batch, self.has_answered, self._restarts = batch, True, 0
        self._runs_last = self.phase is Phase.DRAINING
        return (RunBatch(ended=self._runs_last),)

    def _batch_finished(self, event: BatchFinished) -> tuple[Command, ...]:
        self.batch, self.ran, self.unreported = None, self.ran + 1, self.unreported + 1
        self._has_fed |= event.has_fed
        self.has_drained |= self._runs_last
        if self.course.batches is not None and self.ran >= self.course.batches:
            self._end()
        return self._settled()

    def _batch_reported(self, event: BatchReported) -> tuple[Command, ...]:
        self.unreported = max(0, self.unreported - 1)
        self.records += event.rows
        if event.rows:
            self._idle_since = None
        if event.is_goal or (self.course.records is not None and self.records >= self.course.records):
            self._end()
        return self._settled()

    def _polled(self, event: Poll) -> tuple[Command, ...]:
        if event.is_idle and self.batch is None:
            self.has_answered = True
            self._idle_since = event.now if self._idle_since is None else self._idle_since
        if self._is_reached(event):
            self._end()
        if self._deadline is not None and event.now >= self._deadline:
            return self._stop(abandons=self.batch is not None)
        return self._settled() or self._ticked_if(event.is_due or event.has_replays)

    def _is_reached(self, event: Poll) -> bool:
        """Whether a condition of the run's end holds. None does before the sources were asked, so that work that waits is seen."""
        course, began = self.course, event.now if self._began is None else self._began
        if not self.has_answered:
            return False
        is_quiet = event.is_idle and self._idle_since is not None and not self.unreported
        quiet = event.now - (self._idle_since or 0.0) if is_quiet else 0.0
        return (
            (course.duration is not None and event.now - began >= course.duration)
            or (course.time is not None and event.event_time >= course.time)
            or (course.idle is not None and quiet >= course.idle)
        )

    def _ticked_if(self, has_work: bool) -> tuple[Command, ...]:
        """A tick, if there is work, none was put since the last batch, and the query does not end of itself."""
        if not has_work or not self.course.has_ticks or self.course.once or self.phase is not Phase.RUNNING:
            return ()
        if self.batch is not None or self._ticked == self.ran:
            return ()
        self._ticked = self.ran
        return (RunTick(),)

    def _query_ended(self, event: QueryEnded) -> tuple[Command, ...]:
        """A query that takes what was there ends of itself, and may have more to do: loops that were fed, time, or its end."""
        self.batch = None
        if event.is_passing and not self.has_failed and self.phase is Phase.RUNNING and self._restarts < RESTARTS:
            self._restarts += 1
            return (StartQuery(),)
        if event.has_failed:
            self.has_failed = True
        if self.has_failed or self.phase is not Phase.RUNNING or not self.course.once:
            self.phase = Phase.OVER
            return ()
        if self._has_fed:
            self._has_fed = False
            return (StartQuery(),)
        return self._once_more(event)

    def _once_more(self, event: QueryEnded) -> tuple[Command, ...]:
        if self.course.has_ticks and self.course.drains and not self.has_drained:
            self.phase = Phase.DRAINING
        elif not (self.course.has_ticks and (event.has_replays or event.is_due)):
            self.phase = Phase.OVER
            return ()
        return RunTick(), StartQuery()

    def _stop_event(self, event: StopRequested | StopForced) -> tuple[Command, ...]:
        if self.phase in (Phase.STOPPING, Phase.OVER):
            return ()
        is_forced = isinstance(event, StopForced)
        self.has_drained |= is_forced
        if self._deadline is None and (is_forced or not self._drains):
            self._deadline = event.now + self.course.patience
        self._end()
        return self._settled()

    def _failed(self) -> tuple[Command, ...]:
        self.has_failed = True
        if self.phase not in (Phase.STOPPING, Phase.OVER):
            self.phase = Phase.ENDING
        return self._settled()

    @property
    def _drains(self) -> bool:
        """Whether a last batch follows in the query that runs; one that takes what is there is started again for it."""
        return self.course.drains and not self.course.once

    def _end(self) -> None:
        if self.phase is Phase.RUNNING:
            self.phase = Phase.ENDING

    def _settled(self) -> tuple[Command, ...]:
        """Goes on with the end of a run as soon as no batch is under way and Spark has logged the last."""
        if self.batch is not None or (self.unreported and not self.has_failed):
            return ()
        if self.phase is Phase.ENDING and self._drains and not self.has_drained and not self.has_failed:
            self.phase = Phase.DRAINING
            return (RunTick(),)
        if self.phase is Phase.ENDING or (self.phase is Phase.DRAINING and self.has_drained):
            return self._stop()
        return ()

    def _stop(self, *, abandons: bool = False) -> tuple[Command, ...]:
        if self.phase in (Phase.STOPPING, Phase.OVER):
            return ()
        self.phase, self.has_abandoned = Phase.STOPPING, self.has_abandoned or abandons
        return (StopQuery(abandons),)
