"""The schema of what each stateful step keeps, derived from its node and its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.duration import shown
from penstock.graph.expr import Expr, to_text
from penstock.graph.graph import Graph
from penstock.graph.ids import part_of
from penstock.graph.logic.trident.keyed import PersistentAggregate, StateListing
from penstock.graph.nodes import (
    AggregateBy,
    AsOfJoin,
    Bolt,
    Distinct,
    DistinctInTime,
    Fold,
    IntervalJoin,
    Keyed,
    Match,
    MatchRows,
    Node,
    OperatorMatch,
    Over,
    OverTable,
    Port,
    Process,
    Recent,
    Reduce,
    SetOperation,
    Sort,
    StreamJoin,
    Top,
    Window,
    WindowJoin,
)
from penstock.graph.nodes.base import ALL, TimeField, label
from penstock.graph.nodes.batch import KeyedBatch
from penstock.graph.nodes.changes import (
    AggregateChanges,
    Answers,
    FoldChanges,
    Retract,
    Settle,
    TableJoin,
    TopChanges,
    WindowChanges,
    visible,
)
from penstock.graph.nodes.join import LEFT, RIGHT
from penstock.graph.nodes.patterns.match_patterns import MatchPatterns
from penstock.graph.nodes.patterns.rules import KeyedRules, RuleTable
from penstock.graph.nodes.relational.trigger import Trigger
from penstock.graph.rules.changes import KEPT
from penstock.graph.schema import Schema
from penstock.graph.state.schema import Settings, StateField, StateSchema

Fields = tuple[StateField, ...]


KEEP_RECORDS = (
    SetOperation, Trigger, Recent,
    Over, OverTable, Top, TopChanges, Sort, MatchRows, OperatorMatch, StreamJoin, DistinctInTime, Retract, Settle, WindowChanges, Answers,
)  # fmt: skip
"""Steps that keep records as they are."""


OWN: dict[str, Fields] = {
    RuleTable.kind: tuple(StateField(f.name, str(f.type)) for f in KEPT.fields if f.name != "rule"),
    KeyedRules.kind: tuple(StateField(name, "array<string>") for name in ("active", "inactive")),
}
"""What steps keep that is neither records nor computed of them, by the kind of the step."""


def schemas_of(graph: Graph) -> dict[str, StateSchema]:
    """The schema of every store of a graph, by the name of the store."""
    return {store: schema_of_state(node, graph, store) for node in graph.nodes for store in node.stores}


def schema_of_state(node: Node, graph: Graph, store: str) -> StateSchema:
    """What a step keeps in one of its stores.

    What the instances of a bolt keep is their own affair, and so is what a class keeps of a rule.
    """
    kind = node.stores[store]
    if isinstance(node, Bolt):
        names = [str(p) if p.name != "out" else p.step for p in node.inputs]
        settings = tuple((f"grouping of {n}", str(g)) for n, g in zip(names, node.groupings, strict=True))
        return StateSchema(node.name, node.kind, kind, settings=settings, tasks=node.tasks)
    assert isinstance(node, Keyed), f"a {node.kind} keeps nothing that is known"
    side = RIGHT if part_of(store) in ("right", "last") else LEFT
    schema = graph.output(node.inputs[side]).schema
    keys = tuple(StateField(k, str(schema.field(k).type)) for k in node.keys_of(side))
    values = _values(node, visible(schema), store)
    droppable = isinstance(node, Process)
    return StateSchema(node.name, node.kind, kind, keys, values, _settings(node, graph), droppable)


def _values(node: Keyed, schema: Schema, store: str) -> Fields:  # noqa: PLR0911 - a line for each kind of step
    """The fields that a step keeps for records of a schema; none when it is nothing but the keys."""
    if isinstance(node, AggregateBy | AggregateChanges):
        return _computed(node.aggregates, addable=isinstance(node, AggregateBy))
    if isinstance(node, WindowChanges) and not node.keeps_rows:
        node = node.of
    if isinstance(node, Window):
        return _computed(node.aggregates) if node.function is None else _records(schema)
    if isinstance(node, Fold):
        return _records(Schema(node.output().schema.fields[len(node.keys) :]))
    if isinstance(node, Process):
        cells = ((name, cell, str(cell)) for name, cell in node.logic.cells().items())
        return tuple(StateField(name, text.removeprefix(f"{name} "), addable=True) for name, _, text in cells)
    if isinstance(node, Reduce):
        return _records(schema, addable=True)
    if isinstance(node, DistinctInTime) and store == node.kept:
        return ()
    if isinstance(node, Match):
        names = node.stored_fields(schema) if store == node.name else schema.names
        return _records(schema.only(names)) if names else ()
    if isinstance(node, FoldChanges):
        result = _records(visible(node.output().schema))
        return (*_records(schema), *(replace(f, name=f"result.{f.name}") for f in result))
    if isinstance(node, KeyedBatch):
        return _of_batches(node, schema)
    return _records(schema) if isinstance(node, KEEP_RECORDS) else OWN.get(node.kind, ())


def _of_batches(node: KeyedBatch, schema: Schema) -> Fields:
    """What a state of Trident keeps for a key: the value of its aggregator, or the tuples that it lists."""
    if isinstance(node.logic, StateListing):
        return _records(schema.only(node.logic.picked.names))
    assert isinstance(node.logic, PersistentAggregate), f"{label(node.logic)} keeps nothing that is known"
    group = () if node.keys == (ALL,) else node.keys
    made = node.schemas[0][1].fields[len(group) :]
    meaning = f"{label(node.logic.aggregator)}({', '.join(node.logic.picked.names)})"
    return tuple(StateField("value", str(f.type), meaning) for f in made)


def _records(schema: Schema, *, addable: bool = False) -> Fields:
    return tuple(StateField(f.name, f"{f.type}{'' if f.nullable else ' not null'}", "", addable) for f in schema.fields)


def _computed(aggregates: Iterable[Aggregate], *, addable: bool = False) -> Fields:
    """Aggregates; one of the user's own has no value for what was kept before it was there."""
    return tuple(StateField(a.name, str(a.type), str(a), addable and a.own is None) for a in aggregates)


