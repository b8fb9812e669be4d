"""Writes an archive that is the same, byte for byte, whenever its contents are."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SetupError

LEVEL = 3
"""How hard gzip tries; see decision 21."""
_MOMENT = 315_532_800
"""The time of every file: 1980, the first year that all tools can write."""


@dataclass(frozen=True)
class Member:
    """A file of an archive: a file of this machine, bytes, or a link to another name beside it."""

    name: str
    source: Path | bytes = b""
    is_executable: bool = False
    link: str = ""

    @property
    def size(self) -> int:
        """How many bytes it takes unpacked."""
        return self.source.stat().st_size if isinstance(self.source, Path) else len(self.source)


def write_archive(path: Path, members: Iterable[Member], advance: Callable[[int], None] = lambda size: None) -> int:
    """Writes a tar.gz: under another name first, so that a reader never finds half of one.

    Args:
        path: The file to write; one that is there is replaced.
        members: What to write, in this order.
        advance: Gets the size of each member when that is written.

    Returns:
        The size of the archive in bytes.

    Raises:
        SetupError: A file cannot be read, or the archive cannot be written.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed:
            _write(packed, members, advance)
        aside.replace(path)
        return path.stat().st_size
    except OSError as error:
        raise SetupError(f"the archive {path} was not made: {error}") from None
    finally:
        aside.unlink(missing_ok=True)


def _write(packed: gzip.GzipFile, members: Iterable[Member], advance: Callable[[int], None]) -> None:
    with tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for member in members:
            _add(archive, member)
            advance(member.size)


def _add(archive: tarfile.TarFile, member: Member) -> None:
    info = tarfile.TarInfo(member.name)
    info.mtime, info.mode = _MOMENT, 0o755 if member.is_executable else 0o644
    if member.link:
        info.type, info.linkname = tarfile.SYMTYPE, member.link
        archive.addfile(info)
        return
    with member.source.open("rb") if isinstance(member.source, Path) else io.BytesIO(member.source) as content:
        info.size = member.size
        archive.addfile(info, content)
