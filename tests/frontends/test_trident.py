"""Trident in this process: transactions under replay, the pairs that count once, and what is refused."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest

import penstock as ps
from penstock import trident
from penstock.compiler.compile import compile_graph
from penstock.errors import FlowError, NameTaken, SchemaError, StateError, StepError
from penstock.graph.nodes.batch import CombineBatch
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.testing import BARRIER, CRASH, Driver, TrackedTopology, complete_topology, run_local

KINDS = ("transactional", "opaque", "non_transactional")


class Numbers(trident.Sum):
    """A sum that fails as often as it is told, after the state was committed."""


def store_of(kind: str) -> tuple[trident.MemoryStore, trident.StateFactory]:
    store = trident.MemoryStore()
    return store, trident.StateFactory(_Kept(store), kind)


class _Kept:
    """Makes the same store for every partition, also after it was copied for a task."""

    def __init__(self, store: trident.MemoryStore) -> None:
        self.store = store

    def __call__(self, conf: dict[str, Any], partition: int, partitions: int) -> trident.MemoryStore:
        return self.store

    def __deepcopy__(self, memo: dict[int, Any]) -> _Kept:
        return self

    def __reduce__(self) -> Any:
        return _Kept, (trident.MemoryStore(),)


def sums(factory: trident.StateFactory | None, kind: str = "transactional") -> ps.TridentTopology:
    """A sum by key, and a step after it that fails on the word 'bad'."""
    top = ps.TridentTopology("sums")
    stream = top.new_stream("numbers", ps.items([], "k string, n bigint"), kind=kind)
    state = stream.group_by("k").persistent_aggregate(factory, "n", trident.Sum, "total bigint", name="sums")
    state.new_values_stream().sink("out", ps.console())
    return top


def replayed(kind: str, first: list[Any], second: list[Any]) -> trident.MemoryStore:
    """A batch 0 of (a, 5), then batch 1 that dies after its state was committed, and runs again with other tuples."""
    store, factory = store_of(kind)
    driver = Driver(sums(factory, "opaque" if kind == "opaque" else "transactional"))
    driver.push("numbers", ("a", 5))
    driver.barrier()
    driver.push("numbers", *first)
    list(driver.run.pipeline.barrier())
    driver.run.pending = [("numbers", second)]
    driver.crash()
    driver.barrier()
    return store


def test_a_transactional_state_counts_a_batch_that_runs_again_once() -> None:
    store = replayed("transactional", [("a", 3)], [("a", 3)])
    assert store.values == {("a",): trident.TransactionalValue(1, 8)}


def test_an_opaque_state_counts_a_batch_that_runs_again_with_other_tuples_as_it_is_then() -> None:
    store = replayed("opaque", [("a", 3)], [("a", 4), ("b", 1)])
    assert store.values == {("a",): trident.OpaqueValue(1, 9, 5), ("b",): trident.OpaqueValue(1, 1)}


def test_a_transactional_state_keeps_what_the_first_run_wrote_whatever_the_second_has() -> None:
    store = replayed("transactional", [("a", 3)], [("a", 4)])
    assert store.values == {("a",): trident.TransactionalValue(1, 8)}


def test_a_non_transactional_state_counts_again() -> None:
    assert replayed("non_transactional", [("a", 3)], [("a", 3)]).values == {("a",): 11}


def test_a_state_of_penstock_counts_once() -> None:
    inputs = [("a", 5), BARRIER, ("a", 3), CRASH, ("b", 1), BARRIER, ("a", 1)]
    assert run_local(sums(None), {"numbers": inputs})["out"][-1] == ("a", 9)


def test_opaque_values_follow_the_rules() -> None:
    stored = trident.OpaqueValue(8, "v1", "v0")
    assert (stored.get(8), stored.get(9)) == ("v0", "v1")
    with pytest.raises(StateError, match=r"expected a transaction from 8 on.*got 7"):
        stored.get(7)
    assert stored.update(8, "v2") == trident.OpaqueValue(8, "v2", "v0")
    assert stored.update(9, "v2") == trident.OpaqueValue(9, "v2", "v1")
    with pytest.raises(StateError, match="behind the state"):
        stored.update(7, "v2")


def test_an_opaque_state_refuses_an_earlier_transaction_and_names_the_step() -> None:
    store, factory = store_of("opaque")
    store.values["a",] = trident.OpaqueValue(8, 1, 0)
    driver = Driver(sums(factory, "opaque"))
    driver.push("numbers", ("a", 5))
    with pytest.raises(StepError, match=r"sums.*expected a transaction from 8 on"):
        driver.barrier()


MAPS = {
    "transactional": trident.TransactionalMap,
    "opaque": trident.OpaqueMap,
    "non_transactional": trident.NonTransactionalMap,
}


def add_one(value: int | None) -> int:
    return (value or 0) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_may_write_a_key_several_times(kind: str) -> None:
    """In two calls or in one: the second update goes on from the first."""
    state = MAPS[kind](trident.MemoryStore())
    for txid in (1, 2):
        state.begin_commit(txid)
        assert state.multi_update([("a",), ("a",), ("b",)], [add_one] * 3) == [2 * txid + at for at in (-1, 0)] + [txid]
        assert state.get(("b",)) == txid
        state.multi_put([("b",)], [txid])
        state.commit(txid)
    assert [state.get((key,)) for key in "abc"] == [4, 2, None]
    if kind == "opaque":
        assert state.backing.multi_get([("a",)]) == [trident.OpaqueValue(2, 4, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_and_put_back_counts_once_when_the_batch_runs_again(kind: str) -> None:
    """Within a batch an opaque state shows the values from which the batch begins, whatever an earlier attempt of it has written."""
    state = MAPS[kind](trident.MemoryStore())
    for txid in (1, 2, 2):
        state.begin_commit(txid)
        state.multi_put([("a",)], [add_one(state.get(("a",)))])
        state.commit(txid)
    assert state.get(("a",)) == (3 if kind == "non_transactional" else 2)


def test_an_opaque_state_is_not_read_by_an_earlier_transaction() -> None:
    store = trident.MemoryStore()
    store.multi_put([("a",)], [trident.OpaqueValue(8, "v1", "v0")])
    state = trident.OpaqueMap(store)
    seen = []
    for txid in (8, 9):
        state.begin_commit(txid)
        seen.append(state.get(("a",)))
    assert seen == ["v0", "v1"]
    state.begin_commit(7)
    with pytest.raises(StateError, match="behind the state"):
        state.get(("a",))
    state.commit(7)
    assert state.get(("a",)) == "v1"


@pytest.mark.parametrize("spout", KINDS)
@pytest.mark.parametrize("state", KINDS)
def test_the_pairs_that_count_once(spout: str, state: str, caplog: pytest.LogCaptureFixture) -> None:
    top = ps.TridentTopology("pairs")
    grouped = top.new_stream("numbers", ps.items([], "k string, n bigint"), kind=spout).group_by("k")
    if state == "transactional" and spout != "transactional":
        with pytest.raises(FlowError, match=f"expected an opaque state, since its spout is {spout}"):
            grouped.persistent_aggregate(store_of(state)[1], "n", trident.Sum, "n bigint")
        return
    with caplog.at_level(logging.WARNING, "penstock"):
        made = grouped.persistent_aggregate(store_of(state)[1], "n", trident.Sum, "n bigint")
    counts_once = state != "non_transactional" and spout != "non_transactional"
    assert made.exactly_once is counts_once
    assert ("a batch that runs again counts again" in caplog.text) is not counts_once


class Puts(trident.StateUpdater):
    def update_state(self, state: Any, tuples: list[Any], collector: trident.Collector) -> None:
        state.multi_put([(tup.k,) for tup in tuples], [tup.n for tup in tuples])
        for tup in tuples:
            collector.emit((tup.k,))


class Journal(trident.State):
    """A state of one's own, which notes its transactions."""

    kind = "opaque"
    seen: list[Any] = []

    def begin_commit(self, txid: int) -> None:
        self.seen.append(("begin", txid))

    def commit(self, txid: int) -> None:
        self.seen.append(("commit", txid))

    def multi_put(self, keys: list[Any], values: list[Any]) -> None:
        self.seen.append(dict(zip(keys, values, strict=True)))

    def multi_get(self, keys: list[Any]) -> list[Any]:
        return [len(self.seen) for _ in keys]


