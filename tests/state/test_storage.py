"""State on a storage that has no files on this machine, as an object store would be: the same answers. No JVM."""

from __future__ import annotations

import pyarrow as pa

from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import FOREVER, NEVER
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage import MemoryStorage

LAYOUT = Layout((Column("n", pa.int64()),), (Column("text", pa.string()),), single=True)


def test_values_and_rows_without_files() -> None:
    """Versions are made, merged, read by other numbers of tasks, and swept away."""
    storage = MemoryStorage()
    store = StateStore(storage, keep=3, run="r")
    for version in range(8):
        staged = store.begin(version, {"a/b": 2, "rows": 2}, version - 1)
        for task in (0, 1):
            keys = [n for n in range(version * 10, version * 10 + 30) if n % 2 == task]
            hashes = [n if task else n - (1 << 62) for n in keys]
            state = FileState(staged["a/b"], task)
            state.describe(LAYOUT)
            state.prefetch([(n,) for n in keys], hashes)
            for n in keys:
                state.put((n,), f"{n} at {version}")
            state.save()
            table = FileTable(staged["rows"], task)
            new = {"__key_hash": pa.array(hashes), "__time": pa.array(keys), "version": [version] * len(keys)}
            table.add(pa.record_batch(new))
            table.save()
        store.publish(version)
    assert store.versions() == [5, 6, 7]
    assert {int(e.name.split("/")[1].split("-")[0]) for e in storage.list("files/")} <= {*range(8)}
    staged = store.begin(8, {"a/b": 1, "rows": 1}, 7)
    state = FileState(staged["a/b"], 0)
    state.describe(LAYOUT)
    assert dict(state.items()) == {(n,): f"{n} at {min(n // 10, 7)}" for n in range(100)}
    rows = FileTable(staged["rows"], 0).span(NEVER, FOREVER)
    assert rows is not None
    assert rows.num_rows == 8 * 30
    needed = {f.path for v in store.versions() for files in store.read(v).values() for f in files}
    old = {e.name for e in storage.list("files/") if int(e.name.split("/")[1].split("-")[0]) <= 4}
    assert old <= needed, "what only swept versions needed is gone"
