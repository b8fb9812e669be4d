"""The topology API: what it builds, and what it refuses while it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.errors import (
    FlowError,
    LoopError,
    NameTaken,
    SchemaError,
    StepError,
    UnknownName,
)
from penstock.frontends.topology.declare import BoltDeclaration
from penstock.frontends.topology.topology import Topology
from penstock.graph.logic.topology.components import END, Bolt, Spout
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.nodes import Bolt as BoltNode
from penstock.graph.nodes import Feedback, Route, Select, Sink
from penstock.testing import run_local


class Split(Bolt):
    outputs = "word string"
    stateful = False

    def process(self, tup: Any) -> None:
        for word in tup.line.split():
            self.emit((word,))


class Count(Bolt):
    outputs = "word string, n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        self.emit((tup.word, self.counts[tup.word]))


class Where(Bolt):
    """Gives each word with the task that got it."""

    outputs = "word string, task int"

    def prepare(self, context: TaskContext) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Iterator[Any]:
        yield tup.word, self._task


class Numbers(Spout):
    outputs = "n bigint"

    def __init__(self, count: int) -> None:
        self.count = count
        self.at = 0

    def next_tuple(self) -> Any:
        if self.at >= self.count:
            return END
        self.at += 1
        self.emit((self.at,))
        return None


def words() -> Topology:
    top = Topology("words")
    top.spout("words", ps.items([], "word string"))
    return top


def dealt(subscribe: Callable[[BoltDeclaration], Any], given: list[str], tasks: int = 3) -> list[tuple[str, int]]:
    top = words()
    subscribe(top.bolt("where", Where, parallelism=tasks))
    top.sink("out", ps.console(), from_="where")
    return [tuple(r) for r in run_local(top, {"words": given})["out"]]


def test_the_order_of_declarations_is_free() -> None:
    top = Topology("count")
    top.sink("out", ps.console(), from_="count")
    top.bolt("count", Count(), parallelism=2).fields("split", "word")
    top.bolt("split", Split()).shuffle("lines")
    top.spout("lines", ps.items(["a b a"], "line string"))
    assert sorted(run_local(top)["out"]) == [("a", 1), ("a", 2), ("b", 1)]


def test_it_builds_the_same_kind_of_graph() -> None:
    top = Topology("count")
    top.spout("lines", ps.items([], "line string"))
    top.bolt("split", Split(), parallelism=2).shuffle("lines")
    top.bolt("count", Count(), parallelism=4).fields("split", "word")
    top.sink("out", ps.console(), from_="count")
    graph = top.graph
    count = graph.node("count")
    assert isinstance(count, BoltNode)
    assert (count.tasks, count.keyed, graph.node("split").keyed) == (4, True, False)
    assert count.settings()["split"] == "fields(word)"
    assert [n.name for n in graph.ordered] == ["lines", "split", "count", "out"]
    assert [s.shuffle for s in compile_graph(graph).stages] == ["", "shuffle", "fields(word)", ""]


def test_each_task_is_an_instance_of_its_own() -> None:
    seen = dealt(lambda b: b.shuffle("words"), ["a"] * 9)
    assert sorted(seen) == [("a", t) for t in (0, 0, 0, 1, 1, 1, 2, 2, 2)]


def test_global_uses_one_task() -> None:
    assert {task for _, task in dealt(lambda b: b.global_("words"), list("abcdef"))} == {0}


def test_all_gives_each_tuple_to_every_task() -> None:
    assert sorted(dealt(lambda b: b.all("words"), ["a", "b"])) == [(w, t) for w in "ab" for t in range(3)]


def test_fields_keeps_a_word_at_one_task() -> None:
    seen = set(dealt(lambda b: b.fields("words", "word"), list("abcdefabcdef")))
    assert len(seen) == 6
    assert len({task for _, task in seen}) > 1


def test_partial_key_spreads_one_key_over_two_tasks() -> None:
    tasks = [task for _, task in dealt(lambda b: b.partial_key("words", "word"), ["hot"] * 6)]
    assert len(set(tasks)) == 2
    assert tasks[:2] * 3 == tasks


def test_custom_chooses() -> None:
    assert dealt(lambda b: b.custom("words", lambda v: len(v.word)), ["", "x", "xx"]) == [("", 0), ("x", 1), ("xx", 2)]


def test_a_bad_choice_names_the_step_and_the_record() -> None:
    with pytest.raises(StepError, match=r"where@from@words.*\n.*'xxxx'"):
        dealt(lambda b: b.custom("words", lambda v: len(v.word)), ["xxxx"])


def test_local_or_shuffle_stays_with_the_task() -> None:
    top = words()
    top.bolt("first", Where, parallelism=2).shuffle("words")
    top.bolt("second", Again, parallelism=2).local_or_shuffle("first")
    top.sink("out", ps.console(), from_="second")
    assert all(one == other for one, other in run_local(top, {"words": list("abcd")})["out"])
    assert [s.name for s in compile_graph(top.graph).stages] == ["words", "first + second", "out"]


def test_local_or_shuffle_moves_when_the_tasks_differ() -> None:
    top = words()
    top.bolt("first", Where, parallelism=2).shuffle("words")
    top.bolt("second", Again, parallelism=3).local_or_shuffle("first")
    top.sink("out", ps.console(), from_="second")
    stages = compile_graph(top.graph).stages
    assert [(s.name, s.shuffle) for s in stages[1:3]] == [("first", "shuffle"), ("second", "local_or_shuffle")]


class Again(Bolt):
    """Gives the task of the tuple's producer beside its own."""

    outputs = "first int, second int"

    def prepare(self, context: TaskContext) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Any:
        return [(tup.task, self._task)]


