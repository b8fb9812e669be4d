"""What HDFS holds: between processes that are killed or paused at any point of a swap, and for names whose rename was not answered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.faults import PAUSE, SETTING
from penstock.storage import Conflict, NotFound, Storage, StorageError, storage_at
from penstock.storage import hdfs as home
from penstock.storage.hdfs import HdfsStorage
from penstock.storage.swap import POINTS
from tests.storage.programs import ADD

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def start(url: str, *args: str, **setting: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ADD, url, *args]
    return subprocess.Popen(command, env={**os.environ, **setting}, stdout=subprocess.PIPE, text=True)


def counted(hdfs: str) -> str:
    """The URL of a count that is 0."""
    url = f"{hdfs}/{uuid.uuid4().hex}"
    storage_at(url).compare_and_swap("count", None, b"0")
    return url


def add_one(storage: Storage) -> None:
    content, version = storage.read_versioned("count")
    storage.compare_and_swap("count", version, str(int(content) + 1).encode())


def leftovers(url: str) -> list[str]:
    storage = storage_at(url)
    assert isinstance(storage, HdfsStorage)
    return [s.path for s in storage._client.list_status(storage.root, recursive=True) if "/." in s.path and not s.isdir]


def test_swaps_of_many_processes_lose_nothing(hdfs: str) -> None:
    url = counted(hdfs)
    running = [start(url, "4") for _ in range(3)]
    outputs = [each.communicate(timeout=300)[0] for each in running]
    assert [each.returncode for each in running] == [0] * 3
    assert sum(output.count("added") for output in outputs) == 12
    assert storage_at(url).read("count") == b"12"
    assert leftovers(url) == []


def killed(hdfs: str, point: str) -> None:
    url = counted(hdfs)
    process = start(url, "1", **{SETTING: point})
    assert process.communicate(timeout=300)[0] == ""
    assert process.returncode == -signal.SIGKILL
    before = int(storage_at(url).read("count"))
    assert before == (1 if point == "swap renamed" else 0)
    add_one(storage_at(url))
    assert storage_at(url).read("count") == str(before + 1).encode()
    assert leftovers(url) == []


def paused(hdfs: str, point: str) -> None:
    url = counted(hdfs)
    process = start(url, "1", "stop", **{PAUSE: point})
    try:
        wait_until_stopped(process)
        base = int(storage_at(url).read("count"))
        for _ in range(2):
            add_one(storage_at(url))
        process.send_signal(signal.SIGCONT)
        output = process.communicate(timeout=300)[0]
    finally:
        process.kill()
        process.wait()
    assert output.split() == (["added"] if point == "swap renamed" else ["conflict"])
    assert storage_at(url).read("count") == str(base + 2).encode()
    assert leftovers(url) == []


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "the process did not come to its point"
        time.sleep(0.01)


@pytest.mark.parametrize("check", [killed, paused])
def test_a_process_killed_or_paused_in_a_swap_neither_blocks_nor_overwrites(
    hdfs: str, check: Callable[[str, str], None]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(check, hdfs, point) for point in POINTS]:
            done.result()


class LostAnswers:
    """A client that does a rename, says that the connection broke, and does as asked from then on."""

    def __init__(self, client: object, act_between: Callable[[], None] = lambda: None) -> None:
        self.client, self.lost, self.act_between = client, 0, act_between

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def rename(self, source: str, target: str, overwrite: bool = False) -> None:
        self.client.rename(source, target, overwrite)  # type: ignore[attr-defined]
        if self.lost == 0:
            self.lost += 1
            self.act_between()
            raise ConnectionResetError("the answer was lost")


def losing(url: str, monkeypatch: pytest.MonkeyPatch) -> LostAnswers:
    storage = storage_at(url)
    assert isinstance(storage, HdfsStorage)
    client = LostAnswers(storage._client)
    monkeypatch.setitem(home._clients, (storage.address, os.getpid()), client)
    return client


def test_a_rename_whose_answer_is_lost_was_done(hdfs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = counted(hdfs)
    storage = storage_at(url)
    _, first = storage.read_versioned("count")
    for act in (
        lambda: storage.put_if_absent("new", b"1"),
        lambda: storage.compare_and_swap("count", first, b"1"),
        lambda: (storage.write("other", b"1"),),  # type: ignore[func-returns-value]
    ):
        client = losing(url, monkeypatch)
        assert act()
        assert client.lost == 1
        monkeypatch.undo()
    assert {e.name: storage.read(e.name) for e in storage.list()} == {"count": b"1", "new": b"1", "other": b"1"}


def test_a_name_node_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "PATIENCE", 0.3)
    storage = storage_at("hdfs://127.0.0.1:1/a")
    with pytest.raises(StorageError, match="cannot be read or written") as raised:
        storage.write("b", b"1")
    assert not isinstance(raised.value, NotFound | Conflict)
