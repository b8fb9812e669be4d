"""Puts in the steps that carry the changes of tables.

A table that changes travels in one of two forms. Where its key is proved and all that reads it only wants the newest row of each key, as
sinks do, rows replace those of their key. Everywhere else rows are signed: the hidden field `__count` says how many of a row are added
or taken back, and a step over them is one over records that looks at that field. A flow of records has neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.compiler.plan import Plan
from penstock.graph.expr import Column, col, columns_of, lit
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import (
    AggregateBy,
    AsRecords,
    AssignWindows,
    AsTable,
    Branch,
    BufferedStep,
    Changelog,
    Distinct,
    DistinctInTime,
    EventTime,
    Explode,
    Filter,
    FlatMap,
    Fold,
    JoinStatic,
    Keyed,
    LookupJoin,
    Map,
    MapBatches,
    Node,
    Output,
    OverTable,
    Port,
    Recent,
    Reduce,
    Repartition,
    Select,
    SetOperation,
    Sink,
    StreamJoin,
    Top,
    Union,
    Where,
    Window,
    WithColumns,
)
from penstock.graph.nodes.base import COUNT, OUT, is_plain
from penstock.graph.nodes.changes import (
    OPERATION,
    AggregateChanges,
    Answers,
    Consolidate,
    ConsolidateEarly,
    FoldChanges,
    Retract,
    Settle,
    SignedStep,
    TableJoin,
    TopChanges,
    Upserts,
    WindowChanges,
)
from penstock.graph.nodes.relational.trigger import Trigger
from penstock.graph.order import Term

SAME_ROWS = (Select, WithColumns, Map, Repartition)
"""Steps that make one row of each, after which a proved key may still be one."""
NATIVE = (Where, WithColumns, Explode, JoinStatic, Repartition, EventTime, AssignWindows)
"""Steps that carry a further field along as it is."""
OWN_CHANGES = (TableJoin, OverTable, SetOperation, Recent)
"""Steps that emit signed rows, of records and of tables."""
PYTHON = (Map, FlatMap, Filter, MapBatches)


def carry_changes(plan: Plan) -> Plan:
    """The plan of a graph in which only records travel, and rows that replace each other on their way to sinks."""
    return Plan(carried(plan.graph), plan.stages)


def carried(graph: Graph) -> Graph:
    """The graph as it runs. One without tables that change is returned as it is."""
    if not any(o.changes for n in graph.nodes for o in n.outputs):
        return graph
    return _Carrying(graph).carried()


@dataclass
class _Carrying:
    """A graph under way: the steps so far, and in which forms each stream of the user's is there."""

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    counted: set[Port] = field(default_factory=set)
    """The streams of the user's that carry a count: signed rows, or rows that replace each other and may be gone."""
    signed: dict[Port, Port] = field(default_factory=dict)
    """Where the signed rows of a stream of the user's are."""

    def carried(self) -> Graph:
        """The graph as it runs."""
        for node in self.graph.ordered:
            self._convert(node)
        order = {n.name: at for at, n in enumerate(self.graph.nodes)}
        self.nodes.sort(key=lambda n: order.get(n.name, len(order)))
        made = {n.name: n for n in self.nodes}
        settled = tuple(replace(_staying(n, made), outputs=()) for n in self.nodes)
        return Graph(self.graph.name, settled, self.graph.bootstraps)

    def _changes(self, port: Port) -> bool:
        return self.graph.output(port).changes is not None

    def _convert(self, node: Node) -> None:
        if not any(map(self._changes, node.inputs)):
            self._add(self._producer(node), node)
        elif isinstance(node, Sink):
            self._sink(node)
        elif isinstance(node, AsRecords):
            self._as_records(node)
        elif isinstance(node, SAME_ROWS) and not self._must_be_signed(Port(node.name)):
            self._same_rows(node)
        elif _looks_at_settled_rows(node):
            self._over_settled(node)
        elif isinstance(node, JoinStatic) and node.refresh is not None:
            self._remembering(node)
        elif isinstance(node, Trigger):
            self._triggered(node)
        elif isinstance(node, LookupJoin) and node.outputs[0].changes is None:
            self._add(replace(node, inputs=tuple(map(self._read, node.inputs))), node)
        elif isinstance(node, Window):
            ports = tuple(map(self._signed, node.inputs))
            self._add(WindowChanges(node.name, ports, node.keys, of=node, **_own(node)), node)  # type: ignore[arg-type]
        else:
            self._over_signed(node)

    def _add(self, made: Node, node: Node, *, signed: bool = False) -> None:
        """Adds a step; `signed` says that what comes out are signed rows."""
        self.nodes.append(made)
        for output in node.outputs:
            port = Port(node.name, output.name)
            if signed:
                self.signed[port] = port
            if signed or getattr(made, "counted", False):
                self.counted.add(port)

    def _producer(self, node: Node) -> Node:
        """A step that makes a table of records."""
        port = Port(node.name)
        changes = node.outputs[0].changes if node.outputs else None
        if changes is None:
            return node
        if isinstance(node, AggregateBy) and self._must_be_signed(port):
            self.signed[port] = port
            return replace(node, counted=True)
        if isinstance(node, OWN_CHANGES):
            self.signed[port] = port
            return replace(node, counted=True)
        return replace(node, counted=True) if isinstance(node, AsTable | Window) and changes.deletes else node

    # -- who needs what ---------------------------------------------------------------------------------------------

    def _must_be_signed(self, port: Port) -> bool:
        """Whether one of the steps that read a table needs to know what its rows were before."""
        return any(self._needs_signed(reader, port) for reader in self.graph.readers(port))

    def _needs_signed(self, reader: Node, port: Port) -> bool:
        if isinstance(reader, Sink):
            return self.graph.output(port).updates is None
        if isinstance(reader, AsRecords):
            return False
        if isinstance(reader, SAME_ROWS) and self.graph.output(Port(reader.name)).updates is not None:
            return self._must_be_signed(Port(reader.name))
        return True

    def _signed(self, port: Port) -> Port:
        """The signed rows of a stream; where rows replace each other, a step that remembers them is put in."""
        if port in self.signed:
            return self.signed[port]
        output = self.graph.output(port)
        line = self.graph.node(port.step).line
        made: Node
        if output.changes is None:
            one = ((COUNT, lit(1).cast("bigint")),)
            made = WithColumns(child(port.step, "signed", port.name), (port,), one, hidden=True, line=line)
        else:
            assert output.updates is not None, "rows that replace each other have a key"
            ends = output.event_time if isinstance(self.graph.node(port.step), Window) else None
            made = Retract(child(port.step, "changes"), (port,), output.updates, timed_by=ends, line=line)
        self.nodes.append(made)
        self.signed[port] = Port(made.name)
        return self.signed[port]

    # -- rows that replace each other -------------------------------------------------------------------------------

    def _same_rows(self, node: Node) -> None:
        """A step over rows that replace each other; a count goes along, where there is one."""
        (port,) = node.inputs
        if port not in self.counted:
            self.nodes.append(node)
            return
        self._add(self._linear(node, port), node)
        self.counted.add(Port(node.name))
        if port in self.signed:
            self.signed[Port(node.name)] = Port(node.name)

    def _as_records(self, node: Node) -> None:
        (port,) = node.inputs
        if port not in self.counted:
            self.nodes.append(node)
            return
        added = Where(child(node.name, "added"), (port,), col(COUNT) > 0, line=node.line)
        self.nodes += [added, _without_count(node, Port(added.name), self.graph.output(port))]

    def _sink(self, sink: Sink) -> None:
        """A sink gets the newest row of each key; one that can hold a table without a key gets the signed rows."""
        (port,) = sink.inputs
        output = self.graph.output(port)
        assert output.changes is not None
        key = sink.endpoint.key if sink.endpoint.key and output.changes.deletes else output.changes.key
        if port not in self.counted:
            self.nodes.append(sink)
        elif key is None:
            fields = tuple(f.name for f in output.schema.fields if is_plain(f))
            alone = None if fields else 1
            whole = Consolidate(
                child(sink.name, "rows"), (self._signed(port),), fields, parallelism=alone, line=sink.line
            )
            self.nodes += [whole, replace(sink, inputs=(Port(whole.name),))]
        elif not output.changes.deletes:
            added = Where(child(sink.name, "added"), (port,), col(COUNT) > 0, line=sink.line)
            plain = _select(child(sink.name, "rows"), Port(added.name), output, sink.line)
            self.nodes += [added, plain, replace(sink, inputs=(Port(plain.name),), key=key)]
        else:
            alone = None if key else 1
            read = port if key == output.changes.key else self._signed(port)
            rows = Upserts(child(sink.name, "rows"), (read,), key, parallelism=alone, line=sink.line)
            self.nodes += [rows, replace(sink, inputs=(Port(rows.name),), key=key)]

    # -- signed rows ------------------------------------------------------------------------------------------------

    def _over_signed(self, node: Node) -> None:
        ports = (
            tuple(map(self._signed, node.inputs)) if isinstance(node, Union) else tuple(map(self._read, node.inputs))
        )
        if isinstance(node, Changelog):
            self.nodes.append(replace(node, inputs=ports))
            return
        self._add(self._rewritten(replace(node, inputs=ports)), node, signed=True)

    def _read(self, port: Port) -> Port:
        """A table as signed rows, records as they are."""
        return self._signed(port) if self._changes(port) else port

    def _over_settled(self, node: Node) -> None:
        """A step that answers when event time has passed its rows: by then they are records."""
        made = replace(node, inputs=tuple(self._settled(port) if self._changes(port) else port for port in node.inputs))
        if isinstance(made, Distinct):
            made = DistinctInTime(made.name, made.inputs, made.keys, within=made.within, **_own(made))  # type: ignore[arg-type]
        self.nodes.append(made)

    def _settled(self, port: Port) -> Port:
        """The rows of a table as records, when event time has passed them."""
        output = self.graph.output(port)
        assert output.event_time is not None, "a step in event time has checked that"
        keys = output.updates or tuple(f.name for f in output.schema.fields if is_plain(f))
        name = child(port.step, *(("settled",) if port.name == OUT else ("settled", port.name)))
        if name not in {n.name for n in self.nodes}:
            line = self.graph.node(port.step).line
            self.nodes.append(Settle(name, (self._signed(port),), keys, timed_by=output.event_time, line=line))
        return Port(name)

    def _remembering(self, node: JoinStatic) -> None:
        """A join with a table that is re-read: rows that come look up, rows that go take back what they found then."""
        (port,) = node.inputs
        signed, key = self._signed(port), self.graph.output(port).updates
        assert key, "a step that remembers by key has checked that"
        added = Where(child(node.name, "added"), (signed,), col(COUNT) > 0, line=node.line)
        found = replace(node, name=child(node.name, "found"), inputs=(Port(added.name),))
        self.nodes += [added, found]
        self._add(Answers(node.name, (Port(found.name), signed), key, **_own(node)), node, signed=True)  # type: ignore[arg-type]

    def _triggered(self, node: Trigger) -> None:
        """A trigger over signed rows; what it emits as a whole are records."""
        port, is_table = Port(node.name), not (node.whole or node.grows)
        self.nodes.append(replace(node, inputs=tuple(map(self._read, node.inputs)), counted=is_table))
        if is_table:
            self.signed[port] = port
            self.counted.add(port)

    def _rewritten(self, node: Node) -> Node:
        own = _own(node)
        if isinstance(node, AggregateBy):
            read = self._needed(node)
            calls = {"calls": node.calls, "always": node.always}
            return AggregateChanges(node.name, (read,), node.keys, **calls, **own)  # type: ignore[arg-type]
        if isinstance(node, Top):
            settings = {"n": node.n, "by": node.by, "into": node.into}
            return TopChanges(node.name, node.inputs, node.keys, **settings, **own)  # type: ignore[arg-type]
        if isinstance(node, Reduce | Fold):
            return FoldChanges(node.name, node.inputs, node.keys, of=node, **own)  # type: ignore[arg-type]
        if isinstance(node, Distinct):
            by = (Term(node.keys[0]),)
            return TopChanges(node.name, node.inputs, node.keys, n=1, by=by, **own)  # type: ignore[arg-type]
        if isinstance(node, OWN_CHANGES):
            return replace(node, counted=True)
        return node if isinstance(node, Union) else self._linear(node, node.inputs[0])

    def _needed(self, node: AggregateBy) -> Port:
        """The fields that the keys and the aggregates read, so that no more is moved; all where one is the user's own."""
        (port,) = node.inputs
        if any(a.own is not None for a in node.aggregates):
            return port
        read = {name for a in node.aggregates for argument in a.arguments for name in columns_of(argument)}
        names = dict.fromkeys((*node.keys, *sorted(read), COUNT))
        made = Select(child(node.name, "needed"), (port,), tuple((n, col(n)) for n in names), line=node.line)
        early = ConsolidateEarly(child(node.name, "early"), (Port(made.name),), line=node.line)
        self.nodes += [made, early]
        return Port(early.name)

    def _linear(self, node: Node, port: Port) -> Node:
        """A step that looks at one row at a time, with the count going along."""
        if isinstance(node, Select):
            return replace(node, inputs=(port,), columns=(*node.columns, (COUNT, col(COUNT))))
        if isinstance(node, PYTHON) or (isinstance(node, Branch) and node.runs_python):
            return SignedStep(
                node.name, (port,), node, line=node.line, parallelism=node.parallelism, on_error=node.on_error
            )
        assert isinstance(node, (NATIVE, Branch)), f"{node.kind} over a table that changes"
        return replace(node, inputs=(port,))


