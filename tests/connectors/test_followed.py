"""Files that grow while tasks read them: every task gets its tuples in order, while they are written and again afterwards."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.process.followed import SMALL, FollowedFiles, StoredBlocks, blocks_at
from penstock.errors import RunError
from penstock.graph.nodes import Grouping
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, with_hidden
from penstock.graph.schema import Schema, schema_of
from penstock.kernels.records.arrow import to_batch
from penstock.kernels.topology import blocks
from penstock.kernels.topology.blocks import BLOCK, TupleRoute, kept_fields, read_block

SCHEMA = with_hidden(schema_of("word string"), SEQUENCE, ROOTS)
ROUTES = (TupleRoute(Grouping("shuffle"), 2, SCHEMA), TupleRoute(Grouping("fields", ("word",)), 3, SCHEMA))
WORDS = [f"word {at % 5}" for at in range(200)]


def write(files: FollowedFiles, parts: list[range]) -> None:
    for part in parts:
        roots = [b"%08d" % at for at in part]
        files.add(to_batch([[WORDS[at] for at in part], list(part), roots], SCHEMA))


def read(data: bytes, route: TupleRoute) -> Iterator[tuple[Any, ...]]:
    names = kept_fields(SCHEMA, route.grouping)
    kept = Schema(tuple(f for f in SCHEMA.fields if f.name in names), internal=True)
    for block in blocks_at(data):
        for chunk in read_block(block, kept, 0):
            yield from chunk.values()


def test_each_task_follows_its_own_tuples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers begin before anything is there; one that reads afterwards gets the same. Blocks are as small as they get."""
    monkeypatch.setattr(blocks, "BYTES", 1)
    files = FollowedFiles(tmp_path, ROUTES)
    given = files.references().to_pylist()
    found: dict[tuple[int, int], list[tuple[Any, ...]]] = {}

    def follow(reader: int, to: int, data: bytes) -> None:
        found[reader, to] = list(read(data, ROUTES[reader]))

    threads = [threading.Thread(target=follow, args=(r["__reader"], r["__to"], r["__data"])) for r in given]
    for thread in threads:
        thread.start()
    write(files, [range(at, at + 20) for at in range(0, 200, 20)])
    files.end(is_whole=True)
    for thread in threads:
        thread.join()
    rows = [(word, b"%08d" % at) for at, word in enumerate(WORDS)]
    assert (found[0, 0], found[0, 1]) == (rows[::2], rows[1::2])
    assert sorted(row for to in range(3) for row in found[1, to]) == sorted(rows)
    assert all(len({to for to in range(3) if word in dict(found[1, to])}) == 1 for word in set(WORDS))
    assert {(r["__reader"], r["__to"]): list(read(r["__data"], ROUTES[r["__reader"]])) for r in given} == found


def test_who_follows_a_spout_that_fails_fails_too(tmp_path: Path) -> None:
    files = FollowedFiles(tmp_path, ROUTES[:1])
    write(files, [range(20)])
    files.end(is_whole=False)
    data = files.references().to_pylist()[0]["__data"]
    with pytest.raises(RunError, match="spout ended with an error"):
        list(read(data, ROUTES[0]))


def test_blocks_of_a_task_are_found_again(tmp_path: Path) -> None:
    """Large ones where they were put, small ones in themselves; two attempts of a task do not get in each other's way."""
    large, small = b"x" * SMALL, b"y" * (SMALL - 1)
    columns = [[0, 0], [0, 1], [0, 0], [0, 0], [large, small]]
    given = pa.RecordBatch.from_arrays(
        [pa.array(c, k) for c, k in zip(columns, BLOCK.types, strict=True)], schema=BLOCK
    )
    stored = [StoredBlocks(str(tmp_path)) for _ in range(2)]
    moved = [row["__data"] for each in (*stored, stored[0]) for row in each.placed(given).to_pylist()]
    for each in stored:
        each.close()
    assert [block for data in moved for block in blocks_at(data)] == [large, small] * 3
    assert [len(data) < 200 for data in moved] == [True, False] * 3
    assert len(list(tmp_path.iterdir())) == 2


def test_who_follows_a_spout_on_a_full_disk_fails_and_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even that it ends can be written then."""
    monkeypatch.setattr(blocks, "BYTES", 1)
    files = FollowedFiles(tmp_path, ROUTES[:1])
    given = files.references().to_pylist()
    write(files, [range(20)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(path.stat().st_size for path in tmp_path.iterdir()), before[1]))
    followers = [read(row["__data"], ROUTES[0]) for row in given]
    first = [next(each) for each in followers]
    try:
        with pytest.raises(OSError, match="File too large"):
            write(files, [range(20, 200)])
        with pytest.raises(OSError, match="File too large"):
            files.end(is_whole=True)
        files.end(is_whole=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(first) == len(followers) == 2
    for each in followers:
        with pytest.raises(RunError, match=r"its disk is full, or its run has ended|the spout ended with an error"):
            list(each)
    assert len(list(tmp_path.iterdir())) < 2, "one of the files had no room to say that it ends"