def test_a_state_of_ones_own_is_written_in_a_transaction_for_each_batch() -> None:
    Journal.seen.clear()
    top = ps.TridentTopology("journal")
    stream = top.new_stream("numbers", ps.items([], "k string, n bigint"))
    factory = trident.StateFactory(lambda conf, partition, partitions: Journal(), "opaque")
    state = stream.partition_persist(factory, (), Puts, "k string")
    state.new_values_stream().sink("out", ps.console())
    stream.state_query(state, "k", trident.MapGet, "seen bigint").sink("asked", ps.console())
    results = run_local(top, {"numbers": [("a", 1), BARRIER, ("b", 2)]})
    assert Journal.seen == [("begin", 0), {("a",): 1}, ("commit", 0), ("begin", 1), {("b",): 2}, ("commit", 1)]
    assert results["out"] == [("a",), ("b",)]
    assert results["asked"] == [("a", 1, 3), ("b", 2, 6)]


def test_a_static_state_is_only_asked() -> None:
    top = ps.TridentTopology("static")
    known = top.new_static_state(trident.StateFactory(lambda conf, partition, partitions: Journal()))
    Journal.seen.clear()
    stream = top.new_stream("numbers", ps.items([("a", 1)], "k string, n bigint"))
    stream.state_query(known, "k", trident.MapGet, "seen bigint").sink("out", ps.console())
    stream.state_query(known, "k", trident.MapGet, "again bigint").sink("again", ps.console())
    assert run_local(top) == {"out": [("a", 1, 0)], "again": [("a", 1, 0)]}


