"""From declarations to a graph: names become ports, and what a stream must carry is worked out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.errors import FlowError, SchemaError, UnknownName, nearest
from penstock.frontends.topology.declare import (
    BoltDeclared,
    Declared,
    SinkDeclared,
    SpoutDeclared,
    Subscription,
)
from penstock.graph import types as t
from penstock.graph.expr import Expr, col, lit
from penstock.graph.graph import Graph
from penstock.graph.logic.components import DEFAULT, Spout
from penstock.graph.nodes import (
    Bolt,
    Branch,
    Endpoint,
    Feedback,
    Node,
    Output,
    Port,
    Route,
    Select,
    Sink,
    Source,
)
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, TASK, visible, with_hidden
from penstock.graph.schema import Schema

NOTHING = Schema((t.Field("__nothing", t.BOOLEAN),), internal=True)
"""What a bolt gives that gives nothing."""


def build_graph(name: str, declared: Mapping[str, Declared]) -> Graph:
    """The graph of a topology."""
    if not declared:
        raise FlowError(f"topology {name!r} is empty; begin with topology.spout(...)")
    return Graph(name, tuple(_Builder(declared).nodes()))


class _Builder:
    """Works on one topology."""

    def __init__(self, declared: Mapping[str, Declared]) -> None:
        self.declared = declared
        self.givers = {n: d for n, d in declared.items() if not isinstance(d, SinkDeclared)}
        self.peers = tuple((n, d.tasks) for n, d in self.givers.items())
        for each in self._subscriptions():
            self._check(*each)
        self.rooted = self._rooted()

    def _subscriptions(self) -> Iterator[tuple[BoltDeclared | SinkDeclared, Subscription]]:
        for declared in self.declared.values():
            if isinstance(declared, SinkDeclared):
                yield declared, declared.reads
            elif isinstance(declared, BoltDeclared):
                yield from ((declared, s) for s in declared.inputs)

    def _check(self, reader: BoltDeclared | SinkDeclared, wanted: Subscription) -> None:
        where = f"{'sink' if isinstance(reader, SinkDeclared) else 'bolt'} {reader.name!r} ({wanted.line})"
        if wanted.component not in self.givers:
            raise UnknownName(
                f"{where} reads {wanted.component!r}, which is no spout or bolt of this topology; "
                f"{nearest(wanted.component, self.givers)}"
            )
        streams = self.givers[wanted.component].streams
        if wanted.stream not in streams:
            raise UnknownName(
                f"{where} reads stream {wanted.stream!r} of {wanted.component!r}; {nearest(wanted.stream, streams)}"
            )
        if isinstance(reader, BoltDeclared):
            self._check_grouping(where, wanted, streams[wanted.stream])

    def _check_grouping(self, where: str, wanted: Subscription, schema: Schema) -> None:
        direct = self._is_direct(wanted.component, wanted.stream)
        of = f"stream {wanted.stream!r} of {wanted.component!r}"
        if wanted.grouping.kind == "direct" and not direct:
            raise FlowError(
                f"{where}: direct grouping needs a direct stream, and {of} is not one; say direct = ({wanted.stream!r},) "
                f"in its class, and emit(..., task=n)"
            )
        if direct and wanted.grouping.kind != "direct":
            raise FlowError(f"{where}: {of} is direct, its producer names the task; subscribe with .direct(...)")
        try:
            kinds = [schema.field(f).type for f in wanted.grouping.fields]
        except SchemaError as error:
            raise SchemaError(f"{where}: {of}: {error}") from None
        if any(isinstance(k, t.Map) for k in kinds):
            raise SchemaError(f"{where}: a map has no hash, so tuples cannot be grouped by one; pick a part of it")

    def _is_direct(self, component: str, stream: str) -> bool:
        giver = self.givers[component]
        logic = giver.bolt if isinstance(giver, BoltDeclared) else giver.spout
        return not isinstance(logic, Endpoint) and stream in logic.direct

    def _rooted(self) -> frozenset[str]:
        """The components whose tuples carry root ids: reliable spouts, and all that stems from them."""
        found = {n for n, d in self.givers.items() if isinstance(d, SpoutDeclared) and _reliable(d)}
        grown = -1
        while grown != len(found):
            grown = len(found)
            found |= {n for n, d in self.givers.items() if isinstance(d, BoltDeclared) and _reads_any(d, found)}
        return frozenset(found)

    def nodes(self) -> Iterator[Node]:
        """All steps, each component's together."""
        read = {s.component for _, s in self._subscriptions()}
        for declared in self.declared.values():
            if isinstance(declared, SpoutDeclared):
                yield from self._spout(declared)
            elif isinstance(declared, BoltDeclared):
                yield from self._bolt(declared)
                if declared.name not in read:
                    yield self._end(declared)
            else:
                yield from self._sink(declared)

    def _output(self, component: str, stream: str) -> Output:
        """A stream with what it must carry beside its fields."""
        giver = self.givers[component]
        extra = [SEQUENCE] if isinstance(giver, SpoutDeclared) and isinstance(giver.spout, Spout) else []
        extra += [TASK] if self._is_direct(component, stream) else []
        extra += [ROOTS] if component in self.rooted else []
        return Output(with_hidden(giver.streams[stream], *extra), "out" if stream == DEFAULT else stream)

    def _port(self, component: str, stream: str) -> Port:
        giver = self.givers[component]
        if isinstance(giver, SpoutDeclared) and list(giver.streams) != [DEFAULT]:
            return Port(f"{component}.{stream}")
        return Port(component, "out" if stream == DEFAULT else stream)

    def _spout(self, declared: SpoutDeclared) -> Iterator[Node]:
        name, spout, line = declared.name, declared.spout, declared.line
        if isinstance(spout, Endpoint):
            yield Source(name, (), (Output(declared.streams[DEFAULT]),), spout, line=line)
            return
        outputs = {s: self._output(name, s) for s in declared.streams}
        tagged = list(declared.streams) != [DEFAULT]
        schema = _tagged(declared, outputs) if tagged else outputs[DEFAULT].schema
        options = {"spout": spout, "tasks": declared.tasks, "limit": declared.limit}
        endpoint = Endpoint("spout", options, schema, bounded=not spout.endless or declared.limit is not None)
        yield Source(name, (), (Output(schema),), endpoint, line=line, parallelism=declared.tasks)
        if tagged:
            yield from _parted(declared, outputs, schema)

    def _bolt(self, declared: BoltDeclared) -> Iterator[Node]:
        ports: list[Port] = []
        for wanted in declared.inputs:
            port = self._port(wanted.component, wanted.stream)
            for made in self._way(declared, wanted, port):
                yield made
                port = Port(made.name)
            ports.append(port)
        if not ports:
            raise FlowError(
                f"bolt {declared.name!r} ({declared.line}) reads nothing; subscribe it to a stream, such as "
                f".shuffle({next(iter(self.givers))!r})"
            )
        outputs = tuple(self._output(declared.name, s) for s in declared.streams) or (Output(NOTHING),)
        origins = tuple((s.component, s.stream) for s in declared.inputs)
        yield Bolt(
            declared.name,
            tuple(ports),
            outputs,
            declared.bolt,
            tuple(s.grouping for s in declared.inputs),
            origins,
            self.peers,
            line=declared.line,
            parallelism=declared.tasks,
        )

    def _way(self, bolt: BoltDeclared, wanted: Subscription, port: Port) -> Iterator[Node]:
        """The steps between a producer and a bolt: the beginning of a loop, and a choice that only Python can make."""
        schema = self._output(wanted.component, wanted.stream).schema
        path = wanted.component if wanted.stream == DEFAULT else f"{wanted.component}.{wanted.stream}"
        if wanted.feedback:
            yield Feedback(f"{bolt.name}.again.{path}", (), (Output(schema),), fed_by=port, line=wanted.line)
            port = Port(f"{bolt.name}.again.{path}")
        if wanted.grouping.kind in ("partial_key", "custom"):
            name, made = f"{bolt.name}.from.{path}", Output(with_hidden(schema, TASK))
            origin = (wanted.component, wanted.stream)
            yield Route(name, (port,), (made,), wanted.grouping, bolt.tasks, origin, line=wanted.line)

    def _end(self, declared: BoltDeclared) -> Node:
        """A bolt that nobody reads runs all the same."""
        port = self._port(declared.name, next(iter(declared.streams), DEFAULT))
        return Sink(f"{declared.name}.end", (port,), (), Endpoint("nothing"), line=declared.line)

    def _sink(self, declared: SinkDeclared) -> Iterator[Node]:
        wanted = declared.reads
        port, schema = self._port(wanted.component, wanted.stream), self._output(wanted.component, wanted.stream).schema
        plain = visible(schema)
        if plain is not schema:
            yield _picked(
                f"{declared.name}.fields", port, Output(plain), {n: col(n) for n in plain.names}, declared.line
            )
            port = Port(f"{declared.name}.fields")
        yield Sink(declared.name, (port,), (), declared.endpoint, line=declared.line)


