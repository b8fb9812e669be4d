"""Which storage a URL names: a directory of this machine, a part of an object store, a directory of HDFS.

A scheme has one home, and the library of that home is imported when it is asked for.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from penstock.errors import SetupError
from penstock.storage.base import Storage, StorageError, check_name
from penstock.storage.local import LocalStorage
from penstock.storage.memory import MemoryStorage
from penstock.storage.scoped import ScopedStorage

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_memories: dict[str, MemoryStorage] = {}
_lock = threading.Lock()


def storage_at(url: str) -> Storage:
    """The storage of what is under a URL. Nothing is read or written before it is used.

    Args:
        url: A path, or `file:///directory`; `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or
            `abfs://container@account.dfs.core.windows.net/prefix`; `hdfs://host:port/path`; or `memory://name/prefix`, which lasts as long as the process.

    Returns:
        A storage; names are relative to the URL.

    Raises:
        StorageError: The scheme is unknown, or the URL is malformed.
        SetupError: The library that the scheme needs is not installed.

    >>> from penstock.storage import storage_at
    >>> storage_at("file:///tmp/flow")
    LocalStorage(root=PosixPath('/tmp/flow'), is_private=True)
    >>> storage_at("memory://tests/flow").write("a", b"1")
    >>> storage_at("memory://tests").read("flow/a")
    b'1'
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        return LocalStorage(Path(url))
    opener = _OPENERS.get(scheme[1].lower())
    if opener is None:
        raise StorageError(f"expected a path or a URL that begins with {_schemes()}, got {url!r}")
    return opener(_parsed(url))


def _schemes() -> str:
    return ", ".join(f"{each}://" for each in sorted(_OPENERS))


def _parsed(url: str) -> SplitResult:
    parsed = urlsplit(url)
    if parsed.query or parsed.fragment or "?" in url or "#" in url:
        raise StorageError(f"expected a URL without '?' and '#' (write them as %3F and %23), got {url!r}")
    return parsed


def _local(url: SplitResult) -> Storage:
    if url.netloc not in ("", "localhost"):
        raise StorageError(f"expected file:///path, got {url.geturl()!r}: {url.netloc!r} stands where a host does")
    return LocalStorage(Path(unquote(url.path) or "/"))


def _memory(url: SplitResult) -> Storage:
    with _lock:
        storage = _memories.setdefault(url.netloc, MemoryStorage())
    return _scoped(storage, url)


def _scoped(storage: Storage, url: SplitResult) -> Storage:
    """The part of a storage that the path of a URL names."""
    prefix = unquote(url.path).strip("/")
    return ScopedStorage(storage, check_name(prefix)) if prefix else storage


def _objects(url: SplitResult) -> Storage:
    """A part of a bucket. `s3a` and `s3n` are how Hadoop calls S3."""
    if not url.netloc or (url.scheme in _S3 and "@" in url.netloc):
        raise StorageError(f"expected {url.scheme}://bucket/prefix, got {_without_password(url)!r}")
    try:
        from penstock.storage.object_store import ObjectStore
    except ModuleNotFoundError as error:
        raise _missing(url, error, _EXTRAS[url.scheme]) from None
    if url.scheme not in _S3:
        return _scoped(ObjectStore(f"{url.scheme}://{url.netloc}"), url)
    return _scoped(ObjectStore(f"s3://{url.netloc}", _s3_settings()), url)


def _s3_settings() -> tuple[tuple[str, str], ...]:
    """What of the environment says where a store is: it travels to workers. Keys do not."""
    found = ((name, os.environ.get(variable)) for variable, name in _TRAVELLING.items())
    return tuple((name, value) for name, value in found if value)


def _without_password(url: SplitResult) -> str:
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()


def _missing(url: SplitResult, error: ModuleNotFoundError, extra: str) -> SetupError:
    return SetupError(f"{url.scheme}:// needs the package {error.name}: pip install 'penstock[{extra}]'")


def _hdfs(url: SplitResult) -> Storage:
    if not url.netloc or "@" in url.netloc:
        raise StorageError(f"expected hdfs://host:port/path, got {_without_password(url)!r}")
    root = unquote(url.path).strip("/")
    if root:
        check_name(root)
    try:
        from penstock.storage.hdfs import HdfsStorage
    except ModuleNotFoundError as error:
        raise _missing(url, error, "hdfs") from None
    return HdfsStorage(f"hdfs://{url.netloc}", f"/{root}")


_TRAVELLING = {"AWS_ENDPOINT_URL": "endpoint", "AWS_REGION": "region", "AWS_SKIP_SIGNATURE": "skip_signature"}
_S3 = ("s3", "s3a", "s3n")
_EXTRAS = {**dict.fromkeys(_S3, "s3"), "gs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
_OPENERS: dict[str, Callable[[SplitResult], Storage]] = {
    "file": _local,
    "memory": _memory,
    "hdfs": _hdfs,
    **dict.fromkeys(_EXTRAS, _objects),
}
