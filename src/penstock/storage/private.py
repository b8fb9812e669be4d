"""Directories and files that other users of the machine cannot read: 0700 and 0600, whatever the umask says."""

from __future__ import annotations

import os
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
    """Opens a new file for writing, for this user alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE), "wb")
