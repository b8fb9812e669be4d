"""What every storage holds."""

from __future__ import annotations

import pickle
import random
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage import (
    Conflict,
    Entry,
    MemoryStorage,
    NotFound,
    Storage,
    StorageError,
    Version,
    checksum,
    copy_object,
    delete_under,
    exists,
    names_under,
    object_name,
    read_if_present,
)
from penstock.storage.spool import PART
from tests.storage.kinds import ALL, FLAT, KINDS, make


@pytest.fixture(params=ALL)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return make(request.param, tmp_path, request)


def test_what_is_written_is_read_whole_and_in_ranges(storage: Storage) -> None:
    storage.write("a/b/c", b"0123456789")
    assert storage.read("a/b/c") == b"0123456789"
    assert storage.read("a/b/c", 3, 4) == b"3456"
    assert storage.read("a/b/c", 8, 10) == b"89"
    assert storage.read("a/b/c", 20) == b""
    assert storage.read("a/b/c", 0, 0) == b""
    assert storage.size("a/b/c") == 10


def test_parts_are_written_one_after_the_other(storage: Storage) -> None:
    storage.write("parts", (p for p in (b"ab", bytearray(b"cd"), memoryview(b"ef"))))
    assert storage.read("parts") == b"abcdef"


def test_an_object_is_replaced_as_a_whole(storage: Storage) -> None:
    storage.write("x", b"a long content")
    storage.write("x", b"short")
    assert storage.read("x") == b"short"


def test_an_empty_object_is_an_object(storage: Storage) -> None:
    storage.write("empty", b"")
    assert (storage.read("empty"), storage.size("empty"), list(storage.list())) == (b"", 0, [Entry("empty", 0)])


@pytest.mark.parametrize("name", ["missing", "there/under", "directory"])
def test_what_is_not_there_is_not_found(storage: Storage, name: str) -> None:
    storage.write("there", b"1")
    storage.write("directory/object", b"1")
    for call in (storage.read, storage.size, storage.read_versioned):
        with pytest.raises(NotFound, match="there is no object"):
            call(name)
    assert read_if_present(storage, name) is None
    assert storage.local_path(name) is None
    storage.delete(name)
    assert storage.read("there") == b"1"


def test_put_if_absent_writes_once(storage: Storage) -> None:
    assert storage.put_if_absent("once", b"first")
    assert not storage.put_if_absent("once", b"second")
    assert storage.read("once") == b"first"
    storage.delete("once")
    assert storage.put_if_absent("once", b"third")


def test_of_many_that_put_one_does(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: storage.put_if_absent("one", str(n).encode()), range(40)))
    assert done.count(True) == 1
    assert storage.read("one") == str(done.index(True)).encode()


def test_a_swap_needs_the_expected_version(storage: Storage) -> None:
    first = storage.compare_and_swap("ledger", None, b"1")
    assert storage.read_versioned("ledger") == (b"1", first)
    second = storage.compare_and_swap("ledger", first, b"2")
    for stale in (None, first, Version("never")):
        with pytest.raises(Conflict, match="ledger"):
            storage.compare_and_swap("ledger", stale, b"3")
    assert storage.read_versioned("ledger") == (b"2", second)


def test_a_swap_of_nothing_is_refused(storage: Storage) -> None:
    version = storage.compare_and_swap("ledger", None, b"1")
    storage.delete("ledger")
    with pytest.raises(Conflict):
        storage.compare_and_swap("ledger", version, b"2")
    assert read_if_present(storage, "ledger") is None


def test_swaps_of_many_threads_lose_nothing(storage: Storage) -> None:
    storage.compare_and_swap("count", None, b"0")
    begin = threading.Barrier(4)

    rounds = 3 if is_hdfs(storage) else 15

    def add(_: int) -> None:
        begin.wait()
        for _ in range(rounds):
            add_one(storage)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert storage.read("count") == str(4 * rounds).encode()


def add_one(storage: Storage) -> None:
    while True:
        content, version = storage.read_versioned("count")
        try:
            storage.compare_and_swap("count", version, str(int(content) + 1).encode())
        except Conflict:
            continue
        return


