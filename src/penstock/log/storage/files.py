"""The system calls of the log, in one directory.

Everything that changes the disk goes through here, so that a hook can watch the calls in order, and a
crash test can kill the process between any two of them (`PENSTOCK_LOG_CRASH_AT=n` kills at call n; a write is
then cut in half, which is what a torn write looks like).
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from penstock.log.errors import LogError

Bytes = bytes | bytearray | memoryview


class Call(NamedTuple):
    """One system call that is about to happen."""

    op: str
    path: str
    offset: int = 0
    data: bytes = b""
    target: str = ""
    fd: int = -1


Hook = Callable[[Call], None]
_hook: Hook | None = None


def watch(hook: Hook | None) -> None:
    """Call `hook` before every system call that changes the disk; None stops it."""
    global _hook
    _hook = hook


def crash_at(number: int) -> Hook:
    """A hook that kills the process with SIGKILL at the given call; a write goes half way first."""
    left = number

    def hook(call: Call) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            if call.op == "write":
                os.pwrite(call.fd, call.data[: len(call.data) // 2], call.offset)
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


if _number := os.environ.get("PENSTOCK_LOG_CRASH_AT"):
    watch(crash_at(int(_number)))


class File:
    """An open file, read and written at positions."""

    __slots__ = ("fd", "path")

    def __init__(self, path: Path, *, write: bool = False, create: bool = False, truncate: bool = False) -> None:
        flags = os.O_CLOEXEC | (os.O_RDWR if write else os.O_RDONLY)
        flags |= (os.O_CREAT if create else 0) | (os.O_TRUNC if truncate else 0)
        self.path = path
        self.fd = -1
        if _hook and (create or truncate):
            _hook(Call("create", str(path)))
        self.fd = os.open(path, flags, 0o600)

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer at the end of the file."""
        parts = []
        while size > 0 and (part := os.pread(self.fd, size, position)):
            parts.append(part)
            size -= len(part)
            position += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, parts: Sequence[Bytes], position: int) -> int:
        """Write the parts one after the other from `position`; the position after them."""
        if _hook:
            _hook(Call("write", str(self.path), position, b"".join(parts), fd=self.fd))
        views = [memoryview(p).cast("B") for p in parts if len(p)]
        while views:
            done = os.pwritev(self.fd, views[:1000], position)
            position += done
            while views and done >= len(views[0]):
                done -= len(views.pop(0))
            if done:
                views[0] = views[0][done:]
        return position

    def sync(self) -> None:
        """Wait until data and size are on disk."""
        if _hook:
            _hook(Call("sync", str(self.path), fd=self.fd))
        os.fdatasync(self.fd)

    def truncate(self, size: int) -> None:
        """Cut the file to `size`."""
        if _hook:
            _hook(Call("truncate", str(self.path), size, fd=self.fd))
        os.ftruncate(self.fd, size)

    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self.fd).st_size

    def gone(self) -> bool:
        """Whether the file has been deleted since it was opened."""
        return os.fstat(self.fd).st_nlink == 0

    def close(self) -> None:
        """Close the file; again does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def sync_dir(path: Path) -> None:
    """Make the names in a directory durable: needed after a create, rename or unlink."""
    if _hook:
        _hook(Call("sync_dir", str(path)))
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_dir(path: Path) -> None:
    """Make a directory, and its name durable; one that is there is left alone."""
    if path.is_dir():
        return
    if not path.parent.is_dir():
        make_dir(path.parent)
    if _hook:
        _hook(Call("mkdir", str(path)))
    path.mkdir(mode=0o700, exist_ok=True)
    sync_dir(path.parent)


def rename(source: Path, target: Path) -> None:
    """Rename, replacing the target, and make the new name durable."""
    if _hook:
        _hook(Call("rename", str(source), target=str(target)))
    source.rename(target)
    sync_dir(target.parent)


def unlink(path: Path) -> None:
    """Delete a file if it is there; the caller syncs the directory."""
    if _hook:
        _hook(Call("unlink", str(path)))
    path.unlink(missing_ok=True)


def write_json(path: Path, data: object) -> None:
    """Replace a JSON file in one step, with a checksum; durable on return. The caller holds the lock that guards it."""
    text = json.dumps(data, sort_keys=True)
    whole = json.dumps({"checksum": zlib.crc32(text.encode()), "data": data}, sort_keys=True, indent=1) + "\n"
    beside = path.with_name(path.name + ".tmp")
    with File(beside, write=True, create=True, truncate=True) as file:
        file.write([whole.encode()], 0)
        file.sync()
    rename(beside, path)


def read_json(path: Path) -> Any:
    """The data of a file that `write_json` wrote; None when there is no such file; an error when it was changed."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        whole = json.loads(raw)
        text = json.dumps(whole["data"], sort_keys=True)
        if whole["checksum"] == zlib.crc32(text.encode()):
            return whole["data"]
    except (ValueError, KeyError, TypeError):
        pass
    raise LogError(f"{path} is damaged: its checksum does not fit its content; restore it from a copy")


class FileLock:
    """An exclusive lock between processes and threads, held through a file; the kernel frees it when the holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def acquire(self, *, wait: bool = True) -> bool:
        """Take the lock; False when `wait` is off and another holds it."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(fd)
            return False
        except BaseException:
            os.close(fd)
            raise
        if os.fstat(fd).st_nlink == 0:
            os.close(fd)
            raise FileNotFoundError(f"{self.path} was deleted while this process waited for it")
        self._fd = fd
        return True

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd >= 0

    def release(self) -> None:
        """Give the lock back; again does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()
