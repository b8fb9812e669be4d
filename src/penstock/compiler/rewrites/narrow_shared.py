"""Leaves out, of a stream that several steps read and that is kept for them, the rows and fields that none of them asks for.

So it does with fields of what event time is read of: Spark notes the times of whole rows, and does not see what of them is read later.
What is asked for is a path: a field, or a field inside one. Steps that filter and select hand on what those after them ask for, so of a view with many
columns only those that are read are kept, and of a record with objects in it the values inside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

from penstock.compiler.plan import Plan
from penstock.graph.expr import Call, Column, Expr
from penstock.graph.expr.model import GetField, Raw
from penstock.graph.expr.rewrite import rewritten
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import AggregateBy, EventTime, Node, Port, Select, Where, Window, WithColumns
from penstock.graph.nodes.base import COUNT, OUT
from penstock.graph.nodes.relational.whole import WholeStep
from penstock.graph.windows import SessionWindow

Path = tuple[str, ...]
"""A field, or a field inside one."""
HANDING_ON = (Select, Where, WithColumns, EventTime)
"""Steps that ask for what is asked of them."""


def narrow_shared(plan: Plan) -> Plan:
    """The plan of a graph in which steps that filter and select what several of them read do so together first."""
    graph = reduce(_narrowed, _narrowable(plan.graph), plan.graph)
    return plan if graph is plan.graph else Plan(graph, plan.stages)


def _narrowed(graph: Graph, port: Port) -> Graph:
    steps, fields = _steps(graph, port)
    if not steps:
        return graph
    changed = {n.name: n for n in (*_renamed(graph, port, fields), *_pruned(graph, port))} if fields else {}
    last = Port(steps[-1].name)
    nodes = (changed.get(n.name, n) for n in graph.nodes)
    readers = (replace(n, inputs=tuple(last if p == port else p for p in n.inputs), outputs=()) for n in nodes)
    made = [each for n in readers for each in (n, *(steps if n.name == port.step else ()))]
    return Graph(graph.name, tuple(made), graph.bootstraps)


def _narrowable(graph: Graph) -> list[Port]:
    ports = (Port(n.name, output.name) for n in graph.ordered for output in n.outputs)
    return [port for port in ports if len(graph.readers(port)) > 1 or _is_timed(graph, port)]


def _is_timed(graph: Graph, port: Port) -> bool:
    return any(isinstance(node, EventTime) for node in graph.readers(port))


def _steps(graph: Graph, port: Port) -> tuple[list[Node], dict[Path, str]]:
    """The steps that narrow a stream, and the names of the paths that are left of it; none where its readers need all of it."""
    steps: list[Node] = []
    conditions = [n.condition for n in graph.readers(port) if isinstance(n, Where) and _is_plain(n)]
    if len(conditions) == len(graph.readers(port)):
        either = reduce(lambda one, other: Call("or", (one, other)), conditions)
        steps.append(Where(_named(port, "wanted"), (port,), either))
    fields = _fields(graph, port)
    if fields:
        read = Port(steps[-1].name) if steps else port
        columns = tuple((name, _value(path)) for path, name in fields.items())
        steps.append(Select(_named(port, "shared" if len(graph.readers(port)) > 1 else "read"), (read,), columns))
    return steps, fields


def _named(port: Port, what: str) -> str:
    return child(port.step, what) if port.name == OUT else child(port.step, what, port.name)


def _fields(graph: Graph, port: Port) -> dict[Path, str]:
    """The paths that are read, in the order of the fields, with the names they get; none where that is all of the stream."""
    output, asked = graph.output(port), _asked(graph, port)
    if asked is None:
        return {}
    read = asked | ({(output.event_time.column,)} if output.event_time is not None else set())
    order = {name: at for at, name in enumerate(output.schema.names)}
    paths = sorted((p for p in read if p[0] in order and not _is_inside(p, read)), key=lambda p: (order[p[0]], p))
    paths += [(COUNT,)] if COUNT in order and (COUNT,) not in paths else []
    if [p for p in paths if len(p) == 1] == [(name,) for name in output.schema.names]:
        return {}
    return {p: p[0] if len(p) == 1 else _free("@".join(p), output.schema.names) for p in paths}


def _free(name: str, taken: Iterable[str]) -> str:
    return name if name not in taken else _free(f"{name}@", taken)


def _is_inside(path: Path, others: Iterable[Path]) -> bool:
    """Whether what a path leads to is inside what another leads to."""
    return any(len(other) < len(path) and path[: len(other)] == other for other in others)


def _value(path: Path) -> Expr:
    first: Expr = Column(path[0])
    return reduce(lambda value, name: value.field(name), path[1:], first)


def _asked(graph: Graph, port: Port) -> set[Path] | None:
    """What the readers of a stream ask for; None is all of it."""
    found: set[Path] = set()
    for node in graph.readers(port):
        asked = _asked_by(graph, node)
        if asked is None:
            return None
        found |= asked
    return found


def _is_plain(node: Node) -> bool:
    return node.on_error is None and not node.varying


def _asked_by(graph: Graph, node: Node) -> set[Path] | None:
    of = node.of if isinstance(node, WholeStep) else node
    if isinstance(of, AggregateBy | Window):
        return None if _is_split(graph, node) else _aggregated(of)
    if not isinstance(node, HANDING_ON) or not _is_plain(node) or _is_split(graph, node):
        return None
    after = _asked(graph, Port(node.name))
    if isinstance(node, Select):
        return {path for _, value in _kept(graph, node) for path in _paths(value)}
    if after is None:
        return None
    if isinstance(node, Where):
        return after | set(_paths(node.condition))
    made = {node.column: node.time} if isinstance(node, EventTime) else dict(node.columns)
    return {path for path in after if path[0] not in made} | {p for value in made.values() for p in _paths(value)}


def _is_split(graph: Graph, node: Node) -> bool:
    """Whether somebody reads another output of a step, which has the records as they came, or the partitions by which it goes."""
    return any(graph.readers(Port(node.name, each.name)) for each in node.outputs[1:]) or bool(
        isinstance(node, EventTime) and node.partition
    )


def _aggregated(of: AggregateBy | Window) -> set[Path] | None:
    if any(a.own is not None or a.ranked is not None for a in of.aggregates) or not _is_plain(of):
        return None
    if isinstance(of, Window) and (of.function is not None or of.parts or not _has_plain_spans(of)):
        return None
    timed = {of.time.column} if isinstance(of, Window) and of.time is not None else set()
    return {(name,) for name in timed.union(of.keys, *(a.reads for a in of.aggregates))}


def _has_plain_spans(of: Window) -> bool:
    """Whether no field says how long a window is."""
    return not isinstance(of.spec, SessionWindow) or isinstance(of.spec.gap, int)


def _kept(graph: Graph, node: Select) -> list[tuple[str, Expr]]:
    """The columns of a select that somebody asks for."""
    output, asked = node.output(), _asked(graph, Port(node.name))
    if asked is None:
        return list(node.columns)
    names = {path[0] for path in asked} | {COUNT}
    names |= set() if output.event_time is None else {output.event_time.column}
    return [(name, value) for name, value in node.columns if name in names] or list(node.columns[:1])


def _paths(value: Expr) -> Iterator[Path]:
    """The longest paths of fields in an expression."""
    plain = value.plain()
    path = _path(plain)
    if path is not None:
        yield path
        return
    if isinstance(plain, Raw):
        yield from ((name,) for name in plain.inputs)
    for part in plain.children():
        yield from _paths(part)


def _path(value: Expr) -> Path | None:
    plain = value.plain()
    if isinstance(plain, Column):
        return (plain.name,)
    inner = _path(plain.expr) if isinstance(plain, GetField) else None
    return None if inner is None or not isinstance(plain, GetField) else (*inner, plain.name)


def _renamed(graph: Graph, port: Port, fields: dict[Path, str]) -> Iterator[Node]:
    """The steps that read a narrowed stream, with the names that paths have in it."""

    def swap(value: Expr) -> Expr | None:
        path = _path(value)
        return Column(fields[path]) if path in fields else None

    for node in graph.readers(port):
        if isinstance(node, Where):
            yield replace(node, condition=rewritten(node.condition, swap))
            yield from _renamed(graph, Port(node.name), fields)
        elif isinstance(node, Select):
            yield replace(node, columns=tuple((name, rewritten(value, swap)) for name, value in _kept(graph, node)))
        elif isinstance(node, WithColumns):
            yield replace(node, columns=tuple((name, rewritten(value, swap)) for name, value in node.columns))
            yield from _renamed(graph, Port(node.name), fields)
        elif isinstance(node, EventTime):
            yield replace(node, time=rewritten(node.time, swap))
            yield from _renamed(graph, Port(node.name), fields)


def _pruned(graph: Graph, port: Port) -> Iterator[Node]:
    """The steps further on that select, without the columns that nobody asks for: what they would be made of is not there."""
    for node in graph.readers(port):
        if isinstance(node, Select) and _is_plain(node):
            yield from _later(graph, Port(node.name))
        elif isinstance(node, HANDING_ON) and _is_plain(node):
            yield from _pruned(graph, Port(node.name))


def _later(graph: Graph, port: Port) -> Iterator[Node]:
    for node in graph.readers(port):
        if isinstance(node, Select) and _is_plain(node):
            yield replace(node, columns=tuple(_kept(graph, node)))
        if isinstance(node, HANDING_ON) and _is_plain(node):
            yield from _later(graph, Port(node.name))