def test_a_listing_is_ordered_and_by_prefix(storage: Storage) -> None:
    for name in ("b", "a/2", "a/10", "a/x/1", "ab", "c"):
        storage.write(name, name.encode())
    assert [e.name for e in storage.list()] == ["a/10", "a/2", "a/x/1", "ab", "b", "c"]
    assert [e.name for e in storage.list("a")] == ["a/10", "a/2", "a/x/1", "ab"]
    assert list(storage.list("a/1")) == [Entry("a/10", 4)]
    assert list(storage.list("none/")) == []


def test_children_are_the_next_parts_of_names(storage: Storage) -> None:
    for name in ("b", "a/2", "a/10", "a/x/1", "a/x/2"):
        storage.write(name, b"1")
    assert storage.children() == ["a", "b"]
    assert storage.children("a/") == ["10", "2", "x"]
    assert storage.children("a/x/") == ["1", "2"]
    assert storage.children("none/") == []
    storage.delete("a/x/1", "a/x/2")
    assert set(storage.children("a/")) - keeps_directories(storage) == {"10", "2"}


def keeps_directories(storage: Storage) -> set[str]:
    """What the S3 server of the tests may go on listing: it keeps directories, as some stores do, and removes empty ones later."""
    return {"x"} if "s3://" in repr(storage) else set()


def test_objects_go_from_any_storage_to_any_other(storage: Storage, tmp_path: Path) -> None:
    storage.write("a/b", b"0123456789")
    for number, kind in enumerate(KINDS.values()):
        other = kind(tmp_path / f"other-{number}")
        for link in (True, False):
            copy_object(storage, "a/b", other, f"c/{link}", link=link)
            assert other.read(f"c/{link}") == b"0123456789"
            assert checksum(other, f"c/{link}") == (10, zlib.crc32(b"0123456789"))
        storage.write("a/b", b"new")
        assert other.read("c/True") == b"0123456789", "a copy keeps what it has"
        copy_object(storage, "a/b", other, "c/True")
        assert other.read("c/True") == b"0123456789", "what is there stays"
        storage.write("a/b", b"0123456789")
        with pytest.raises(NotFound):
            copy_object(storage, "a/none", other, "d")
        assert not exists(other, "d")
    delete_under(storage, "a/")
    assert names_under(storage, "") == []


def test_what_is_deleted_is_gone_and_the_rest_stays(storage: Storage) -> None:
    for name in ("a/1", "a/2", "b/c/d"):
        storage.write(name, b"1")
    storage.delete("a/1", "b/c/d", "never")
    assert [e.name for e in storage.list()] == ["a/2"]
    storage.write("b", b"an object where a directory was")
    assert storage.read("b") == b"an object where a directory was"


@pytest.mark.parametrize("storage", [kind for kind in ALL if kind not in FLAT and "s3" not in str(kind)], indirect=True)
def test_an_object_is_not_a_part_of_another_name(storage: Storage) -> None:
    storage.write("a/b", b"1")
    for name in ("a", "a/b/c"):
        with pytest.raises(StorageError, match="a"):
            storage.write(name, b"2")
        with pytest.raises(StorageError):
            storage.put_if_absent(name, b"2")
    assert [e.name for e in storage.list()] == ["a/b"]


HOSTILE = [
    "",
    "/",
    "/etc/passwd",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../../b",
    "a/./b",
    ".tmp/x",
    ".swap/x",
    "a/.hidden",
    "nul\0",
    "line\nbreak",
    "\x7f",
    "half \ud800",
    "x" * 201,
    "ä" * 101,
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda n: ascii(n)[:20])
def test_hostile_names_are_refused_everywhere(storage: Storage, name: str) -> None:
    for call in (storage.read, storage.size, storage.read_versioned, storage.delete, storage.local_path):
        with pytest.raises(StorageError, match="is not a name of an object"):
            call(name)
    for write in (storage.write, storage.put_if_absent):
        with pytest.raises(StorageError, match="is not a name of an object"):
            write(name, b"x")
    for version in (None, Version("x")):
        with pytest.raises(StorageError, match="is not a name of an object"):
            storage.compare_and_swap(name, version, b"x")
    assert list(storage.list()) == []


