"""Guaranteed processing, ticks, windows and state of bolts, as a user of Storm knows them; without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, Impossible, UnknownName
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.testing import BARRIER, CRASH, Driver, TrackedTopology, complete_topology, run_local


class Numbers(ps.Spout):
    """Emits numbers with ids; what fails is emitted again."""

    outputs = "n bigint"
    reliable = True
    said: list[tuple[str, Any]] = []

    def __init__(self, many: int, replays: bool = True) -> None:
        self.todo, self.replays = list(range(many)), replays

    def open(self, context: TaskContext) -> None:
        Numbers.said = []

    def next_tuple(self) -> Any:
        if not self.todo:
            return ps.END
        n = self.todo.pop(0)
        self.emit(n, id=n)
        return None

    def ack(self, id: Any) -> None:
        Numbers.said.append(("ack", id))

    def fail(self, id: Any) -> None:
        Numbers.said.append(("fail", id))
        if self.replays:
            self.todo.append(id)


class Double(ps.BasicBolt):
    outputs = "n bigint"

    def process(self, tup: Any) -> Any:
        yield tup.n * 2


class FailOnce(ps.BasicBolt):
    """Fails odd numbers the first time."""

    outputs = "n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.seen: set[int] = set()

    def process(self, tup: Any) -> Any:
        if tup.n % 2 and tup.n not in self.seen:
            self.seen.add(tup.n)
            raise ps.FailedException("not yet")
        yield tup.n


class Hold(ps.Bolt):
    """Acks when it has three tuples."""

    outputs = "total bigint"
    auto_ack = False

    def prepare(self, context: TaskContext) -> None:
        self.held: list[Any] = []

    def process(self, tup: Any) -> Any:
        self.held.append(tup)
        if len(self.held) == 3:
            self.emit(sum(t.n for t in self.held), anchors=self.held)
            for each in self.held:
                self.ack(each)
            self.held = []


def numbers(many: int, config: dict[str, Any] | None = None, *, replays: bool = True) -> ps.Topology:
    top = ps.Topology("numbers", config)
    top.spout("numbers", Numbers(many, replays))
    return top


def test_every_message_is_acked_when_its_tree_is_done() -> None:
    top = numbers(4)
    top.bolt("one", Double(), parallelism=2).shuffle("numbers")
    top.bolt("two", Double()).all("one")
    top.bolt("three", Double(), parallelism=2).all("one")
    top.sink("out", ps.console(), from_="two")
    assert sorted(run_local(top)["out"]) == [(n * 4,) for n in range(4)]
    assert sorted(Numbers.said) == [("ack", n) for n in range(4)]


def test_a_failed_message_is_replayed_until_it_is_done() -> None:
    top = numbers(4)
    top.bolt("flaky", FailOnce()).shuffle("numbers")
    top.sink("out", ps.console(), from_="flaky")
    assert sorted(run_local(top)["out"]) == [(n,) for n in range(4)]
    assert sorted(Numbers.said) == [("ack", n) for n in range(4)] + [("fail", 1), ("fail", 3)]


def test_a_failure_with_several_anchors_replays_every_root() -> None:
    class Refuse(ps.BasicBolt):
        def process(self, tup: Any) -> None:
            raise ps.FailedException("always")

    top = numbers(3, replays=False)
    top.bolt("hold", Hold()).global_("numbers")
    top.bolt("refuse", Refuse()).shuffle("hold")
    run_local(top)
    assert sorted(Numbers.said) == [("fail", n) for n in range(3)]


def test_an_unanchored_emit_leaves_the_tree() -> None:
    class Loose(ps.Bolt):
        outputs = "n bigint"

        def process(self, tup: Any) -> None:
            self.emit(tup.n, anchors=[])

    class Refuse(ps.BasicBolt):
        def process(self, tup: Any) -> None:
            assert tup.roots == frozenset()
            raise ps.FailedException("nobody hears it")

    top = numbers(2)
    top.bolt("loose", Loose()).shuffle("numbers")
    top.bolt("refuse", Refuse()).shuffle("loose")
    run_local(top)
    assert Numbers.said == [("ack", 0), ("ack", 1)]


def test_a_tuple_anchored_twice_to_one_parent_closes_its_tree() -> None:
    class Twice(ps.Bolt):
        outputs = "n bigint"

        def process(self, tup: Any) -> None:
            self.emit(tup.n, anchors=[tup, tup])

    top = numbers(1)
    top.bolt("twice", Twice()).shuffle("numbers")
    top.bolt("double", Double()).shuffle("twice")
    run_local(top)
    assert Numbers.said == [("ack", 0)]


def test_a_bolt_may_hold_a_tuple_over_batches() -> None:
    top = numbers(6, {"topology.max.spout.pending": 3})
    top.bolt("hold", Hold()).global_("numbers")
    top.sink("out", ps.console(), from_="hold")
    assert run_local(top)["out"] == [(3,), (12,)]
    assert [number for _, number in Numbers.said] == list(range(6))


def test_held_tuples_survive_a_crash() -> None:
    """The tuples, and what is known of their messages, are of the last barrier."""
    top = ps.Topology("crash")
    top.spout("numbers", ps.items([], "n bigint"))
    top.bolt("hold", Hold()).global_("numbers")
    top.sink("out", ps.console(), from_="hold")
    assert run_local(top, {"numbers": [1, 2, BARRIER, CRASH, 3, CRASH, 4]})["out"] == [(6,)]


def test_messages_wait_while_as_many_as_may_be_are_pending() -> None:
    class Never(ps.Bolt):
        auto_ack = False

        def process(self, tup: Any) -> None:
            pass

    top = numbers(10, {"topology.max.spout.pending": 4, "topology.message.timeout.secs": 10}, replays=False)
    top.bolt("never", Never()).shuffle("numbers")
    tracked = TrackedTopology(top)
    tracked.run()
    assert (tracked.pending("numbers"), tracked.is_done) == (4, False)
    tracked.advance(9)
    assert tracked.failed("numbers") == []
    tracked.advance(11)
    assert tracked.failed("numbers") == [0, 1, 2, 3]
    tracked.run()
    assert tracked.pending("numbers") == 4


def test_reset_timeout_keeps_a_message_alive() -> None:
    class Renew(ps.Bolt):
        auto_ack = False
        config = {"topology.tick.tuple.freq.secs": 5}

        def prepare(self, context: TaskContext) -> None:
            self.held: list[Any] = []

        def process(self, tup: Any) -> None:
            if not tup.is_tick:
                self.held.append(tup)
            for each in self.held:
                self.reset_timeout(each)

    top = numbers(1, {"topology.message.timeout.secs": 10})
    top.bolt("renew", Renew()).shuffle("numbers")
    tracked = TrackedTopology(top)
    tracked.run()
    tracked.advance(100)
    assert (tracked.failed("numbers"), tracked.pending("numbers")) == ([], 1)


def test_without_ackers_a_message_is_acked_at_once() -> None:
    class Refuse(ps.BasicBolt):
        def process(self, tup: Any) -> None:
            raise ps.FailedException("nobody hears it")

    top = numbers(2, {"topology.acker.executors": 0})
    top.bolt("refuse", Refuse()).shuffle("numbers")
    run_local(top)
    assert Numbers.said == [("ack", 0), ("ack", 1)]
    tracked = TrackedTopology(top)
    tracked.run()
    assert (tracked.acked("numbers"), tracked.is_done) == ([0, 1], True)


def test_messages_in_a_loop_are_open_until_they_leave_it() -> None:
    class Halve(ps.Bolt):
        outputs = {"default": "n bigint", "done": "n bigint"}

        def process(self, tup: Any) -> None:
            if tup.n == 3:
                raise ps.FailedException("three")
            self.emit(tup.n // 2, stream="done" if tup.n < 4 else "default")

    top = numbers(9, replays=False)
    top.bolt("halve", Halve(), parallelism=2).shuffle("numbers").all("halve", feedback=True)
    top.sink("out", ps.console(), from_="halve", stream="done")
    run_local(top)
    assert sorted(Numbers.said) == sorted(("fail" if n in (3, 6, 7) else "ack", n) for n in range(9))


def test_a_message_that_always_fails_ends_a_bounded_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuse(ps.BasicBolt):
        def process(self, tup: Any) -> None:
            raise ps.FailedException("always")

    monkeypatch.setattr("penstock.local.spouts.ROUNDS", 10)
    top = numbers(1)
    top.bolt("refuse", Refuse()).shuffle("numbers")
    with pytest.raises(Impossible, match="a bolt fails them every time"):
        run_local(top)


class Ticked(ps.Bolt):
    outputs = "kind string, value double"
    config = {"topology.tick.tuple.freq.secs": 10}

    def process(self, tup: Any) -> Any:
        yield ("tick", tup[0]) if tup.is_tick else ("tuple", float(tup.n))


def test_ticks_come_at_their_frequency() -> None:
    top = ps.Topology("ticks")
    top.spout("numbers", ps.items([], "n bigint"))
    top.bolt("ticked", Ticked(), config={"topology.tick.tuple.freq.secs": 20}).shuffle("numbers")
    top.sink("out", ps.console(), from_="ticked")
    tracked = TrackedTopology(top)
    tracked.push("numbers", 7)
    tracked.advance(65)
    assert tracked.driver.results()["out"] == [("tuple", 7.0), ("tick", 20.0), ("tick", 20.0), ("tick", 20.0)]


class Windowed(ps.WindowedBolt):
    outputs = {"default": "n array<bigint>, new array<bigint>, expired array<bigint>", "late": "n bigint, ts bigint"}

    def process_window(self, window: Any) -> Any:
        yield tuple([t.n for t in part] for part in (window.tuples, window.new, window.expired))


def windows(bolt: ps.Bolt, values: list[Any], schema: str = "n bigint") -> list[Any]:
    top = ps.Topology("windows")
    top.spout("numbers", ps.items([], schema))
    top.bolt("windowed", bolt).global_("numbers")
    top.sink("out", ps.console(), from_="windowed")
    top.sink("late", ps.console(), from_="windowed", stream="late")
    results = run_local(top, {"numbers": values})
    return [*map(tuple, results["out"]), *map(tuple, results["late"])]


def test_sliding_windows_by_count() -> None:
    class Sliding(Windowed):
        window, slide = 3, 2

    assert windows(Sliding(), [1, 2, 3, 4, 5, 6]) == [
        ([1, 2], [1, 2], []),
        ([2, 3, 4], [3, 4], [1]),
        ([4, 5, 6], [5, 6], [2, 3]),
    ]


@pytest.mark.parametrize("oracle", [False, True])
def test_windows_by_count_go_on_over_batches(oracle: bool) -> None:
    class Tumbling(Windowed):
        window = 3

    top = ps.Topology("windows")
    top.spout("numbers", ps.items([], "n bigint"))
    top.bolt("windowed", Tumbling()).global_("numbers")
    top.sink("out", ps.console(), from_="windowed")
    given = [1, BARRIER, 2, CRASH, 3, 4, BARRIER, CRASH, 5, 6]
    made = run_local(top, {"numbers": given}, oracle=oracle)["out"]
    assert [row.n for row in made] == [[1, 2, 3], [4, 5, 6]]


def test_windows_by_event_time_with_lag_and_late_tuples() -> None:
    class Timed(Windowed):
        window, slide, timestamp_field, lag, late_stream = "10s", "5s", "ts", "2s", "late"

    given = [(1, 1_000), (2, 4_000), (3, 9_000), BARRIER, (4, 8_500), (5, 14_000), BARRIER, (6, 3_000), (7, 21_000)]
    made = windows(Timed(), given, "n bigint, ts bigint")
    assert made == [
        ([1, 2], [1, 2], []),
        ([1, 2, 4, 3], [4, 3], []),
        ([4, 3, 5], [5], [1, 2]),
        ([5], [], [4, 3]),
        ([7], [7], [5]),
        ([7], [], []),
        (6, 3_000),
    ]


def test_tuples_of_a_window_are_acked_when_they_leave_it() -> None:
    class Pairs(ps.WindowedBolt):
        outputs = "n bigint"
        window, slide = 2, 1

        def process_window(self, window: Any) -> Any:
            yield sum(t.n for t in window)

    top = numbers(5)
    top.bolt("pairs", Pairs()).global_("numbers")
    tracked = TrackedTopology(top)
    tracked.run()
    assert (tracked.acked("numbers"), tracked.pending("numbers")) == ([0, 1, 2], 2)


class Entries(ps.StatefulBolt):
    outputs = "word string, n bigint"

    def init_state(self, state: Any) -> None:
        self._state = state

    def process(self, tup: Any) -> Any:
        self._state[tup.word] = self._state.get(tup.word, 0) + 1
        yield tup.word, self._state[tup.word]


def test_a_key_value_state_goes_back_with_a_crash() -> None:
    top = ps.Topology("entries")
    top.spout("words", ps.items([], "word string"))
    top.bolt("entries", Entries(), parallelism=2).fields("words", "word")
    top.sink("out", ps.console(), from_="entries")
    given = ["a", "b", BARRIER, "a", CRASH, "a", "b"]
    assert run_local(top, {"words": given})["out"] == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)]


class Look(ps.Bolt):
    seen: dict[str, Any] = {}

    def prepare(self, context: TaskContext) -> None:
        Look.seen[f"{context.component}-{context.task}"] = context

    def process(self, tup: Any) -> None:
        pass


def test_the_context_knows_the_topology() -> None:
    top = numbers(1, {"mine": 1})
    top.bolt("look", Look(), parallelism=2, config={"mine": 2}).fields("numbers", "n")
    run_local(top)
    context = Look.seen["look-1"]
    assert (context.task_id, context.task_ids("numbers"), context.component_of(3)) == (2, [3], "numbers")
    assert context.task_to_component == {1: "look", 2: "look", 3: "numbers"}
    assert (context.topology, context.components, context.config["mine"]) == ("numbers", ["numbers", "look"], 2)
    assert context.sources() == {("numbers", "default"): "fields(n)"}
    assert context.targets("numbers") == {"default": {"look": "fields(n)"}}
    assert (context.streams("numbers"), context.fields("default", "numbers")) == (["default"], ("n",))
    with pytest.raises(FlowError, match="expected the id of a task, 1 to 3, got 9"):
        context.component_of(9)


def test_emit_direct_takes_a_task_id() -> None:
    class Deal(ps.Bolt):
        outputs = "n bigint"
        direct = ("default",)

        def prepare(self, context: TaskContext) -> None:
            self._ids = context.task_ids("show")

        def process(self, tup: Any) -> None:
            self.emit_direct(self._ids[tup.n % 2], tup.n)

    class Show(ps.Bolt):
        outputs = "n bigint, task int"

        def prepare(self, context: TaskContext) -> None:
            self._task = context.task

        def process(self, tup: Any) -> Any:
            yield tup.n, self._task

    top = numbers(4)
    top.bolt("deal", Deal()).shuffle("numbers")
    top.bolt("show", Show(), parallelism=2).direct("deal")
    assert complete_topology(top).tuples("show") == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert sorted(Numbers.said) == [("ack", n) for n in range(4)]


class Hook(ps.TaskHook):
    heard: list[tuple[str, Any]] = []

    def executed(self, tup: Any, seconds: float) -> None:
        Hook.heard.append(("executed", tup.n))

    def acked(self, tup: Any) -> None:
        Hook.heard.append(("acked", tup.n))

    def failed(self, tup: Any) -> None:
        Hook.heard.append(("failed", tup.n))


def test_metrics_errors_and_hooks() -> None:
    Hook.heard = []

    class Counts(ps.BasicBolt):
        def prepare(self, context: TaskContext) -> None:
            self._count = context.register_metric("seen", ps.CountMetric())
            context.add_hook(Hook())

        def process(self, tup: Any) -> None:
            self._count.increment()  # type: ignore[attr-defined]  # a CountMetric
            if tup.n == 1:
                raise ps.ReportedFailedException("one")

    top = numbers(2, replays=False)
    top.bolt("counts", Counts()).shuffle("numbers")
    tracked = TrackedTopology(top)
    tracked.run()
    assert tracked.metrics == {("counts", 0): {"seen": 2}}
    assert tracked.errors == {("counts", 0): ["ReportedFailedException: one"]}
    assert Hook.heard == [("acked", 0), ("executed", 0), ("failed", 1), ("executed", 1)]


class EmitHook(ps.TaskHook):
    heard: list[tuple[Any, str]] = []

    def emitted(self, record: Any, stream: str) -> None:
        EmitHook.heard.append((record, stream))


def test_hooks_hear_of_every_emit_of_bolts_and_spouts() -> None:
    EmitHook.heard = []

    class Speaks(ps.Spout):
        outputs = "n int"
        at = 0

        def open(self, context: TaskContext) -> None:
            context.add_hook(EmitHook())

        def next_tuple(self) -> Any:
            self.at += 1
            self.emit(self.at)
            return ps.END if self.at == 2 else None

    class Says(ps.Bolt):
        outputs = {"default": "n int", "loud": "n int", "jobs": "n int"}
        direct = ("jobs",)

        def prepare(self, context: TaskContext) -> None:
            context.add_hook(EmitHook())

        def process(self, tup: Any) -> Any:
            self.emit(10 * tup.n, stream="loud")
            self.emit(tup.n, stream="jobs", task=0)
            return [100 * tup.n]

    top = ps.Topology("heard")
    top.spout("speaks", Speaks())
    top.bolt("says", Says()).shuffle("speaks")
    complete_topology(top)
    of_says = [(10, "loud"), (1, "jobs"), (100, "default"), (20, "loud"), (2, "jobs"), (200, "default")]
    assert EmitHook.heard == [(1, "default"), (2, "default"), *of_says]


def test_mocks_take_the_place_of_spouts() -> None:
    top = numbers(100)
    top.bolt("flaky", FailOnce()).shuffle("numbers")
    made = complete_topology(top, {"numbers": [4, 5]})
    assert made.tuples("numbers") == [(4,), (5,), (5,)]
    assert made.tuples("flaky") == [(4,), (5,)]
    with pytest.raises(UnknownName, match="no spout 'number'"):
        complete_topology(top, {"number": []})


class Mail(ps.Spout):
    outputs: Mapping[str, str] = {"letters": "text string", "parcels": "kilos int, to string", "jobs": "n int"}
    direct = ("jobs",)

    def next_tuple(self) -> Any:
        raise AssertionError("a mock is in its place")


def post() -> ps.Topology:
    class FailHeavyOnce(FailOnce):
        outputs = "kilos int"

        def process(self, tup: Any) -> Any:
            yield tup.kilos
            if tup.kilos > 5 and tup.kilos not in self.failed:
                self.failed.add(tup.kilos)
                raise ps.FailedException

        def prepare(self, context: TaskContext) -> None:
            self.failed: set[int] = set()

    top = ps.Topology("post")
    top.spout("mail", Mail(), parallelism=2)
    top.bolt("weigh", FailHeavyOnce()).shuffle("mail", stream="parcels")
    top.bolt("work", Double(), parallelism=2).direct("mail", stream="jobs")
    return top


def test_mocks_have_streams() -> None:
    given = [ps.to("letters", "hello"), ps.to("parcels", (9, "Rome")), ps.to("parcels", (2, "Oslo"))]
    by_stream = {"letters": ["hello"], "parcels": [(9, "Rome"), (2, "Oslo")]}
    for mocks in ({"mail": given}, {"mail": by_stream}):
        made = complete_topology(post(), mocks)
        assert made.tuples("mail", "letters") == [("hello",)]
        assert made.tuples("mail", "parcels") == [(9, "Rome"), (2, "Oslo"), (9, "Rome")]
        assert made.tuples("weigh") == [(9,), (2,), (9,)]
    tracked = TrackedTopology(post(), {"mail": given})
    tracked.run()
    assert sorted(tracked.acked("mail")) == [0, 1, 2]
    assert tracked.failed("mail") == [1]


@pytest.mark.parametrize(
    ("mocks", "message"),
    [
        (
            ["hello"],
            r"mocks: spout 'mail' has no stream 'default'; .*ps.to\('letters', record\), or {'letters': \[record\]}",
        ),
        ({"letter": ["hello"]}, "mocks: spout 'mail' has no stream 'letter'; did you mean 'letters'"),
        ({"jobs": [1]}, "mocks: a record cannot name a task, as the direct stream 'jobs' of 'mail' needs"),
    ],
)
def test_mocks_name_streams_that_are_there(mocks: Any, message: str) -> None:
    with pytest.raises(FlowError, match=message):
        complete_topology(post(), {"mail": mocks})


def test_a_paused_spout_emits_nothing() -> None:
    top = numbers(2)
    top.bolt("double", Double()).shuffle("numbers")
    tracked = TrackedTopology(top)
    tracked.activate(False)
    tracked.run()
    assert tracked.acked("numbers") == []
    tracked.activate(True)
    tracked.run()
    assert tracked.acked("numbers") == [0, 1]


def test_shuffle_deals_100_000_tuples_evenly() -> None:
    class Where(ps.Bolt):
        stateful = False
        seen: dict[int, int] = {}

        def prepare(self, context: TaskContext) -> None:
            self._task = context.task

        def process(self, tup: Any) -> None:
            Where.seen[self._task] = Where.seen.get(self._task, 0) + 1

    top = ps.Topology("even")
    top.spout("numbers", ps.items([], "n bigint"))
    top.bolt("where", Where(), parallelism=2).shuffle("numbers")
    Driver(top).push("numbers", *range(100_000))
    assert all(49_000 <= many <= 51_000 for many in Where.seen.values())
    assert sum(Where.seen.values()) == 100_000


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"topology.tick.tuple.freq.secs": 0}, "expected a number of seconds above 0, got 0"),
        ({"topology.max.spout.pending": 1.5}, "expected a number of messages, 1 or more, got 1.5"),
        ({"topology.acker.executors": -1}, "expected 0, or a number of ackers, got -1"),
        ({1: 2}, "expected a dict of names to values"),
        ("many", "expected a dict of names to values"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(config: Any, message: str) -> None:
    with pytest.raises(FlowError, match=message):
        ps.Topology("bad").bolt("double", Double(), config=config)
    with pytest.raises(FlowError, match=message):
        ps.Topology("bad", config)