class Dealer(Bolt):
    """Names the task for each word by its length."""

    outputs = {"default": "word string", "cards": "word string"}
    direct = ("cards",)

    def prepare(self, context: TaskContext) -> None:
        self._last = context.tasks_of("where") - 1

    def process(self, tup: Any) -> None:
        self.emit((tup.word,), stream="cards", task=min(len(tup.word), self._last))


def dealers(bolt: Any = Dealer) -> Topology:
    top = words()
    top.bolt("deal", bolt).shuffle("words")
    top.bolt("where", Where, parallelism=3).direct("deal", stream="cards")
    top.sink("out", ps.console(), from_="where")
    return top


def test_direct_goes_where_the_producer_says() -> None:
    seen = run_local(dealers(), {"words": ["", "x", "xx", "xxxxx"]})["out"]
    assert seen == [("", 0), ("x", 1), ("xx", 2), ("xxxxx", 2)]


class TooFar(Dealer):
    def process(self, tup: Any) -> None:
        self.emit((tup.word,), stream="cards", task=9)


class Nowhere(Dealer):
    def process(self, tup: Any) -> None:
        self.emit((tup.word,), stream="cards")


class NotDirect(Dealer):
    def process(self, tup: Any) -> None:
        self.emit((tup.word,), task=1)


@pytest.mark.parametrize(
    ("bolt", "message"),
    [(TooFar, "task 9 of 'where' was named; its tasks are 0 to 2"), (Nowhere, "is direct"), (NotDirect, "is not one")],
)
def test_direct_emits_are_checked(bolt: type, message: str) -> None:
    with pytest.raises(StepError, match=message):
        run_local(dealers(bolt), {"words": ["a"]})


class Sorter(Bolt):
    """Three streams, filled in three ways."""

    outputs = {"default": "word string", "long": "word string, length int", "odd": "word string"}

    def process(self, tup: Any) -> Iterator[Any]:
        if len(tup.word) > 3:
            self.emit({"word": tup.word, "length": len(tup.word)}, stream="long")
        elif len(tup.word) % 2:
            yield ps.to("odd", tup.word)
        else:
            yield tup.word


def sorters(bolt: Any = Sorter) -> Topology:
    top = words()
    top.bolt("sort", bolt).shuffle("words")
    top.sink("even", ps.console(), from_="sort")
    top.sink("long", ps.console(), from_="sort", stream="long")
    top.sink("odd", ps.console(), from_="sort", stream="odd")
    return top


