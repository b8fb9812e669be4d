"""Every single bit of a manifest, of a state file and of the list of a savepoint counts: one that is flipped is found, and never read as something else. No JVM."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import CheckpointError, StateError
from penstock.spark.checkpoint.savepoint import NOTE, load, take
from penstock.state.file import StateFile, map_file, write_file
from penstock.state.notes import put_note, read_note
from penstock.state.ranges import KeyRanges
from penstock.storage import LocalStorage, MemoryStorage
from tests.breadth import some_now
from tests.spark.checkpoints import batch, begin


def flips(content: bytes, step: int = 1, first: int = 0) -> Iterator[tuple[int, bytes]]:
    for bit in range(first, len(content) * 8, step):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bit, bytes(flipped)


def test_every_bit_of_a_manifest_counts() -> None:
    storage = MemoryStorage()
    put_note(storage, "versions/1.json", {"version": 1, "files": {"count": [{"path": "a", "size": 3, "crc": 7}]}})
    content, many = storage.read("versions/1.json"), 0
    for bit, flipped in flips(content):
        storage.write("versions/1.json", flipped)
        with pytest.raises(StateError, match="damaged"):
            pytest.fail(f"bit {bit} is not found: {read_note(storage, 'versions/1.json')}")
        many += 1
    assert many == len(content) * 8 > 500


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b"3", b"{", b"[" * 100_000, b"\xff"])
def test_a_manifest_whose_checksum_fits_and_which_is_no_object_is_damaged(body: bytes) -> None:
    storage = MemoryStorage()
    for content in (b"%b\n%08x" % (body, zlib.crc32(body)), b"%08x" % zlib.crc32(b"")):
        storage.write("versions/1.json", content)
        with pytest.raises(StateError, match="damaged"):
            read_note(storage, "versions/1.json")


@pytest.mark.parametrize(("step", "first"), some_now([(13, 0), (1, 0)], 1))
def test_every_bit_of_a_state_file_counts(step: int, first: int) -> None:
    storage, rows = MemoryStorage(), 40
    made = pa.record_batch({"__key_hash": pa.array(range(rows), pa.int64()), "n": range(rows), "t": ["text"] * rows})
    size, crc = write_file(storage, "whole", made)
    file = StateFile("whole", size, crc, rows, KeyRanges(((0, 1),)))
    assert map_file(storage, file).whole().equals(made)
    for bit, flipped in flips(storage.read("whole"), step, first):
        name = f"flipped-{bit}"
        storage.write(name, flipped)
        with pytest.raises(StateError, match="damaged"):
            pytest.fail(
                f"bit {bit} is not found: {map_file(storage, StateFile(name, size, crc, rows, KeyRanges(((0, 1),)))).whole()}"
            )
        storage.delete(name)


@pytest.mark.parametrize(("start", "times"), [(64, 0), (64, 2), (8, 0)])
def test_a_state_file_with_a_part_too_few_or_too_many_is_damaged_whatever_its_manifest_says(
    start: int, times: int
) -> None:
    storage, rows = MemoryStorage(), 40
    size, crc = write_file(storage, "whole", pa.record_batch({"__key_hash": pa.array(range(rows), pa.int64())}))
    content = storage.read("whole")
    changed = content[:start] + content[start : start + 8] * times + content[start + 8 :]
    storage.write("changed", changed)
    assert len(changed) != size
    with pytest.raises(StateError, match="damaged: a part of it"):
        map_file(storage, StateFile("changed", len(changed), crc, rows, KeyRanges(((0, 1),))))


@pytest.mark.parametrize(("step", "first"), some_now([(11, 0), (1, 0)], 1))
def test_every_bit_of_the_list_of_a_savepoint_counts(tmp_path: Path, step: int, first: int) -> None:
    folder = begin(tmp_path / "shop")
    batch(folder, 0, {"a": 1})
    made = take(folder, tmp_path / "saved", copy=True)
    file = made.folder / NOTE
    content = LocalStorage(tmp_path / "saved").read(NOTE)
    for bit, flipped in flips(content, step, first):
        (tmp_path / "saved" / NOTE).write_bytes(flipped)
        with pytest.raises(CheckpointError, match="damaged"):
            pytest.fail(f"bit {bit} of {file} is not found: {load(made.folder)}")
    (tmp_path / "saved" / NOTE).write_bytes(content)
    assert load(made.folder) == made
