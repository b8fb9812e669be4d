"""The graph: checked as a whole when it is made."""

from __future__ import annotations

import dataclasses

import pytest

from penstock.errors import FlowError, LoopError, NameTaken, UnknownName
from penstock.graph.endpoints.basic import console, items
from penstock.graph.graph import Graph
from penstock.graph.nodes import Feedback, Filter, Node, Port, Sink, Source, Union
from penstock.graph.schema import schema_of

SCHEMA = schema_of("n bigint")


def source(name: str = "in", line: str = "") -> Source:
    return Source(name, (), items([], SCHEMA), line=line)


def keep(name: str, reads: str, line: str = "") -> Filter:
    return Filter(name, (Port(reads),), bool, line=line)


def union(name: str, *reads: str, line: str = "") -> Union:
    return Union(name, tuple(map(Port, reads)), line=line)


def sink(reads: str, port: str = "out") -> Sink:
    return Sink("out", (Port(reads, port),), console())


def names(nodes: tuple[Node, ...]) -> list[str]:
    return [n.name for n in nodes]


def test_a_graph_knows_its_steps_by_name_and_kind() -> None:
    graph = Graph("g", (source(), keep("some", "in"), sink("some")))
    assert graph.node("some").kind == "filter"
    assert names(graph.sources) == ["in"]
    assert names(graph.sinks) == ["out"]
    assert graph.output(Port("some")).schema == SCHEMA
    assert names(graph.readers(Port("in"))) == ["some"]
    assert graph.readers(Port("out")) == ()


def test_a_graph_cannot_be_changed() -> None:
    graph = Graph("g", (source(),))
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.name = "other"  # type: ignore[misc]


def test_steps_are_ordered_behind_all_they_read_whatever_the_order_they_were_given_in() -> None:
    graph = Graph("g", (sink("both"), union("both", "some", "in"), keep("some", "in"), source()))
    assert names(graph.ordered) == ["in", "some", "both", "out"]


def test_a_step_that_reads_a_stream_twice_is_one_reader() -> None:
    graph = Graph("g", (source(), union("twice", "in", "in"), sink("twice")))
    assert names(graph.readers(Port("in"))) == ["twice"]


def test_an_empty_graph_is_refused() -> None:
    with pytest.raises(FlowError, match=r"flow 'g' has no steps; begin with flow.source"):
        Graph("g", ())


def test_two_steps_cannot_share_a_name() -> None:
    with pytest.raises(
        NameTaken, match=r"step 'some' \(b.py:2\) must have a name of its own; another step has it \(a.py:1\)"
    ):
        Graph("g", (source(), keep("some", "in", "a.py:1"), keep("some", "in", "b.py:2")))


def test_an_unknown_step_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match=r"step 'some' \(a.py:3\) reads 'numbrs'.*did you mean 'numbers'\?"):
        Graph("g", (source("numbers"), keep("some", "numbrs", "a.py:3")))


def test_an_unknown_stream_of_a_step_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match=r"sink 'out' reads stream 'outt' of 'in'; did you mean 'out'\?"):
        Graph("g", (source(), sink("in", "outt")))


def test_asking_for_an_unknown_step_lists_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match=r"flow 'g' has no step 'som'; did you mean 'some'\?"):
        Graph("g", (source(), keep("some", "in"))).node("som")


def test_a_loop_without_feedback_is_refused_and_shown() -> None:
    with pytest.raises(LoopError, match=r"one -> two -> one is a loop \(see a.py:1\).*flow.feedback") as caught:
        Graph("g", (source(), union("one", "in", "two", line="a.py:1"), keep("two", "one"), sink("two")))
    assert "in -> " not in str(caught.value)


def test_a_step_that_reads_itself_is_a_loop() -> None:
    with pytest.raises(LoopError, match=r"one -> one is a loop"):
        Graph("g", (source(), union("one", "in", "one")))


def test_a_loop_is_shown_even_where_steps_behind_it_are_stuck_as_well() -> None:
    with pytest.raises(LoopError, match=r"b -> a -> b|a -> b -> a"):
        Graph("g", (source(), sink("late"), keep("late", "b"), union("a", "in", "b"), keep("b", "a")))


def test_a_loop_with_feedback_is_fine() -> None:
    again = Feedback("again", (), SCHEMA, Port("some"))
    graph = Graph("g", (source(), again, union("both", "in", "again"), keep("some", "both"), sink("some")))
    assert names(graph.loops) == ["again"]
    assert names(graph.ordered) == ["in", "again", "both", "some", "out"]


def test_a_feedback_must_be_fed() -> None:
    with pytest.raises(
        LoopError, match=r"feedback 'again' \(a.py:7\) is never fed; close the loop with flow.feed\(again, stream\)"
    ):
        Graph("g", (source(), Feedback("again", (), SCHEMA, line="a.py:7"), union("both", "in", "again")))


def test_a_feedback_must_be_fed_by_a_stream_that_exists() -> None:
    again = Feedback("again", (), SCHEMA, Port("soem"))
    with pytest.raises(UnknownName, match=r"feedback 'again' reads 'soem'.*did you mean 'some'"):
        Graph("g", (source(), again, union("both", "in", "again"), keep("some", "both")))