def test_named_streams() -> None:
    results = run_local(sorters(), {"words": ["ab", "abc", "abcd"]})
    assert dict(results) == {"even": [("ab",)], "long": [("abcd", 4)], "odd": [("abc",)]}


class Misspelt(Sorter):
    def process(self, tup: Any) -> Any:
        self.emit((tup.word,), stream="ood")


def test_an_unknown_stream_at_run_time_names_the_nearest() -> None:
    with pytest.raises(StepError, match=r"step 'sort' .*no stream 'ood'; did you mean 'odd'") as caught:
        run_local(sorters(Misspelt), {"words": ["ab"]})
    assert "word='ab'" in caught.value.failure.record
    assert caught.value.failure.position == "record 1 of 'words'"


class WrongValue(Bolt):
    outputs = "n bigint"

    def process(self, tup: Any) -> Any:
        self.emit(("one",))


def test_a_bad_record_is_blamed_on_the_bolt() -> None:
    top = words()
    top.bolt("wrong", WrongValue).shuffle("words")
    with pytest.raises(StepError, match="field 'n': bigint needs a whole number, got 'one'"):
        run_local(top, {"words": ["a"]})


class Origins(Bolt):
    """What a tuple says of itself."""

    outputs = "shown string"

    def process(self, tup: Any) -> Any:
        yield f"{tup.component}.{tup.stream} {tup.values} {tup[0]} {sorted(tup.roots)}"


def test_a_tuple_knows_its_origin() -> None:
    top = sorters()
    top.bolt("shown", Origins).shuffle("sort").shuffle("sort", stream="odd").all("words")
    top.sink("out", ps.console(), from_="shown")
    assert sorted(r.shown for r in run_local(top, {"words": ["ab", "abc"]})["out"]) == [
        "sort.default ('ab',) ab []",
        "sort.odd ('abc',) abc []",
        "words.default ('ab',) ab []",
        "words.default ('abc',) abc []",
    ]


class Fields(Bolt):
    """Fields whose names a tuple has already are reached by index."""

    outputs = "a string, b string"

    def process(self, tup: Any) -> Any:
        yield tup["stream"], tup["values"]


def test_a_field_may_have_any_name() -> None:
    top = Topology("names")
    top.spout("given", ps.items([("s", "v")], "stream string, values string"))
    top.bolt("read", Fields).shuffle("given")
    top.sink("out", ps.console(), from_="read")
    assert run_local(top)["out"] == [("s", "v")]


class Reliable(Numbers):
    reliable = True

    def next_tuple(self) -> Any:
        if self.at >= self.count:
            return END
        self.at += 1
        self.emit((self.at,), id=self.at if self.at % 2 else None)
        return None


class Pass(Bolt):
    outputs: Any = "n bigint"

    def process(self, tup: Any) -> None:
        self.emit(tup.values)


class Pairs(Bolt):
    """Joins two tuples, anchored to both; cuts off the sum."""

    outputs = {"default": "n bigint", "free": "n bigint"}
    stateful = False

    def prepare(self, context: TaskContext) -> None:
        self._waiting: Any = None

    def process(self, tup: Any) -> None:
        if self._waiting is None:
            self._waiting = tup
            return
        both, self._waiting = [self._waiting, tup], None
        self.emit((both[0].n * both[1].n,), anchors=both)
        self.emit((0,), stream="free", anchors=[])


class CountRoots(Bolt):
    outputs = "n bigint, roots int"

    def process(self, tup: Any) -> Any:
        yield tup.n, len(tup.roots)


def rooted(spout: Spout) -> Topology:
    top = Topology("roots")
    top.spout("numbers", spout)
    top.bolt("pass", Pass, parallelism=2).shuffle("numbers")
    top.bolt("pairs", Pairs).global_("pass")
    top.bolt("roots", CountRoots).shuffle("pass").shuffle("pairs").shuffle("pairs", stream="free")
    top.sink("out", ps.console(), from_="roots")
    return top