def _reliable(declared: SpoutDeclared) -> bool:
    return isinstance(declared.spout, Spout) and declared.spout.reliable


def _reads_any(declared: BoltDeclared, names: set[str]) -> bool:
    return any(s.component in names for s in declared.inputs)


def _tagged(declared: SpoutDeclared, outputs: Mapping[str, Output]) -> Schema:
    """The records of a spout with several streams: which stream, a struct for each, and what they carry beside."""
    structs = tuple(t.Field(s, t.Struct(schema.fields)) for s, schema in declared.streams.items())
    beside = {f.name: f for o in outputs.values() for f in o.schema.fields if f.name.startswith("__")}
    ordered = [f for f in (SEQUENCE, TASK, ROOTS) if f.name in beside]
    return Schema((t.Field("__stream", t.STRING), *structs, *ordered), internal=True)


def _parted(declared: SpoutDeclared, outputs: Mapping[str, Output], schema: Schema) -> Iterator[Node]:
    """The streams of a spout, each a step of its own; native."""
    name, line = declared.name, declared.line
    conditions = tuple((s, col("__stream") == lit(s)) for s in outputs)
    ports = tuple(Output(schema, s) for s in (*outputs, "otherwise"))
    yield Branch(f"{name}.streams", (Port(name),), ports, conditions, line=line)
    for stream, output in outputs.items():
        fields = declared.streams[stream].names
        picked = {n: col(stream).field(n) if n in fields else col(n) for n in output.schema.names}
        yield _picked(f"{name}.{stream}", Port(f"{name}.streams", stream), Output(output.schema), picked, line)


def _picked(name: str, port: Port, output: Output, columns: Mapping[str, Expr], line: str) -> Node:
    return Select(name, (port,), (output,), tuple(columns.items()), line=line)
