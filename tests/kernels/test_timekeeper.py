"""The timekeeper against a world that it does not see: producers, waiting records, slow batches, crashes. No JVM."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.expr import as_expr
from penstock.graph.nodes import EventTime
from penstock.graph.state.times import StoredTimes, Wakes
from penstock.graph.times import FOREVER, NEVER
from penstock.kernels.watermarks import BatchTimes, Timekeeper

IDLE = 50


def clicks(idle: int | None = IDLE, lateness: int = 0, name: str = "clicks") -> EventTime:
    return EventTime(name, (), "ts", as_expr("ts"), lateness=lateness, max_lead=0, idle=idle)


def batch(keeper: Timekeeper, now: int, *, waiting: tuple[str, ...] = (), **highs: int) -> BatchTimes:
    times = keeper.begin(now, waiting)
    keeper.finish({"clicks": highs})
    return times


def test_a_batch_that_outlasts_idle_makes_nothing_idle() -> None:
    keeper = Timekeeper((clicks(),))
    batch(keeper, 0, a=10)
    assert batch(keeper, 1000, a=20).watermark == {"clicks": 10}
    assert batch(keeper, 2000, a=30).watermark == {"clicks": 20}


def test_an_input_that_was_asked_and_had_nothing_for_long_enough_goes_on_with_processing_time() -> None:
    keeper = Timekeeper((clicks(),))
    batch(keeper, 0, a=10)
    keeper.nothing_waits(100)
    assert keeper.reached() == {"clicks": 10}, "it was asked for the first time, however long the batch took"
    keeper.nothing_waits(149)
    assert keeper.reached() == {"clicks": 10}
    keeper.nothing_waits(151)
    assert keeper.reached() == {"clicks": 61}


def test_a_quiet_partition_holds_time_back_until_it_is_idle_though_batches_run_without_a_pause() -> None:
    keeper = Timekeeper((clicks(),))
    batch(keeper, 0, a=10, b=10)
    seen = [batch(keeper, now, a=now + 10).watermark["clicks"] for now in range(20, 140, 20)]
    assert seen == [10, 10, 10, 10, 90, 110]


def test_nothing_is_idle_while_records_wait() -> None:
    keeper = Timekeeper((clicks(),))
    batch(keeper, 0, a=10, b=10)
    waiting = [batch(keeper, now, waiting=("clicks",), a=now).watermark["clicks"] for now in range(20, 400, 20)]
    assert set(waiting) == {10}


def test_an_idle_partition_counts_again_when_records_wait_or_it_has_some() -> None:
    keeper = Timekeeper((clicks(),))
    batch(keeper, 0, a=10, b=10)
    for now in range(20, 120, 20):
        batch(keeper, now, a=now)
    assert keeper.reached() == {"clicks": 100}
    batch(keeper, 120, a=200, b=70)
    assert batch(keeper, 140, a=210).watermark == {"clicks": 100}, "time does not go back"
    assert batch(keeper, 160, waiting=("clicks",), a=220, b=205).watermark == {"clicks": 100}
    assert keeper.reached() == {"clicks": 205}


def test_without_idle_time_stands_until_records_come() -> None:
    keeper = Timekeeper((clicks(idle=None),))
    batch(keeper, 0, a=10)
    for now in (100, 1000, 10_000):
        keeper.nothing_waits(now)
    assert batch(keeper, 10_000).watermark == {"clicks": 10}


def test_the_time_between_two_runs_is_not_quiet_time() -> None:
    first, second = Timekeeper((clicks(),)), Timekeeper((clicks(),))
    first.begin(0)
    second.restore(first.finish({"clicks": {"a": 10, "b": 5}}))
    assert second.begin(100_000).watermark == {"clicks": 5}
    second.finish({"clicks": {"a": 20}})
    assert second.begin(100_001).watermark == {"clicks": 5}


def test_work_is_due_by_event_time_of_its_own_inputs_or_by_processing_time() -> None:
    keeper = Timekeeper((clicks(), clicks(name="views")))
    batch(keeper, 0, a=10)
    steps = {"one": ("clicks",), "both": ("clicks", "views")}
    for store, due in (("one", True), ("both", False)):
        wakes = Wakes({store: 10})
        assert keeper.is_due(wakes, 1, lambda s, at: min(at.get(n, NEVER) for n in steps[s])) is due
    assert keeper.is_due(Wakes({}, {"one": 7}), 7, lambda s, at: NEVER)
    assert not keeper.is_due(Wakes({}, {"one": 7}), 6, lambda s, at: NEVER)


def test_at_the_end_of_the_input_all_time_has_passed_and_a_replay_says_so_again() -> None:
    keeper = Timekeeper((clicks(),))
    batch(keeper, 0, a=10)
    before = keeper.stored()
    times = keeper.begin(5, ended=True)
    stored = keeper.finish({})
    again = Timekeeper((clicks(),))
    again.restore(before)
    assert again.replay(stored) == times
    assert (times.watermark, times.ended) == ({"clicks": FOREVER}, True)


Answer = tuple[int, str, int]
"""Processing time, what was answered (records, nothing, unknown), and the event time of records."""


@dataclass
class Reference:
    """The rule, read off the whole history: slow, and without any state of its own but the answers of each partition."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    stood: int = NEVER

    def reached(self, idle: int) -> int:
        """The watermark that follows from all answers."""
        highs = {p: max(h for _, what, h in mine if what == "records") for p, mine in self.answers.items()}
        quiet = {p: _quiet(mine) for p, mine in self.answers.items()}
        idles = {p for p, mine in self.answers.items() if mine[-1][1] == "nothing" and quiet[p] >= idle}
        busy = [highs[p] for p in highs if p not in idles]
        self.stood = max(self.stood, min(busy) if busy else max((highs[p] + quiet[p] for p in highs), default=NEVER))
        return self.stood


