"""Partial copies: a worker that has not written a state file reads the regions that it needs of it, and little more."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import StateError
from penstock.state.file import BLOCK, REGION, OpenFile, StateFile, map_file, write_file
from penstock.state.ranges import ranges_of
from penstock.storage import CachedStorage
from penstock.storage.partial import LONGEST, PartialCopy, read_plan
from tests.storage.objects import ObjectStorage

ROWS = 400_000


class CountedStorage(ObjectStorage):
    """Objects, and how many bytes of them were read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0
        self.size_and_crc = (0, 0)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """A GET with a range, counted."""
        made = super().read(name, begin, length)
        self.bytes_read += len(made)
        return made


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    hashes = np.arange(ROWS, dtype=np.int64) * 1000
    keys = pa.array([f"key {n}" for n in range(ROWS)], pa.large_string())
    return pa.record_batch({"key_hash": hashes, "key:k": keys, "value:n": np.arange(ROWS)})


@pytest.fixture
def objects(batch: pa.RecordBatch) -> CountedStorage:
    storage = CountedStorage()
    storage.size_and_crc = write_file(storage, "a.state", batch)
    return storage


def cold(objects: CountedStorage, directory: Path, most: int = 1 << 30) -> CachedStorage:
    return CachedStorage(objects, directory=directory, most=most)


def file_of(objects: CountedStorage) -> StateFile:
    size, crc = objects.size_and_crc
    return StateFile("a.state", size, crc, ROWS, ranges_of(0, 1, 128))


def look_up(opened: OpenFile, rows: list[int]) -> list[tuple[str, int]]:
    hashes = np.array(sorted(rows)) * 1000
    at, found = opened.find(hashes)
    assert at.tolist() == list(range(len(rows)))
    keys, values = (opened.taken(name, found).to_pylist() for name in ("key:k", "value:n"))
    return list(zip(keys, values, strict=True))


def expected(rows: list[int]) -> list[tuple[str, int]]:
    return [(f"key {n}", n) for n in sorted(rows)]


EDGES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, ROWS - BLOCK - 1, ROWS - 2, ROWS - 1]
"""Rows at the ends of blocks and of the file."""


@pytest.mark.parametrize("rows", [[5], EDGES, list(range(0, ROWS, 40_000)), list(range(0, ROWS, 3))])
def test_few_keys_take_the_regions_in_which_they_stand(
    objects: CountedStorage, tmp_path: Path, rows: list[int]
) -> None:
    opened = map_file(cold(objects, tmp_path), file_of(objects))
    assert look_up(opened, rows) == expected(rows)
    footer = file_of(objects).size - opened.data.size
    assert objects.bytes_read <= 1.3 * (int(opened.checked.sum()) * REGION + footer)
    if len(rows) < 20:
        assert objects.bytes_read < file_of(objects).size / 2
    read = objects.bytes_read
    assert look_up(opened, rows) == expected(rows)
    assert objects.bytes_read == read


