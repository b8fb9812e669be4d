"""Which storage a URL names."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import SetupError
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


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///prefix", "s3://key:geheim@bucket/a", "hdfs:///a", "hdfs://u:geheim@h/a", "s3://b/../c"]
)
def test_a_url_without_a_bucket_or_with_a_password_is_refused(url: str) -> None:
    with pytest.raises(StorageError) as raised:
        storage_at(url)
    assert "geheim" not in str(raised.value)


def test_where_a_store_is_travels_and_keys_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "geheim-4711")
    for scheme in ("s3", "s3a"):
        sent = pickle.dumps(storage_at(f"{scheme}://bucket/prefix"))
        assert b"http://127.0.0.1:1" in sent
        assert b"4711" not in sent


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for module, name in (("object_store", "obstore"), ("hdfs", "hdfs_native")):
        monkeypatch.delitem(sys.modules, f"penstock.storage.{module}", raising=False)
        monkeypatch.setitem(sys.modules, name, None)
    for url, extra in (
        ("s3://b/p", "s3"),
        ("gs://b/p", "gcs"),
        ("abfs://c@a.dfs.core.windows.net/p", "azure"),
        ("hdfs://h/p", "hdfs"),
    ):
        with pytest.raises(SetupError, match=rf"pip install 'penstock\[{extra}\]'"):
            storage_at(url)


def test_libraries_are_imported_when_a_url_asks_for_them() -> None:
    import subprocess
    import sys

    code = "import sys, penstock.storage as s; s.storage_at('/tmp/x'); print([m for m in ('obstore', 'hdfs_native') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
