"""Topologies under test: mocked spouts, time that the test moves, and knowing when all is processed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from penstock.errors import FlowError, UnknownName, nearest
from penstock.frontends.drpc.linear import LinearDRPCTopologyBuilder
from penstock.frontends.topology.declare import BoltDeclaration, SinkDeclaration, SpoutDeclaration, Subscription
from penstock.frontends.topology.ranges import dealing
from penstock.frontends.topology.topology import Topology
from penstock.frontends.trident.topology import TridentTopology
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import picked_fields
from penstock.graph.endpoints.basic import items, nothing
from penstock.graph.expr import col
from penstock.graph.graph import Graph
from penstock.graph.ids import child, is_derived
from penstock.graph.logic.tagged import TaggedRecord, to
from penstock.graph.logic.topology.components import END, Spout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.multilang.fields import opened
from penstock.graph.nodes import OUT, Endpoint, Grouping, Node, Port, Sink
from penstock.graph.nodes.topology import visible
from penstock.kernels.topology.spout import reliable_spouts
from penstock.local.spouts import SpoutHost, run_spouts
from penstock.testing.driver import Driver, Record, Results, run_local

Mocks = Mapping[str, Iterable[Record] | Mapping[str, Iterable[Record]]]
"""Records by the name of a spout, and, where it has several streams, by stream."""


class PortedTopology(Protocol):
    """A topology of streamparse or heronpy, which stands for one of Penstock's."""

    @property
    def topology(self) -> Topology:
        """That topology."""


class MockedSpout(Spout):
    """Emits what a test gives, each with its number as the id; what fails is emitted again."""

    reliable = True

    def __init__(self, outputs: Any, records: Iterable[TaggedRecord]) -> None:
        self.outputs = outputs
        self.records = list(records)
        self.waiting = list(range(len(self.records)))

    def next_tuple(self) -> Any:
        """The next record that waits."""
        if not self.waiting:
            return END
        number = self.waiting.pop(0)
        given = self.records[number]
        self.emit(given.record, given.output, id=number)
        return None

    def fail(self, id: Any) -> None:
        """Has it wait again."""
        self.waiting.append(id)


Composed = TridentTopology | LinearDRPCTopologyBuilder
"""Topologies whose steps are not bolts of the user's alone."""


def mocked(given: Topology | PortedTopology, mocks: Mocks) -> Topology:
    """The topology with lists in place of some of its spouts."""
    topology = given if isinstance(given, Topology) else given.topology
    made = Topology(topology.name, topology.config, on_error=topology.on_error)
    made._declared = dict(topology._declared)
    for name, records in mocks.items():
        made._declared[name] = _mock(topology, name, records)
    return made


def _mock(
    topology: Topology, name: str, records: Iterable[Record] | Mapping[str, Iterable[Record]]
) -> SpoutDeclaration:
    declared = topology._declared.get(name)
    if not isinstance(declared, SpoutDeclaration):
        spouts = [n for n, d in topology._declared.items() if isinstance(d, SpoutDeclaration)]
        raise UnknownName(f"mocks: topology {topology.name!r} has no spout {name!r}; {nearest(name, spouts)}")
    if isinstance(declared.spout, Endpoint):
        return replace(declared, spout=items(list(records), declared.streams[DEFAULT]), on_error=None)
    made = MockedSpout(declared.streams, [_tagged(declared, given) for given in _by_stream(records)])
    made.direct = declared.spout.direct
    return replace(declared, spout=made, tasks=1, limit=None)


def _by_stream(records: Iterable[Record] | Mapping[str, Iterable[Record]]) -> Iterable[Record]:
    """The records one after the other; those that are given by stream are marked with it."""
    if not isinstance(records, Mapping):
        return records
    return [to(stream, record) for stream, given in records.items() for record in given]


def _tagged(declared: SpoutDeclaration, given: Record) -> TaggedRecord:
    """A record with the stream that it goes to: the one it names, or the default stream."""
    made = given if isinstance(given, TaggedRecord) else to(DEFAULT, given)
    if made.output not in declared.streams:
        known = next(iter(declared.streams))
        raise UnknownName(
            f"mocks: spout {declared.name!r} has no stream {made.output!r}; {nearest(made.output, declared.streams)}. A record of another "
            f"stream than the default one says which: ps.to({known!r}, record), or {{{known!r}: [record]}}"
        )
    if not isinstance(declared.spout, Endpoint) and made.output in declared.spout.direct:
        raise FlowError(
            f"mocks: a record cannot name a task, as the direct stream {made.output!r} of {declared.name!r} needs; put a Spout of the test's own "
            f"in its place"
        )
    return made


