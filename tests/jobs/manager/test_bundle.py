"""Bundles are named by what is in them, and what is hostile in one is refused."""

from __future__ import annotations

import base64
import io
import os
import shutil
import time
import zipfile
from pathlib import Path

import pytest

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.bundle import LARGEST, MOST_FILES, ROOM, UNUSED, BundleStore, lay_out, pack


def archive(*names: str, mode: int = 0) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as found:
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            found.writestr(entry, b"x")
    return made.getvalue()


def test_the_same_files_are_the_same_bundle_and_unpack_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    (tmp_path / "b.py").write_text("b = 2\n")
    files = [("flows/a.py", tmp_path / "a.py"), ("b.py", tmp_path / "b.py")]
    store = BundleStore(tmp_path / "kept")
    first = store.put(pack(files))
    (tmp_path / "a.py").touch()
    assert store.put(pack(reversed(files))) == first
    found = store.unpacked(first)
    assert (found / "flows/a.py").read_text() == "a = 1\n"
    assert oct((found / "b.py").stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("name", ["../up.py", "/etc/x", "a/../../b", "a\\..\\b", "x" * 1001, "."])
def test_a_file_outside_the_bundle_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="stays in its directory"):
        BundleStore(tmp_path).put(archive(name))


def test_links_and_floods_and_what_is_no_archive_are_refused(tmp_path: Path) -> None:
    store = BundleStore(tmp_path)
    with pytest.raises(OptionError, match="no links"):
        store.put(archive("link", mode=0o120777))
    with pytest.raises(OptionError, match=r"at most 10,000 files, got 10,001"):
        store.put(archive(*map(str, range(MOST_FILES + 1))))
    with pytest.raises(OptionError, match="a zip archive"):
        store.put(b"#!/bin/sh")
    with pytest.raises(OptionError, match="at most"):
        store.put(b"x" * (LARGEST + 1))


def test_an_archive_whose_places_or_names_are_none_is_refused(tmp_path: Path) -> None:
    """Found by fuzzing: each of these was an error of ours."""
    (tmp_path / "count.py").write_text("x = 1\n")
    whole = pack([("count.py", tmp_path / "count.py")])
    nameless = base64.b64decode(
        "UEsDBBQAAAAIAAAAIQA7ifaLCAAAAAAAAAYACAAAY291bnQucHmrULBVMOQCAFBLAQIUAxQAAAAIAAAAIQA7ifaLCAAAAAYAAACAAQAAAABjb3VudC5weVBLBQYAAAAAdC5weVBLBQYAAAAAAQABADYAAAAuAAAAAAA="
    )
    for wrong in (nameless, whole[5:], whole[:-9]):
        with pytest.raises(OptionError, match=r"expected a bundle|damaged file|stays in its directory"):
            BundleStore(tmp_path / "bundles").put(wrong)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as found, found.open("zeros", "w", force_zip64=True) as file:
        for _ in range(8 * 64 + 1):
            file.write(bytes(1 << 20))
    with pytest.raises(OptionError, match="unpacked"):
        BundleStore(tmp_path).put(made.getvalue())


def test_a_damaged_bundle_is_not_run(tmp_path: Path) -> None:
    store = BundleStore(tmp_path)
    digest = store.put(archive("a.py"))
    (tmp_path / f"{digest}.zip").write_bytes(archive("b.py"))
    with pytest.raises(SetupError, match="is damaged"):
        store.unpacked(digest)


def test_the_files_of_a_bundle_are_where_its_job_runs_and_follow_its_versions(tmp_path: Path) -> None:
    work, noted = tmp_path / "work", tmp_path / "laid_out.json"
    first, second = tmp_path / "first", tmp_path / "second"
    for bundle, files in ((first, ("data/a.csv", "data/b.csv", "flow.py")), (second, ("data/b.csv", "own.csv"))):
        for name in files:
            (bundle / name).parent.mkdir(parents=True, exist_ok=True)
            (bundle / name).write_text(bundle.name)
    work.mkdir()
    (work / "own.csv").write_text("the job's")

    def shown() -> dict[str, str]:
        return {str(f.relative_to(work)): f.read_text() for f in work.rglob("*") if f.is_file()}

    lay_out(first, work, noted)
    assert shown() == {"data/a.csv": "first", "data/b.csv": "first", "own.csv": "the job's"}
    (work / "data" / "a.csv").write_text("changed by the job")
    lay_out(first, work, noted)
    assert shown()["data/a.csv"] == "changed by the job"
    assert (first / "data" / "a.csv").read_text() == "first"
    lay_out(second, work, noted)
    assert shown() == {"data/b.csv": "second", "own.csv": "the job's"}
    noted.write_text('{"bundle": "", "files": ["data/b.csv"]}')  # a driver that ended half way
    lay_out(first, work, noted)
    assert shown() == {"data/a.csv": "first", "data/b.csv": "first", "own.csv": "the job's"}


def test_what_could_not_be_unpacked_is_refused_when_it_is_sent(tmp_path: Path) -> None:
    store, whole = BundleStore(tmp_path), bytearray(archive("a.py", "b.py"))
    at = whole.index(b"a.py") + len(b"a.py")
    whole[at] ^= 1
    with pytest.raises(OptionError, match="damaged file"):
        store.put(bytes(whole))
    with pytest.raises(OptionError, match="'a' is a file and a directory"):
        store.put(archive("a", "a/b.py"))
    with pytest.raises(OptionError, match="each file once"):
        store.put(archive("a/b.py", "a/./b.py"))
    with pytest.raises(OptionError, match="at most 255 bytes"):
        store.put(archive("ü" * 128))
    assert not list(tmp_path.iterdir())


def test_bundles_that_no_job_has_go_after_a_day_and_those_asked_for_stay(tmp_path: Path) -> None:
    store, now = BundleStore(tmp_path / "bundles"), time.time()
    made = []
    for n in range(4):
        (tmp_path / "a.py").write_text(f"x = {n}")
        made.append(store.put(pack([("a.py", tmp_path / "a.py")])))
        store.unpacked(made[-1])
    used, old, asked, sent = made
    for digest in made:
        os.utime(store.path / f"{digest}.zip", (now - UNUSED - 1, now - UNUSED - 1))
    assert store.has(asked)
    (tmp_path / "a.py").write_text("x = 3")
    assert store.put(pack([("a.py", tmp_path / "a.py")])) == sent
    store.sweep({used}, now)
    assert [store.has(digest) for digest in made] == [True, False, True, True]
    assert not (store.path / old).exists()
    assert (store.path / used).exists()
    assert not store.has(f"../bundles/{used}")


def test_a_disk_that_is_nearly_full_takes_no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BundleStore(tmp_path / "bundles")
    (tmp_path / "a.py").write_text("x = 1")
    archive = pack([("a.py", tmp_path / "a.py")])
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=ROOM))
    with pytest.raises(SetupError, match="make room"):
        store.put(archive)
    monkeypatch.undo()
    assert store.has(store.put(archive))
