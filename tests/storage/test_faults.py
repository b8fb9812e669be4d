"""An object store behind a network and a server that fail: requests are repeated, and nothing is written by halves, twice or not at all."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from penstock.storage import Conflict, NotFound, ScopedStorage, Storage, StorageError, object_store
from penstock.storage.object_store import ObjectStore
from penstock.storage.spool import PART
from penstock.testing.stores import StoreServer
from tests.storage.proxy import FAULTS, FaultProxy, Request, at_random, fault_proxy

pytestmark = pytest.mark.spark


@dataclass
class Faulty:
    """One bucket: behind the proxy, and without it."""

    proxy: FaultProxy
    storage: Storage
    direct: Storage


@pytest.fixture
def faulty(s3: str, s3_store: StoreServer) -> Iterator[Faulty]:
    prefix = uuid.uuid4().hex
    with fault_proxy(s3_store.server.port) as proxy:
        direct = ScopedStorage(ObjectStore(s3), prefix)
        direct.write("there", b"old content")
        yield Faulty(proxy, ScopedStorage(ObjectStore(s3, (("endpoint", proxy.url),)), prefix), direct)


BIG = random.Random(7).randbytes(PART + 12345)
CALLS: dict[str, Callable[[Storage], object]] = {
    "read": lambda s: s.read("there"),
    "read a range": lambda s: s.read("there", 4, 3),
    "size": lambda s: s.size("there"),
    "write": lambda s: s.write("new", b"content"),
    "write parts": lambda s: s.write("big", iter([BIG[:5_000_000], BIG[5_000_000:]])),
    "put": lambda s: s.put_if_absent("new", b"content"),
    "refused put": lambda s: s.put_if_absent("there", b"content"),
    "list": lambda s: list(s.list("th")),
    "children": lambda s: s.children(),
    "delete": lambda s: s.delete("there", "nothing"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_call_answers_as_without_the_fault(faulty: Faulty, fault: str) -> None:
    """The first request of each method in a call meets the fault."""
    faulty.proxy.delay = 0.05
    for call, act in CALLS.items():
        faulty.direct.delete("new", "big")
        faulty.direct.write("there", b"old content")
        expected = act(faulty.direct)
        contents = snapshot(faulty.direct)
        faulty.direct.delete("new", "big")
        faulty.direct.write("there", b"old content")
        faulty.proxy.choose = first_of_each_method(fault)
        assert act(faulty.storage) == expected, call
        assert snapshot(faulty.direct) == contents, call
    assert faulty.proxy.faults >= len(CALLS)


def snapshot(storage: Storage) -> dict[str, bytes]:
    return {entry.name: storage.read(entry.name) for entry in storage.list()}


def first_of_each_method(fault: str) -> Callable[[Request], str]:
    seen: set[str] = set()
    lock = threading.Lock()

    def choose(request: Request) -> str:
        with lock:
            is_first = request.method not in seen
            seen.add(request.method)
        return fault if is_first else ""

    return choose


@pytest.mark.parametrize("fault", ["lose the answer", "cut the answer"])
def test_a_put_whose_answer_is_lost_is_not_refused_by_itself(faulty: Faulty, fault: str) -> None:
    faulty.proxy.once(fault, "PUT", "mine")
    assert faulty.storage.put_if_absent("mine", b"1") is True
    assert faulty.proxy.faults == 1
    assert faulty.storage.put_if_absent("mine", b"1") is False, "the same content again is another put"


def test_a_swap_whose_answer_is_lost_is_not_a_conflict(faulty: Faulty) -> None:
    first = faulty.storage.compare_and_swap("ledger", None, b"1")
    faulty.proxy.once("lose the answer", "PUT", "ledger")
    second = faulty.storage.compare_and_swap("ledger", first, b"2")
    assert faulty.proxy.faults == 1
    assert faulty.direct.read_versioned("ledger") == (b"2", second)
    faulty.storage.compare_and_swap("ledger", second, b"3")


def test_a_swap_whose_answer_is_lost_and_whose_object_is_swapped_since_was_done(faulty: Faulty) -> None:
    """Before the repetition arrives, another has read what the first attempt wrote, and has swapped it, twice."""
    first = faulty.storage.compare_and_swap("ledger", None, b"1")
    requests: list[Request] = []

    def choose(request: Request) -> str:
        if request.method == "PUT":
            requests.append(request)
            if len(requests) == 2:
                for content in (b"3", b"4"):
                    faulty.direct.compare_and_swap("ledger", faulty.direct.read_versioned("ledger")[1], content)
        return "lose the answer" if len(requests) == 1 else ""

    faulty.proxy.choose = choose
    second = faulty.storage.compare_and_swap("ledger", first, b"2")
    assert len(requests) >= 2
    with pytest.raises(Conflict):
        faulty.storage.compare_and_swap("ledger", second, b"5")
    assert faulty.direct.read("ledger") == b"4"


def test_a_swap_that_lost_against_another_while_its_request_was_lost_is_a_conflict(faulty: Faulty) -> None:
    first = faulty.storage.compare_and_swap("ledger", None, b"1")

    def choose(request: Request) -> str:
        if request.method != "PUT" or faulty.direct.read("ledger") != b"1":
            return ""
        faulty.direct.compare_and_swap("ledger", first, b"of another")
        return "lose the request"

    faulty.proxy.choose = choose
    with pytest.raises(Conflict):
        faulty.storage.compare_and_swap("ledger", first, b"2")
    assert faulty.direct.read("ledger") == b"of another"


def test_of_many_that_put_the_same_content_over_a_bad_network_one_does(faulty: Faulty) -> None:
    faulty.proxy.choose = at_random(0.3, 11)
    with ThreadPoolExecutor(8) as pool:
        for number in range(6):
            done = list(pool.map(lambda _, n=number: faulty.storage.put_if_absent(f"one/{n}", b"same"), range(8)))
            assert done.count(True) == 1
    assert faulty.proxy.faults > 10


def test_swaps_over_a_bad_network_lose_nothing(faulty: Faulty) -> None:
    faulty.storage.compare_and_swap("count", None, b"0")
    faulty.proxy.choose = at_random(0.2, 5)

    def add(_: int) -> None:
        added = 0
        while added < 5:
            content, version = faulty.storage.read_versioned("count")
            try:
                faulty.storage.compare_and_swap("count", version, str(int(content) + 1).encode())
                added += 1
            except Conflict:
                pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert faulty.direct.read("count") == b"20"


def test_readers_see_whole_objects_while_uploads_fail(faulty: Faulty) -> None:
    """Two contents, each in parts, written over each other; a reader sees one or the other."""
    contents = [bytes([65 + n]) * (PART + 1000) for n in range(2)]
    faulty.direct.write("object", contents[0])
    faulty.proxy.choose = at_random(0.15, 3)
    ended = threading.Event()

    def read() -> int:
        seen = 0
        while not ended.is_set():
            assert faulty.direct.read("object") in contents
            seen += 1
        return seen

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for number in range(6):
                faulty.storage.write("object", contents[number % 2])
                assert faulty.direct.read("object") == contents[number % 2]
        finally:
            ended.set()
        assert reading.result() > 0


def test_a_content_that_breaks_off_leaves_what_was_there(faulty: Faulty) -> None:
    def parts() -> Iterator[bytes]:
        yield b"x" * (PART + 1)
        yield b"y" * (PART + 1)
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        faulty.storage.write("there", parts())
    with pytest.raises(RuntimeError, match="the source failed"):
        faulty.storage.write("never", parts())
    assert snapshot(faulty.direct) == {"there": b"old content"}


@pytest.mark.parametrize("fault", ["503", "reset"])
def test_a_store_that_never_answers_is_an_error_that_names_the_object(
    faulty: Faulty, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PATIENCE", 0.5)
    faulty.proxy.choose = lambda request: fault
    for call in (
        lambda: faulty.storage.read("there"),
        lambda: faulty.storage.write("there", b"new"),
        lambda: faulty.storage.put_if_absent("other", b"new"),
    ):
        with pytest.raises(StorageError, match=r"(there|other).*cannot be read or written") as raised:
            call()
        assert not isinstance(raised.value, NotFound | Conflict)
    faulty.proxy.choose = lambda request: ""
    assert snapshot(faulty.direct) == {"there": b"old content"}


def test_a_refusal_is_not_repeated(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-4711")
    stranger = ObjectStore(s3)
    for call in (
        lambda: stranger.read("a"),
        lambda: stranger.write("a", b"1"),
        lambda: stranger.put_if_absent("a", b"1"),
    ):
        with pytest.raises(StorageError, match="cannot be read or written") as raised:
            call()
        assert "4711" not in str(raised.value)


def test_without_tokens_a_put_would_be_refused_by_itself(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug that the tests above must catch, planted."""
    real = object_store._Tag.of
    monkeypatch.setattr(object_store._Tag, "of", lambda got: replace(real(got), writers=()))
    with pytest.raises(AssertionError):
        test_a_put_whose_answer_is_lost_is_not_refused_by_itself(faulty, "lose the answer")
    with pytest.raises(Conflict):
        test_a_swap_whose_answer_is_lost_is_not_a_conflict(faulty)
