"""The flow graph: named steps, and the streams between them. Immutable; building it runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import FlowError, LoopError, NameTaken, UnknownName, nearest
from penstock.graph.binding import bind, blaming, inputs_of, stream_at
from penstock.graph.bootstrap import Bootstrap
from penstock.graph.ids import is_id
from penstock.graph.nodes import DeadLetters, Feedback, Node, Output, Port, Sink, Source


@dataclass(frozen=True)
class Graph:
    """A checked graph. Every front end builds one of these, and every runtime takes one.

    Each step is bound to the streams it reads: its outputs are worked out, or, where they are given, must be those that the step derives.

    Args:
        name: the name of the flow.
        nodes: its steps, in any order.
        bootstraps: what steps keep before the first record.

    Raises:
        FlowError: a step does not fit what it reads, two steps share a name, or steps read each other in a circle.

    >>> from penstock.graph.endpoints.basic import items
    >>> from penstock.graph.expr import as_expr
    >>> from penstock.graph.nodes import Where
    >>> rows = Source("rows", (), items([1], "n bigint"))
    >>> Graph("g", (rows, Where("some", (Port("rows"),), as_expr("missing > 3"))))
    Traceback (most recent call last):
    penstock.errors.ExpressionError: step 'some': no column 'missing'; there are: 'n'
    """

    name: str
    nodes: tuple[Node, ...]
    bootstraps: tuple[Bootstrap, ...] = ()

    def __post_init__(self) -> None:
        if not self.nodes:
            raise FlowError(f"flow {self.name!r} has no steps; begin with flow.source(...)")
        self._check_names()
        self._check_steps()
        self._bind()
        self._check_feedback()
        self._check_dead_letters()
        for bootstrap in self.bootstraps:
            bootstrap.check(self)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The steps by name."""
        return {n.name: n for n in self.nodes}

    def node(self, name: str) -> Node:
        """The step of that name."""
        if name not in self.by_name:
            raise UnknownName(f"flow {self.name!r} has no step {name!r}; {nearest(name, self.by_name)}")
        return self.by_name[name]

    def output(self, port: Port) -> Output:
        """The stream at that port."""
        return self.node(port.step).output(port.name)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The steps through which records come in."""
        return tuple(n for n in self.nodes if isinstance(n, Source))

    @cached_property
    def sinks(self) -> tuple[Sink, ...]:
        """The steps through which records go out."""
        return tuple(n for n in self.nodes if isinstance(n, Sink))

    @cached_property
    def loops(self) -> tuple[Feedback, ...]:
        """The steps at which loops begin."""
        return tuple(n for n in self.nodes if isinstance(n, Feedback))

    @cached_property
    def _readers(self) -> dict[Port, tuple[Node, ...]]:
        readers: dict[Port, list[Node]] = {}
        for node in self.nodes:
            for port in dict.fromkeys(node.inputs):
                readers.setdefault(port, []).append(node)
        return {port: tuple(nodes) for port, nodes in readers.items()}

    def readers(self, port: Port) -> tuple[Node, ...]:
        """The steps that read a stream."""
        return self._readers.get(port, ())

    @cached_property
    def ordered(self) -> tuple[Node, ...]:
        """The steps in an order in which each stands after all it reads from."""
        return tuple(self._walk())

    def _walk(self) -> Iterator[Node]:
        """Row by row: first the steps that read nothing, then those that read only the rows above, and so on."""
        waits = {n.name: len({p.step for p in n.inputs}) for n in self.nodes}
        index = {n.name: i for i, n in enumerate(self.nodes)}
        after: dict[str, list[Node]] = {}
        for node in self.nodes:
            for step in {p.step for p in node.inputs}:
                after.setdefault(step, []).append(node)
        row = [n for n in self.nodes if not waits[n.name]]
        while row:
            yield from row
            for node in (reader for n in row for reader in after.get(n.name, ())):
                waits[node.name] -= 1
            reached = {r.name: r for n in row for r in after.get(n.name, ()) if not waits[r.name]}
            row = sorted(reached.values(), key=lambda n: index[n.name])
        stuck = [n for n in self.nodes if waits[n.name]]
        if stuck:
            raise LoopError(self._loop_text(stuck))

    def _loop_text(self, stuck: list[Node]) -> str:
        circle = self._circle({n.name: [p.step for p in n.inputs] for n in stuck})
        line = self.by_name[circle[0]].line
        return (
            f"flow {self.name!r}: {' -> '.join(circle)} is a loop{f' (see {line})' if line else ''}. A loop needs one "
            f"feedback edge, which says where a round ends: flow.feedback(...) in a stream, feedback=True on a bolt's input"
        )

    @staticmethod
    def _circle(reads: dict[str, list[str]]) -> list[str]:
        path = [next(iter(reads))]
        while True:
            before = next(s for s in reads[path[-1]] if s in reads)
            if before in path:
                return [before, *reversed(path[path.index(before) :])]
            path.append(before)

    def _check_names(self) -> None:
        seen: dict[str, Node] = {}
        for node in self.nodes:
            if not is_id(node.name):
                raise FlowError(
                    f"{node.where}: a step needs a name of letters, digits, '-', '_' and '.', got {node.name!r}"
                )
            if node.name in seen:
                first = seen[node.name].line
                raise NameTaken(
                    f"{node.where} must have a name of its own; "
                    f"another step has it{f' ({first})' if first else ''}. Names are what errors, metrics and state use"
                )
            seen[node.name] = node

    def _check_steps(self) -> None:
        """Every step that is read is there; which of its outputs shows when it is bound."""
        for node in self.nodes:
            for port in node.inputs:
                if port.step not in self.by_name:
                    stream_at(node, port, self.by_name)

    def _bind(self) -> None:
        """Puts each step over what it reads, in order; then the graph is as it will stay."""
        bound: dict[str, Node] = {}
        for node in self.ordered:
            bound[node.name] = bind(node, inputs_of(node, bound))
        order = tuple(bound.values())
        object.__setattr__(self, "nodes", tuple(bound[n.name] for n in self.nodes))
        object.__setattr__(self, "by_name", {n.name: n for n in self.nodes})
        object.__setattr__(self, "ordered", order)

    def _check_feedback(self) -> None:
        for node in self.loops:
            if node.fed_by is None:
                raise LoopError(
                    f"{node.where} is never fed; close the loop with flow.feed({node.name}, stream), or drop it"
                )
            with blaming(node):
                node.check_fed(stream_at(node, node.fed_by, self.by_name))

    def _check_dead_letters(self) -> None:
        """Dead letters leave the flow."""
        for node in self.nodes:
            of = next((p for p in node.inputs if isinstance(self.by_name[p.step], DeadLetters)), None)
            if of is not None and not isinstance(node, Sink):
                raise FlowError(f"{node.where} reads the dead letters of the flow; only a sink may")