def test_roots_travel_with_their_tuples() -> None:
    """1 and 3 were emitted with an id; a pair has the roots of both; an emit without anchors has none."""
    assert sorted(run_local(rooted(Reliable(4)))["out"]) == [
        (0, 0), (0, 0), (1, 1), (2, 0), (2, 1), (3, 1), (4, 0), (12, 1),
    ]  # fmt: skip


def test_roots_are_carried_only_where_a_spout_is_reliable() -> None:
    assert "__roots" in rooted(Reliable(1)).graph.node("pass").output().schema
    assert "__roots" not in rooted(Numbers(1)).graph.node("pass").output().schema


class Unreliable(Numbers):
    def next_tuple(self) -> Any:
        self.emit((1,), id=1)


def test_ids_need_a_reliable_spout() -> None:
    with pytest.raises(StepError, match="reliable = True"):
        run_local(rooted(Unreliable(1)))


class Writes(Bolt):
    """Gives nothing; what it does, it does elsewhere."""

    seen: list[str] = []

    def process(self, tup: Any) -> None:
        Writes.seen.append(tup.word)


def test_a_bolt_that_nobody_reads_runs_all_the_same() -> None:
    Writes.seen.clear()
    top = words()
    top.bolt("writes", Writes).shuffle("words")
    assert isinstance(top.graph.node("writes@end"), Sink)
    run_local(top, {"words": ["a", "b"]})
    assert Writes.seen == ["a", "b"]


