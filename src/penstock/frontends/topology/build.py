"""From declarations to a graph: names become ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import FlowError, UnknownName, nearest
from penstock.frontends.topology.declare import (
    BoltDeclaration,
    DeadLettersDeclaration,
    Declared,
    SinkDeclaration,
    SpoutDeclaration,
    Subscription,
)
from penstock.frontends.topology.ranges import with_ranges
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import add_dead_letters, picked_fields, spout_nodes
from penstock.graph.endpoints.basic import nothing
from penstock.graph.expr import col
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.logic.topology.bolts import WindowedBolt
from penstock.graph.logic.topology.components import Spout
from penstock.graph.logic.topology.config import ACKERS, PENDING, TIMEOUT, USUAL_TIMEOUT
from penstock.graph.logic.topology.partitioned import PartitionedSpout
from penstock.graph.logic.topology.task_context import ComponentLayout, TopologyLayout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import OUT, Bolt, Endpoint, Feedback, Node, OnError, Port, Route, Sink, Source
from penstock.graph.nodes.topology import SEQUENCE, component_outputs, noted_source, route_name, visible
from penstock.graph.schema import Schema


def build_graph(
    name: str,
    declared: Mapping[str, Declared],
    config: Mapping[str, Any] | None = None,
    on_error: OnError | None = None,
) -> Graph:
    """The graph of a topology.

    Raises:
        FlowError: it is empty, a component reads what is not there, or a grouping does not fit its stream.
    """
    if not declared:
        raise FlowError(f"topology {name!r} is empty; begin with topology.spout(...)")
    if not any(isinstance(each, SpoutDeclaration) for each in declared.values()):
        raise FlowError(f"topology {name!r}: expected a spout, got none; add topology.spout('lines', ...)")
    builder = GraphBuilder(name, on_error=on_error)
    whole = with_ranges(declared, config or {})
    builder.add_in_any_order(_Components(name, whole, config or {}).nodes())
    for each in declared.values():
        if isinstance(each, DeadLettersDeclaration):
            add_dead_letters(builder, Sink(each.name, (), each.endpoint, line=each.line))
    return builder.graph()


class _Components:
    """The components of one topology, which find each other by name."""

    def __init__(self, name: str, declared: Mapping[str, Declared], config: Mapping[str, Any]) -> None:
        self.name, self.declared, self.config = name, declared, config
        self.producers = {n: d for n, d in declared.items() if isinstance(d, SpoutDeclaration | BoltDeclaration)}
        self.peers = tuple((n, d.tasks) for n, d in self.producers.items())
        for each in self._subscriptions():
            self._check(*each)
        self.rooted = self._rooted()
        self.layout = TopologyLayout(name, tuple(map(_layout, self.producers.values())))

    def _subscriptions(self) -> Iterator[tuple[BoltDeclaration | SinkDeclaration, Subscription]]:
        for declared in self.declared.values():
            if isinstance(declared, SinkDeclaration):
                yield declared, declared.reads
            elif isinstance(declared, BoltDeclaration):
                yield from ((declared, s) for s in declared.inputs)

    def _check(self, reader: BoltDeclaration | SinkDeclaration, wanted: Subscription) -> None:
        where = f"{'sink' if isinstance(reader, SinkDeclaration) else 'bolt'} {reader.name!r} ({wanted.line})"
        if wanted.component not in self.producers:
            raise UnknownName(
                f"{where} reads {wanted.component!r}, which is no spout or bolt of this topology; "
                f"{nearest(wanted.component, self.producers)}"
            )
        streams = self.producers[wanted.component].streams
        if wanted.stream not in streams:
            raise UnknownName(
                f"{where} reads stream {wanted.stream!r} of {wanted.component!r}; {nearest(wanted.stream, streams)}"
            )

    def _rooted(self) -> frozenset[str]:
        """The components whose tuples carry root ids: reliable spouts, and all that stems from them."""
        found = {n for n, d in self.producers.items() if isinstance(d, SpoutDeclaration) and _reliable(d)}
        grown = -1
        while grown != len(found):
            grown = len(found)
            found |= {n for n, d in self.producers.items() if isinstance(d, BoltDeclaration) and _reads_any(d, found)}
        return frozenset(found)

    def nodes(self) -> Iterator[Node]:
        """All steps, each component's together."""
        read = {s.component for _, s in self._subscriptions()}
        for declared in self.declared.values():
            if isinstance(declared, SpoutDeclaration):
                yield from self._spout(declared)
            elif isinstance(declared, BoltDeclaration):
                yield from self._bolt(declared)
                if declared.name not in read:
                    yield self._end(declared)
            elif isinstance(declared, SinkDeclaration):
                yield from self._sink(declared)

    def _schema(self, component: str, stream: str) -> Schema:
        """The fields of a stream, with what it carries beside them; a loop begins before its producer is there."""
        declared = self.producers[component]
        logic = declared.bolt if isinstance(declared, BoltDeclaration) else declared.spout
        if isinstance(logic, Endpoint):
            return declared.streams[stream]
        of_spout = isinstance(logic, Spout)
        beside = [SEQUENCE] if of_spout else []
        beside += noted_source(declared.tasks, of_spout or bool(self._feeds(component)))
        outputs = {o.name: o for o in component_outputs(logic, component in self.rooted, *beside)}
        return outputs[_output(stream)].schema

    def _port(self, component: str, stream: str) -> Port:
        declared = self.producers[component]
        if isinstance(declared, SpoutDeclaration) and list(declared.streams) != [DEFAULT]:
            return Port(child(component, stream))
        return Port(component, _output(stream))

    def _bolt(self, declared: BoltDeclaration) -> Iterator[Node]:
        ports: list[Port] = []
        for wanted in declared.inputs:
            port = self._port(wanted.component, wanted.stream)
            for made in self._way(declared, wanted, port):
                yield made
                port = Port(made.name)
            ports.append(port)
        self._check_windows(declared)
        origins = tuple((s.component, s.stream) for s in declared.inputs)
        groupings = tuple(s.grouping for s in declared.inputs)
        config = tuple({**self.config, **declared.config}.items())
        yield Bolt(
            declared.name,
            tuple(ports),
            declared.bolt,
            groupings,
            origins,
            self.peers,
            self.layout,
            config,
            tuple(i for i, s in enumerate(declared.inputs) if s.feedback and not _by_python(s)),
            self._feeds(declared.name),
            line=declared.line,
            parallelism=declared.tasks,
            on_error=declared.on_error,
        )

    def _check_windows(self, declared: BoltDeclaration) -> None:
        """Refuses windows that would hold the messages of a spout for longer than these may be open."""
        if not isinstance(declared.bolt, WindowedBolt):
            return
        for spout in self._messages_of(declared):
            config = {**self.config, **spout.config}
            try:
                declared.bolt.check_messages(float(config.get(TIMEOUT) or USUAL_TIMEOUT), config.get(PENDING))
            except FlowError as error:
                raise FlowError(
                    f"bolt {declared.name!r} ({declared.line}), messages of {spout.name!r}: {error}"
                ) from None

    def _messages_of(self, declared: BoltDeclaration) -> Iterator[SpoutDeclaration]:
        """The spouts whose messages, tracked by ackers, a bolt may get tuples of."""
        seen, ahead = {declared.name}, [declared]
        while ahead:
            for name in {s.component for s in ahead.pop().inputs} - seen:
                seen.add(name)
                above = self.producers[name]
                if isinstance(above, BoltDeclaration):
                    ahead.append(above)
                elif _reliable(above) and {**self.config, **above.config}.get(ACKERS) != 0:
                    yield above

    def _spout(self, declared: SpoutDeclaration) -> list[Node]:
        if isinstance(declared.spout, Endpoint):
            return [Source(declared.name, (), declared.spout, line=declared.line, on_error=declared.on_error)]
        assert not isinstance(declared.spout, PartitionedSpout), "with_ranges has put two components in its place"
        about = {"config": {**self.config, **declared.config}, "layout": self.layout}
        counted = (declared.tasks, declared.limit, declared.line)
        return spout_nodes(declared.name, declared.spout, *counted, about, declared.on_error)

    def _way(self, bolt: BoltDeclaration, wanted: Subscription, port: Port) -> Iterator[Node]:
        """The steps between a producer and a bolt: the beginning of a loop, and a choice that only Python can make."""
        path = (wanted.component,) if wanted.stream == DEFAULT else (wanted.component, wanted.stream)
        if wanted.feedback:
            schema = self._schema(wanted.component, wanted.stream)
            yield Feedback(child(bolt.name, "again", *path), (), schema, port, line=wanted.line)
            port = Port(child(bolt.name, "again", *path))
        if _by_python(wanted):
            origin = (wanted.component, wanted.stream)
            name = route_name(bolt.name, *origin)
            about = (wanted.grouping, bolt.tasks, origin, wanted.feedback, bolt.name, self.layout)
            yield Route(name, (port,), *about, line=wanted.line)

    def _feeds(self, component: str) -> tuple[tuple[str, int], ...]:
        """The outputs of a component that go into loops, with the number of these."""
        fed = [s.stream for _, s in self._subscriptions() if s.feedback and s.component == component]
        return tuple((_output(stream), fed.count(stream)) for stream in dict.fromkeys(fed))

    def _end(self, declared: BoltDeclaration) -> Node:
        """A bolt that nobody reads runs all the same."""
        port = self._port(declared.name, next(iter(declared.streams), DEFAULT))
        return Sink(child(declared.name, "end"), (port,), nothing(), line=declared.line)

    def _sink(self, declared: SinkDeclaration) -> Iterator[Node]:
        wanted = declared.reads
        port, schema = self._port(wanted.component, wanted.stream), self._schema(wanted.component, wanted.stream)
        plain = visible(schema)
        if plain is not schema:
            name = child(declared.name, "fields")
            yield picked_fields(name, port, {n: col(n) for n in plain.names}, declared.line)
            port = Port(name)
        yield Sink(declared.name, (port,), declared.endpoint, line=declared.line)


def _by_python(wanted: Subscription) -> bool:
    """Whether only Python can choose the task."""
    return wanted.grouping.kind in ("partial_key", "custom")


def _output(stream: str) -> str:
    return OUT if stream == DEFAULT else stream


def _layout(declared: SpoutDeclaration | BoltDeclaration) -> ComponentLayout:
    streams = tuple((name, schema.names) for name, schema in declared.streams.items())
    inputs = declared.inputs if isinstance(declared, BoltDeclaration) else []
    sources = tuple((s.component, s.stream, str(s.grouping)) for s in inputs)
    return ComponentLayout(declared.name, declared.tasks, streams, sources)


def _reliable(declared: SpoutDeclaration) -> bool:
    return isinstance(declared.spout, Spout) and declared.spout.reliable


def _reads_any(declared: BoltDeclaration, names: set[str]) -> bool:
    return any(s.component in names for s in declared.inputs)
