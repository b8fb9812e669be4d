"""Objects as files of this machine, under a root.

A file is written under a name of its own, made durable, and then gets its final name by one system call: `rename` replaces,
`link` refuses a name that is taken. The directory is made durable after it.

Hadoop, with which Spark writes files of this machine, puts a checksum beside each, `.name.crc`, and refuses a file that it does not fit. Whoever
replaces or deletes a file here removes it.
"""

from __future__ import annotations

import builtins
import errno
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from penstock.storage.base import (
    Conflict,
    Data,
    Entry,
    NotFound,
    StorageError,
    Version,
    check_name,
    joined,
    parts_of,
    version_of,
)
from penstock.storage.swap import Swap, private, sync_directory

ABANDONED = 3600.0
"""After how many seconds a temporary file is taken to be of a process that died."""
_MANY = 16
"""Of so many files it is cheaper to list their directory than to try for a checksum beside each."""
TEMPORARY = ".tmp"
_SWAPS = ".swap"


@dataclass(frozen=True)
class LocalStorage:
    """Keeps objects as files under `root`, which is made when the first is written.

    Attributes:
        root: The directory.
        is_private: Whether files and directories are for their owner alone (0600, 0700); if not, the umask decides.

    >>> import tempfile
    >>> kept = LocalStorage(Path(tempfile.mkdtemp()))
    >>> kept.put_if_absent("ledger", b"1"), kept.put_if_absent("ledger", b"2")
    (True, False)
    >>> content, version = kept.read_versioned("ledger")
    >>> _ = kept.compare_and_swap("ledger", version, b"2")
    >>> kept.read("ledger")
    b'2'
    """

    root: Path
    is_private: bool = True

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                file.seek(begin)
                return file.read(-1 if length is None else length)
        except OSError as error:
            raise _said(error, name, path) from None

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        path = self._path(name)
        try:
            return _file_size(path)
        except OSError as error:
            raise _said(error, name, path) from None

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole."""
        temporary = self._written(name, data)
        try:
            self._named(name, temporary, temporary.replace)
        finally:
            temporary.unlink(missing_ok=True)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name.

        It is durable on return also when another has written it: that one may not have come to that yet.
        """
        path = self._path(name)
        if path.exists():
            return self._taken(name, path)
        temporary = self._written(name, data)
        try:
            self._named(name, temporary, lambda path: os.link(temporary, path))
        except FileExistsError:
            return self._taken(name, path)
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def link(self, path: Path, name: str) -> bool:
        """Gives a file of this machine a second name here, unless an object has that; returns whether an object is there now.

        Nothing is copied. The file must be one that is replaced and never changed. False where the file system has no such names.

        Raises:
            NotFound: The file is gone.
        """
        try:
            self._named(name, path, lambda new: os.link(path, new))
        except FileExistsError:
            self._taken(name, self._path(name))
        except NotFound:
            raise
        except StorageError:
            if not path.exists():
                raise NotFound(f"there is no file {path}") from None
            return False
        return True

    def _taken(self, name: str, path: Path) -> bool:
        if path.is_dir():
            raise StorageError(f"{name!r} cannot be an object: others have it as a part of their names ({path})")
        sync_directory(path.parent)
        return False

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        content = self.read(name)
        return content, version_of(content)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one."""
        path, content = self._path(name), joined(data)
        if expected is None:
            if not self.put_if_absent(name, content):
                raise Conflict(f"{name!r} was written by another ({path})")
            return version_of(content)
        swap = Swap(path, self.root / _SWAPS, name, is_private=self.is_private)
        try:
            self._make(swap.claims)
            swapped = swap.replace(expected, content)
        except OSError as error:
            raise _said(error, name, path) from None
        if not swapped:
            raise Conflict(f"{name!r} was changed by another writer ({path})")
        return version_of(content)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        above = prefix.rpartition("/")[0]
        return iter(sorted(self._under(check_name(above) if above else "", prefix), key=attrgetter("name")))

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order; of directories those that are not empty."""
        directory = self.root / check_name(prefix.removesuffix("/")) if prefix else self.root
        return sorted(each.name for each in _visible(directory) if not each.is_dir() or _holds_files(Path(each)))

    def delete(self, *names: str) -> None:
        """Deletes objects, and directories that are empty then."""
        by_directory = defaultdict[str, builtins.list[str]](list)
        for name in map(check_name, names):
            directory, _, last = f"{self.root}/{name}".rpartition("/")
            by_directory[directory].append(last)
        for directory, mine in by_directory.items():
            for each in (*_checksums(directory, mine), *mine):
                with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                    os.unlink(f"{directory}/{each}")  # noqa: PTH108 - thousands of them in a batch: half the time of a Path
            self._tidy(Path(directory))

    def local_path(self, name: str) -> Path | None:
        """The file that holds an object; None when there is no such object."""
        path = self._path(name)
        return path if path.is_file() else None

    def _path(self, name: str) -> Path:
        return self.root / check_name(name)

    def _written(self, name: str, data: Data) -> Path:
        """A temporary file with a content, made durable."""
        check_name(name)
        directory = self.root / TEMPORARY
        self._prepare(directory)
        path = directory / uuid.uuid4().hex
        with private(path, is_private=self.is_private) as file:
            for part in parts_of(data):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        return path

    def _prepare(self, directory: Path) -> None:
        """Makes the directory of temporary files, and removes what processes that died have left there."""
        self._make(directory)
        limit = time.time() - ABANDONED
        for found in directory.iterdir():
            with suppress(FileNotFoundError):
                if found.lstat().st_mtime < limit:
                    found.unlink()

    def _named(self, name: str, temporary: Path, give: Callable[[Path], object]) -> None:
        """Gives a temporary file its final name, durably."""
        path = self._path(name)
        for _ in range(100):
            try:
                self._make(path.parent)
                _checksum_of(path).unlink(missing_ok=True)
                give(path)
                sync_directory(path.parent)
                return
            except FileNotFoundError:
                # Whoever deleted the last object beside it has removed the directory since.
                if not temporary.exists():
                    raise StorageError(f"{name!r} was not written: {temporary} was removed") from None
            except FileExistsError:
                raise
            except OSError as error:
                raise _said(error, name, path) from None
        raise StorageError(f"{name!r} could not be written: {path.parent} is removed again and again")

    def _make(self, directory: Path) -> None:
        """Makes a directory and those above it, durably."""
        if directory.is_dir():
            return
        if directory != directory.parent:
            self._make(directory.parent)
        try:
            directory.mkdir(mode=0o700 if self.is_private else 0o777, exist_ok=True)
        except FileExistsError:
            raise StorageError(f"{directory} cannot be a directory: an object of that name is there") from None
        sync_directory(directory.parent)

    def _under(self, directory: str, prefix: str = "") -> Iterator[Entry]:
        """The objects in a directory; nothing is looked at whose name does not begin with the prefix."""
        for each in _visible(self.root / directory):
            name = f"{directory}/{each.name}" if directory else each.name
            if not name.startswith(prefix):
                continue
            if each.is_dir():
                yield from self._under(name)
            else:
                with suppress(FileNotFoundError):
                    yield Entry(name, each.stat().st_size)

    def _tidy(self, directory: Path) -> None:
        """Makes deletions durable, and removes directories that are empty."""
        while directory != self.root:
            try:
                directory.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                break
            directory = directory.parent
        with suppress(FileNotFoundError, NotADirectoryError):
            sync_directory(directory)