class Halve(Bolt):
    outputs = {"default": "start bigint, n bigint", "done": "start bigint"}

    def process(self, tup: Any) -> None:
        if tup.n <= 1:
            self.emit((tup.start,), stream="done")
        else:
            self.emit((tup.start, tup.n // 2))


def halving(feedback: bool) -> Topology:
    top = Topology("halving")
    top.spout("numbers", ps.items([], "start bigint, n bigint"))
    top.bolt("halve", Halve, parallelism=2).fields("numbers", "start").fields("halve", "start", feedback=feedback)
    top.sink("out", ps.console(), from_="halve", stream="done")
    return top


def test_a_loop_needs_a_feedback_edge() -> None:
    with pytest.raises(LoopError, match="halve -> halve is a loop"):
        halving(feedback=False).graph.ordered  # noqa: B018 - asking for the graph is what fails


def test_a_loop_runs_until_it_is_quiet() -> None:
    top = halving(feedback=True)
    assert isinstance(top.graph.node("halve@again@halve"), Feedback)
    assert sorted(run_local(top, {"numbers": [(5, 5), (64, 64)]})["out"]) == [(5,), (64,)]


def test_routes_and_hidden_fields_are_steps_of_their_own() -> None:
    top = words()
    top.bolt("where", Where, parallelism=2).partial_key("words", "word")
    top.sink("out", ps.console(), from_="where")
    route = top.graph.node("where@from@words")
    assert isinstance(route, Route)
    assert route.output().schema.names == ("word", "__task")
    top = Topology("raw")
    top.spout("numbers", Numbers(1))
    top.sink("out", ps.console(), from_="numbers")
    assert isinstance(top.graph.node("out@fields"), Select)


def test_a_route_runs_in_the_pass_of_its_producer() -> None:
    top = words()
    top.bolt("first", Where).shuffle("words")
    top.bolt("second", Where, parallelism=2).partial_key("first", "word")
    top.sink("out", ps.console(), from_="second")
    plan = compile_graph(top.graph)
    assert [s.name for s in plan.stages] == ["words", "first + second@from@first", "second", "out"]
    assert plan.python_passes == 2


class NoProcess(Bolt):
    outputs = "word string"


class NeedsMore(Count):
    def __init__(self, more: int) -> None:
        self.more = more


class TooMany(Bolt):
    def process(self, tup: Any, more: Any) -> None:  # type: ignore[override]  # what is refused
        ...


class Unnamed(Pass):
    outputs: Any = {"word": str}


class BadDirect(Count):
    direct = ("cards",)


class OutStream(Pass):
    outputs: Any = {"out": "word string"}


class NoOutputs(Spout):
    def next_tuple(self) -> Any:
        return END


def built(build: Callable[[Topology], Any]) -> None:
    top = Topology("built")
    top.spout("words", ps.items([], "word string, tags map<string,string>"))
    top.bolt("deal", Dealer).shuffle("words")
    build(top)
    top.graph.ordered  # noqa: B018 - asking for the graph is what fails


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda top: top.bolt("c", Count).shuffle("wrods"), UnknownName, "reads 'wrods'.*did you mean 'words'"),
        (lambda top: top.sink("o", ps.console(), from_="dael"), UnknownName, "sink 'o'.*did you mean 'deal'"),
        (
            lambda top: top.bolt("c", Count).shuffle("deal", stream="crads"),
            UnknownName,
            "reads stream 'crads' of 'deal'; did you mean 'cards'",
        ),
        (lambda top: top.bolt("c", Count).fields("words", "wrod"), SchemaError, "no field 'wrod'; did you mean 'word'"),
        (lambda top: top.bolt("c", Count).fields("words", "tags"), SchemaError, "a map has no hash"),
        (lambda top: top.bolt("c", Count).fields("words"), FlowError, "at least one field"),
        (
            lambda top: top.bolt("words", Count),
            NameTaken,
            r"component 'words' \(test_topology.py:\d+\).*test_topology.py",
        ),
        (
            lambda top: top.bolt("c", Count, parallelism=0).shuffle("words"),
            FlowError,
            "1 to 32,768 tasks, got parallelism=0",
        ),
        (lambda top: top.spout("s", Numbers(1), parallelism=32_769), FlowError, "1 to 32,768 tasks"),
        (lambda top: top.bolt("c", Count).direct("words"), FlowError, "direct grouping needs a direct stream"),
        (lambda top: top.bolt("c", Count).shuffle("deal", stream="cards"), FlowError, "subscribe with .direct"),
        (lambda top: top.bolt("c", Count), FlowError, "reads nothing"),
        (
            lambda top: top.bolt("c", Count).shuffle("words").all("words"),
            FlowError,
            "has subscribed to stream 'default'",
        ),
        (lambda top: top.bolt("c", NoProcess), FlowError, "NoProcess must define process"),
        (lambda top: top.bolt("c", NeedsMore), FlowError, "NeedsMore cannot be made without arguments"),
        (lambda top: top.bolt("c", TooMany), FlowError, "does not take that"),
        (lambda top: top.bolt("c", len), FlowError, "needs a penstock.Bolt"),
        (lambda top: top.bolt("c", Numbers(1)), FlowError, "needs a penstock.Bolt"),
        (lambda top: top.bolt("c", Unnamed), SchemaError, "a schema for each stream"),
        (lambda top: top.bolt("c", BadDirect), FlowError, "direct lists streams of its outputs"),
        (lambda top: top.bolt("c", OutStream), FlowError, "is 'default'"),
        (lambda top: top.bolt("c d", Count), FlowError, "a name of letters"),
        (lambda top: top.bolt("c", Count).custom("words", 3), FlowError, "needs a function"),
        (lambda top: top.bolt("c", Count).custom("words", lambda: 3), FlowError, "does not take that"),
        (lambda top: top.spout("s", NoOutputs), SchemaError, "must say what it emits"),
        (lambda top: top.spout("s", ps.console()), SchemaError, "no schema of its own"),
        (lambda top: top.spout("s", Count), FlowError, "needs a penstock.Spout"),
        (lambda top: top.sink("o", Count, from_="words"), FlowError, "needs an endpoint"),
    ],
)
def test_what_is_wrong_is_said_while_it_is_built(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        built(build)


def test_an_empty_topology_is_refused() -> None:
    with pytest.raises(FlowError, match="is empty"):
        Topology("nothing").graph.ordered  # noqa: B018 - asking for the graph is what fails


def test_emit_works_only_while_a_task_runs() -> None:
    with pytest.raises(FlowError, match="while a task runs"):
        Count().emit(("a", 1))
