"""Checkpoint folders made by hand, as a run leaves them: no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.schema import StateField, StateSchema, schemas_from_json
from penstock.graph.times import FOREVER, NEVER
from penstock.location import Address
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.restart import Restart
from penstock.spark.checkpoint.sparklog import uri
from penstock.state.ranges import KeyRanges
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage import delete_under, exists, make_directory, names_under, open_storage

COUNT = Layout((Column("word", pa.string()),), (Column("n", pa.int64()),))
WORD = StateField("word", "string")
SCHEMAS = {
    "count": StateSchema("count", "count", "values", (WORD,)),
    "rows": StateSchema("rows", "rows", "rows", (WORD,)),
}
WANTED = FlowLayout("shop", (("one", "files"), ("two", "spout")), SCHEMAS)


def begin(folder: Path, wanted: FlowLayout = WANTED) -> Path:
    """A folder in which a flow has begun."""
    make_directory(folder)
    put(folder / "lock", b"")
    Restart(folder, wanted).settle()
    put(folder / "spark" / "metadata", b'{"id":"x"}')
    return folder


def batch(
    folder: Path, number: int, words: dict[str, int], *, through: bool = True, keep: int = 10, tasks: int = 1
) -> None:
    """A batch that counts words, keeps a row for each, and has read one more file of each source."""
    note = json.loads(text(folder / "flow.json"))
    for at, (name, _) in enumerate(note["sources"]):
        path = folder / "sources" / name / "feed" / f"feed-{number:09d}.parquet"
        put(path, f"{name} {number}".encode())
        put(folder / "sources" / name / f"stand-{number:09d}.pickle", b"stand")
        entry = {"path": uri(folder) + str(path.relative_to(folder)), "timestamp": 1, "batchId": number}
        put(folder / "spark" / "sources" / str(at) / str(number), f"v1\n{json.dumps(entry)}".encode())
    offsets = "\n".join(["v1", "{}", *(f'{{"logOffset":{number}}}' for _ in note["sources"])])
    put(folder / "spark" / "offsets" / str(number), offsets.encode())
    store = StateStore(open_storage(folder / "state"), keep=keep, run="r", schemas=schemas_from_json(note["schemas"]))
    if note["schemas"]:
        files = store.begin(number, dict.fromkeys(note["schemas"], tasks), number - 1)
        for name in note["schemas"]:
            for task in range(tasks):
                _count(FileState(files[name], task), words) if name != "rows" else _keep(
                    FileTable(files[name], task), words, number
                )
        store.publish(number)
    if through:
        put(folder / "spark" / "commits" / str(number), b'v1\n{"nextBatchWatermarkMs":0}')


def hash_of(word: str) -> int:
    """A key hash of 63 bits."""
    return (sum(map(ord, word)) << 7 | len(word)) * 0x9E3779B97F4A7C15 % (1 << 63)


def _count(state: FileState, words: dict[str, int]) -> None:
    state.describe(COUNT)
    keys = [(w,) for w in _mine(state.ranges, words)]
    state.prefetch(keys, [hash_of(w) for (w,) in keys])
    for key in keys:
        kept = state.get(key)
        state.put(key, ((kept[0] if kept else 0) + words[key[0]],))
    state.save()


def _keep(table: FileTable, words: dict[str, int], number: int) -> None:
    mine = _mine(table.ranges, words)
    if mine:
        made = {"__key_hash": [hash_of(w) for w in mine], "__time": [number] * len(mine), "word": mine}
        table.add(pa.record_batch(made))
    table.save()


def _mine(ranges: KeyRanges, words: Iterable[str]) -> list[str]:
    """The words of a task."""
    each = list(words)
    owned = ranges.mask(np.array([hash_of(word) for word in each], np.int64))
    return [word for word, is_owned in zip(each, owned, strict=True) if is_owned]


def counts(folder: Address, version: int, step: str = "count") -> dict[str, int]:
    """What the step that counts keeps in a version."""
    state = FileState(StateStore(open_storage(folder / "state")).begin(version + 1, {step: 1}, version)[step], 0)
    state.describe(COUNT)
    return {key[0]: value[0] for key, value in state.items()}


def rows(folder: Address, version: int) -> list[tuple[int, str]]:
    """The rows in time that are kept in a version: their times and words, in order."""
    files = StateStore(open_storage(folder / "state")).begin(version + 1, {"rows": 1}, version)["rows"]
    found = FileTable(files, 0).span(NEVER, FOREVER)
    return [] if found is None else sorted((r["__time"], r["word"]) for r in found.to_pylist())


def tree(folder: Address) -> dict[str, Any]:
    """All files of a folder with what is in them."""
    storage = open_storage(folder)
    return {name: storage.read(name) for name in names_under(storage, "")}


def put(path: Address, data: bytes) -> None:
    """Writes an object by its path."""
    open_storage(path.parent).write(path.name, data)


def text(path: Address) -> str:
    """The text of an object."""
    return open_storage(path.parent).read(path.name).decode()


def is_there(path: Address) -> bool:
    """Whether an object is there, or one below it."""
    return exists(open_storage(path.parent), path.name) or bool(open_storage(path).children())


def remove(path: Address) -> None:
    """Removes an object, and all below it."""
    open_storage(path.parent).delete(path.name)
    delete_under(open_storage(path), "")