def test_a_step_that_nobody_reads_runs() -> None:
    store, factory = store_of("opaque")
    top = ps.TridentTopology("quiet")
    stream = top.new_stream("numbers", ps.items([("a", 2)], "k string, n bigint"))
    stream.group_by("k").persistent_aggregate(factory, "n", trident.Sum, "n bigint")
    run_local(top)
    assert store.values == {("a",): trident.OpaqueValue(0, 2)}


class Short(trident.MapGet):
    def batch_retrieve(self, state: Any, tuples: list[Any]) -> list[Any]:
        return []


def test_a_query_that_answers_too_little_is_refused() -> None:
    top = sums(None)
    stream = top.new_stream("asked", ps.items([("a",)], "k string"))
    state = stream.group_by("k").persistent_aggregate(None, (), trident.Count, "n bigint", name="counts")
    stream.state_query(state, "k", Short, "n bigint").sink("answers", ps.console())
    with pytest.raises(StepError, match=r"expected a result for each of 1 tuples from Short.batch_retrieve, got 0"):
        run_local(top, {"numbers": []})


def stream_of(top: ps.TridentTopology) -> trident.TridentStream:
    return top.new_stream("numbers", ps.items([], "k string, n bigint"))


FACTORY = trident.StateFactory(lambda conf, partition, partitions: Journal())
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda s: s.each("k", trident.Split), FlowError, "expected the fields that Split appends"),
    (lambda s: s.each("k", trident.FilterNull, "x int"), FlowError, "got the filter FilterNull"),
    (lambda s: s.each("k", 7, "x int"), FlowError, "expected a Function"),
    (lambda s: s.each("q", trident.Split, "x string"), SchemaError, "'q'"),
    (
        lambda s: s.each("q", trident.Split, "x string"),
        SchemaError,
        r"stream 'numbers' \(test_trident.py:\d+\): no field 'q'",
    ),
    (
        lambda s: s.each("k", trident.Split, "n int"),
        SchemaError,
        r"stream 'numbers' \(test_trident.py:\d+\): field 'n' ",
    ),
    (lambda s: s.group_by("k, q"), SchemaError, r"stream 'numbers' \(test_trident.py:\d+\): no field 'q'"),
    (lambda s: s.shuffle().parallelism_hint(0), FlowError, r"parallelism_hint .*: it runs as 1 to 32,768 tasks, got"),
    (lambda s: s.state_query(7, "k", trident.MapGet, "x int"), FlowError, "expected a state, such as"),
    (lambda s: s.topology.merge(s, s.project("k")), SchemaError, "all streams of a union have the same fields"),
    (lambda s: s.group_by(), FlowError, "at least one field"),
    (lambda s: s.aggregate((), 7, "n int"), FlowError, r"expected a trident.Aggregator"),
    (lambda s: s.aggregate((), trident.Count), FlowError, "fields of the result"),
    (lambda s: s.group_by("k").persistent_aggregate(7, (), trident.Count, "n int"), FlowError, "StateFactory"),
    (
        lambda s: s.persistent_aggregate(None, (), trident.Aggregator, "n int"),
        FlowError,
        "CombinerAggregator or a Reducer",
    ),
    (lambda s: s.partition_persist(None, (), Puts), FlowError, "StateFactory"),
    (lambda s: s.partition_persist(FACTORY, (), 7), FlowError, "StateUpdater"),
    (lambda s: s.group_by("k").chained_agg().chain_end(), FlowError, "aggregator in the chain"),
    (lambda s: s.sliding_window(3, "2s", (), trident.Count, "n int"), FlowError, "two numbers or two times"),
    (lambda s: s.topology.merge(s), FlowError, "two streams"),
    (lambda s: s.topology.join([s, s], ["k"]), FlowError, "a key for each of 2 streams"),
    (lambda s: s.topology.join([s, s], ["k", "k"], ["x"]), FlowError, "expected 3 names of fields, got 1"),
    (lambda s: s.sink("out", 7), FlowError, "expected an endpoint"),
    (lambda s: s.topology.new_stream("x", ps.items([], "n int"), kind="magic"), FlowError, "kind of a spout"),
    (lambda s: trident.StateFactory(7), FlowError, "make"),  # type: ignore[arg-type]
    (lambda s: trident.StateFactory(len, "magic"), FlowError, "kind of a state"),  # type: ignore[arg-type]
    (lambda s: trident.OpaqueMap(7), FlowError, "multi_get"),  # type: ignore[arg-type]
    (
        lambda s: s.state_query(s.persistent_aggregate(None, (), trident.Count, "n int"), (), 7, "x int"),
        FlowError,
        "QueryFunction",
    ),
    (
        lambda s: s.state_query(
            s.group_by("k").persistent_aggregate(None, (), trident.Count, "n int"), (), trident.MapGet, "x int"
        ),
        FlowError,
        "a field for each of the group",
    ),
]


