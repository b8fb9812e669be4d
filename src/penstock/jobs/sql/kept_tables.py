"""What the steps of a flow keep, as tables that a query can read: results in place of the parts of aggregates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.errors import StateError, nearest
from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import RECIPES, Aggregate
from penstock.graph.endpoints.basic import items
from penstock.graph.endpoints.sniff import type_from_arrow
from penstock.graph.nodes import Endpoint
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.graph.state.schema import StateField, StateSchema
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.aggregates import finish
from penstock.kernels.records.arrow import arrow_type
from penstock.state.one_version import ReadLimits, Snapshot

_CALL = re.compile(r"(\w+)\((.*?)(?:, ([0-9.]+))?\)(?: FILTER .*)?$", re.DOTALL)
_PLAIN = re.compile(r"\w+")
"""A name that needs no quotes."""
_LOOKED_UP = (t.STRING, t.INT, t.BIGINT, t.SMALLINT, t.TINYINT)
"""Types of keys whose values a query writes as they are kept."""
MOST_KEYS = 10_000
"""More keys than these are not looked up one by one."""
KeyValues = Mapping[str, Sequence[object]]
"""Of some columns the values that a query asks for."""


@dataclass(frozen=True)
class KeptTables:
    """The tables of one version of the state.

    Args:
        snapshot: the version.
        limits: how much may be read of one step.
    """

    snapshot: Snapshot
    limits: ReadLimits

    def names(self) -> dict[str, str]:
        """The step of each name that a query may have for it: its own, without the signs that names of SQL do not have, and of its owner."""
        steps = list(self.snapshot.files)
        made = {_plain(step): step for step in steps}
        owners: dict[str, list[str]] = {}
        for step in steps:
            owners.setdefault(_plain(re.split(r"[.@]", step)[0]), []).append(step)
        alone = {owner: found[0] for owner, found in owners.items() if len(found) == 1 and owner not in made}
        return made | alone | {step.lower(): step for step in steps}

    def shown(self) -> list[str]:
        """A name for each table, as a query can write it: that of the step, else the shortest without signs that names of SQL do not have."""
        plain = {step: step for step in self.snapshot.files if _PLAIN.fullmatch(step)}
        for name, step in sorted(self.names().items(), key=lambda known: len(known[0])):
            if _PLAIN.fullmatch(name):
                plain.setdefault(step, name)
        return sorted(plain.get(step, f"`{step}`") for step in self.snapshot.files)

    def step_of(self, name: str) -> str:
        """The step that a name stands for.

        Raises:
            StateError: it stands for none, with the nearest.
        """
        names = self.names()
        if name.lower() not in names:
            raise StateError(f"no step keeps a table {name!r}; {nearest(name, self.shown())}")
        return names[name.lower()]

    def endpoint(self, name: str, wanted: KeyValues) -> Endpoint:
        """What a step keeps, as an endpoint that a query reads; where its whole key is given, only these keys are looked up.

        Raises:
            StateError: no step has the name, or it keeps more than may be read.
        """
        step = self.step_of(name)
        keys = self._keys(step, wanted)
        if keys is None:
            found = self.snapshot.read(step, self.limits)
        else:
            found = self.snapshot.lookup(step, keys, key_hashes(keys.columns, keys.num_rows))
        return _endpoint(found, self.snapshot.schemas.get(step), step)

    def _keys(self, step: str, wanted: KeyValues) -> pa.RecordBatch | None:
        """The keys that a query asks for; None where it may ask for others too."""
        schema, names = self.snapshot.schemas.get(step), self.snapshot.keys(step)
        lower = {name.lower(): values for name, values in wanted.items()}
        if schema is None or not names or any(name.lower() not in lower for name in names):
            return None
        kinds = [t.parse_type(f.type) for f in schema.keys]
        combined = _product([lower[name.lower()] for name in names])
        if combined is None or not all(map(_fits, combined, [kinds] * len(combined))):
            return None
        columns = list(zip(*combined, strict=True)) or [()] * len(names)
        try:
            arrays = [pa.array(values, arrow_type(kind)) for values, kind in zip(columns, kinds, strict=True)]
        except (OverflowError, pa.ArrowInvalid):  # a number that no key can be
            return None
        return pa.RecordBatch.from_arrays(arrays, list(names))


def _plain(step: str) -> str:
    return re.sub(r"\W", "_", step).lower()


def _product(parts: list[Sequence[object]]) -> list[tuple[object, ...]] | None:
    """All combinations of values, none twice; None where they are too many."""
    made: list[tuple[object, ...]] = [()]
    for values in parts:
        if len(made) * len(values) > MOST_KEYS:
            return None
        made = [(*before, value) for before in made for value in dict.fromkeys(values)]
    return made


def _fits(values: tuple[object, ...], kinds: list[t.DataType]) -> bool:
    """Whether values are kept as a query writes them."""
    pairs = zip(values, kinds, strict=True)
    return all(k in _LOOKED_UP and isinstance(v, str if k == t.STRING else int) for v, k in pairs)


def _endpoint(found: pa.Table, schema: StateSchema | None, step: str) -> Endpoint:
    columns = _columns(found, schema)
    if not columns:
        raise StateError(f"step {step!r} keeps nothing yet")
    made = Schema(tuple(t.Field(name, kind) for name, kind, _ in columns))
    return items(list(zip(*(values for _, _, values in columns), strict=True)), made)


Column = tuple[str, t.DataType, list[Any]]


def _columns(found: pa.Table, schema: StateSchema | None) -> list[Column]:
    """The columns of a table: keys, results of aggregates, and whatever else is kept as it is."""
    used: set[str] = set()
    made: list[Column] = []
    for field in schema.values if schema is not None else ():
        column = _result(found, field, used)
        if column is not None:
            made.append(column)
    rest = [_raw(found, name) for name in found.column_names if name not in used]
    keys = {f.name for f in schema.keys} if schema is not None else set()
    own = [c for c in rest if c[0] in keys]
    return [*own, *made, *(c for c in rest if c[0] not in keys)]


def _result(found: pa.Table, field: StateField, used: set[str]) -> Column | None:
    """The result of an aggregate from its parts; None where it is kept in another form."""
    call = _CALL.match(field.meaning)
    if call is None or call[1] not in RECIPES:
        return None
    name, kind = field.name, t.parse_type(field.type)
    if field.meaning == "count(*)" and name not in found.column_names and "rows" in found.column_names:
        used.add("rows")
        return name, kind, values_of(found.column("rows"))
    recipe = RECIPES[call[1]]
    parts = [f"{name}.{at}" for at in range(len(recipe.parts))]
    if len(parts) == 1 and name in found.column_names:
        parts = [name]
    if any(part not in found.column_names for part in parts):
        return _subtractable(found, field, call[1], used)
    used.update(parts)
    of = Aggregate(name, kind, call[1], number=float(call[3]) if call[3] else None)
    return name, kind, [finish(of, each) for each in zip(*(values_of(found.column(p)) for p in parts), strict=True)]


def _subtractable(found: pa.Table, field: StateField, call: str, used: set[str]) -> Column | None:
    """A count, a sum or a mean over a table that changes: what is kept of it can be subtracted. Others keep all values."""
    names = {part: f"{field.name}.{part}" for part in ("n", "sum", "rest")}
    parts = {part: values_of(found.column(name)) for part, name in names.items() if name in found.column_names}
    kind = t.parse_type(field.type)
    if call == "count" and set(parts) == {"n"}:
        used.add(names["n"])
        return field.name, kind, parts["n"]
    if call not in ("sum", "avg") or not {"n", "sum"} <= set(parts):
        return None
    special = [f"{field.name}.{part}" for part in ("inf", "-inf", "nan")]
    if any(any(values_of(found.column(name))) for name in special if name in found.column_names):
        return None
    used.update(name for name in (*names.values(), *special) if name in found.column_names)
    rest = parts.get("rest", [0] * found.num_rows)
    sums = [s + r if n else None for s, r, n in zip(parts["sum"], rest, parts["n"], strict=True)]
    return field.name, kind, [s / n if call == "avg" and n else s for s, n in zip(sums, parts["n"], strict=True)]


def _raw(found: pa.Table, name: str) -> Column:
    column = found.column(name)
    try:
        kind = type_from_arrow(column.type)
    except Exception:  # a type that no schema has: shown as text
        return name.replace(".", "_"), t.STRING, [None if v is None else str(v) for v in column.to_pylist()]
    return name.replace(".", "_"), kind, values_of(column)
