"""Bundles are named by what is in them, and what is hostile in one is refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.bundle import LARGEST, MOST_FILES, BundleStore, pack


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
