"""Copies of objects that never change: made once on a machine, bounded, and discarded when they are damaged."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import StateError
from penstock.state.file import StateFile, map_file, write_file
from penstock.state.ranges import ranges_of
from penstock.storage import NotFound, ScopedStorage
from penstock.storage.cached import CachedStorage
from penstock.storage.object_store import ObjectStore
from tests.storage.objects import ObjectStorage


@pytest.fixture
def objects() -> ObjectStorage:
    return ObjectStorage()


def is_state(name: str) -> bool:
    return name.endswith(".state")


def cached(objects: ObjectStorage, directory: Path, most: int = 1000) -> CachedStorage:
    return CachedStorage(objects, is_state, directory, most)


def test_an_object_is_read_once_on_a_machine_and_what_was_written_there_never(
    objects: ObjectStorage, tmp_path: Path
) -> None:
    objects.write("a.state", b"one")
    for storage in (cached(objects, tmp_path / "one"), cached(objects, tmp_path / "one")):
        path = storage.local_path("a.state")
        assert path is not None
        assert path.read_bytes() == b"one"
    assert objects.requests["get"] == 1
    storage.write("b.state", [b"t", b"wo"])
    path = storage.local_path("b.state")
    assert path is not None
    assert path.read_bytes() == objects.read("b.state") == b"two"
    assert objects.requests["get"] == 2
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_may_change_is_never_kept(objects: ObjectStorage, tmp_path: Path) -> None:
    storage = cached(objects, tmp_path / "copies")
    storage.write("manifest.json", b"1")
    assert storage.local_path("manifest.json") is None
    assert not (tmp_path / "copies").exists()


def test_an_object_that_is_not_there_is_not_found(objects: ObjectStorage, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        cached(objects, tmp_path).local_path("a.state")


def test_copies_that_were_used_longest_ago_make_room(objects: ObjectStorage, tmp_path: Path) -> None:
    storage = cached(objects, tmp_path, most=30)
    paths = []
    for at, name in enumerate(("a.state", "b.state", "c.state")):
        storage.write(name, b"0123456789")
        path = storage.local_path(name)
        assert path is not None
        os.utime(path, (at, at))
        paths.append(path)
    assert storage.local_path("a.state") == paths[0]  # used again
    storage.write("d.state", b"0123456789")
    assert [path.exists() for path in paths] == [True, False, True]
    storage.write("large.state", b"0" * 20)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 30
    assert storage.local_path("large.state") is None


def test_two_stores_with_equal_names_have_copies_of_their_own(tmp_path: Path) -> None:
    one, other = (CachedStorage(ScopedStorage(ObjectStore("s3://bucket"), p), directory=tmp_path) for p in "ab")
    assert one.copy_of("x") != other.copy_of("x")
    assert one.copy_of("x") == pickle.loads(pickle.dumps(one)).copy_of("x")


def test_a_damaged_copy_is_discarded_and_the_object_read_again(objects: ObjectStorage, tmp_path: Path) -> None:
    storage = cached(objects, tmp_path, most=10_000_000)
    batch = pa.record_batch({"key_hash": list(range(50_000)), "n": list(range(50_000))})
    size, crc = write_file(storage, "a.state", batch)
    file = StateFile("a.state", size, crc, batch.num_rows, ranges_of(0, 1, 128))
    assert map_file(storage, file).whole().num_rows == 50_000
    path = storage.local_path("a.state")
    assert path is not None
    content = bytearray(path.read_bytes())
    content[300_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"state file a\.state is damaged between bytes"):
        map_file(storage, file).whole()
    assert map_file(storage, file).whole().num_rows == 50_000
    path.write_bytes(content[:100])
    with pytest.raises(StateError, match="is damaged"):
        map_file(storage, file)
    assert map_file(storage, file).whole().num_rows == 50_000
