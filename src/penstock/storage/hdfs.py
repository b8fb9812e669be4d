"""Objects as files of HDFS, under a root.

A file is written under a temporary name, made durable on the DataNodes, and then gets its name by one call to the NameNode, which replaces or refuses a name that is taken.

To swap, a writer makes a claim, removes the claims of all others, checks the content, and renames its claim over the object, which fails when the claim is gone:
`penstock.storage.swap` has the proof, which asks of the file system only that these calls are steps one after the other. The NameNode does them one after the other. Writers
that get into each other's way pause for longer and longer.

**The answer to a rename can be lost.** A temporary file that is gone afterwards was renamed: nobody else removes it within an hour. A claim that is gone was renamed if the object has
its content and the time at which it was written; else another has removed it.
"""

from __future__ import annotations

import builtins
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hdfs_native import Client, FileStatus, WriteOptions

from penstock.faults import passing
from penstock.storage.base import (
    Bytes,
    Conflict,
    Data,
    Entry,
    NotFound,
    StorageError,
    Version,
    check_name,
    joined,
    version_of,
)
from penstock.storage.patience import patiently, pauses
from penstock.storage.spool import SourceFailed, Spool, repeatable

T = TypeVar("T")

ABANDONED = 3600.0
"""After how many seconds a temporary file is taken to be of a process that died."""
PATIENCE = 60.0
"""How many seconds a call is repeated."""
_TEMPORARY = ".tmp"
_REFUSED = (
    *("AccessControlException", "QuotaExceeded", "InvalidPathException", "ParentNotDirectoryException"),
    *("must both be directories", "PathIsNotEmptyDirectory", "is a directory", "SafeModeException"),
)
"""What the NameNode says to a call that it would refuse again."""
_SETTINGS = {
    "dfs.client.failover.max.attempts": "3",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "1000",
}
"""Calls are repeated here, and not for minutes."""
_clients: dict[tuple[str, int], Client] = {}
_swept: dict[tuple[str, str], float] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class HdfsStorage:
    """Keeps objects as files of HDFS under `root`. What Hadoop's own files of settings say (`HADOOP_CONF_DIR`) holds here too.

    Attributes:
        address: The NameNode or the name service, as `hdfs://host:8020`.
        root: The directory, an absolute path.
        is_private: Whether files and directories are for their owner alone (0600, 0700); if not, others may read them.
    """

    address: str
    root: str
    is_private: bool = True

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        return self._ask(name, lambda: self._read(name, begin, length))

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        return self._status(name).length

    def modified(self, name: str) -> float:
        """When an object was written, in seconds since 1970 by the NameNode's clock."""
        return self._status(name).modification_time / 1000

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole."""
        self._place(name, data, overwrite=True)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name."""
        found = self._look(self._path(name))
        if found is not None and not found.isdir:
            return False
        return self._place(name, data, overwrite=False)

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        content = self.read(name)
        return content, version_of(content)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one."""
        content = joined(data)
        swapped = self.put_if_absent(name, content) if expected is None else self._swap(name, expected, content)
        if not swapped:
            raise Conflict(f"{name!r} was changed by another writer ({self.address}{self._path(name)})")
        return version_of(content)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        above = prefix.rpartition("/")[0]
        directory = self._path(above) if above else self.root
        found = self._ask(prefix, lambda: builtins.list(self._walk(directory)))
        cut = len(self.root.rstrip("/")) + 1
        named = (Entry(each.path[cut:], each.length) for each in found)
        return iter(sorted(entry for entry in named if entry.name.startswith(prefix)))

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order; of directories those that are not empty."""
        directory = self._path(prefix.removesuffix("/")) if prefix else self.root
        found = self._ask(prefix, lambda: builtins.list(self._in(directory)))
        return sorted(_last(e.path) for e in found if not e.isdir or next(iter(self._walk(e.path)), None) is not None)

    def delete(self, *names: str) -> None:
        """Deletes objects, and directories that are empty then."""
        paths = [self._path(name) for name in names]
        for name, path in zip(names, paths):
            found = self._look(path)
            if found is not None and not found.isdir:
                self._ask(name, lambda path=path: self._client.delete(path))  # type: ignore[misc]
        for directory in {path.rpartition("/")[0] for path in paths}:
            self._tidy(directory)

    def local_path(self, name: str) -> Path | None:
        """None: nothing here is a file of this machine."""
        check_name(name)
        return None

    @property
    def _client(self) -> Client:
        key = (self.address, os.getpid())
        with _lock:
            if key not in _clients:
                _clients[key] = Client(self.address, _SETTINGS)
            return _clients[key]

    @property
    def _mode(self) -> int:
        return 0o700 if self.is_private else 0o755

    def _path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{check_name(name)}"

    def _status(self, name: str) -> FileStatus:
        found = self._look(self._path(name))
        if found is None or found.isdir:
            raise self._said(FileNotFoundError(), name)
        return found

    def _look(self, path: str) -> FileStatus | None:
        """What is at a path; None when nothing is."""
        try:
            return self._ask(path, lambda: self._client.get_file_info(path))
        except NotFound:
            return None

    def _read(self, name: str, begin: int, length: int | None) -> bytes:
        reader = self._client.read(self._path(name))
        if length is None or begin + length > len(reader):
            self._check_length(name, len(reader))
        end = len(reader) if length is None else min(len(reader), begin + length)
        return reader.read_range(begin, end - begin) if begin < end else b""

    def _check_length(self, name: str, length: int) -> None:
        """A file whose last block the DataNodes have not reported yet seems to be shorter for a moment."""
        if self._client.get_file_info(self._path(name)).length != length:
            raise ConnectionError(f"{name!r} is not reported in full by the DataNodes")

    def _in(self, directory: str) -> Iterator[FileStatus]:
        """What stands in a directory, but for temporary files."""
        try:
            found = builtins.list(self._client.list_status(directory))
        except FileNotFoundError:
            return
        except RuntimeError as error:
            if "is not a directory" not in str(error):
                raise
            return
        yield from (each for each in found if each.path != directory and not _last(each.path).startswith("."))

    def _walk(self, directory: str) -> Iterator[FileStatus]:
        for each in self._in(directory):
            if each.isdir:
                yield from self._walk(each.path)
            else:
                yield each

    def _tidy(self, directory: str) -> None:
        """Removes a directory that is empty, and those above it."""
        while directory.startswith(f"{self.root.rstrip('/')}/"):
            try:
                found = self._look(directory)
                if found is not None and not found.isdir:
                    return
                self._ask(directory, lambda path=directory: self._client.delete(path, recursive=False))  # type: ignore[misc]
            except StorageError:
                return
            directory = directory.rpartition("/")[0]

    def _place(self, name: str, data: Data, *, overwrite: bool) -> bool:
        """Writes a temporary file and gives it its name; returns whether it got it."""
        path, temporary = self._path(name), f"{self.root.rstrip('/')}/{_TEMPORARY}/{uuid.uuid4().hex}"
        begun = time.monotonic()
        with repeatable(data) as content:
            self._ask(name, lambda: self._fill(temporary, content))
        self._sweep(temporary)
        try:
            return self._rename_temporary(name, temporary, path, overwrite, begun)
        finally:
            with suppress(StorageError):
                self._ask(name, lambda: self._client.delete(temporary))

    def _rename_temporary(self, name: str, temporary: str, path: str, overwrite: bool, begun: float) -> bool:
        for _ in pauses(PATIENCE):
            self._make(name, path.rpartition("/")[0])
            try:
                self._client.rename(temporary, path, overwrite)
                return True
            except FileExistsError as error:
                if overwrite:
                    raise self._said(error, name) from None
                return self._is_taken(name, path)
            except FileNotFoundError:
                # The temporary file or the directory is gone. The first was then renamed by a call whose answer was lost.
                if self._look(temporary) is None:
                    return self._renamed(name, begun)
            except Exception as error:
                if not is_passing(error):
                    raise self._said(error, name) from None
        raise StorageError(f"{name!r} was not written in {PATIENCE:g} s ({self.address}{path})")

    def _make(self, name: str, directory: str) -> None:
        try:
            self._ask(name, lambda: self._client.mkdirs(directory, self._mode, create_parent=True))
        except NotFound:
            raise StorageError(f"{directory} cannot be a directory: an object of that name is there") from None

    def _renamed(self, name: str, begun: float) -> bool:
        if time.monotonic() - begun > ABANDONED / 2:
            raise StorageError(f"{name!r} was not written: its temporary file was removed ({self.address}{self.root})")
        return True

    def _is_taken(self, name: str, path: str) -> bool:
        found = self._look(path)
        if found is not None and found.isdir:
            raise StorageError(f"{name!r} cannot be an object: others have it as a part of their names ({path})")
        return False

    def _fill(self, path: str, content: Bytes | Spool) -> None:
        """Writes a file and has the DataNodes keep it durably."""
        with suppress(FileNotFoundError):
            self._client.delete(path)  # of an attempt that failed
        options = WriteOptions(permission=self._mode & 0o666, overwrite=True, create_parent=True)
        with closing(self._client.create(path, options)) as writer:
            for part in content.parts() if isinstance(content, Spool) else (content,):
                if len(part):
                    writer.write(part)
            writer.hsync()

    def _sweep(self, temporary: str) -> None:
        """Removes, now and then, temporary files of processes that died. Times are those of the NameNode."""
        key, directory = (self.address, self.root), temporary.rpartition("/")[0]
        with _lock:
            if time.monotonic() - _swept.get(key, -ABANDONED) < ABANDONED / 4:
                return
            _swept[key] = time.monotonic()
        found = self._ask(_TEMPORARY, lambda: builtins.list(self._client.list_status(directory)))
        now = max((each.modification_time for each in found), default=0)
        for each in found:
            if each.modification_time < now - ABANDONED * 1000:
                self._ask(_TEMPORARY, lambda path=each.path: self._client.delete(path))  # type: ignore[misc]

    def _swap(self, name: str, expected: Version, content: bytes) -> bool:
        """Replaces an object if it has the expected content; returns whether it had."""
        path = self._path(name)
        claims = f"{path.rpartition('/')[0]}/.{_last(path)}.swap"
        with _turn(self.address + path):
            try:
                for _ in pauses(PATIENCE):
                    if not self._has(name, expected):
                        return False
                    swapped = self._attempt(name, f"{claims}/{uuid.uuid4().hex}", expected, content)
                    if swapped is not None:
                        return swapped
            finally:
                self._tidy(claims)
        raise StorageError(f"{name!r} was not swapped in {PATIENCE:g} s: others swap it all the time ({path})")

    def _attempt(self, name: str, claim: str, expected: Version, content: bytes) -> bool | None:
        """Swaps once; None when another has removed the claim meanwhile."""
        try:
            written = self._claim(name, claim, content)
            passing("swap claimed", 0)
            self._remove_others(name, claim)
            passing("swap alone", 0)
            if written is None or not self._has(name, expected):
                return None if written is None else False
            passing("swap checked", 0)
            swapped = self._rename_claim(name, claim, written, content)
            passing("swap renamed", 0)
            return swapped
        finally:
            with suppress(StorageError):
                self._ask(name, lambda: self._client.delete(claim))

    def _claim(self, name: str, claim: str, content: bytes) -> FileStatus | None:
        """Makes a claim; None when another has removed it already."""
        try:
            self._ask(name, lambda: self._fill(claim, content))
        except NotFound:
            return None
        return self._look(claim)

    def _rename_claim(self, name: str, claim: str, written: FileStatus, content: bytes) -> bool | None:
        path = self._path(name)
        for _ in pauses(PATIENCE):
            try:
                self._client.rename(claim, path, overwrite=True)
                return True
            except FileNotFoundError:
                return self._is_mine(name, written, content)
            except Exception as error:
                if not is_passing(error):
                    raise self._said(error, name) from None
        raise StorageError(f"{name!r} was not swapped in {PATIENCE:g} s ({self.address}{path})")

    def _is_mine(self, name: str, written: FileStatus, content: bytes) -> bool | None:
        found = self._look(self._path(name))
        same = found is not None and found.modification_time == written.modification_time
        return True if same and self.read(name) == content else None

    def _has(self, name: str, expected: Version) -> bool:
        try:
            return self.read_versioned(name)[1] == expected
        except NotFound:
            return False

    def _remove_others(self, name: str, claim: str) -> None:
        directory = claim.rpartition("/")[0]
        try:
            found = self._ask(name, lambda: builtins.list(self._client.list_status(directory)))
        except NotFound:
            return
        for other in found:
            if other.path != claim:
                self._ask(name, lambda path=other.path: self._client.delete(path))  # type: ignore[misc]

    def _ask(self, name: str, call: Callable[[], T]) -> T:
        try:
            return patiently(call, is_passing, PATIENCE)
        except (StorageError, SourceFailed):
            raise
        except Exception as error:
            raise self._said(error, name) from None

    def _said(self, error: Exception, name: str) -> StorageError:
        """An error of HDFS in words of the storage."""
        if isinstance(error, FileNotFoundError) or "(is not a directory)" in str(error):
            return NotFound(f"there is no object {name!r} ({self.address}{self.root})")
        reason = str(error).partition("\\n\\tat ")[0].partition("\n\tat ")[0]
        return StorageError(f"{name!r} cannot be read or written: {reason[:500]} ({self.address}{self.root})")


_turns: dict[str, threading.Lock] = {}


def _turn(path: str) -> threading.Lock:
    """Has the threads of this process swap an object one after the other: a courtesy, others do not know of it."""
    with _lock:
        return _turns.setdefault(path, threading.Lock())


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def is_passing(error: Exception) -> bool:
    """Whether an error may go away: no connection, no answer, a NameNode that is not the active one; not a refusal."""
    if isinstance(error, FileNotFoundError | FileExistsError | PermissionError | StorageError | SourceFailed):
        return False
    return isinstance(error, OSError | RuntimeError) and not any(each in str(error) for each in _REFUSED)
