"""Which storage a URL names."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.storage import LocalStorage, NotFound, StorageError, is_url, storage_at


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}", "FILE://{}"])
def test_a_path_and_a_file_url_are_the_same_directory(form: str, tmp_path: Path) -> None:
    LocalStorage(tmp_path / "a b").write("name", b"1")
    assert storage_at(form.format(tmp_path / "a b")).read("name") == b"1"


def test_escapes_of_a_file_url_are_characters(tmp_path: Path) -> None:
    storage_at(f"file://{tmp_path}/a%20b%3F").write("name", b"1")
    assert (tmp_path / "a b?" / "name").read_bytes() == b"1"


def test_a_path_that_holds_a_question_mark_is_a_path(tmp_path: Path) -> None:
    storage_at(f"{tmp_path}/a?b#c").write("name", b"1")
    assert (tmp_path / "a?b#c" / "name").read_bytes() == b"1"


def test_memory_is_shared_by_name() -> None:
    storage_at("memory://one/flow").write("a", b"1")
    assert storage_at("memory://one").read("flow/a") == b"1"
    assert storage_at("memory://one/flow/").read("a") == b"1"
    with pytest.raises(NotFound):
        storage_at("memory://other/flow").read("a")


@pytest.mark.parametrize("url", ["ftp://host/path", "S4://bucket", "http://host/"])
def test_an_unknown_scheme_is_refused(url: str) -> None:
    with pytest.raises(StorageError, match=r"expected a path or a URL that begins with .*file://.*, got '"):
        storage_at(url)


@pytest.mark.parametrize(
    "url", ["file://host/path", "file://relative", "memory://a/b?c=d", "memory://a/../b", "memory://a#b"]
)
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(StorageError):
        storage_at(url)


def test_what_is_a_url() -> None:
    assert [is_url(each) for each in ("s3://b", "a://", "/a://b", "./s3:/b", "s3:b")] == [
        True,
        True,
        False,
        False,
        False,
    ]