def _quiet(answers: list[Answer]) -> int:
    """The time between answers of nothing that follow each other, since the last records."""
    last = max(i for i, (_, what, _) in enumerate(answers) if what == "records")
    pairs = zip(answers[last + 1 :], answers[last + 2 :], strict=False)
    return sum(b[0] - a[0] for a, b in pairs if a[1] == b[1] == "nothing")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_watermark_is_what_the_whole_history_of_answers_says(data: st.DataObject) -> None:
    """Random batches, quiet moments, backlogs and restarts, against the rule read off the history."""
    keeper, reference, now = Timekeeper((clicks(),)), Reference(), 0
    pending: tuple[int, set[str]] | None = None
    for _ in range(data.draw(st.integers(1, 14))):
        now += data.draw(st.integers(1, 60))
        what = data.draw(st.sampled_from(["batch", "batch", "batch", "nothing", "restart"]))
        if what == "nothing":
            if pending is not None:
                _answer(reference, pending, "nothing")
            pending = None
            keeper.nothing_waits(now)
            for mine in reference.answers.values():
                mine.append((now, "nothing", 0))
        elif what == "restart":
            kept = keeper.stored()
            keeper = Timekeeper((clicks(),))
            keeper.restore(kept)
            pending = None
            for mine in reference.answers.values():
                mine.append((now, "unknown", 0))
        else:
            waits = data.draw(st.booleans())
            if pending is not None:
                _answer(reference, pending, "unknown" if waits else "nothing")
            times = keeper.begin(now, ("clicks",) if waits else ())
            assert times.watermark == {"clicks": reference.reached(IDLE)}
            highs = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 300), max_size=3))
            keeper.finish({"clicks": highs})
            for partition, high in highs.items():
                reference.answers.setdefault(partition, []).append((now, "records", high))
            reference.reached(IDLE)
            pending = (now, set(reference.answers) - set(highs))


def _answer(reference: Reference, pending: tuple[int, set[str]], what: str) -> None:
    now, without = pending
    for partition in without:
        reference.answers[partition].append((now, what, 0))


