"""Directories and files that other users of the machine cannot read: 0700 and 0600, whatever the umask says."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

DIRECTORY, FILE = 0o700, 0o600


def make_private(directory: Path) -> Path:
    """Makes a directory and those above it that are missing, for this user alone; one that is there is left as it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     oct(make_private(Path(there) / "a" / "b").stat().st_mode & 0o777)
    '0o700'
    """
    for missing in reversed([d for d in (directory, *directory.parents) if not d.exists()]):
        missing.mkdir(mode=DIRECTORY, exist_ok=True)
    if not directory.is_dir():
        directory.mkdir()  # says what stands in the way
    return directory


def open_private(path: Path) -> BinaryIO:
    """Opens a file for writing, for this user alone; one that is there is emptied, and closed to others.

    What is no plain file, such as `/dev/stdout` or a pipe, keeps its mode; and so does a file of another user, who has let this one write it.
    """
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE), "wb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        with contextlib.suppress(PermissionError):
            os.fchmod(file.fileno(), FILE)
    return file


def write_private(path: Path, text: str) -> None:
    """Writes a file of records that a user has asked for, for this user alone.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     write_private(Path(there) / "a", "records")
    ...     oct((Path(there) / "a").stat().st_mode & 0o777)
    '0o600'
    """
    with open_private(path) as file:
        file.write(text.encode())
