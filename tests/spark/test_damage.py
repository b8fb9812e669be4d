"""Damage: every version that is kept can be restored, and each kind of file that is torn, cut, flipped or missing is named. No JVM."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock.state as ps_state
from penstock.errors import PenstockError, StateError
from penstock.spark.checkpoint.restart import Restart
from penstock.spark.checkpoint.savepoint import directory_of, take
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.spark.checkpoints import COUNT, WANTED, batch, begin, counts, hash_of

KEEP = 20
BATCHES = [dict.fromkeys(("a", f"w{n % 7}", f"only{n}"), n + 1) for n in range(26)]


def expected(version: int) -> dict[str, int]:
    total: Counter[str] = Counter()
    for words in BATCHES[: version + 1]:
        total.update(words)
    return dict(total)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flow that has run 26 batches and keeps 20 versions."""
    folder = begin(tmp_path_factory.mktemp("damage") / "shop")
    for number, words in enumerate(BATCHES):
        batch(folder, number, words, keep=KEEP)
    return folder


@pytest.fixture
def folder(ran: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(ran, tmp_path / "shop"))


def test_the_last_versions_are_kept_and_no_others(ran: Path) -> None:
    assert StateStore(LocalStorage(ran / "state")).versions() == list(range(6, 26))
    named = {
        f.path
        for v in range(6, 26)
        for files in StateStore(LocalStorage(ran / "state")).read(v).values()
        for f in files
    }
    there = {str(p.relative_to(ran / "state")) for p in (ran / "state" / "files").rglob("*.*") if p.suffix != ".json"}
    assert there >= named
    assert {int(p.split("/")[1].split("-")[0]) for p in there - named} <= set(range(6, 26)), (
        "older files are swept away"
    )


@pytest.mark.parametrize("version", range(6, 26))
def test_every_kept_version_can_be_restored(ran: Path, version: int, tmp_path: Path) -> None:
    """Read from outside, read by a task, and saved and started from; all give what the flow had then."""
    assert counts(ran, version) == expected(version)
    rows = ps_state.read(ran, "rows", version).to_pylist()
    assert Counter(r["word"] for r in rows) == Counter(w for words in BATCHES[: version + 1] for w in words)
    saved = take(ran, tmp_path / "sp", version)
    (tmp_path / "new").mkdir()
    Restart(tmp_path / "new", WANTED, saved.folder).settle()
    assert counts(tmp_path / "new", version) == expected(version)
    batch(tmp_path / "new", version + 1, {"a": 1000})
    assert counts(tmp_path / "new", version + 1)["a"] == expected(version)["a"] + 1000


def newest(folder: Path, store: str) -> Path:
    """The largest file of a store in the newest version."""
    files = StateStore(LocalStorage(folder / "state")).read(25)[store]
    return folder / "state" / max(files, key=lambda f: f.size).path


FILES: dict[str, Callable[[Path], Path]] = {
    "manifest": lambda folder: folder / "state" / "versions" / "25.json",
    "values": lambda folder: newest(folder, "count"),
    "rows": lambda folder: newest(folder, "rows"),
    "offsets": lambda folder: folder / "spark" / "offsets" / "25",
    "commit": lambda folder: folder / "spark" / "commits" / "25",
    "flow": lambda folder: folder / "flow.json",
    "source": lambda folder: folder / "spark" / "sources" / "0" / "25",
}


def damaged(path: Path, damage: str) -> None:
    data = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage.startswith("flip"):
        at = int(float(damage.split()[1]) * (len(data) - 1))
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :])


def everything(folder: Path) -> None:
    """What a start does before its first output: looks at the folder, then reads what its steps keep."""
    Restart(folder, WANTED).check()
    for store in ("count", "rows"):
        ps_state.read(folder, store, 25)


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "flip 0", "flip 0.3", "flip 0.6", "flip 0.9", "flip 1"])
@pytest.mark.parametrize("kind", ["manifest", "values", "rows"])
def test_state_that_is_damaged_is_named(folder: Path, kind: str, damage: str) -> None:
    path = FILES[kind](folder)
    damaged(path, damage)
    with pytest.raises(StateError, match=path.name if kind != "manifest" or damage != "gone" else "version 25"):
        everything(folder)