def _settings(node: Keyed, graph: Graph) -> Settings:  # noqa: PLR0911 - a line for each kind of step
    """The settings that change the meaning of what is kept."""
    if isinstance(node, Window):
        return _window(node)
    if isinstance(node, WindowChanges):
        return (*_over_table(node, graph), *_window(node.of))
    if isinstance(node, Settle):
        return (*_over_table(node, graph), *_timed(node.timed_by))
    if isinstance(node, AggregateChanges | TopChanges | TableJoin | Retract | FoldChanges | Answers | SetOperation):
        return _over_table(node, graph)
    if isinstance(node, Over | OverTable):
        return _over(node, graph)
    if isinstance(node, Recent):
        return (*_timed(node.timed_by), ("span", shown(node.span)))
    if isinstance(node, Trigger):
        rows = ("rows of a table", _path(node.inputs[0], graph) or "as they are")
        return (rows, *((name, str(value)) for name, value in node.settings().items()))
    if isinstance(node, Match | MatchPatterns):
        return (*_timed(node.time), *(_pattern(node) if isinstance(node, Match) else ()))
    if isinstance(node, Top):
        return (("first", f"{node.n} by {', '.join(map(str, node.by))}"),)
    if isinstance(node, Sort | MatchRows | OperatorMatch):
        return _in_order(node)
    if isinstance(node, Distinct | DistinctInTime):
        found = "earliest" if isinstance(node, DistinctInTime) else "first to come"
        return (("record", found), *_timed(node.timed_by), *_optional("span", node.within))
    return _join(node) if isinstance(node, StreamJoin) else ()


def _over(node: Over | OverTable, graph: Graph) -> Settings:
    """What must stay of a step that sees rows over their neighbours: what is kept was made by it."""
    of_table = _over_table(node, graph) if isinstance(node, OverTable) else _timed(node.timed_by)
    return (*of_table, *((name, str(value)) for name, value in node.settings().items()))


def _in_order(node: Sort | MatchRows | OperatorMatch) -> Settings:
    """What must stay of a step that takes records in order."""
    if isinstance(node, OperatorMatch):
        return (("pattern", str(node.pattern)), *_timed(node.time))
    more = _optional("span", node.span) if isinstance(node, Sort) else tuple(node.pattern.settings().items())
    return (*_timed(node.timed_by), *more)


def _pattern(node: Match) -> Settings:
    """What must stay of a pattern, for the runs that are under way."""
    conditions = tuple(
        (f"condition of {test}", to_text(test.condition) if isinstance(test.condition, Expr) else label(test.condition))
        for test in node.automaton.tests
    )
    stages, states = node.shape
    named = (("stages", stages), ("states", states))
    return (*node.pattern.settings().items(), *named, *conditions)


def _window(node: Window) -> Settings:
    always = (("windows", str(node.spec)), ("mode", node.mode), *_timed(node.time))
    return always if node.accumulate else (*always, ("accumulation", "off"))


def _timed(time: TimeField | None) -> Settings:
    return (("event time", f"{time.column}{f' + {time.shift} us' if time.shift else ''}"),) if time is not None else ()


def _optional(name: str, span: int | None) -> Settings:
    return ((name, shown(span)),) if span else ()


def _over_table(node: Keyed, graph: Graph) -> Settings:
    """What must stay of a step over a table: what was made of a row when it was added must be made of it when it is removed."""
    paths = [_path(port, graph) for port in node.inputs]
    made = tuple(("rows of a table", path or "as they are") for path in paths)
    if isinstance(node, SetOperation):
        return (*made, ("operation", str(node.settings()["operation"])))
    if isinstance(node, TopChanges):
        return (*made, ("first", f"{node.n} by {', '.join(map(str, node.by))}"))
    if isinstance(node, TableJoin):
        right = ", ".join(map(str, _records(visible(graph.output(node.inputs[RIGHT]).schema))))
        further = () if node.condition is None else (("condition", to_text(node.condition)),)
        forgets = () if node.ttl is None else (("rows", "are forgotten after a time"),)
        return (*made, ("kind", node.how), ("right", right), ("one row per key", str(node.single)), *further, *forgets)
    return made


def _path(port: Port, graph: Graph) -> str:
    """The steps that rows pass on the way from where they are kept."""
    node = graph.node(port.step)
    if node.keyed or not node.inputs:
        return ""
    settings = ", ".join(f"{name}={value}" for name, value in node.settings().items())
    rest = _path(node.inputs[0], graph)
    return f"{node.kind} {settings}{f' of {rest}' if rest else ''}"


def _join(node: StreamJoin) -> Settings:
    """Which records of a join wait for which others."""
    settings = node.settings()
    further = () if node.condition is None else (("condition", to_text(node.condition)),)
    times = further + tuple(
        (f"event time on the {side}", t.column) for side, t in zip(("left", "right"), node.timed_by, strict=True)
    )
    if isinstance(node, IntervalJoin):
        return (("kind", node.how), ("interval", str(settings["within"])), *times)
    if isinstance(node, WindowJoin):
        return (("kind", node.how), ("windows", str(settings["window"])), *times)
    assert isinstance(node, AsOfJoin)
    return (("direction", node.direction), *_optional("tolerance", node.tolerance), *times)
