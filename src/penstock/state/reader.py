"""The state of a flow from outside: keys and values of any kept version as an Arrow table, while the flow runs.

Files never change and a manifest names those of its version, so nothing needs to be locked. A version that is swept away
while it is read is distinguished from one that is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import StateError, nearest
from penstock.graph.state.schema import StateSchema
from penstock.graph.state.table import KEY_HASH as ROW_KEY_HASH
from penstock.graph.state.table import TIME
from penstock.graph.times import FOREVER, NEVER, to_micros
from penstock.location import Address
from penstock.state import columns
from penstock.state.chain import StepFiles
from penstock.state.file import KEY_HASH, StateFile, map_file
from penstock.state.file_list import FileList
from penstock.state.merge import merged
from penstock.state.opaque import look_at
from penstock.state.pattern_runs import KINDS, RunSummary, has_runs, runs_of, summary
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.timing.time_index import without_index
from penstock.state.timing.timers import COLUMNS
from penstock.storage import StorageError, open_storage

_TRIES = 5
_LAST = to_micros(datetime.max.replace(tzinfo=UTC))
"""The last moment that Python knows."""
Made = TypeVar("Made")


@dataclass(frozen=True)
class Store:
    """What a step keeps in a version: "values" by key or "rows" in time.

    `entries` counts what stands in the files; keys that have newer values, and rows that are forgotten, count until
    files are merged.
    """

    name: str
    kind: str
    entries: int
    bytes: int
    files: int
    schema: StateSchema | None = None


@dataclass(frozen=True)
class OpenState:
    """The state in a checkpoint folder or a savepoint."""

    folder: Address

    @property
    def manifests(self) -> StateStore:
        """The manifests."""
        return StateStore(open_storage(self.folder / "state"))

    def versions(self) -> list[int]:
        """The versions that are kept, oldest first."""
        found = self.manifests.versions()
        if not found and not open_storage(self.folder).children():
            raise StateError(
                f"there is no checkpoint {self.folder}; has the flow run yet? --checkpoint names its checkpoint directory"
            )
        return found

    def stores(self, version: int | None = None) -> list[Store]:
        """What the steps keep."""
        return self.of_version(version, self._stores)

    def read(self, step: str, version: int | None = None) -> pa.Table:
        """What a step keeps: its keys and values, or its rows."""
        return self.of_version(version, lambda number: self._read(step, number))

    def runs(self, version: int | None = None) -> list[RunSummary]:
        """The runs of each step with a pattern, in figures."""
        return self.of_version(version, self._runs)

    def _runs(self, version: int) -> list[RunSummary]:
        schemas, found = self.manifests.kept_schemas(version), self.manifests.read(version)
        patterns = {
            step: schema for step, schema in schemas.items() if schema.node in KINDS and schema.store == "values"
        }
        tables = {step: self._values(found[step]) for step in patterns if found.get(step)}
        return [
            summary(step, table, patterns[step], sum(file.size for file in found[step]))
            for step, table in tables.items()
        ]

    def of_version(self, version: int | None, action: Callable[[int], Made]) -> Made:
        """Does something with a version; of the newest, another try is made when it is swept away meanwhile."""
        for left in reversed(range(_TRIES)):
            number = self._number(version)
            try:
                return action(number)
            except (StateError, StorageError):
                if self.manifests.has(number) or (version is None and not left):
                    raise
                if version is not None:
                    raise self._not_there(version, "was swept away while it was read") from None
        raise AssertionError

    def _number(self, version: int | None) -> int:
        there = self.versions()
        if not there:
            raise StateError(f"{self.folder} holds no state: the flow keeps none, or has not finished a batch yet")
        if version is not None and version not in there:
            raise self._not_there(version, "is not there")
        return there[-1] if version is None else version

    def _not_there(self, version: int, what: str) -> StateError:
        there = self.versions()
        kept = f"{there[0]} to {there[-1]} are kept now" if there else "none is kept now"
        return StateError(
            f"version {version} of {self.folder} {what}; {kept}. `--keep-versions` of a run says how many are kept"
        )

    def _stores(self, version: int) -> list[Store]:
        schemas = self.manifests.kept_schemas(version)
        return [described_store(n, files, schemas.get(n)) for n, files in self.manifests.read(version).items()]

    def _read(self, step: str, version: int) -> pa.Table:
        files = self.manifests.read(version)
        if step not in files:
            raise StateError(
                f"no step {step!r} keeps state in version {version} of {self.folder}; {nearest(step, files)}"
            )
        if not files[step]:
            return pa.table({})
        if kind_of(files[step]) == "rows":
            return self._rows(files[step])
        found, schema = self._values(files[step]), self.manifests.kept_schemas(version).get(step)
        return runs_of(found, schema) if schema is not None and has_runs(schema, found) else found

    def _values(self, files: list[StateFile]) -> pa.Table:
        parts = []
        for file in files:
            whole = without_index(map_file(self.manifests.storage, file).whole())
            parts.append(file.ranges.cut(whole, KEY_HASH))
        return shown(merged(parts, last=True))

    def _rows(self, files: list[StateFile]) -> pa.Table:
        table = FileTable(StepFiles(self.manifests.storage, FileList(files), "", 1), 0)
        found = table.span(NEVER, FOREVER)
        return pa.table({}) if found is None else with_moments(found)


def described_store(name: str, files: list[StateFile], schema: StateSchema | None) -> Store:
    """What a step keeps, in figures."""
    kind = kind_of(files) if schema is None else schema.store
    return Store(name, kind, sum(f.rows for f in files), sum(f.size for f in files), len(files), schema)


def kind_of(files: list[StateFile]) -> str:
    """Whether files hold "values" by key or "rows" in time."""
    return "rows" if files and files[0].path.endswith(".rows") else "values"


def with_moments(rows: pa.Table) -> pa.Table:
    """Rows in time as one reads them: the time as a moment, without the key hash."""
    at = rows.schema.get_field_index(TIME)
    rows = rows.set_column(at, TIME, rows.column(TIME).cast(pa.timestamp("us", "UTC")))
    return rows.drop_columns([ROW_KEY_HASH])


def shown(batch: pa.RecordBatch) -> pa.Table:
    """The entries of a values store as one reads them: a column for each part of the key and of the value."""
    keys = {n.removeprefix(columns.KEY): batch.column(n) for n in _names(batch, columns.KEY)}
    parts = dict.fromkeys(
        n.partition(":")[2] for n in batch.schema.names if n.startswith((columns.VALUE, columns.PICKLED))
    )
    made: dict[str, Any] = dict(keys)
    for part in parts:
        array = _value(batch, part)
        name = part.removesuffix(".0") if f"{part.removesuffix('.0')}.1" not in parts else part
        if part not in keys:
            made[part if name in keys else name] = array
        elif not array.equals(keys[part]):
            made[f"value.{part}"] = array
    return pa.table(made)


def _names(batch: pa.RecordBatch, prefix: str) -> list[str]:
    return [n for n in batch.schema.names if n.startswith(prefix)]


def _value(batch: pa.RecordBatch, part: str) -> pa.Array:
    """One part of the values; what was pickled is shown as far as it is plain."""
    names = batch.schema.names
    typed = batch.column(columns.VALUE + part) if columns.VALUE + part in names else None
    pickled = batch.column(columns.PICKLED + part) if columns.PICKLED + part in names else None
    if typed is not None and columns.VALUE + part in COLUMNS.values():
        return _moments(typed)
    if pickled is None or not pickled.is_valid().true_count:
        return typed if typed is not None else pa.nulls(batch.num_rows)
    objects = [None if p is None else look_at(p) for p in pickled.to_pylist()]
    if typed is not None:
        plain = typed.to_pylist()
        objects = [t if p is None else o for p, o, t in zip(pickled.to_pylist(), objects, plain, strict=True)]
    return as_array(objects)


def _moments(times: pa.Array) -> pa.Array:
    """Times of timers as moments; null for one that is due when the input is over."""
    known = pc.less_equal(times, _LAST)
    return pc.if_else(known, times, pa.scalar(None, times.type)).cast(pa.timestamp("us", "UTC"))


def as_array(objects: list[Any]) -> pa.Array:
    """Objects as an Arrow array, typed where they are of one kind; as text otherwise.

    >>> as_array([{"a": 1}, None]).type, as_array([1, "x"]).to_pylist()
    (MapType(map<string, int64>), ['1', 'x'])
    """
    try:
        if any(isinstance(o, dict) for o in objects):
            return _maps(objects)
        return pa.array(objects)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return pa.array([None if o is None else o if isinstance(o, str) else repr(o) for o in objects], pa.string())


def _maps(objects: list[Any]) -> pa.Array:
    keys = pa.array([k for o in objects if o for k in o])
    items = pa.array([v for o in objects if o for v in o.values()])
    pairs = [None if o is None else list(o.items()) for o in objects]
    return pa.array(pairs, pa.map_(keys.type, items.type))
