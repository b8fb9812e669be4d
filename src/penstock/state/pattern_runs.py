"""The runs that a step with a pattern keeps, as a person reads them: one row for each run, with the events it has taken."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.state.active_runs import EARLIER, REST
from penstock.graph.state.schema import StateSchema
from penstock.graph.state.table import TIME
from penstock.graph.times import to_moment

KIND = "match"
MANY = "match_patterns"
OPERATORS = "operator_match"
KINDS = (KIND, MANY, OPERATORS)
"""The kinds of steps that keep runs: of one pattern, of several, and of one of operators."""
WAITS_FOR, SINCE, TAKEN = "waits_for", "since", "taken"
_PARTS = ("events", "links", "runs", "matches")
_PATTERNS, _MACHINES = "patterns", "machines"
_MACHINE = "pattern"
"""The column of the store of a pattern of operators."""
_WHICH = ("pattern", "version")


def has_runs(schema: StateSchema | None, table: pa.Table) -> bool:
    """Whether a store holds the runs of a pattern, or of several."""
    if schema is None or schema.node not in KINDS:
        return False
    wanted = {MANY: {_PATTERNS}, OPERATORS: {_MACHINE}}.get(schema.node, set(_PARTS))
    return wanted <= set(table.column_names)


def runs_of(table: pa.Table, schema: StateSchema) -> pa.Table:
    """The runs in the store of a pattern: the key, what each waits for, since when, and the events that it has taken."""
    if schema.node == MANY:
        return _runs_of_many(table)
    if schema.node == OPERATORS:
        return _runs_of_operators(table, [field.name for field in schema.values])
    names = [name for name in table.column_names if name not in _PARTS]
    moment = pa.timestamp("us", "UTC")
    event = _event_type(table.schema.field("events").type, moment)
    kinds = [*(table.schema.field(name) for name in names), (WAITS_FOR, pa.string()), (SINCE, moment)]
    labels = _Labels.of(schema)
    rows = [made for row in table.to_pylist() for made in _rows(row, names, labels)]
    return pa.Table.from_pylist(rows, pa.schema([*kinds, (TAKEN, pa.list_(event))]))


def _runs_of_many(table: pa.Table) -> pa.Table:
    """The same for a step with several patterns, with the name and the version of each."""
    names = [name for name in table.column_names if name not in (_PATTERNS, _MACHINES)]
    entry = table.schema.field(_PATTERNS).type.value_type
    moment = pa.timestamp("us", "UTC")
    event = _event_type(entry.field("events").type, moment)
    rows: list[dict[str, Any]] = []
    for row in table.to_pylist():
        for kept in row[_PATTERNS] or ():
            labels = _Labels(kept["stages"].split(", "), kept["states"].split(", "))
            rows += _rows({**row, **kept}, [*names, *_WHICH], labels)
        for kept in row.get(_MACHINES) or ():
            rows += _begun({**row, **kept}, kept["machine"], [*names, *_WHICH], [])
    kinds = [*(table.schema.field(name) for name in names), *(entry.field(name) for name in _WHICH)]
    schema = pa.schema([*kinds, (WAITS_FOR, pa.string()), (SINCE, moment), (TAKEN, pa.list_(event))])
    return pa.Table.from_pylist(rows, schema)


def _runs_of_operators(table: pa.Table, fields: list[str]) -> pa.Table:
    """The same for a pattern of operators, which keeps events as JSON: what it has begun, with the values of the events as they stand there."""
    names = [name for name in table.column_names if name != _MACHINE]
    rows = [made for row in table.to_pylist() for made in _begun(row, row[_MACHINE], names, fields)]
    moment = pa.timestamp("us", "UTC")
    values = [(name, pa.string()) for name in fields]
    event = pa.struct([("stage", pa.string()), ("time", moment), *values])
    kinds = [*(table.schema.field(name) for name in names), (WAITS_FOR, pa.string()), (SINCE, moment)]
    return pa.Table.from_pylist(rows, pa.schema([*kinds, (TAKEN, pa.list_(event))]))


def _begun(row: dict[str, Any], machine: str, names: list[str], fields: list[str]) -> Iterator[dict[str, Any]]:
    """What a pattern of operators has begun for a key: each match that waits, with the events that it holds, each with its tag."""
    kept = json.loads(machine)
    for match in kept["matches"]:
        held = sorted((number, tag) for tag, numbers in match.items() for number in numbers)
        taken = [_tagged(tag, kept["events"][str(number)], fields) for number, tag in held]
        if taken:
            since = min(event["time"] for event in taken)
            yield {**{name: row[name] for name in names}, WAITS_FOR: REST, SINCE: since, TAKEN: taken}


def _tagged(tag: str, event: list[Any], fields: list[str]) -> dict[str, Any]:
    time, *values = event
    return {"stage": tag, "time": to_moment(time), **{name: _text(v) for name, v in zip(fields, values, strict=False)}}


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _event_type(events: Any, moment: pa.DataType) -> pa.DataType:
    fields = [each for each in events.value_type if each.name != TIME]
    return pa.struct([pa.field("stage", pa.string()), pa.field("time", moment), *fields])


@dataclass(frozen=True)
class _Labels:
    """The names of the stages and states of a pattern, by number."""

    stages: list[str]
    states: list[str]

    @classmethod
    def of(cls, schema: StateSchema) -> _Labels:
        known = dict(schema.settings)
        return cls(known.get("stages", "").split(", "), known.get("states", "").split(", "))


def _rows(row: dict[str, Any], names: list[str], labels: _Labels) -> Iterator[dict[str, Any]]:
    key = {name: row[name] for name in names}
    for kept, waits in ((row["runs"], None), (row["matches"], EARLIER)):
        for run in kept or ():
            if run["taken"] >= 0:
                taken = list(_taken(row, run["taken"], labels))
                yield {**key, WAITS_FOR: waits or labels.states[run["state"]], SINCE: taken[0]["time"], TAKEN: taken}


def _taken(row: dict[str, Any], at: int, labels: _Labels) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while at >= 0:
        if len(found) == len(row["links"]):
            raise StateError("the events of a run are linked in a circle: the checkpoint is damaged")
        link = row["links"][at]
        event = dict(row["events"][link["event"]])
        time = to_moment(event.pop(TIME))
        found.append({"stage": labels.stages[link["stage"]], "time": time, **event})
        at = link["before"]
    return found[::-1]


@dataclass(frozen=True)
class RunSummary:
    """The runs of a pattern in figures: how many keys have any, how many there are by what they wait for, and when the oldest began."""

    step: str
    keys: int
    runs: int
    bytes: int
    waiting: dict[str, int] = field(default_factory=dict)
    oldest: datetime | None = None


def summary(step: str, table: pa.Table, schema: StateSchema, size: int) -> RunSummary:
    """The figures of the runs in a store."""
    runs = runs_of(table, schema)
    waits = runs.column(WAITS_FOR).to_pylist()
    if schema.node == MANY:
        waits = [f"{pattern}: {each}" for pattern, each in zip(runs.column("pattern").to_pylist(), waits, strict=True)]
    waiting = Counter(waits)
    oldest = min(runs.column(SINCE).to_pylist(), default=None)
    return RunSummary(step, table.num_rows, runs.num_rows, size, dict(waiting), oldest)