def watched(topology: Topology) -> Topology:
    """The topology with a sink at every stream; they are named `component` and `component.stream`."""
    made = Topology(topology.name, topology.config, on_error=topology.on_error)
    kept = {n: d for n, d in topology._declared.items() if isinstance(d, SpoutDeclaration | BoltDeclaration)}
    made._declared = dict(kept)
    for name, declared in kept.items():
        for stream in declared.streams:
            reads = Subscription(name, stream, Grouping("local_or_shuffle"), line=declared.line)
            made._declared[sink_of(name, stream)] = SinkDeclaration(
                sink_of(name, stream), nothing(), reads, declared.line
            )
    return made


def watched_graph(graph: Graph) -> Graph:
    """The graph with a sink at every stream of its steps in place of its own sinks."""
    builder = GraphBuilder(graph.name)
    steps = [node for node in graph.nodes if not isinstance(node, Sink)]
    sinks = [each for node in steps if not is_derived(node.name) for each in _sinks_at(node)]
    builder.add_in_any_order((*steps, *sinks))
    return builder.graph()


def _sinks_at(node: Node) -> Iterator[Node]:
    """A sink at each output of a step, which gets the fields that users see."""
    for output in node.outputs:
        name = sink_of(node.name, DEFAULT if output.name == OUT else output.name)
        fields = child(name, "fields")
        yield picked_fields(
            fields, Port(node.name, output.name), {n: col(n) for n in visible(output.schema).names}, node.line
        )
        yield Sink(name, (Port(fields),), nothing(), line=node.line)


def sink_of(component: str, stream: str = DEFAULT) -> str:
    """The name under which the tuples of a stream are found."""
    return f"{component}.emitted" if stream == DEFAULT else f"{component}.{stream}"


