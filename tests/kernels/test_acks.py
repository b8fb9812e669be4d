"""Acks: what spouts are told of their messages, against a plain acker that keeps every edge of every tuple tree."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.graph.logic.topology.acks import AckReport, OpenTuples
from penstock.graph.logic.topology.tuples import joined_roots, pack_roots, tuple_class
from penstock.kernels.topology.pending import AckLedger, PendingMessages, Settlement
from tests.breadth import some_now


class PlainAcker:
    """Storm's acker to the letter: a value for each root, into which every edge is XORed when it is made and when it is acked."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.failed: set[int] = set()
        self.edges = 0

    def emit(self, roots: frozenset[int]) -> int:
        self.edges += 1
        edge = 1 << self.edges
        for root in roots:
            self.values[root] = self.values.get(root, 0) ^ edge
        return edge

    def ack(self, roots: frozenset[int], edge: int) -> None:
        for root in roots:
            self.values[root] ^= edge

    def outcome(self, root: int) -> str:
        return "failed" if root in self.failed else "open" if self.values[root] else "acked"


DECISIONS = st.sampled_from(["ack", "ack", "ack", "hold", "fail"])
TREES = st.fixed_dictionaries(
    {
        "messages": st.integers(1, 5),
        "batches": st.integers(1, 3),
        "choices": st.lists(st.tuples(DECISIONS, st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12),
        "later": st.lists(st.sampled_from(["ack", "fail", "hold"]), max_size=6),
    }
)


@pytest.mark.parametrize("many", some_now((800, 5_000), 1))
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_ledger_says_what_a_plain_acker_says(depth: int, many: int) -> None:
    """Random trees: tuples are acked, failed or held over batches; emits are anchored to one tuple, to several, twice to one, or to none."""

    @settings(max_examples=many, deadline=None, database=None)
    @given(tree=TREES)
    def check(tree: Any) -> None:
        compare_with_a_plain_acker(tree, depth)

    check()


def compare_with_a_plain_acker(tree: Any, depth: int) -> None:
    model, ledger, pending = PlainAcker(), AckLedger(), PendingMessages()
    tasks = [OpenTuples() for _ in range(depth)]
    choices, made = list(tree["choices"]), tuple_class(("n",), "spout", "default", True)
    held: list[tuple[Any, int, int]] = []
    told: dict[int, str] = {}
    edges = 0
    for batch in range(tree["batches"] + 1):
        first = 1 + batch * tree["messages"]
        roots = range(first, first + tree["messages"]) if batch < tree["batches"] else ()
        layer = [(pack_roots([root]), model.emit(frozenset([root]))) for root in roots]
        for root in roots:
            pending.add(batch, 0, {root: root})
            pending.count(0)
        for level, task in enumerate(tasks):
            taken: list[tuple[Any, int]] = []
            for packed, edge in layer:
                tup: Any = tuple.__new__(made, (0,))
                edges += 1
                tup._roots, tup._edge = packed, edges if packed else None
                if packed:
                    task.taken[edges] = packed
                taken.append((tup, edge))
            layer = []
            for at, (tup, edge) in enumerate(taken):
                decision, emits, how = choices[(at + level + batch) % len(choices)]
                anchors = [[tup], [tup, tup], [], [t for t, _ in taken[: at + 1]]][emits]
                if how and level + 1 < depth:
                    alive = [a for a in anchors if a is tup or a._edge in task.taken]
                    packed = joined_roots(alive)
                    layer.append((packed, model.emit(frozenset().union(*(a.roots for a in alive)))))
                _decide(decision, task, tup, edge, level, model, held)
        if batch == tree["batches"]:
            for decision, (tup, edge, level) in zip(tree["later"], list(held), strict=False):
                held.remove((tup, edge, level))
                _decide(decision, tasks[level], pickle.loads(pickle.dumps(tup)), edge, level, model, held)
        report = AckReport()
        for task in tasks:
            report.add(task.finish())
        ledger.add(batch, report)
        outcome = pending.settle(Settlement([batch], ledger.open, tuple(ledger.failed)))
        told |= {m.root: "acked" for m in outcome.acked} | {m.root: "failed" for m in outcome.failed}
        ledger.forget(told)
    assert {root: told.get(root, "open") for root in model.values} == {r: model.outcome(r) for r in model.values}


def _decide(
    decision: str,
    task: OpenTuples,
    tup: Any,
    edge: int,
    depth: int,
    model: PlainAcker,
    held: list[tuple[Any, int, int]],
) -> None:
    if decision == "hold":
        held.append((tup, edge, depth))
        return
    if decision == "fail":
        task.fail(tup)
        model.failed |= tup.roots
    task.ack(tup)
    task.ack(tup)  # a second word counts for nothing
    model.ack(tup.roots, edge)


def test_a_message_fails_between_one_and_two_timeouts() -> None:
    """Two buckets: what is new when the first rotation comes is old then, and fails at the next."""
    pending = PendingMessages(timeout=30)
    assert pending.expire(0) == []
    pending.add(0, 0, {1: "a"})
    assert pending.expire(29.9) == []
    assert pending.expire(30) == []
    pending.add(0, 0, {2: "b"})
    assert pending.expire(59.9) == []
    assert [m.id for m in pending.expire(60)] == ["a"]
    assert [m.id for m in pending.expire(90)] == ["b"]
    assert not pending


def test_a_renewed_message_gets_its_whole_time_again() -> None:
    pending = PendingMessages(timeout=30)
    pending.expire(0)
    pending.add(0, 0, {1: "a"})
    pending.expire(30)
    pending.settle(Settlement(renewed=[1]))
    assert pending.expire(60) == []
    assert [m.id for m in pending.expire(90)] == ["a"]


def test_messages_are_acked_in_the_order_of_their_files_and_emits() -> None:
    pending = PendingMessages()
    for root, file in ((9, 0), (3, 0), (5, 1)):
        pending.add(file, 0, {root: root})
    assert [m.id for m in pending.settle(Settlement([1, 0])).acked] == [9, 3, 5]


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_open_comes_back_after_a_restart(whole: bool) -> None:
    pending = PendingMessages(most=1)
    pending.add(4, 0, {1: "a"})
    pending.add(4, 3, {2: "b"})
    for task in (0, 3):
        pending.count(task)
    messages = pending.files[4].saved()
    if not whole:
        pending.settle(Settlement(failed=[1]))
    again = PendingMessages(most=1)
    again.restore(4, messages, pending.saved()[4])
    assert again.roots == ([1, 2] if whole else [2])
    assert again.by_task == ({0: 1, 3: 1} if whole else {3: 1})
    assert (again.is_full(3), again.is_full(0)) == (True, whole)
    assert again.saved() == pending.saved()
    assert [(m.id, m.task) for m in again.settle(Settlement([4])).acked] == ([("a", 0)] if whole else []) + [("b", 3)]


def test_a_tuple_outlives_a_pickle() -> None:
    made: Any = tuple.__new__(tuple_class(("word", "n"), "spout", "words", True), ("a", 1))
    made._roots, made._edge = pack_roots([7]), 12
    again = pickle.loads(pickle.dumps(made))
    assert (again.word, again[1], again.component, again.stream) == ("a", 1, "spout", "words")
    assert (again.roots, again._edge) == (frozenset({7}), 12)
    assert isinstance(again, ps.Tuple)


class CountedRoot(int):
    """A root that counts how often any of them is looked for."""

    looks = 0

    def __hash__(self) -> int:
        CountedRoot.looks += 1
        return super().__hash__()


def test_what_fails_is_looked_for_in_each_file_and_not_in_all_for_each_message() -> None:
    """An hour of open messages is thousands of files, and a batch may fail all of them."""
    pending, files, size = PendingMessages(), 100, 20
    for file in range(files):
        pending.add(file, 0, {CountedRoot(file * size + at): at for at in range(size)})
    CountedRoot.looks = 0
    failed = [CountedRoot(root) for root in range(0, files * size, 2)]
    outcome = pending.settle(Settlement(failed=failed))
    assert [message.root for message in outcome.failed] == failed
    assert len(pending) == files * size / 2
    assert CountedRoot.looks < 8 * files * size
