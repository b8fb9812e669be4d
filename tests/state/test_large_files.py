"""State files larger than every internal threshold, with a column of every Arrow type. No JVM.

The thresholds: 64 KiB regions that are checked one by one (the first and last two when a file is opened), blocks of 8,192 rows of
which the footer holds the first key hash, merges of files, and the sizes at which tables merge.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.graph import types as t
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import FOREVER, NEVER
from penstock.kernels.records.arrow import arrow_type
from penstock.state.file import BLOCK, REGION, close_removed
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.breadth import some_now

ROWS = 12 * BLOCK + 17
SIZES = some_now([4 * BLOCK + 17, ROWS], 1)
"""Both are past each threshold of a file; the larger one has more blocks between the first and the last."""
_DAY = datetime.date(2024, 1, 1)
_NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
Make = Callable[[int], Any]
TYPES: dict[str, tuple[str, Make]] = {
    "boolean": ("boolean", lambda n: n % 3 == 0),
    "tinyint": ("tinyint", lambda n: n % 100),
    "smallint": ("smallint", lambda n: n % 30_000),
    "int": ("int", lambda n: n),
    "bigint": ("bigint", lambda n: n << 33),
    "float": ("float", float),
    "double": ("double", lambda n: n / 3),
    "string": ("string", lambda n: f"text {n}"),
    "binary": ("binary", lambda n: b"bytes %d" % n),
    "date": ("date", lambda n: _DAY + datetime.timedelta(days=n)),
    "timestamp": ("timestamp", lambda n: _NOON + datetime.timedelta(seconds=n)),
    "timestamp_ntz": ("timestamp_ntz", lambda n: _NOON.replace(tzinfo=None) + datetime.timedelta(seconds=n)),
    "decimal": ("decimal(12,2)", lambda n: decimal.Decimal(n) / 4),
    "decimal38": ("decimal(38,2)", lambda n: decimal.Decimal(n << 70).scaleb(-2)),
    "array": ("array<bigint>", lambda n: list(range(n % 5))),
    "strings": ("array<string>", lambda n: [f"item {n}"] * (n % 4)),
    "struct": ("struct<a:int,b:string>", lambda n: {"a": n, "b": f"b{n}"}),
    "map": ("map<string,bigint>", lambda n: {f"k{n}": n}),
    "nested": ("array<struct<o:decimal(10,2),v:array<string>>>", lambda n: [{"o": decimal.Decimal(n), "v": ["x"]}]),
}
KEYS = [k for k, (ddl, _) in TYPES.items() if not ddl.startswith(("array", "struct", "map", "float", "double"))]


def hash_of(n: int) -> int:
    """A key hash that has nothing to do with the order of the keys."""
    return int(n * 2654435761 % (1 << 40))


def layout(value: pa.DataType, key: pa.DataType | None = None) -> Layout:
    keys = (Column("n", pa.int64()), *([Column("key", key)] if key is not None else []))
    return Layout(keys, (Column("pad", pa.string()), Column("value", value)))


def opened(store: StateStore, version: int, form: Layout) -> FileState:
    close_removed()
    made = FileState(store.begin(version, {"step": 1}, version - 1)["step"], 0)
    made.describe(form)
    return made


def plain(value: Any) -> Any:
    """Maps come back as pairs, or as dicts: both say the same."""
    return sorted(value.items()) if isinstance(value, dict) else sorted(value) if _is_pairs(value) else value


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], tuple)


def write(state: FileState, keys: list[Any], values: list[Any]) -> None:
    state.prefetch(keys, [hash_of(k[0]) for k in keys])
    for key, value in zip(keys, values, strict=True):
        state.put(key, value)
    state.save()


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("name", TYPES)
def test_values_of_every_type_in_a_large_file(tmp_path: Path, name: str, rows: int) -> None:
    """One row, some rows and all rows are read from a fresh file, rows are null, and a later batch is merged into it."""
    ddl, make = TYPES[name]
    form, store = layout(arrow_type(t.parse_type(ddl))), StateStore(LocalStorage(tmp_path), run="r")
    kept = {(n,): ("p" * 40, None if n % 7 == 0 else make(n)) for n in range(rows)}
    write(opened(store, 0, form), list(kept), list(kept.values()))
    store.publish(0)
    file = store.read(0)["step"][0]
    assert file.size > 8 * REGION
    for asked in ([1], [rows - 1], list(range(0, rows, 997)), list(range(rows))):
        state = opened(store, 1, form)
        state.prefetch([(n,) for n in asked], [hash_of(n) for n in asked])
        assert [plain(state.cache[(n,)][1]) for n in asked] == [plain(kept[(n,)][1]) for n in asked]
    _changes(store, form, kept, make)


def _changes(store: StateStore, form: Layout, kept: dict[Any, Any], make: Make) -> None:
    """A small batch on top of the large file, then one that merges both."""
    for version, many in ((1, 5), (2, len(kept) // 2 + 10)):
        changed = {(n,): ("new", make(n + 1)) for n in range(many)}
        write(opened(store, version, form), list(changed), list(changed.values()))
        store.publish(version)
        kept |= changed
        found = {k: plain(v[1]) for k, v in opened(store, version + 1, form).items()}
        assert found == {k: plain(v[1]) for k, v in kept.items()}
    assert len(store.read(2)["step"]) == 1


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type_in_a_large_file(tmp_path: Path, name: str, rows: int) -> None:
    ddl, make = TYPES[name]
    form, store = layout(pa.int64(), arrow_type(t.parse_type(ddl))), StateStore(LocalStorage(tmp_path), run="r")
    kept = {(n, None if n % 7 == 0 else make(n)): ("p" * 40, n) for n in range(rows)}
    write(opened(store, 0, form), list(kept), list(kept.values()))
    store.publish(0)
    for keys in ([list(kept)[5]], list(kept)[::997], list(kept)):
        state = opened(store, 1, form)
        state.prefetch(keys, [hash_of(k[0]) for k in keys])
        assert [state.get(k) for k in keys] == [kept[k] for k in keys]
    assert dict(opened(store, 1, form).items()) == kept


@pytest.mark.parametrize("name", TYPES)
def test_rows_of_every_type_in_a_large_table(tmp_path: Path, name: str) -> None:
    """Rows in time past the sizes at which tables merge their files, one way and the other."""
    ddl, make = TYPES[name]
    store, kind = StateStore(LocalStorage(tmp_path), run="r"), arrow_type(t.parse_type(ddl))
    expected: dict[int, Any] = {}
    for version in range(FileTable.many + 2):
        numbers = range(version * ROWS // 8, (version + 1) * ROWS // 8)
        table = _table(store, version)
        table.add(_rows(numbers, [make(n) for n in numbers], kind))
        table.save()
        store.publish(version)
        expected |= {n: plain(make(n)) for n in numbers}
    assert sum(f.rows for f in store.read(FileTable.many + 1)["step"]) > FileTable.small
    found = _table(store, FileTable.many + 2)
    assert _shown(found.span(NEVER, FOREVER)) == expected
    some = list(range(0, len(expected), 997))
    assert _shown(found.at(np.array([hash_of(n) for n in some]))) == {n: expected[n] for n in some}


def _table(store: StateStore, version: int) -> FileTable:
    close_removed()
    return FileTable(store.begin(version, {"step": 1}, version - 1)["step"], 0)


def _rows(numbers: range, values: list[Any], kind: Any) -> pa.RecordBatch:
    columns = {
        "__key_hash": pa.array([hash_of(n) for n in numbers], pa.int64()),
        "__time": pa.array(list(numbers), pa.int64()),
        "value": pa.array([list(v.items()) if pa.types.is_map(kind) else v for v in values], kind),
    }
    return pa.record_batch(columns)


def _shown(rows: pa.Table | None) -> dict[int, Any]:
    assert rows is not None
    times, values = rows.column("__time").to_pylist(), rows.column("value").to_pylist()
    return {n: plain(v) for n, v in zip(times, values, strict=True)}
