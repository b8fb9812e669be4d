"""Which storage a URL names: a directory of this machine, a part of an object store, a directory of HDFS.

A scheme has one home, and the library of that home is imported when it is asked for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from penstock.storage.base import Storage, StorageError, check_name
from penstock.storage.local import LocalStorage
from penstock.storage.memory import MemoryStorage
from penstock.storage.scoped import ScopedStorage

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_memories: dict[str, MemoryStorage] = {}
_lock = threading.Lock()


def is_url(address: str) -> bool:
    """Whether an address begins with a scheme, as `s3://` is; any other is a path.

    >>> is_url("s3://bucket/flow"), is_url("/var/flow"), is_url("C:/flow")
    (True, False, False)
    """
    return _SCHEME.match(address) is not None


def storage_at(url: str) -> Storage:
    """The storage of what is under a URL. Nothing is read or written before it is used.

    Args:
        url: A path, or `file:///directory`, or `memory://name/prefix`, which lasts as long as the process.

    Returns:
        A storage; names are relative to the URL.

    Raises:
        StorageError: The scheme is unknown, or the URL is malformed.

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


_OPENERS: dict[str, Callable[[SplitResult], Storage]] = {"file": _local, "memory": _memory}
