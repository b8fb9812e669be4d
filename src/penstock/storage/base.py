"""What is asked of a storage, and the names of what it keeps.

An object is a name and bytes. It is there as a whole or not at all, and what a call has written is durable when the call
returns. A name is a path of parts with `/` between them; it is either written (`write`, `put_if_absent`, `delete`) or swapped
(`compare_and_swap`), never both at the same time.
"""

from __future__ import annotations

import builtins
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NewType, Protocol
from urllib.parse import quote

from penstock.errors import RunError

Bytes = bytes | bytearray | memoryview
Data = Bytes | Iterable[Bytes]
"""The content of an object: bytes, or parts of them one after the other."""

Version = NewType("Version", str)
"""Identifies the content of an object. Equal contents may have equal versions, as with the entity tags of object stores, so whoever
must notice a content that was changed and changed back keeps a counter in it."""

LONGEST = 200
"""The most bytes of UTF-8 in a part of a name: file systems allow 255, and temporary names need some."""


class StorageError(RunError):
    """A storage cannot do what it was asked; the message names the object.

    >>> from penstock.storage import Conflict, NotFound, StorageError
    >>> [issubclass(kind, StorageError) for kind in (NotFound, Conflict)]
    [True, True]
    """


class NotFound(StorageError):
    """There is no object of this name.

    >>> from penstock.storage import MemoryStorage
    >>> MemoryStorage().read("a")
    Traceback (most recent call last):
    penstock.storage.base.NotFound: there is no object 'a'
    """


class Conflict(StorageError):
    """An object was not what the caller expected: another has written it since.

    >>> from penstock.storage import MemoryStorage
    >>> kept = MemoryStorage()
    >>> version = kept.compare_and_swap("a", None, b"1")
    >>> kept.compare_and_swap("a", None, b"2")
    Traceback (most recent call last):
    penstock.storage.base.Conflict: 'a' was changed by another writer
    """


@dataclass(frozen=True, order=True)
class Entry:
    """An object in a listing.

    Attributes:
        name: its name.
        size: how many bytes it has.

    >>> from penstock.storage import MemoryStorage
    >>> kept = MemoryStorage()
    >>> kept.write("a/b", b"hello")
    >>> list(kept.list("a/"))
    [Entry(name='a/b', size=5)]
    """

    name: str
    size: int


class Storage(Protocol):
    """Bytes under names. Safe to use from many threads, processes and, where the storage is shared, machines.

    An object is there as a whole or not at all, and what a call has written is durable when the call returns.

    >>> from penstock.storage import MemoryStorage, Storage
    >>> kept: Storage = MemoryStorage()
    >>> kept.put_if_absent("a/b", b"1"), kept.put_if_absent("a/b", b"2"), kept.read("a/b")
    (True, False, b'1')
    """

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """Reads an object, or a range of it.

        Args:
            name: the object.
            begin: the first byte that is read.
            length: at most how many bytes are read; None is all that follow.

        Returns:
            The bytes; fewer than `length` at the end of the object.

        Raises:
            NotFound: there is no such object.
        """

    def size(self, name: str) -> int:
        """How many bytes an object has.

        Args:
            name: the object.

        Returns:
            The number of bytes.

        Raises:
            NotFound: there is no such object.
        """

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole; one that is there is replaced: readers see the old content or the new, never a mixture.

        Args:
            name: the object.
            data: its content.
        """

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name.

        Args:
            name: the object.
            data: its content.

        Returns:
            Whether it was written; of many callers one gets True.
        """

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """Reads an object that is swapped.

        Args:
            name: the object.

        Returns:
            Its content and the version of that, for `compare_and_swap`.

        Raises:
            NotFound: there is no such object.
        """

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one.

        The check and the replacement are one step, also for a caller that is paused between them and goes on after others have
        replaced the object: it gets a `Conflict`.

        Args:
            name: the object.
            expected: the version of the content that is replaced; None expects that there is no object.
            data: the new content.

        Returns:
            The version of the new content.

        Raises:
            Conflict: the object is not what was expected.
        """

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Lists objects.

        Args:
            prefix: what their names begin with.

        Returns:
            The objects in order of their names.
        """

    def children(self, prefix: str = "") -> builtins.list[str]:
        """Lists the parts that follow a prefix in the names of objects.

        It costs what it returns, not what is under it. Object stores that keep directories may go on naming a part for a while after the last
        object under it was deleted.

        Args:
            prefix: empty, or ends in `/`.

        Returns:
            The parts in order.
        """

    def delete(self, *names: str) -> None:
        """Deletes objects; those that are not there are left out.

        Args:
            names: the objects.
        """

    def local_path(self, name: str) -> Path | None:
        """The file of this machine that holds an object, for memory-mapping.

        Args:
            name: the object.

        Returns:
            Its path; None where there is no such file.
        """


_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of characters."""


def read_if_present(storage: Storage, name: str) -> tuple[bytes, Version] | None:
    """An object and its version, or None when there is none: what `compare_and_swap` starts from."""
    try:
        return storage.read_versioned(name)
    except NotFound:
        return None


def object_name(*parts: str) -> str:
    """A name made of texts that users have chosen: no two lists of texts give the same one, whatever they hold.

    >>> object_name("sinks", "a/b", "..")
    'sinks/a%2Fb/%2E.'
    """
    return "/".join(map(_safe_part, parts))


def _safe_part(text: str) -> str:
    safe = quote(text, safe=" ", errors="surrogatepass")
    safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe or "%"
    if len(safe) <= LONGEST:
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{safe[: LONGEST - 66]}%-{digest}"


def check_name(name: str) -> str:
    """Returns a name that can be kept, and refuses any other: it must not lead elsewhere, nor clash with temporary names."""
    for part in name.split("/"):
        if problem := _problem(part):
            raise StorageError(f"{name!r} is not a name of an object: {problem}")
    return name


def _problem(part: str) -> str:
    if not part:
        return "a part of it is empty"
    if part.startswith("."):
        return f"the part {part!r} begins with a dot"
    if _UNFIT.search(part):
        return f"the part {part!r} holds a control character or half of a character"
    if len(part.encode()) > LONGEST:
        return f"the part {part[:40]!r}... has more than {LONGEST} bytes"
    return ""


def joined(data: Data) -> bytes:
    """All parts of a content as one."""
    return bytes(data) if isinstance(data, Bytes) else b"".join(data)


def parts_of(data: Data) -> Iterable[Bytes]:
    """A content as its parts."""
    return (data,) if isinstance(data, Bytes) else data


def version_of(content: bytes) -> Version:
    """The version of a content."""
    return Version(hashlib.sha256(content).hexdigest())