def test_rows_in_time_of_few_key_hashes_take_few_regions(tmp_path: Path) -> None:
    objects, hashes = CountedStorage(), np.repeat(np.arange(ROWS // 4, dtype=np.int64), 4) * 1000
    rows = pa.record_batch({"__time": np.arange(ROWS), "__key_hash": hashes, "n": np.arange(ROWS)})
    size, crc = write_file(objects, "a.rows", rows)
    opened = map_file(cold(objects, tmp_path), StateFile("a.rows", size, crc, ROWS, ranges_of(0, 1, 128)))
    found = opened.rows_of(np.array([0, 5, 7000, 7001, 512_000, hashes[-1]]))
    assert found is not None
    assert found.tolist() == [*range(4), *range(28, 32), *range(2048, 2052), *range(ROWS - 4, ROWS)]
    assert opened.taken("n", found).to_pylist() == found.tolist()
    assert objects.bytes_read < size / 3
    everything = opened.rows_of(np.unique(hashes))
    assert everything is not None
    assert everything.tolist() == list(range(ROWS))


def test_a_key_that_is_not_there_is_not_found(objects: CountedStorage, tmp_path: Path) -> None:
    opened = map_file(cold(objects, tmp_path), file_of(objects))
    hashes = np.array([-5, 1, BLOCK * 1000 - 1, BLOCK * 1000 + 1, ROWS * 1000])
    at, _ = opened.find(hashes)
    assert at.tolist() == []


def test_another_process_of_the_machine_reads_only_what_is_missing(objects: CountedStorage, tmp_path: Path) -> None:
    storage, rows = cold(objects, tmp_path), [7, 70_000]
    look_up(map_file(storage, file_of(objects)), rows)
    read = objects.bytes_read
    other = map_file(cold(objects, tmp_path), file_of(objects))
    assert look_up(other, rows) == expected(rows)
    assert objects.bytes_read == read
    assert look_up(other, [300_000]) == expected([300_000])
    assert read < objects.bytes_read < read + 10 * REGION
    assert (tmp_path.stat().st_mode & 0o077, next(tmp_path.iterdir()).stat().st_mode & 0o077) == (0, 0)


def test_all_of_a_file_takes_few_requests(objects: CountedStorage, tmp_path: Path, batch: pa.RecordBatch) -> None:
    before = objects.requests.get("get", 0)
    assert map_file(cold(objects, tmp_path), file_of(objects)).whole().equals(batch)
    assert objects.requests["get"] - before <= 3 + file_of(objects).size // LONGEST
    assert objects.bytes_read < 1.05 * file_of(objects).size


def test_a_region_that_is_damaged_here_is_fetched_again_and_one_of_the_store_is_named(
    objects: CountedStorage, tmp_path: Path
) -> None:
    storage = cold(objects, tmp_path)
    look_up(map_file(storage, file_of(objects)), [100_000])
    (copy,) = tmp_path.iterdir()
    held = copy.read_bytes()
    copy.write_bytes(bytes(b ^ 1 for b in held))
    assert look_up(map_file(storage, file_of(objects)), [100_000]) == expected([100_000])
    content = bytearray(objects.read("a.state"))
    content[100_000 * 8 + 4] ^= 1
    objects.write("a.state", content)
    copy.unlink()
    with pytest.raises(StateError, match=r"a\.state is damaged between bytes"):
        look_up(map_file(storage, file_of(objects)), [100_000])
    assert not copy.exists()


def test_an_object_that_is_gone_or_shorter_is_named(objects: CountedStorage, tmp_path: Path) -> None:
    opened = map_file(cold(objects, tmp_path), file_of(objects))
    objects.delete("a.state")
    with pytest.raises(StateError, match=r"a\.state cannot be read"):
        opened.whole()
    with pytest.raises(StateError, match=r"a\.state cannot be read"):
        map_file(cold(objects, tmp_path / "other"), file_of(objects))
    objects.write("a.state", b"short")
    with pytest.raises(StateError, match=r"a\.state is damaged"):
        map_file(cold(objects, tmp_path / "third"), file_of(objects))


def test_without_room_on_disk_regions_are_in_memory(objects: CountedStorage, tmp_path: Path) -> None:
    opened = map_file(cold(objects, tmp_path, most=1000), file_of(objects))
    assert look_up(opened, EDGES) == expected(EDGES)
    assert opened.path is None
    assert list(tmp_path.iterdir()) == []


def test_holes_of_partial_copies_take_no_room(objects: CountedStorage, tmp_path: Path) -> None:
    size = file_of(objects).size
    storage = cold(objects, tmp_path, most=2 * size)
    for name in ("b.state", "c.state", "d.state"):
        objects.write(name, objects.read("a.state"))
        opened = map_file(storage, replace(file_of(objects), path=name))
        look_up(opened, [5])
    assert len(list(tmp_path.iterdir())) == 3
    assert sum(path.stat().st_blocks * 512 for path in tmp_path.iterdir()) < size


@pytest.mark.parametrize("seed", range(20))
def test_what_is_read_covers_what_is_needed_and_little_more(seed: int) -> None:
    rolled = random.Random(seed)
    regions = sorted(rolled.sample(range(3000), rolled.randint(1, 600)))
    needed = [(r * REGION, (r + 1) * REGION) for r in regions]
    read = read_plan(needed)
    assert all(any(begin <= b and e <= end for begin, end in read) or _is_cut(b, e, read) for b, e in needed)
    assert all(a[1] <= b[0] for a, b in pairwise(read))
    assert sum(e - b for b, e in read) <= 1.1 * sum(e - b for b, e in needed)
    assert max(e - b for b, e in read) <= LONGEST


def _is_cut(begin: int, end: int, read: list[tuple[int, int]]) -> bool:
    return sum(max(0, min(end, e) - max(begin, b)) for b, e in read) == end - begin


def test_a_copy_lets_go_of_its_file(tmp_path: Path) -> None:
    copy = PartialCopy.in_file(tmp_path / "x", 10, lambda begin, size: b"0123456789"[begin : begin + size], print)
    copy.fetch([(2, 5)])
    assert copy.data[:] == b"\0\x00234\0\0\0\0\0"
    number = copy.file
    del copy
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)