ODD = ["ä ö", "a b", "x" * 200, "%2F", "a;rm -rf", "日本/語", "-rf", "*", "a\\b", "C:x", "turn"]


def test_odd_names_are_names(storage: Storage) -> None:
    def check(name: str) -> None:
        version = storage.compare_and_swap(name, None, b"1")
        storage.compare_and_swap(name, version, b"2")
        assert [e.name for e in storage.list(name)] == [name]
        assert storage.read(name) == b"2"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, [name for name in ODD if not is_taken_otherwise(storage, name)]))


def is_taken_otherwise(storage: Storage, name: str) -> bool:
    """The S3 server of the tests takes a backslash for a slash; HDFS refuses a colon. Names that `object_name` makes have neither."""
    return ("\\" in name and "s3://" in repr(storage)) or (":" in name and is_hdfs(storage))


def is_hdfs(storage: Storage) -> bool:
    """There a write takes half a second, for which the client waits until a DataNode has reported the block."""
    return "hdfs://" in repr(storage)


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_texts_of_users_make_names_that_never_clash(one: list[str], other: list[str]) -> None:
    storage = MemoryStorage()
    storage.write(object_name(*one), b"one")
    assert (object_name(*one) == object_name(*other)) == (one == other)


def test_any_text_can_be_a_part_of_a_name(storage: Storage) -> None:
    def check(text: str) -> None:
        storage.write(object_name("sinks", text), b"1")
        storage.write(object_name("sinks", text + "y"), b"2")
        assert storage.read(object_name("sinks", text)) == b"1"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, ["x" * 5000, "ä" * 5000, "\ud800" * 500, "", ".", "..", "a/b", "\0", "a:b", "a\\b"]))


def test_a_listing_goes_past_one_page(storage: Storage) -> None:
    """Object stores and NameNodes list 1,000 names at a time."""
    count = 60 if is_hdfs(storage) else 1100
    names = [f"many/{number:05d}" for number in range(count)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: storage.write(name, b"1"), names))
    assert names_under(storage, "many/") == names
    assert storage.children("many/") == [name.removeprefix("many/") for name in names]
    assert storage.children() == ["many"]
    storage.delete(*names[:-1])
    assert names_under(storage, "") == names[-1:]


def test_an_object_larger_than_a_part_is_whole(storage: Storage) -> None:
    content = random.Random(3).randbytes(PART * 2 + 4321)
    cut = [content[begin : begin + 3_000_000] for begin in range(0, len(content), 3_000_000)]
    for name, data in (("bytes", content), ("parts", iter(cut)), ("view", memoryview(content))):
        storage.write(name, data)
        assert storage.size(name) == len(content)
        assert zlib.crc32(storage.read(name)) == zlib.crc32(content)
    assert storage.read("parts", PART - 5, 10) == content[PART - 5 : PART + 5]
    assert storage.put_if_absent("once", iter(cut))
    assert not storage.put_if_absent("once", iter(cut[1:]))
    assert checksum(storage, "once") == (len(content), zlib.crc32(content))


def test_a_long_content_that_breaks_off_is_not_written(storage: Storage) -> None:
    def parts() -> Iterator[bytes]:
        yield b"x" * (PART + 1)
        raise RuntimeError("the source failed")

    storage.write("there", b"old")
    for name in ("there", "never"):
        with pytest.raises(RuntimeError, match="the source failed"):
            storage.write(name, parts())
    assert {entry.name: storage.read(entry.name) for entry in storage.list()} == {"there": b"old"}


def test_it_travels_to_a_worker(storage: Storage) -> None:
    if "Memory" in repr(storage) or "tests.storage" in repr(storage):
        pytest.skip("memory is of one process")
    storage.write("a", b"1")
    assert pickle.loads(pickle.dumps(storage)).read("a") == b"1"