@pytest.mark.parametrize(("build", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_what_does_not_fit_is_refused(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build(stream_of(ps.TridentTopology("wrong")))


def test_input_fields_may_be_left_out_and_states_take_a_hint() -> None:
    """As in Storm's own example: `persistentAggregate(state, new Count(), new Fields("count")).parallelismHint(6)`."""
    top = ps.TridentTopology("left-out")
    numbers = top.new_stream("numbers", ps.items([("a", 1), ("b", 2), ("a", 3)], "k string, n bigint"))
    numbers.aggregate(trident.Count, "all bigint").sink("all", ps.console())
    numbers.partition_aggregate(trident.Count(), "all bigint").sink("parts", ps.console())
    chain = numbers.chained_agg().aggregate(trident.Count, "all bigint").aggregate("n", trident.Sum, "sum bigint")
    chain.chain_end().sink("chain", ps.console())
    groups = numbers.group_by("k")
    groups.aggregate(trident.Count, "many bigint").sink("groups", ps.console())
    groups.persistent_aggregate(None, trident.Count(), "many bigint").parallelism_hint(6).new_values_stream().sink(
        "kept", ps.console()
    )
    store = trident.MemoryStore()
    factory = trident.StateFactory(lambda conf, partition, partitions: store, "opaque")
    written = groups.persistent_aggregate(factory, trident.Count, "many bigint", name="written").parallelism_hint(3)
    top.join([numbers, numbers], ["k", "k"], "key, one, other").sink("joined", ps.console())
    results = run_local(top)
    assert top.graph.node("written").parallelism == 3
    assert written.exactly_once
    assert [results[name] for name in ("all", "parts", "chain")] == [[(3,)], [(3,)], [(3, 6)]]
    assert sorted(results["groups"]) == sorted(results["kept"]) == [("a", 2), ("b", 1)]
    assert results["joined"][0].names == ("key", "one", "other")


def test_a_function_has_one_name_and_one_end() -> None:
    top = ps.TridentTopology("functions")
    calls = top.new_drpc_stream("f")
    with pytest.raises(NameTaken, match="'f'"):
        top.new_drpc_stream("f")
    with pytest.raises(FlowError, match="'a/b'"):
        top.new_drpc_stream("a/b")
    calls.map(lambda tup: tup.args, "one string", name="one")
    calls.map(lambda tup: tup.args, "other string", name="other")
    with pytest.raises(FlowError, match=r"expected one stream at the end of the function 'f'.*got one, other"):
        _ = top.graph


def test_values_that_combine_are_put_together_before_they_move() -> None:
    """A step before the shuffle for combiners, of batches and of states; none for reducers, whose tuples move one by one."""
    top = ps.TridentTopology("combined")
    words = top.new_stream("words", ps.items(["a", "b", "a"], "word string"))
    grouped = words.group_by("word")
    grouped.aggregate((), trident.Count, "n bigint", name="counted").sink("counts", ps.console())
    grouped.aggregate("word", Listed, "all string", name="listed").sink("lists", ps.console())
    kept = grouped.persistent_aggregate(None, (), trident.Count, "n bigint", name="kept")
    kept.new_values_stream().sink("values", ps.console())
    plan = compile_graph(top.graph)
    halves = [node for node in plan.graph.nodes if isinstance(node, CombineBatch)]
    assert [node.name for node in halves] == ["counted@combine", "kept@combine"]
    kernel = kernel_of(halves[0], plan.graph)
    schema = plan.graph.output(halves[0].inputs[0]).schema
    for rows in (["a", "b", "a"], ["a"]):
        assert list(kernel.take(Chunk.of(schema, rows))) == []
    ((_, made),) = kernel.barrier()
    assert [(row[0], pickle.loads(row[1])) for row in made.values()] == [("a", [3]), ("b", [1])]
    found = run_local(top)
    assert sorted(found["counts"]) == sorted(found["values"]) == [("a", 2), ("b", 1)]
    assert sorted(found["lists"]) == [("a", "aa"), ("b", "b")]


class Listed(trident.ReducerAggregator):
    def init(self) -> str:
        return ""

    def reduce(self, current: str, tup: Any) -> str:
        return current + str(tup[0])


class Prepared(trident.Aggregator):
    """Adds what it has prepared, which a copy of it has not."""

    def __init__(self) -> None:
        self.prepared: list[Any] = []

    def prepare(self, conf: dict[str, Any], context: trident.OperationContext) -> None:
        self.prepared = [*self.prepared, 100]

    def init(self, batch: int, collector: trident.Collector) -> list[int]:
        return [*self.prepared]

    def aggregate(self, state: list[int], tup: Any, collector: trident.Collector) -> None:
        state.append(tup.n)

    def complete(self, state: list[int], collector: trident.Collector) -> None:
        collector.emit((sum(state),))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda stream: stream.aggregate("n", Prepared, "sum bigint"), [103]),
        (lambda stream: stream.group_by("k").aggregate("n", Prepared, "sum bigint").project("sum"), [101, 102]),
        (lambda stream: stream.partition_aggregate("n", Prepared, "sum bigint"), [103]),
        (lambda stream: stream.tumbling_window(1, "n", Prepared, "sum bigint"), [101, 102]),
    ],
    ids=["batch", "group", "partition", "window"],
)
def test_an_aggregator_is_prepared_once_wherever_it_runs(step: Any, expected: list[int]) -> None:
    top = ps.TridentTopology("prepared")
    step(top.new_stream("numbers", ps.items([], "k string, n bigint"))).sink("out", ps.console())
    for _ in range(2):
        assert sorted(run_local(top, {"numbers": [("a", 1), ("b", 2)]})["out"]) == [(each,) for each in expected]


