"""Bootstraps: what a step is to keep before the first record comes, from records that are there already.

The step itself runs over them, so that it keeps what it would have kept had they come through the flow; what it emits for
them is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import FlowError, SchemaError, nearest
from penstock.graph.endpoints.basic import nothing
from penstock.graph.ids import child
from penstock.graph.nodes import AsRecords, Node, Output, Port, Sink

if TYPE_CHECKING:
    from penstock.graph.graph import Graph


@dataclass(frozen=True)
class Bootstrap:
    """Records for a step: the stream at `port`, which `nodes` make."""

    step: str
    nodes: tuple[Node, ...]
    port: Port
    line: str = ""

    @property
    def _where(self) -> str:
        return f"bootstrap of step {self.step!r}{f' ({self.line})' if self.line else ''}"

    def check(self, graph: Graph) -> None:
        """The step must be there, read one stream of this form, and keep something."""
        node = graph.by_name.get(self.step)
        if node is None or not node.stores:
            steps = [n.name for n in graph.nodes if n.stores]
            what = "is not there" if node is None else "keeps nothing"
            raise FlowError(
                f"{self._where}: that step {what}; of those that keep something, {nearest(self.step, steps)}"
            )
        if len(node.inputs) != 1:
            raise FlowError(
                f"{self._where}: it reads {len(node.inputs)} streams; only a step that reads one can be filled"
            )
        keeps = [n.name for n in self.nodes if n.stores]
        if keeps:
            raise FlowError(
                f"{self._where}: its records come from {keeps[0]!r}, which keeps something itself; use records that need no state"
            )
        wanted, given = graph.output(node.inputs[0]).schema, self._output().schema
        if not given.types_equal(wanted):
            raise SchemaError(f"{self._where} must give what the step reads, ({wanted}), got ({given})")

    def _output(self) -> Output:
        node = next(n for n in self.nodes if n.name == self.port.step)
        return node.output(self.port.name)

    def branch(self, graph: Graph) -> tuple[Node, ...]:
        """The step with these records before it and nothing after it; all but the step under ids of their own."""
        node = graph.node(self.step)
        made = [self._renamed(n) for n in self.nodes]
        last = Port(self._own(self.port.step), self.port.name)
        timed = graph.output(node.inputs[0]).event_time
        if timed != self._output().event_time:
            made.append(AsRecords(child(self.step, "timed"), (last,), timed))
            last = Port(made[-1].name)
        step = replace(node, inputs=(last,), outputs=())
        drop = Sink(child(self.step, "drop"), (Port(self.step, node.outputs[0].name),), nothing())
        return (*made, step, drop)

    def _own(self, step: str) -> str:
        return child(self.step, "bootstrap", step)

    def _renamed(self, node: Node) -> Node:
        inputs = tuple(Port(self._own(p.step), p.name) for p in node.inputs)
        return replace(node, name=self._own(node.name), inputs=inputs)


def bootstrap_graph(graph: Graph) -> Graph:
    """The flow that fills the steps of another one."""
    return replace(graph, nodes=tuple(n for b in graph.bootstraps for n in b.branch(graph)), bootstraps=())
