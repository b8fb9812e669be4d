"""A Trident topology as the user writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.errors import FlowError, NameTaken
from penstock.frontends.trident.base import SCOPE, Fields, fields_of
from penstock.frontends.trident.state import TridentState
from penstock.frontends.trident.stream import TridentStream
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line, written_at
from penstock.graph.compose import picked_fields, spout_nodes
from penstock.graph.composed.compose_drpc import add_answers, requests_source
from penstock.graph.endpoints.basic import nothing
from penstock.graph.expr import col
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.logic.topology.components import Spout, check_component
from penstock.graph.logic.topology.config import PENDING, TIMEOUT
from penstock.graph.logic.topology.partitioned import (
    OPEN_RANGES,
    PartitionedSpout,
    RangeReader,
    RangeSpout,
    as_partitioned,
)
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.logic.trident.keyed import BatchJoin
from penstock.graph.logic.trident.operations import Picked
from penstock.graph.logic.trident.states import KINDS, TRANSACTIONAL, StateFactory
from penstock.graph.nodes import Bolt, Endpoint, Grouping, Node, Port, Sink, Source, Union
from penstock.graph.nodes.policy import Policy
from penstock.graph.nodes.topology import visible

_NEVER = 1e9
"""The message timeout of the ranges of a partitioned spout: one that was read twice because its batch took long would count twice."""


@dataclass
class Requests:
    """A function that is called from outside: where its requests come in, and where they fail."""

    function: str
    path: str
    port: Port
    failures: list[Port] = field(default_factory=list)


class TridentTopology:
    """A Trident topology under construction; `topology.graph` is the immutable graph it stands for.

    Args:
        name: the name of the topology: its state, metrics and ledgers go by it.
        on_error: what happens to a record that cannot be read and to a tuple that an operation fails on: 'fail', 'dead_letter', 'skip', or `ps.retry(...)`.

    Raises:
        FlowError: the name has other signs than letters, digits, '-', '_' and '.', or there is no such policy.

    >>> import penstock as ps
    >>> from penstock import trident
    >>> from penstock.testing import run_local
    >>> top = ps.TridentTopology("words")
    >>> words = top.new_stream("lines", ps.items(["a b", "a"], "line string")).each("line", trident.Split, "word string")
    >>> counts = words.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint")
    >>> counts.new_values_stream().sink("out", ps.console())
    >>> sorted(run_local(top)["out"])
    [Row(word='a', n=2), Row(word='b', n=1)]
    """

    def __init__(self, name: str, *, on_error: Policy | None = None) -> None:
        self.builder = GraphBuilder(name, on_error=on_error)
        self.name = self.builder.name
        self.functions: dict[str, Requests] = {}
        self._numbers: Counter[str] = Counter()

    @property
    def graph(self) -> Graph:
        """The graph as it stands. Steps that nobody reads run all the same, and functions answer with the stream at their end."""
        final = GraphBuilder(self.name, on_error=self.builder.on_error)
        final.add_in_any_order(self.builder.nodes)
        for requests in self.functions.values():
            self._answer(final, requests)
        read = {port.step for node in final.nodes for port in node.inputs}
        for node in final.nodes:
            if node.name not in read and not isinstance(node, Sink):
                final.add(Sink(child(node.name, "end"), (_first(node),), nothing(), line=node.line))
        return final.graph()

    def _answer(self, final: GraphBuilder, requests: Requests) -> None:
        """The stream at the end of a function becomes its answer."""
        read = {port for node in final.nodes for port in node.inputs}
        scoped = [
            Port(node.name, output.name)
            for node in final.nodes
            for output in node.outputs
            if SCOPE in output.schema and self._stems_from(final, node, requests) and output.name != "failed"
        ]
        ends = [port for port in scoped if port not in read and port != requests.port]
        if len(ends) != 1:
            names = ", ".join(map(str, ends)) or "none"
            raise FlowError(
                f"expected one stream at the end of the function {requests.function!r}, which is its answer; got {names}"
            )
        failures = tuple(requests.failures)
        with written_at(final.node(ends[0]).line):
            add_answers(final, requests.function, requests.path, requests.port, ends[0], failures, whole=True)

    def _stems_from(self, final: GraphBuilder, node: Node, requests: Requests) -> bool:
        return any(above.name == requests.port.step for above in final.above(Port(node.name)))

    def new_stream(
        self,
        name: str,
        spout: Spout | type[Spout] | PartitionedSpout | type[PartitionedSpout] | Endpoint,
        *,
        kind: str = TRANSACTIONAL,
        parallelism: int = 1,
        limit: int | None = None,
    ) -> TridentStream:
        """A stream of batches.

        Args:
            name: the name of the spout.
            spout: an endpoint such as `ps.topic(...)`, or a Spout or PartitionedSpout of yours, a class or an instance.
            kind: what holds when a batch runs again: "transactional" (the same tuples, as all endpoints of Penstock and all spouts do, whose tuples are
                put on disk first), "opaque" (other tuples, each in one batch that succeeds), or "non_transactional".
            parallelism: as how many tasks a Spout of yours runs.
            limit: ends a Spout of yours after so many tuples.

        Returns:
            The stream.

        Raises:
            FlowError: the kind is not one, or the spout is none.

        >>> import penstock as ps
        >>> ps.TridentTopology("demo").new_stream("lines", ps.items(["a b"], "line string")).fields
        ('line',)
        """
        line = user_line()
        if kind not in KINDS:
            raise FlowError(f"spout {name!r} ({line}): expected the kind of a spout ({', '.join(KINDS)}), got {kind!r}")
        if isinstance(spout, Endpoint):
            return TridentStream(self, self.builder.add(Source(name, (), spout, line=line)), spouts=frozenset({kind}))
        for node in _spout(name, spout, parallelism, limit, line):
            port = self.builder.add(node)
        plain = visible(self.builder.output(port).schema)
        picked = picked_fields(child(name, "fields"), port, {n: col(n) for n in plain.names}, line)
        return TridentStream(self, self.builder.add(picked), spouts=frozenset({kind}))

    def new_drpc_stream(self, function: str, *, path: str = "") -> TridentStream:
        """A stream of the calls of a function, each with the field `args`. What is at its end is the answer: all tuples of a call, as JSON.

        Args:
            function: the name of the function.
            path: the directory of the log through which calls come; else `PENSTOCK_LOG`, or .penstock/log.

        Returns:
            The stream. Aggregates and joins on it are those of one call.

        Raises:
            NameTaken: the topology has the function already.

        >>> import penstock as ps
        >>> ps.TridentTopology("demo").new_drpc_stream("words").fields
        ('args',)
        """
        if function in self.functions:
            raise NameTaken(f"function {function!r} ({user_line()}): expected a name of its own, got one that is there")
        port = requests_source(self.builder, function, path)
        self.functions[function] = Requests(function, path, port)
        return TridentStream(self, port, scope=(SCOPE,), spouts=frozenset({TRANSACTIONAL}), requests=function)

    def new_static_state(self, factory: StateFactory) -> TridentState:
        """A state that is only asked, by `state_query`.

        Args:
            factory: makes the state of each partition.

        Returns:
            The state.

        >>> import penstock as ps
        >>> from penstock import trident
        >>> known = ps.TridentTopology("demo").new_static_state(trident.StateFactory(lambda *where: trident.MemoryStore()))
        >>> known.kind
        'non_transactional'
        """
        return TridentState(self, "", factory.kind, exactly_once=True, factory=factory)

    def merge(self, *streams: TridentStream, name: str = "") -> TridentStream:
        """The tuples of several streams with as many fields, under the names of the first.

        Args:
            streams: the streams.
            name: the name of the step.

        Returns:
            The stream.

        Raises:
            FlowError: there are less than two, or only some of them are of a function.
            SchemaError: their fields have other types.
        """
        first = self._together(streams)
        called = self._named("merge", name)
        ports = tuple(self._as_first(child(called, "from", str(at)), s, first) for at, s in enumerate(streams))
        return first._at(self.builder.add(Union(called, ports)))

    def _as_first(self, name: str, stream: TridentStream, first: TridentStream) -> Port:
        """A stream under the names of the first of a merge."""
        if stream.fields == first.fields or len(stream.fields) != len(first.fields):
            return stream.port
        pairs = zip((*first.scope, *first.fields), (*stream.scope, *stream.fields), strict=True)
        return self.builder.add(picked_fields(name, stream.port, {n: col(own) for n, own in pairs}, user_line()))

    def join(
        self,
        streams: Sequence[TridentStream],
        keys: Sequence[str | Sequence[str]],
        fields: Fields = (),
        *,
        outer: Sequence[bool] = (),
        name: str = "",
    ) -> TridentStream:
        """The tuples of one batch that have the same key, each of one stream with each of the others.

        Args:
            streams: the streams.
            keys: for each the fields of the key.
            fields: the names of the result: the key, then the other fields of each stream; else as they are.
            outer: for each whether nulls stand in where it has no tuple of a key.
            name: the name of the step.

        Returns:
            The joined stream.

        Raises:
            FlowError: the numbers of streams, keys or fields do not go together.
        """
        first = self._together(streams)
        on = [fields_of(key) for key in keys]
        if len(on) != len(streams) or len({len(key) for key in on}) != 1 or (outer and len(outer) != len(streams)):
            raise FlowError(
                f"join ({user_line()}): expected a key for each of {len(streams)} streams, with as many fields, and as many entries of "
                f"outer; got keys={list(keys)!r}, outer={list(outer)!r}"
            )
        rest = [
            [f for f in s.schema.fields if f.name not in (*s.scope, *key)] for s, key in zip(streams, on, strict=True)
        ]
        schemas = [s.schema for s in streams]
        sides = tuple(Picked.of(s.names, [f.name for f in r]) for s, r in zip(schemas, rest, strict=True))
        made = [*(first.schema.field(k) for k in on[0]), *(f for r in rest for f in r)]
        logic = BatchJoin(sides, tuple(outer) or (False,) * len(streams))
        port = first._keyed_batch(
            self._named("join", name),
            logic,
            first._renamed(made, fields_of(fields), "join"),
            (*first.scope, *on[0]),
            tuple((s.port, (*s.scope, *key)) for s, key in zip(streams[1:], on[1:], strict=True)),
        )
        return first._at(port)

    def _together(self, streams: Sequence[TridentStream]) -> TridentStream:
        line = user_line()
        if len(streams) < 2 or any(not isinstance(s, TridentStream) or s.topology is not self for s in streams):
            raise FlowError(f"expected two streams of this topology or more ({line}), got {list(streams)!r}")
        if len({s.requests for s in streams}) != 1:
            raise FlowError(f"expected streams of one function, or of none ({line}); a call is a batch of its own")
        kinds = frozenset().union(*(s.spouts for s in streams))
        return streams[0]._of_kinds(kinds)

    def _named(self, kind: str, name: str) -> str:
        """The name of a step: the user's, or its kind with a number."""
        if name:
            return name
        self._numbers[kind] += 1
        return f"{kind}-{self._numbers[kind]}"

    def __repr__(self) -> str:
        return f"TridentTopology({self.name!r}, {len(self.builder)} steps)"


def _first(node: Node) -> Port:
    return Port(node.name, node.outputs[0].name)


def _spout(
    name: str,
    given: Spout | type[Spout] | PartitionedSpout | type[PartitionedSpout],
    tasks: int,
    limit: int | None,
    line: str,
) -> list[Node]:
    """The steps of a spout of the user's own; the last one has its tuples."""
    of, ranges = as_partitioned(name, given, limit, line), child(name, "ranges")
    if of is None:
        return spout_nodes(name, check_component(name, given, Spout, line), tasks, limit, line)
    turns = (Grouping("modulo", ("turn",)),)
    reader = Bolt(name, (Port(ranges),), RangeReader(of), turns, ((ranges, DEFAULT),), line=line, parallelism=tasks)
    config = {PENDING: OPEN_RANGES * tasks, TIMEOUT: _NEVER}
    return [*spout_nodes(ranges, RangeSpout(of), 1, None, line, {"config": config}), reader]
