"""The course of a live run: events in, commands out. No JVM."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.live.machine import (
    BatchFailed,
    BatchFinished,
    BatchReported,
    BatchStarted,
    Command,
    Course,
    Event,
    Machine,
    Phase,
    Poll,
    QueryEnded,
    QueryStarted,
    RefuseBatch,
    RunBatch,
    RunTick,
    SourceFailed,
    StartQuery,
    StopForced,
    StopQuery,
    StopRequested,
)

STARTED, FINISHED = BatchStarted(0), BatchFinished(1.0)
BUSY = QueryEnded(has_failed=True, is_passing=True)
Table = list[tuple[Event, tuple[Command, ...]]]


def play(course: Course, table: Table) -> Machine:
    """Runs events through a machine; each must be answered as the table says."""
    machine = Machine(course)
    machine.handle(QueryStarted(0.0))
    for number, (event, expected) in enumerate(table):
        assert machine.handle(event) == expected, f"event {number}: {event}"
    return machine


COURSES: dict[str, tuple[Course, Table]] = {
    "a run goes on": (
        Course(),
        [(STARTED, (RunBatch(),)), (FINISHED, ()), (BatchReported(5), ()), (Poll(100.0, is_idle=True), ())],
    ),
    "after so many batches, when the last is logged": (
        Course(batches=1),
        [
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (BatchStarted(1), (RefuseBatch(),)),
            (BatchReported(5), (StopQuery(),)),
        ],
    ),
    "after so many records": (
        Course(records=8),
        [
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (BatchReported(5), ()),
            (BatchStarted(1), (RunBatch(),)),
            (BatchFinished(2.0), ()),
            (BatchReported(5), (StopQuery(),)),
        ],
    ),
    "when the user's condition holds": (
        Course(),
        [(STARTED, (RunBatch(),)), (FINISHED, ()), (BatchReported(5, is_goal=True), (StopQuery(),))],
    ),
    "at an event time": (
        Course(time=50),
        [(Poll(1.0, is_idle=True, event_time=49), ()), (Poll(1.0, is_idle=True, event_time=50), (StopQuery(),))],
    ),
    "the deadline does not end a run that has not asked its sources": (
        Course(duration=5.0),
        [
            (Poll(60.0), ()),
            (STARTED, (RunBatch(),)),
            (Poll(90.0), ()),
            (FINISHED, ()),
            (BatchReported(4000), (StopQuery(),)),
        ],
    ),
    "the deadline ends a run whose sources have nothing": (
        Course(duration=5.0),
        [(Poll(60.0, is_idle=True), (StopQuery(),))],
    ),
    "a batch under way at the deadline finishes however long it takes": (
        Course(duration=5.0),
        [
            (STARTED, (RunBatch(),)),
            (Poll(6.0), ()),
            (Poll(600.0), ()),
            (BatchFinished(601.0), ()),
            (BatchReported(10), (StopQuery(),)),
        ],
    ),
    "idle is counted from when the sources answered that they have nothing": (
        Course(idle=3.0),
        [
            (Poll(10.0), ()),
            (STARTED, (RunBatch(),)),
            (Poll(20.0), ()),
            (FINISHED, ()),
            (BatchReported(4000), ()),
            (Poll(30.0, is_idle=True), ()),
            (Poll(32.9, is_idle=True), ()),
            (Poll(33.0, is_idle=True), (StopQuery(),)),
        ],
    ),
    "batches without records do not end the quiet": (
        Course(idle=3.0, has_ticks=True),
        [
            (Poll(0.0, is_idle=True, is_due=True), (RunTick(),)),
            (STARTED, (RunBatch(),)),
            (Poll(2.0), ()),
            (FINISHED, ()),
            (Poll(3.0, is_idle=True), ()),
            (BatchReported(0), ()),
            (Poll(3.0), ()),
            (Poll(3.1, is_idle=True), (StopQuery(),)),
        ],
    ),
    "records end the quiet": (
        Course(idle=3.0),
        [
            (Poll(0.0, is_idle=True), ()),
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (BatchReported(1), ()),
            (Poll(4.0, is_idle=True), ()),
            (Poll(6.9, is_idle=True), ()),
            (Poll(7.0, is_idle=True), (StopQuery(),)),
        ],
    ),
    "time that has work gets a batch, and one only": (
        Course(has_ticks=True),
        [
            (STARTED, (RunBatch(),)),
            (Poll(1.0, is_due=True), ()),
            (FINISHED, ()),
            (Poll(1.0, is_due=True), (RunTick(),)),
            (Poll(1.1, is_due=True), ()),
            (BatchStarted(1), (RunBatch(),)),
            (BatchFinished(2.0), ()),
            (Poll(2.0, is_due=True), (RunTick(),)),
        ],
    ),
    "dead letters that wait get a batch of their own": (
        Course(has_ticks=True),
        [(Poll(1.0, is_idle=True, has_replays=True), (RunTick(),)), (STARTED, (RunBatch(),))],
    ),
    "at the end all time passes, in one batch": (
        Course(batches=1, drains=True, has_ticks=True),
        [
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (BatchReported(5), (RunTick(),)),
            (BatchStarted(1), (RunBatch(ended=True),)),
            (BatchFinished(2.0), ()),
            (BatchStarted(2), (RefuseBatch(),)),
            (BatchReported(0), (StopQuery(),)),
        ],
    ),
    "a run that takes what is there ends with it": (
        Course(once=True),
        [(STARTED, (RunBatch(),)), (FINISHED, ()), (QueryEnded(), ())],
    ),
    "once: loops that were fed run again": (
        Course(once=True),
        [
            (STARTED, (RunBatch(),)),
            (BatchFinished(1.0, has_fed=True), ()),
            (QueryEnded(), (StartQuery(),)),
            (QueryEnded(), ()),
        ],
    ),
    "once: all time passes when loops are quiet": (
        Course(once=True, drains=True, has_ticks=True),
        [
            (STARTED, (RunBatch(),)),
            (BatchFinished(1.0, has_fed=True), ()),
            (QueryEnded(), (StartQuery(),)),
            (QueryEnded(), (RunTick(), StartQuery())),
            (BatchStarted(1), (RunBatch(ended=True),)),
            (BatchFinished(2.0), ()),
            (QueryEnded(), ()),
        ],
    ),
    "once: dead letters are replayed though no record waits": (
        Course(once=True, has_ticks=True),
        [
            (QueryEnded(has_replays=True), (RunTick(), StartQuery())),
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (QueryEnded(), ()),
        ],
    ),
    "once: what is due when the run starts is done though no record waits": (
        Course(once=True, has_ticks=True),
        [
            (QueryEnded(is_due=True), (RunTick(), StartQuery())),
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (QueryEnded(), ()),
        ],
    ),
    "a query that a busy machine did not start is started again": (
        Course(),
        [
            (BUSY, (StartQuery(),)),
            (BUSY, (StartQuery(),)),
            (STARTED, (RunBatch(),)),
            (FINISHED, ()),
            (BUSY, (StartQuery(),)),
            (BUSY, (StartQuery(),)),
            (BUSY, (StartQuery(),)),
            (BUSY, ()),
        ],
    ),
    "a run that is to end does not start its query again": (
        Course(),
        [(StopRequested(1.0), (StopQuery(),)), (BUSY, ())],
    ),
    "a stop lets the batch under way finish": (
        Course(),
        [
            (STARTED, (RunBatch(),)),
            (StopRequested(5.0), ()),
            (Poll(9.0), ()),
            (FINISHED, ()),
            (BatchReported(1), (StopQuery(),)),
        ],
    ),
    "a stop waits for so long": (
        Course(patience=7.0),
        [
            (STARTED, (RunBatch(),)),
            (StopRequested(5.0), ()),
            (Poll(11.9), ()),
            (Poll(12.0), (StopQuery(abandons=True),)),
        ],
    ),
    "a forced stop has no last batch": (Course(drains=True, has_ticks=True), [(StopForced(1.0), (StopQuery(),))]),
    "a failed batch ends the run": (
        Course(drains=True, has_ticks=True),
        [(STARTED, (RunBatch(),)), (BatchFailed(), (StopQuery(),))],
    ),
    "a source that fails lets the batch under way finish": (
        Course(),
        [(STARTED, (RunBatch(),)), (SourceFailed(), ()), (FINISHED, (StopQuery(),))],
    ),
}


@pytest.mark.parametrize("name", COURSES)
def test_course(name: str) -> None:
    play(*COURSES[name])


def test_what_was_lost_is_known() -> None:
    machine = play(
        Course(), [(STARTED, (RunBatch(),)), (StopRequested(0.0), ()), (Poll(8.0), (StopQuery(abandons=True),))]
    )
    assert (machine.has_abandoned, machine.ran) == (True, 0)
    machine.handle(QueryEnded())
    assert machine.is_over


EVENTS = st.one_of(
    st.just("batch"),
    st.just("report"),
    st.builds(
        lambda span, idle, due, replays: (span, idle, due, replays),
        st.floats(0.0, 20.0),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    st.sampled_from(["fail", "source", "stop", "force", "end"]),
)
COURSE = st.builds(
    Course,
    once=st.booleans(),
    drains=st.booleans(),
    has_ticks=st.just(True),
    duration=st.none() | st.floats(0.0, 60.0),
    batches=st.none() | st.integers(1, 4),
    records=st.none() | st.integers(1, 30),
    idle=st.none() | st.floats(0.1, 20.0),
)


class Spark:
    """A query that behaves as Spark's does, with whatever the machine says carried out."""

    def __init__(self, course: Course) -> None:
        self.machine, self.now = Machine(course), 0.0
        self.next, self.unreported, self.is_active = 0, 0, True
        self.ended: list[int] = []
        self.ticks = self.batches_with_work = 0
        self.refused_first = False
        self.obey(self.machine.handle(QueryStarted(0.0)))

    def obey(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            match command:
                case StartQuery():
                    assert not self.is_active
                    self.is_active = True
                case RunTick():
                    self.ticks += 1
                case StopQuery(abandons):
                    assert abandons == (self.machine.batch is not None), "a batch is abandoned only knowingly"
                    self.is_active, self.unreported = False, 0
                    self.obey(self.machine.handle(QueryEnded()))

    def take(self, event: object) -> None:
        machine = self.machine
        if event == "batch" and self.is_active:
            self._toggle()
        elif event == "report" and self.unreported and self.is_active:
            self.unreported -= 1
            self.obey(machine.handle(BatchReported(10)))
        elif event == "fail" and machine.batch is not None:
            self.obey(machine.handle(BatchFailed()))
        elif event == "end" and self.is_active and machine.course.once and machine.batch is None:
            self.is_active, self.unreported = False, 0
            self.obey(machine.handle(QueryEnded()))
        elif isinstance(event, tuple) and self.is_active:
            self.now += event[0]
            self.obey(machine.handle(Poll(self.now, event[1] and machine.batch is None, event[2], event[3])))
        elif event in ("source", "stop", "force"):
            made: dict[object, Event] = {
                "source": SourceFailed(),
                "stop": StopRequested(self.now),
                "force": StopForced(self.now),
            }
            self.obey(machine.handle(made[event]))

    def _toggle(self) -> None:
        machine = self.machine
        if machine.batch is not None:
            self.unreported += 1
            self.obey(machine.handle(BatchFinished(self.now)))
            return
        phase = machine.phase
        (command,) = machine.handle(BatchStarted(self.next))
        if isinstance(command, RunBatch):
            assert phase in (Phase.RUNNING, Phase.DRAINING)
            if command.ended:
                self.ended.append(self.next)
            self.next += 1


@settings(max_examples=500, deadline=None)
@given(COURSE, st.lists(EVENTS, max_size=40))
def test_whatever_happens_a_run_keeps_its_promises(course: Course, events: list[object]) -> None:
    """A batch is never begun in a run that ends, all time passes at most once, and a run that is asked to end does end."""
    spark = Spark(course)
    for event in events:
        was_over = spark.machine.is_over
        spark.take(event)
        assert not was_over or spark.machine.is_over, "what is over stays over"
    assert len(spark.ended) <= 1
    assert not spark.ended or course.drains
    spark.obey(spark.machine.handle(StopForced(spark.now)))
    for _ in range(20):
        if spark.machine.batch is not None:
            spark.take("batch")
        spark.take("report")
        spark.take((1.0, False, False, False))
        if not spark.is_active and not spark.machine.is_over:
            spark.obey(spark.machine.handle(QueryEnded()))
    assert spark.machine.is_over
    assert spark.machine.batch is None
