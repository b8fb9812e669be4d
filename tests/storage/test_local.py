"""What files hold: between processes that are killed or paused at any point, and against other users of the machine."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.faults import PAUSE, SETTING
from penstock.storage import Conflict, LocalStorage, StorageError, local
from penstock.storage.base import read_if_present
from penstock.storage.local import ABANDONED
from penstock.storage.swap import POINTS
from tests.storage.programs import ADD

SWAPS = 10
"""More than a swap or two that a busy machine holds up; one that waits for another process takes a second."""
WRITE = """
import sys
from pathlib import Path
from penstock.storage import LocalStorage
storage = LocalStorage(Path(sys.argv[1]))
number = 0
while True:
    storage.write("object", (str(number % 10) * 200_000).encode())
    number += 1
"""


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    made = LocalStorage(tmp_path)
    made.compare_and_swap("count", None, b"0")
    return made


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    made: list[subprocess.Popen[str]] = []
    yield made
    for each in made:
        each.kill()
        each.wait()
        assert each.stdout is not None
        each.stdout.close()


def start(code: str, storage: LocalStorage, *args: str, **setting: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(storage.root), *args],
        env={**os.environ, **setting},
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return
        time.sleep(0.01)
    raise AssertionError("the process did not come to its point")


def add_one(storage: LocalStorage) -> None:
    content, version = storage.read_versioned("count")
    storage.compare_and_swap("count", version, str(int(content) + 1).encode())


def test_swaps_of_many_processes_lose_nothing(storage: LocalStorage) -> None:
    running = [start(ADD, storage, "20") for _ in range(6)]
    outputs = [each.communicate(timeout=300)[0] for each in running]
    assert [each.returncode for each in running] == [0] * 6
    assert sum(output.count("added") for output in outputs) == 120
    assert storage.read("count") == b"120"


def test_swaps_of_many_processes_without_turns_lose_nothing(storage: LocalStorage) -> None:
    """The lock is a courtesy: without it the answer is the same."""
    code = "import penstock.storage.swap as s\ns._locked = lambda handle: True\n" + ADD
    running = [start(code, storage, "15") for _ in range(6)]
    outputs = [each.communicate(timeout=300)[0] for each in running]
    assert [each.returncode for each in running] == [0] * 6
    assert sum(output.count("added") for output in outputs) == 90
    assert storage.read("count") == b"90"


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_in_a_swap_leaves_the_old_or_the_new(storage: LocalStorage, point: str) -> None:
    killed = start(ADD, storage, "1", **{SETTING: point})
    assert killed.communicate(timeout=300)[0] == ""
    assert killed.returncode == -signal.SIGKILL
    assert storage.read("count") == (b"1" if point == "swap renamed" else b"0")
    before = int(storage.read("count"))
    begun = time.monotonic()
    for _ in range(SWAPS):
        add_one(storage)
    assert storage.read("count") == str(before + SWAPS).encode()
    assert time.monotonic() - begun < 0.8 * SWAPS, "each swap waits for the dead process"
    assert leftovers(storage) == []


@pytest.mark.parametrize("point", POINTS)
def test_a_process_paused_in_a_swap_neither_blocks_nor_overwrites(
    storage: LocalStorage, point: str, started: list[subprocess.Popen[str]]
) -> None:
    paused = start(ADD, storage, "1", "stop", **{PAUSE: point})
    started.append(paused)
    wait_until_stopped(paused)
    base = int(storage.read("count"))
    add_one(storage)
    begun = time.monotonic()
    for _ in range(SWAPS):
        add_one(storage)
    assert time.monotonic() - begun < 0.8 * SWAPS, "each swap waits for the paused process"
    paused.send_signal(signal.SIGCONT)
    output = paused.communicate(timeout=300)[0]
    assert output.split() == (["added"] if point == "swap renamed" else ["conflict"])
    assert storage.read("count") == str(base + SWAPS + 1).encode()
    assert leftovers(storage) == []


@pytest.mark.parametrize("point", POINTS)
def test_two_paused_processes_and_a_third_agree(
    storage: LocalStorage, point: str, started: list[subprocess.Popen[str]]
) -> None:
    first = start(ADD, storage, "1", "stop", **{PAUSE: "swap checked"})
    started.append(first)
    wait_until_stopped(first)
    second = start(ADD, storage, "1", "stop", **{PAUSE: point})
    started.append(second)
    wait_until_stopped(second)
    for each in (first, second):
        each.send_signal(signal.SIGCONT)
    outputs = [each.communicate(timeout=300)[0].split()[-1] for each in (first, second)]
    assert storage.read("count") == str(outputs.count("added")).encode()
    assert outputs.count("added") == 1


def leftovers(storage: LocalStorage) -> list[str]:
    """Claims and temporary files of nobody."""
    found = [p for part in (".swap", ".tmp") for p in (storage.root / part).rglob("*") if p.is_file()]
    return [p.name for p in found if p.name != "turn"]


def test_readers_see_whole_objects_while_one_is_rewritten_and_killed(storage: LocalStorage) -> None:
    storage.write("object", b"0" * 200_000)
    for _ in range(3):
        writer = start(WRITE, storage)
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            content = storage.read("object")
            assert len(content) == 200_000
            assert len(set(content)) == 1
        writer.kill()
        writer.communicate()
        assert len(set(storage.read("object"))) == 1


def test_what_dead_processes_have_left_is_removed_after_an_hour(storage: LocalStorage) -> None:
    fresh, old = (storage.root / ".tmp" / name for name in ("fresh", "old"))
    for path in (fresh, old):
        path.write_bytes(b"")
    os.utime(old, (time.time() - ABANDONED - 1,) * 2)
    storage.write("x", b"1")
    assert (fresh.exists(), old.exists()) == (True, False)
    assert [e.name for e in storage.list()] == ["count", "x"]


def test_all_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        storage = LocalStorage(tmp_path / "root" / "deep")
        storage.write("a/b", b"1")
        version = storage.compare_and_swap("c", None, b"1")
        storage.compare_and_swap("c", version, b"2")
        storage.put_if_absent("d", b"1")
    finally:
        os.umask(before)
    modes = {(p.is_dir(), stat.S_IMODE(p.stat().st_mode)) for p in (tmp_path / "root").rglob("*")}
    assert modes == {(True, 0o700), (False, 0o600)}
    assert stat.S_IMODE((tmp_path / "root").stat().st_mode) == 0o700


def test_a_shared_storage_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        storage = LocalStorage(tmp_path / "root", is_private=False)
        storage.write("a/b", b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "root/a/b").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "root/a").stat().st_mode) == 0o755


def test_an_object_has_a_file_that_stays_mapped(storage: LocalStorage) -> None:
    storage.write("big", b"old")
    path = storage.local_path("big")
    assert path is not None
    with path.open("rb") as mapped:
        storage.write("big", b"new")
        assert mapped.read() == b"old"
    assert path.read_bytes() == b"new"


def test_reading_makes_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "never")
    with pytest.raises(StorageError):
        storage.read("a")
    with pytest.raises(Conflict):
        storage.compare_and_swap("a", storage.compare_and_swap("b", None, b"1"), b"2")
    assert list(LocalStorage(tmp_path / "other").list("a")) == []
    assert not (tmp_path / "other").exists()


def test_errors_of_the_file_system_name_the_object(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    storage = LocalStorage(tmp_path / "file")
    with pytest.raises(StorageError, match="file"):
        storage.write("a", b"1")


def test_it_travels_to_a_worker(storage: LocalStorage) -> None:
    import pickle

    assert pickle.loads(pickle.dumps(storage)).read("count") == b"0"


def test_a_checksum_of_hadoop_does_not_outlive_its_file(tmp_path: Path) -> None:
    """Spark refuses a file that does not fit the checksum beside it."""
    storage, beside = LocalStorage(tmp_path), tmp_path / "offsets" / ".7.crc"
    for act in (
        lambda: storage.write("offsets/7", b"new"),
        lambda: storage.delete("offsets/7"),
        lambda: storage.put_if_absent("offsets/7", b"new"),
    ):
        beside.parent.mkdir(exist_ok=True)
        beside.write_bytes(b"of another content")
        act()
        assert not beside.exists()


def test_an_object_that_another_writes_while_it_is_looked_for_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path)
    opened = Path.open

    def open_too_early(path: Path, mode: str) -> object:
        try:
            return opened(path, mode)
        finally:
            storage.write("object", b"1")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_too_early)
        assert read_if_present(storage, "object") is None
    assert storage.read("object") == b"1"


def test_what_cannot_have_the_prefix_is_not_looked_into(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with a hundred thousand files beside costs a look for three others nothing."""
    for name in ("feed/1", "feed/deep/2", "ids-1", "ids-2", "idle/3", "ids-more/4"):
        storage.write(name, b"")
    looked: list[str] = []
    visible = local._visible

    def noting(directory: Path) -> Iterator[os.DirEntry[str]]:
        looked.append(directory.name)
        return visible(directory)

    monkeypatch.setattr(local, "_visible", noting)
    assert [entry.name for entry in storage.list("ids-")] == ["ids-1", "ids-2", "ids-more/4"]
    assert looked == [storage.root.name, "ids-more"]
    looked.clear()
    assert [entry.name for entry in storage.list("feed/d")] == ["feed/deep/2"]
    assert looked == ["feed", "deep"]