@dataclass
class World:
    """Producers that write in order, and a flow that takes what it can: a batch takes some records, and then its time."""

    rolled: random.Random
    partitions: int
    gap: int
    """The longest time between two records of a partition."""
    now: int = 0
    waiting: dict[str, list[int]] = field(default_factory=dict)
    next_at: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = {str(p): [] for p in range(self.partitions)}
        self.next_at = {p: self.rolled.randint(0, self.gap) for p in self.waiting}

    def pass_time(self, span: int) -> None:
        """Producers write while time passes; the event time of a record is the processing time at which it is written."""
        self.now += span
        for partition, mine in self.waiting.items():
            while self.next_at[partition] <= self.now:
                mine.append(self.next_at[partition])
                self.next_at[partition] += self.rolled.randint(1, self.gap)

    def take(self, most: int) -> dict[str, list[int]]:
        """What a batch takes: the oldest first, as a log in the order of arrival."""
        everything = sorted((time, p) for p, mine in self.waiting.items() for time in mine)[:most]
        taken: dict[str, list[int]] = {}
        for time, partition in everything:
            self.waiting[partition].remove(time)
            taken.setdefault(partition, []).append(time)
        return taken

    @property
    def has_waiting(self) -> bool:
        return any(self.waiting.values())


@dataclass
class Flow:
    """A flow in that world, with a manifest for each batch, as on disk."""

    node: EventTime
    keeper: Timekeeper
    kept: list[StoredTimes] = field(default_factory=list)
    waited: bool = True
    """Whether the last batch left records waiting, or nothing is known of it."""
    late: int = 0
    watermarks: list[int] = field(default_factory=list)

    def run(self, world: World, most: int, seconds: int) -> dict[str, list[int]]:
        times = self.keeper.begin(world.now, ("clicks",) if self.waited else ())
        taken = world.take(most)
        self.waited = world.has_waiting
        self._count(times, taken)
        world.pass_time(seconds)
        highs = {"clicks": {p: max(mine) for p, mine in taken.items()}}
        self.kept.append(self.keeper.finish(highs))
        return taken

    def _count(self, times: BatchTimes, taken: dict[str, list[int]]) -> None:
        previous = times.previous.get("clicks", NEVER)
        self.late += sum(time < previous for mine in taken.values() for time in mine)
        self.watermarks.append(times.watermark["clicks"])

    def restart(self, last: dict[str, list[int]], replays: bool) -> None:
        """The process dies. With `replays` it died before Spark noted the commit, and the batch runs again."""
        self.keeper, self.waited = Timekeeper((self.node,)), True
        if not replays or len(self.kept) < 2:
            self.keeper.restore(self.kept[-1])
            return
        self.keeper.restore(self.kept[-2])
        times = self.keeper.replay(self.kept[-1])
        assert times.watermark["clicks"] == self.watermarks[-1], "a replay sees the times that the batch had"
        assert times.previous.get("clicks", NEVER) == (self.watermarks[-2] if len(self.watermarks) > 1 else NEVER)
        highs = {"clicks": {p: max(mine) for p, mine in last.items()}}
        assert self.keeper.finish(highs) == self.kept[-1]


@pytest.mark.parametrize("seed", range(200))
def test_records_in_order_are_never_late_however_long_batches_take(seed: int) -> None:
    """Partitions write more often than `idle`, in order; batches last up to six times `idle`, records wait, the driver dies."""
    rolled = random.Random(seed)
    world = World(rolled, rolled.randint(1, 4), gap=IDLE - 10)
    node = clicks(lateness=IDLE)
    flow = Flow(node, Timekeeper((node,)))
    for _ in range(60):
        if world.has_waiting:
            taken = flow.run(world, rolled.choice([1, 3, 1000]), rolled.choice([1, 5, 70, 300]))
            if rolled.random() < 0.15:
                flow.restart(taken, replays=rolled.random() < 0.5)
                world.pass_time(rolled.choice([1, 500]))
        else:
            flow.keeper.nothing_waits(world.now)
            world.pass_time(rolled.randint(1, 9))
    assert flow.late == 0
    assert flow.watermarks == sorted(flow.watermarks)


@pytest.mark.parametrize("seed", range(50))
def test_a_partition_that_falls_silent_holds_time_back_for_a_while_only(seed: int) -> None:
    rolled = random.Random(seed)
    world = World(rolled, 3, gap=20)
    node = clicks()
    flow = Flow(node, Timekeeper((node,)))
    while len(flow.watermarks) < 5:
        world.pass_time(20)
        flow.run(world, 1000, 5)
    world.next_at["0"] = FOREVER
    until = world.now + 20 * IDLE
    while world.now < until:
        flow.run(world, 1000, rolled.choice([5, 30, 70]))
    assert flow.watermarks[-1] > until - 6 * IDLE