def _visible(directory: Path) -> Iterator[os.DirEntry[str]]:
    """What stands in a directory, but for temporary files."""
    try:
        with os.scandir(directory) as scanned:
            found = [each for each in scanned if not each.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from found


def _holds_files(directory: Path) -> bool:
    """Whether there is a file below a directory; looks no further than the first."""
    try:
        with os.scandir(directory) as scanned:
            visible = (each for each in scanned if not each.name.startswith("."))
            return any(not each.is_dir() or _holds_files(Path(each)) for each in visible)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _checksums(directory: str, names: list[str]) -> list[str]:
    """What may be the checksums of some files of a directory; of many, those that are there."""
    beside = [f".{name}.crc" for name in names]
    if len(beside) < _MANY:
        return beside
    try:
        there = set(os.listdir(directory))  # noqa: PTH208 - names, not paths
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [name for name in beside if name in there]


def _checksum_of(path: Path) -> Path:
    """Where Hadoop keeps the checksum of a file."""
    return path.with_name(f".{path.name}.crc")


def _file_size(path: Path) -> int:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.stat().st_size


def _said(error: OSError, name: str, path: Path) -> StorageError:
    """An error of the file system in words of the storage.

    The error says which file it missed: to look for the object again would find one that another has written since.
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError) and _is_of(error, path):
        if path.is_dir():
            return NotFound(f"there is no object {name!r}, only others under that name ({path})")
        return NotFound(f"there is no object {name!r} ({path})")
    return StorageError(f"{name!r} cannot be read or written: {error.strerror or error} ({path})")


def _is_of(error: OSError, path: Path) -> bool:
    """Whether an error is about a file, and not about another one that its writing needs."""
    return any(about is not None and os.fspath(about) == str(path) for about in (error.filename, error.filename2))