class EmittedTuples:
    """What the components of a topology emitted.

    Args:
        results: the rows of the sinks at their streams.
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    def tuples(self, component: str, stream: str = DEFAULT) -> list[Any]:
        """The tuples of a stream, in order.

        Args:
            component: a spout or a bolt.
            stream: which of its streams.

        Returns:
            The tuples, as rows; a field without a type has the value that was emitted.

        Raises:
            UnknownName: there is no such stream.
        """
        rows = self.results[sink_of(component, stream)]
        return [tuple.__new__(type(row), map(opened, row)) for row in rows]


def complete_topology(topology: Topology | PortedTopology | Composed, mocks: Mocks | None = None) -> EmittedTuples:
    """Runs a topology in this process until its spouts are done and all is processed.

    Args:
        topology: the topology, also one of streamparse, of heronpy or of Trident; its sinks are left out. Steps of Trident go by their names.
        mocks: records by the name of a spout, which they replace; a failed one is emitted again. Of a spout with several streams a record says its
            stream, `ps.to("errors", record)`, or they are given by stream: `{"spout": {"errors": [record]}}`.

    Returns:
        What every component emitted, by stream.

    Raises:
        UnknownName: `mocks` names no spout, or a stream that it has not.
        FlowError: a record of a mocked spout goes to a direct stream.
        StepError: a component failed.

    >>> import penstock as ps
    >>> from penstock.testing import complete_topology
    >>> class Split(ps.BasicBolt):
    ...     outputs = "word string"
    ...     def process(self, tup):
    ...         return tup.value.split()
    >>> top = ps.Topology("words")
    >>> top.spout("lines", ps.stdin())
    >>> _ = top.bolt("split", Split()).shuffle("lines")
    >>> complete_topology(top, {"lines": ["to be"]}).tuples("split")
    [Row(word='to'), Row(word='be')]
    """
    if isinstance(topology, Composed):
        return EmittedTuples(run_local(watched_graph(topology.graph), _records(mocks or {})))
    return EmittedTuples(run_local(watched(mocked(topology, mocks or {}))))


def _records(mocks: Mocks) -> dict[str, Iterable[Record]]:
    """The records of sources that have one stream, as those of Trident do."""
    by_stream = [name for name, records in mocks.items() if isinstance(records, Mapping)]
    if by_stream:
        raise FlowError(
            f"mocks: {by_stream[0]!r} has one stream; expected a list of its records, got records by stream"
        )
    return {name: records for name, records in mocks.items() if not isinstance(records, Mapping)}


class TrackedTopology:
    """A topology in this process that is moved step by step, and knows when all is processed. Its clock is the test's.

    Args:
        topology: the topology, also one of streamparse, of heronpy or of Trident.
        mocks: records by the name of a spout, which they replace, as in `complete_topology`; of a topology of Trident they are the first that is pushed.

    Raises:
        UnknownName: `mocks` names no spout, or a stream that it has not.
        FlowError: a record of a mocked spout goes to a direct stream.

    >>> import penstock as ps
    >>> from penstock.testing import TrackedTopology
    >>> class Numbers(ps.Spout):
    ...     outputs, reliable, n = "n int", True, 0
    ...     def next_tuple(self):
    ...         self.n += 1
    ...         self.emit(self.n, id=self.n)
    ...         return ps.END if self.n == 3 else None
    >>> class Keep(ps.Bolt):
    ...     auto_ack = False
    ...     def process(self, tup):
    ...         self.ack(tup) if tup.n == 2 else None
    >>> top = ps.Topology("demo", config={"topology.message.timeout.secs": 30})
    >>> top.spout("numbers", Numbers())
    >>> _ = top.bolt("keep", Keep()).shuffle("numbers")
    >>> tracked = TrackedTopology(top)
    >>> _ = tracked.run()
    >>> tracked.acked("numbers"), tracked.pending("numbers")
    ([2], 2)
    >>> tracked.advance(60)
    >>> tracked.failed("numbers"), tracked.is_done
    ([1, 3], True)
    """

    def __init__(self, topology: Topology | PortedTopology | Composed, mocks: Mocks | None = None) -> None:
        composed = isinstance(topology, Composed)
        self.driver = Driver(topology.graph if isinstance(topology, Composed) else mocked(topology, mocks or {}))
        self.local = self.driver.run
        suffix = dealing("")
        spouts = reliable_spouts(self.local.graph)
        self.hosts = {n.name.removesuffix(suffix): SpoutHost(n, ends=False) for n in spouts}
        for source, records in _records(mocks or {}).items() if composed else ():
            self.push(source, *records)

    def run(self) -> Results:
        """Lets the spouts emit what they have, and batches pass, until they have nothing more just now.

        Returns:
            All rows that have been committed so far.

        Raises:
            StepError: a component failed.
        """
        self.local = self.driver.run
        run_spouts(self.local, list(self.hosts.values()))
        return self.driver.results()

    def push(self, source: str, *records: Record) -> None:
        """Sends records in at a source that is no reliable spout.

        Args:
            source: its name.
            records: the records.

        Raises:
            UnknownName: there is no such source.
        """
        self.driver.push(source, *records)

    def advance(self, seconds: float, step: float = 1.0) -> None:
        """Moves time on, step by step: ticks come, windows end, and messages fail whose time is over.

        Args:
            seconds: by how much.
            step: how much at a time.

        Raises:
            StepError: a component failed.
        """
        left = seconds
        while left > 0:
            self.driver.clock.advance(min(step, left))
            left -= step
            self.local.barrier()
            for host in self.hosts.values():
                host.settle(self.local)
                host.expire(self.local)

    def activate(self, on: bool = True) -> None:
        """Pauses the reliable spouts, or lets them go on.

        Args:
            on: whether they go on.
        """
        for host in self.hosts.values():
            host.tasks.activate(on)

    def acked(self, spout: str) -> list[Any]:
        """The ids of messages that were acked.

        Args:
            spout: the name of the spout.

        Returns:
            The ids, in the order of the acks.
        """
        return [m.id for outcome in self.hosts[spout].outcomes for m in outcome.acked]

    def failed(self, spout: str) -> list[Any]:
        """The ids of messages that failed.

        Args:
            spout: the name of the spout.

        Returns:
            The ids, in the order in which they failed; one that failed twice is there twice.
        """
        return [m.id for outcome in self.hosts[spout].outcomes for m in outcome.failed]

    def pending(self, spout: str) -> int:
        """How many messages are neither acked nor failed.

        Args:
            spout: the name of the spout.

        Returns:
            Their number.
        """
        return len(self.hosts[spout].tasks.pending)

    @property
    def is_done(self) -> bool:
        """Whether no message is open."""
        return all(not host.tasks.pending for host in self.hosts.values())

    @property
    def metrics(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The metrics of the last batch, by component and task."""
        return self.local.reported.bolt_metrics

    @property
    def errors(self) -> dict[tuple[str, int], list[str]]:
        """What tasks reported as errors in the last batch, by component and task."""
        return self.local.reported.bolt_errors
