"""A flow as the user writes it: sources first, then steps on the streams they give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.errors import FlowError, LoopError, NameTaken, SchemaError, nearest
from penstock.frontends.streams.naming import checked_name, names_step
from penstock.frontends.streams.stream import Stream
from penstock.graph.bootstrap import Bootstrap
from penstock.graph.caller import user_line
from penstock.graph.endpoints.basic import ONLY_WRITTEN
from penstock.graph.endpoints.delivery import DELIVERIES
from penstock.graph.endpoints.kafka import partition_of
from penstock.graph.endpoints.parsing import reading_policy
from penstock.graph.endpoints.shedding import shedding
from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    DEAD,
    DEAD_LETTER,
    DeadLetters,
    Endpoint,
    Feedback,
    Node,
    Output,
    Port,
    Source,
    on_error_of,
)
from penstock.graph.schema import schema_of


class Flow:
    """A flow under construction; `flow.graph` is the immutable graph it stands for.

    >>> from penstock.graph.endpoints.basic import items, console
    >>> flow = Flow("hello")
    >>> flow.source("names", items(["ada", "bob"], "name string")).sink("out", console())
    >>> [n.name for n in flow.graph.nodes]
    ['names', 'out']
    """

    def __init__(self, name: str, *, delivery: str = "", on_error: Any = None) -> None:
        self.name = checked_name(name, "a flow")
        if delivery and delivery not in DELIVERIES:
            raise FlowError(f"flow {name!r}: no delivery {delivery!r}; {nearest(str(delivery), DELIVERIES)}")
        self.delivery = delivery
        self.on_error = None if on_error is None else on_error_of(on_error)
        self._nodes: dict[str, Node] = {}
        self._bootstraps: dict[str, Bootstrap] = {}

    @property
    def graph(self) -> Graph:
        """The graph as it stands, checked as a whole."""
        return Graph(self.name, tuple(map(self._settled, self._nodes.values())), tuple(self._bootstraps.values()))

    def _settled(self, node: Node) -> Node:
        """A step with what the flow says of all steps, where it says nothing itself."""
        open_to_it = node.runs_python or node.keyed or isinstance(node, Source)
        if self.on_error is None or not open_to_it:
            return node
        if isinstance(node, Source):
            searched = self.on_error.action == DEAD_LETTER
            return replace(node, on_error=node.on_error or self.on_error, searched=searched)
        return node if node.on_error is not None else replace(node, on_error=self.on_error)

    @names_step
    def source(
        self,
        name: str,
        /,
        endpoint: Endpoint,
        schema: Any = None,
        *,
        event_time: Any = None,
        on_error: Any = None,
        shed: Any = None,
        **timing: Any,
    ) -> Stream:
        """Records from outside. `event_time` says when they happened; what `Stream.event_time` takes may follow it.

        `on_error` says what happens to a record that cannot be read: 'fail', 'dead_letter' or 'skip'. `shed`, such as
        `ps.shed(behind=100_000)`, has a topic leave out its oldest records when the flow has fallen too far behind.
        """
        read = self._source(name, endpoint, schema, on_error, shed)
        if event_time is not None:
            return read.event_time(f"{name}.time", event_time, **{**partition_of(endpoint), **timing})
        if timing:
            raise FlowError(
                f"source {name!r} ({user_line()}): {', '.join(timing)} needs event_time='a field' beside it"
            )
        return read

    def _source(self, name: str, endpoint: Endpoint, schema: Any, on_error: Any, shed: Any) -> Stream:
        if not isinstance(endpoint, Endpoint):
            raise FlowError(
                f"source {name!r} ({user_line()}) needs an endpoint such as ps.files(...), got {endpoint!r}"
            )
        if endpoint.kind in ONLY_WRITTEN:
            raise FlowError(f"source {name!r} ({user_line()}): {endpoint.kind} is a sink; it cannot be read")
        given = schema_of(schema) if schema is not None else endpoint.schema
        if given is None:
            raise SchemaError(
                f"source {name!r} ({user_line()}): this endpoint has no schema of its own; give schema=..."
            )
        where = f"source {name!r} ({user_line()})"
        policy, chosen = reading_policy(where, endpoint, on_error), shedding(where, endpoint, shed)
        return self.add(Source(name, (), (Output(given),), chosen, line=user_line(), on_error=policy))

    @names_step
    def feedback(self, name: str, schema: Any) -> Stream:
        """The beginning of a loop: a stream that `feed` closes later. What is fed comes back one round later."""
        return self.add(Feedback(name, (), (Output(schema_of(schema)),), line=user_line()))

    @names_step
    def dead_letters(self, name: str, endpoint: Endpoint, *, delivery: str = "") -> None:
        """Where the records go that steps put aside. Without it they are kept beside the flow's state: `penstock dlq list`."""
        letters = self.add(DeadLetters(f"{name}.letters", (), (Output(DEAD),), line=user_line()))
        letters.sink(name, endpoint, delivery=delivery)

    def feed(self, loop: Stream, stream: Stream) -> None:
        """Closes a loop: the records of `stream` come out of `loop`, one round later."""
        node = self._nodes[loop.port.step]
        if not isinstance(node, Feedback):
            raise LoopError(
                f"feed ({user_line()}) needs a stream made by flow.feedback(...); {loop.port} is a {node.kind}"
            )
        where = f"feedback {node.name!r} ({user_line()})"
        if node.fed_by is not None:
            raise LoopError(f"{where} is fed already, by {node.fed_by}; union the streams first")
        if not stream.schema.types_equal(node.outputs[0].schema):
            raise SchemaError(f"{where} carries ({node.outputs[0].schema}); {stream.port} gives ({stream.schema})")
        self._nodes[node.name] = Feedback(node.name, (), node.outputs, fed_by=stream.port, line=node.line)

    def bootstrap(self, step: str, records: Endpoint | Stream, schema: Any = None) -> None:
        """Says what a step has seen before the flow's first record: bounded records of the form that the step reads.

        `records` is an endpoint, such as `ps.files(...)`, or a stream, of this flow or of another. They pass through the step once,
        before the first batch of a flow that begins; what it gives for them is dropped.
        """
        if step in self._bootstraps:
            raise FlowError(f"step {step!r} has a bootstrap already ({self._bootstraps[step].line}); union the streams")
        made = records
        if isinstance(records, Endpoint):
            reads = self._nodes[step].inputs if step in self._nodes else ()
            form = schema or records.schema or (self.output(reads[0]).schema if reads else None)
            made = Flow(self.name).source("records", records, form)
        if not isinstance(made, Stream):
            raise FlowError(f"bootstrap of {step!r} ({user_line()}) needs an endpoint or a stream, got {records!r}")
        nodes = tuple(made.flow._above(made.port))
        self._bootstraps[step] = Bootstrap(step, nodes, made.port, user_line())

    def _above(self, port: Port) -> Iterator[Node]:
        """The steps that a stream comes from, itself among them, in the order they were made."""
        needed, waiting = set[str](), [port.step]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting += [p.step for p in self._nodes[name].inputs]
        return (n for n in self._nodes.values() if n.name in needed)

    def add(self, node: Node) -> Stream:
        """Puts a step into the flow and gives its first stream."""
        checked_name(node.name)
        if node.name in self._nodes:
            first = self._nodes[node.name].line
            raise NameTaken(
                f"step {node.name!r} ({node.line}) must have a name of its own; the step made at {first} has it. "
                f"Names are what errors, metrics and state use"
            )
        self._nodes[node.name] = node
        return Stream(self, Port(node.name, node.outputs[0].name)) if node.outputs else Stream(self, Port(node.name))

    def output(self, port: Port) -> Output:
        """What is known of the stream at a port."""
        return self._nodes[port.step].output(port.name)

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, {len(self._nodes)} steps)"

    def _repr_svg_(self) -> str | None:
        """The picture a notebook shows; none while the flow is not whole yet."""
        from penstock.graph.picture.describe import describe_graph  # here, so that `import penstock` stays light
        from penstock.graph.picture.draw import as_svg

        try:
            return as_svg(describe_graph(self.graph))
        except FlowError:
            return None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What notebooks and consoles may choose from: the picture, and one line of text."""
        drawn = self._repr_svg_()
        return {"text/plain": repr(self)} | ({"image/svg+xml": drawn} if drawn else {})
