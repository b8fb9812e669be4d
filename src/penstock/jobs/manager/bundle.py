"""Bundles: the code of a job as one archive that never changes, named by what is in it."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import uuid
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from penstock.errors import OptionError, SetupError
from penstock.storage import LocalStorage, exists

LARGEST = 64 << 20
"""How many bytes a bundle may have, packed, and eight times that unpacked."""
MOST_FILES = 10_000
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(files: Iterable[tuple[str, Path]]) -> bytes:
    """An archive of files by their names in it; the same files give the same bytes, whenever they were written.

    >>> pack([]) == pack([])
    True
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            archive.writestr(entry, file.read_bytes())
    return made.getvalue()


def digest_of(archive: bytes) -> str:
    """The name of a bundle: the SHA-256 of its bytes."""
    return hashlib.sha256(archive).hexdigest()


@dataclass(frozen=True)
class BundleStore:
    """The bundles of a manager: `DIGEST.zip` as it was received, and a directory `DIGEST` with its files."""

    path: Path

    def put(self, archive: bytes) -> str:
        """Keeps a bundle; returns its name. Raises OptionError for an archive that is none, or that would write outside its directory."""
        with _opened(archive) as found:
            _check(found)
        digest = digest_of(archive)
        self._storage.put_if_absent(f"{digest}.zip", archive)
        return digest

    def has(self, digest: str) -> bool:
        """Whether a bundle is there."""
        return exists(self._storage, f"{digest}.zip")

    def unpacked(self, digest: str) -> Path:
        """The directory with the files of a bundle, which is made when it is needed first."""
        target = self.path / digest
        if not target.is_dir():
            self._unpack(digest, target)
        return target

    def _unpack(self, digest: str, target: Path) -> None:
        archive = self._storage.read(f"{digest}.zip")
        if digest_of(archive) != digest:
            raise SetupError(f"bundle {digest} is damaged; submit the job again")
        made = target.with_name(f"{digest}.{uuid.uuid4().hex}.tmp")
        with _opened(archive) as found:
            for entry in _check(found):
                _write(made.joinpath(*PurePosixPath(entry.filename).parts), found.read(entry))
        made.mkdir(mode=0o700, exist_ok=True)
        try:
            made.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(made, ignore_errors=True)

    @property
    def _storage(self) -> LocalStorage:
        return LocalStorage(self.path)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)


def _opened(archive: bytes) -> zipfile.ZipFile:
    if len(archive) > LARGEST:
        raise OptionError(f"a bundle has at most {LARGEST:,} bytes, got {len(archive):,}; leave data out of it")
    try:
        return zipfile.ZipFile(io.BytesIO(archive))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise OptionError(f"expected a bundle, a zip archive, got something else: {error}") from None


def _check(found: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an archive, all of which belong into its directory."""
    entries = [entry for entry in found.infolist() if not entry.is_dir()]
    if len(entries) > MOST_FILES:
        raise OptionError(f"a bundle has at most {MOST_FILES:,} files, got {len(entries):,}")
    size = sum(entry.file_size for entry in entries)
    if size > 8 * LARGEST:
        raise OptionError(f"a bundle has at most {8 * LARGEST:,} bytes unpacked, got {size:,}")
    if len({entry.filename for entry in entries}) < len(entries):
        raise OptionError("a bundle has each file once, got one twice")
    for entry in entries:
        _check_entry(entry)
    return entries


def _check_entry(entry: zipfile.ZipInfo) -> None:
    path, mode = PurePosixPath(entry.filename), entry.external_attr >> 16
    is_inside = not path.is_absolute() and ".." not in path.parts and "\\" not in entry.filename and path.parts
    if not is_inside or "\0" in entry.filename or len(entry.filename) > 1000:
        raise OptionError(f"a file of a bundle stays in its directory, got {entry.filename[:200]!r}")
    if mode and not (stat.S_ISREG(mode) or stat.S_IFMT(mode) == 0):
        raise OptionError(f"a bundle has files alone, no links: {entry.filename[:200]!r}")
    if entry.flag_bits & 1:
        raise OptionError(f"a bundle is not encrypted: {entry.filename[:200]!r}")