class PreparedGet(trident.MapGet):
    sign = ""

    def prepare(self, conf: dict[str, Any], context: trident.OperationContext) -> None:
        self.sign += "!"

    def execute(self, tup: Any, result: Any, collector: trident.Collector) -> None:
        collector.emit(f"{result}{self.sign}")


@pytest.mark.parametrize("kind", ["", "opaque"])
def test_a_query_is_prepared_once(kind: str) -> None:
    top = ps.TridentTopology("asked")
    numbers = top.new_stream("numbers", ps.items([("a", 5)], "k string, n bigint"))
    factory = store_of(kind)[1] if kind else None
    state = numbers.group_by("k").persistent_aggregate(factory, "n", trident.Sum, "total bigint", name="sums")
    asked = top.new_stream("asked", ps.items(["a", "a"], "k string"))
    asked.state_query(state, "k", PreparedGet(), "found string").sink("out", ps.console())
    assert run_local(top)["out"] == [("a", "5!"), ("a", "5!")]


def test_an_operation_hears_when_its_partition_ends() -> None:
    said: list[str] = []

    class Kept(trident.Filter):
        def is_keep(self, tup: Any) -> bool:
            return True

        def cleanup(self) -> None:
            said.append("the end")

    top = ps.TridentTopology("ends")
    top.new_stream("numbers", ps.items([1, 2], "n int")).shuffle().filter(Kept).sink("out", ps.console())
    run_local(top)
    assert said == ["the end"]