@pytest.mark.parametrize("damage", ["cut", "empty", "flip 0"])
@pytest.mark.parametrize("kind", ["offsets", "commit", "flow", "source"])
def test_a_place_that_is_damaged_is_named(folder: Path, kind: str, damage: str) -> None:
    path = FILES[kind](folder)
    damaged(path, damage)
    with pytest.raises(PenstockError, match=str(path)):
        everything(folder)


def test_a_flip_that_still_reads_as_offsets_is_found_by_the_checksum_that_spark_leaves(folder: Path) -> None:
    import struct
    import zlib

    path = FILES["offsets"](folder)
    data = path.read_bytes()
    sums = b"".join(struct.pack(">I", zlib.crc32(data[at : at + 512])) for at in range(0, len(data), 512))
    path.with_name(".25.crc").write_bytes(b"crc\0" + struct.pack(">I", 512) + sums)
    everything(folder)
    path.write_bytes(data.replace(b'"logOffset":25', b'"logOffset":24', 1))
    with pytest.raises(PenstockError, match=f"{path} .*checksum"):
        everything(folder)


def test_a_missing_offset_file_is_named(folder: Path) -> None:
    FILES["offsets"](folder).unlink()
    with pytest.raises(PenstockError, match="offsets/25"):
        everything(folder)


def test_a_file_that_is_not_what_its_note_says_makes_no_version(folder: Path) -> None:
    """The driver refuses it before the manifest is there, and the version before stays what it is."""
    store = staged(folder)
    written = folder / "state" / store.staged["count"].notes[0]["file"]["path"]
    written.write_bytes(written.read_bytes()[:-1])
    with pytest.raises(StateError, match=written.name):
        store.publish(26)
    written.unlink()
    with pytest.raises(StateError, match="has None"):
        store.publish(26)
    assert not store.has(26)
    assert counts(folder, 25) == expected(25)


def test_a_task_that_did_not_report_makes_no_version(folder: Path) -> None:
    store = staged(folder)
    note = store.staged["count"].notes.pop(0)
    store.report({("files/25-r/count", 0): note})  # of another batch
    with pytest.raises(StateError, match=r"tasks \[0\] of 1 did not report"):
        store.publish(26)


def staged(folder: Path) -> StateStore:
    """A batch whose task has written, and noted what."""
    store = StateStore(LocalStorage(folder / "state"), keep=KEEP, run="r")
    files: Any = store.begin(26, {"count": 1}, 25)["count"]
    state = FileState(files, 0)
    state.describe(COUNT)
    state.prefetch([("a",)], [hash_of("a")])
    state.put(("a",), (1,))
    state.save()
    return store


def test_damage_in_a_version_does_not_hurt_the_others(folder: Path) -> None:
    """A file that only the newest version names: all older ones read as ever, and a savepoint of one is a way back."""
    before = {f.path for files in StateStore(LocalStorage(folder / "state")).read(24).values() for f in files}
    only = [f for f in StateStore(LocalStorage(folder / "state")).read(25)["count"] if f.path not in before]
    (folder / "state" / only[0].path).unlink()
    with pytest.raises(StateError, match="cannot be read"):
        counts(folder, 25)
    assert counts(folder, 24) == expected(24)
    saved = take(folder, directory_of("back", folder), 24)
    new = folder.parent / "new"
    new.mkdir()
    Restart(new, WANTED, saved.folder).settle()
    assert counts(new, 24) == expected(24)


def test_retention_can_be_changed_between_runs(folder: Path) -> None:
    batch(folder, 26, {"a": 1}, keep=3)
    assert StateStore(LocalStorage(folder / "state")).versions() == [24, 25, 26]
    assert json.loads((folder / "flow.json").read_text())["flow"] == "shop"
    assert counts(folder, 26)["a"] == expected(25)["a"] + 1
