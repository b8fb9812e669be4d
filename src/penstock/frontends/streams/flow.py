"""A flow as the user writes it: sources first, then steps on the streams they give."""

from __future__ import annotations

from typing import Any

from penstock.errors import FlowError, LoopError, NameTaken, SchemaError
from penstock.frontends.streams.naming import checked_name, names_step
from penstock.frontends.streams.stream import Stream
from penstock.graph.caller import user_line
from penstock.graph.endpoints import ONLY_WRITTEN
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, Feedback, Node, Output, Port, Source
from penstock.graph.schema import schema_of


class Flow:
    """A flow under construction; `flow.graph` is the immutable graph it stands for.

    >>> from penstock.graph.endpoints import items, console
    >>> flow = Flow("hello")
    >>> flow.source("names", items(["ada", "bob"], "name string")).sink("out", console())
    >>> [n.name for n in flow.graph.nodes]
    ['names', 'out']
    """

    def __init__(self, name: str) -> None:
        self.name = checked_name(name, "a flow")
        self._nodes: dict[str, Node] = {}

    @property
    def graph(self) -> Graph:
        """The graph as it stands, checked as a whole."""
        return Graph(self.name, tuple(self._nodes.values()))

    @names_step
    def source(
        self, name: str, /, endpoint: Endpoint, schema: Any = None, *, event_time: Any = None, **timing: Any
    ) -> Stream:
        """Records from outside. `event_time` says when they happened; what `Stream.event_time` takes may follow it."""
        read = self._source(name, endpoint, schema)
        if event_time is not None:
            return read.event_time(f"{name}.time", event_time, **timing)
        if timing:
            raise FlowError(
                f"source {name!r} ({user_line()}): {', '.join(timing)} needs event_time='a field' beside it"
            )
        return read

    def _source(self, name: str, endpoint: Endpoint, schema: Any) -> Stream:
        if not isinstance(endpoint, Endpoint):
            raise FlowError(
                f"source {name!r} ({user_line()}) needs an endpoint such as ps.files(...); {endpoint!r} came"
            )
        if endpoint.kind in ONLY_WRITTEN:
            raise FlowError(f"source {name!r} ({user_line()}): {endpoint.kind} is a sink; it cannot be read")
        given = schema_of(schema) if schema is not None else endpoint.schema
        if given is None:
            raise SchemaError(
                f"source {name!r} ({user_line()}): this endpoint has no schema of its own; give schema=..."
            )
        return self.add(Source(name, (), (Output(given),), endpoint, line=user_line()))

    @names_step
    def feedback(self, name: str, schema: Any) -> Stream:
        """The beginning of a loop: a stream that `feed` closes later. What is fed comes back one round later."""
        return self.add(Feedback(name, (), (Output(schema_of(schema)),), line=user_line()))

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
        from penstock.graph.describe import describe_graph  # here, so that `import penstock` stays light
        from penstock.graph.draw import as_svg

        try:
            return as_svg(describe_graph(self.graph))
        except FlowError:
            return None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What notebooks and consoles may choose from: the picture, and one line of text."""
        drawn = self._repr_svg_()
        return {"text/plain": repr(self)} | ({"image/svg+xml": drawn} if drawn else {})