def counted() -> ps.TridentTopology:
    top = ps.TridentTopology("counted")
    words = top.new_stream("lines", ps.items([], "line string")).each("line", trident.Split, "word string")
    counts = words.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint", name="counts")
    counts.new_values_stream().sink("out", ps.console())
    words.shuffle().partition_aggregate((), trident.Count, "many bigint")
    return top


def test_the_test_kit_takes_a_topology_of_trident() -> None:
    """What every step emits, by its name; and one that is moved batch by batch."""
    done = complete_topology(counted(), {"lines": ["a b", "a"]})
    assert done.tuples("lines") == [("a b",), ("a",)]
    assert done.tuples("each-1") == [("a b", "a"), ("a b", "b"), ("a", "a")]
    assert sorted(done.tuples("counts")) == [("a", 2), ("b", 1)]
    assert done.tuples("partition_aggregate-1") == [(3,)]
    tracked = TrackedTopology(counted(), {"lines": ["a b"]})
    tracked.advance(1)
    tracked.push("lines", "a")
    tracked.advance(1)
    assert (tracked.driver.results()["out"][-1], tracked.is_done) == (("a", 2), True)
    with pytest.raises(FlowError, match="'lines' has one stream; expected a list"):
        complete_topology(counted(), {"lines": {"default": ["a"]}})


def test_the_test_kit_takes_a_spout_of_trident_and_a_list_in_its_place() -> None:
    class Numbers(ps.Spout):
        outputs, n = "n int", 0

        def next_tuple(self) -> Any:
            self.n += 1
            self.emit(self.n)
            return ps.END if self.n == 2 else None

    top = ps.TridentTopology("numbers")
    top.new_stream("numbers", Numbers).map(lambda tup: tup.n + 1, "m int", name="more").sink("out", ps.console())
    assert complete_topology(top).tuples("more") == [(2,), (3,)]
    assert complete_topology(top, {"numbers": [7]}).tuples("more") == [(8,)]