def _own(node: Node) -> dict[str, object]:
    """The settings that every step has."""
    return {"line": node.line, "parallelism": node.parallelism, "on_error": node.on_error}


def _looks_at_settled_rows(node: Node) -> bool:
    """Whether a step answers for a row only when event time has passed it."""
    if isinstance(node, StreamJoin):
        return not isinstance(node, TableJoin)
    return isinstance(node, BufferedStep) or (isinstance(node, Distinct) and node.within is not None)


def _staying(node: Node, made: dict[str, Node]) -> Node:
    """A step that keeps nothing and looks at the rows of a key together; it stays where they are, if they are in one task already."""
    if not isinstance(node, Upserts | Changelog) or isinstance(node, Consolidate) or not node.keys:
        return node
    return replace(node, stays=_is_together(node.inputs[0], set(node.keys), made))


def _is_together(port: Port, keys: set[str], made: dict[str, Node]) -> bool:
    """Whether all rows with the same values of some fields are in one task: they come from a step by a part of these."""
    node = made[port.step]
    if isinstance(node, Keyed):
        return bool(node.keys) and set(node.keys) <= keys
    if isinstance(node, Select):
        sources = {name: value.name for name, value in node.columns if isinstance(value, Column)}
        keys = {sources[k] for k in keys if k in sources}
    elif isinstance(node, WithColumns):
        keys -= {name for name, _ in node.columns}
    elif not isinstance(node, Where) and not (isinstance(node, SignedStep) and isinstance(node.of, Filter)):
        return False
    return _is_together(node.inputs[0], keys, made)


def _without_count(node: Node, port: Port, output: Output) -> Node:
    return _select(node.name, port, output, node.line)


def _select(name: str, port: Port, output: Output, line: str) -> Node:
    return Select(name, (port,), tuple((n, col(n)) for n in output.schema.names), line=line)


__all__ = ["OPERATION", "carried", "carry_changes"]
