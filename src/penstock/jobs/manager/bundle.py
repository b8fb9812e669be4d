"""Bundles: the code of a job as one archive that never changes, named by what is in it."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import re
import shutil
import stat
import struct
import uuid
import zipfile
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from penstock.errors import OptionError, SetupError
from penstock.storage import LocalStorage

LARGEST = 64 << 20
"""How many bytes a bundle may have, packed, and eight times that unpacked."""
MOST_FILES = 10_000
UNUSED = 86_400.0
"""Seconds after which a bundle goes that no job has."""
ROOM = 256 << 20
"""Bytes that bundles leave free on the disk: the database and the checkpoints need them."""
LONGEST_NAME = 255
"""The bytes of a part of a path, as file systems have it."""
_DIGEST = re.compile("[0-9a-f]{64}")
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
            _check_contents(found)
        digest = digest_of(archive)
        if not self.has(digest):
            self._check_room(len(archive))
            self._storage.put_if_absent(f"{digest}.zip", archive)
        return digest

    def has(self, digest: str) -> bool:
        """Whether a bundle is there; it then stays for another day."""
        if not _DIGEST.fullmatch(digest):
            return False
        try:
            os.utime(self.path / f"{digest}.zip")
        except FileNotFoundError:
            return False
        return True

    def sweep(self, used: Collection[str], now: float) -> None:
        """Deletes bundles that are not in use, and were not asked for since yesterday."""
        for archive in self.path.glob("*.zip"):
            with suppress(OSError):
                if archive.stem not in used and archive.stat().st_mtime < now - UNUSED:
                    archive.unlink()
                    shutil.rmtree(archive.with_suffix(""), ignore_errors=True)

    def _check_room(self, size: int) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(self.path).free
        if free - size < ROOM:
            raise SetupError(
                f"the disk of {self.path} has {free:,} bytes left, and a bundle of {size:,} must leave {ROOM:,}; make room"
            )

    def unpacked(self, digest: str, into: Path | None = None) -> Path:
        """The directory with the files of a bundle, here or elsewhere, which is made when it is needed first."""
        target = (into or self.path) / digest
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


def lay_out(bundle: Path, work: Path, noted: Path) -> None:
    """Copies the files of a bundle that are no code to where a job runs, once for each version; those of the version before go.

    Args:
        bundle: the directory with the files of the bundle.
        work: the directory in which the job runs, from which relative paths lead.
        noted: the file that says which files were copied, of which bundle.
    """
    version, copied = _noted(noted)
    if version == bundle.name:
        return
    for each in copied:
        (work / each).unlink(missing_ok=True)
    inside = [
        f.relative_to(bundle) for f in sorted(bundle.rglob("*")) if f.is_file() and f.suffix not in (".py", ".pyc")
    ]
    names = [name for name in inside if not (work / name).exists()]
    _note(noted, "", names)
    for name in names:
        (work / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(bundle / name, work / name)
    _note(noted, bundle.name, names)


def _noted(noted: Path) -> tuple[str, list[str]]:
    try:
        found = json.loads(noted.read_text())
        return found["bundle"], found["files"]
    except (OSError, ValueError):
        return "", []


def _note(noted: Path, bundle: str, names: list[Path]) -> None:
    """A driver that ends before all is copied leaves a note of no bundle, and the next one begins anew."""
    LocalStorage(noted.parent).write(
        noted.name, json.dumps({"bundle": bundle, "files": list(map(str, names))}).encode()
    )


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
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OverflowError) as error:
        raise OptionError(f"expected a bundle, a zip archive, got something else: {error}") from None


def _check(found: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an archive, all of which belong into its directory."""
    entries = [entry for entry in found.infolist() if not (entry.filename and entry.is_dir())]
    if len(entries) > MOST_FILES:
        raise OptionError(f"a bundle has at most {MOST_FILES:,} files, got {len(entries):,}")
    size = sum(entry.file_size for entry in entries)
    if size > 8 * LARGEST:
        raise OptionError(f"a bundle has at most {8 * LARGEST:,} bytes unpacked, got {size:,}")
    for entry in entries:
        _check_entry(entry)
    _check_directories([PurePosixPath(entry.filename) for entry in entries])
    return entries


def _check_directories(paths: list[PurePosixPath]) -> None:
    files = set(paths)
    if len(files) < len(paths):
        raise OptionError("a bundle has each file once, got one twice")
    wrong = next((above for path in paths for above in path.parents if above in files), None)
    if wrong is not None:
        raise OptionError(f"{str(wrong)[:200]!r} is a file and a directory of a bundle")


_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
)
"""What reading a file of an archive raises, of itself or of what it is made with: a place before its beginning is a ValueError."""


def _check_contents(found: zipfile.ZipFile) -> None:
    """Reads all files once: one that is damaged must not be found by the driver."""
    try:
        damaged = found.testzip()
    except _DAMAGED as error:
        raise OptionError(f"a bundle with a damaged file: {error}") from None
    if damaged is not None:
        raise OptionError(f"a bundle with a damaged file: {damaged[:200]!r}")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    path, mode = PurePosixPath(entry.filename), entry.external_attr >> 16
    is_inside = not path.is_absolute() and ".." not in path.parts and "\\" not in entry.filename and path.parts
    if not is_inside or "\0" in entry.filename or len(entry.filename) > 1000:
        raise OptionError(f"a file of a bundle stays in its directory, got {entry.filename[:200]!r}")
    if any(len(part.encode(errors="replace")) > LONGEST_NAME for part in path.parts):
        raise OptionError(f"a name of a file has at most {LONGEST_NAME} bytes, got {entry.filename[:200]!r}")
    if mode and not (stat.S_ISREG(mode) or stat.S_IFMT(mode) == 0):
        raise OptionError(f"a bundle has files alone, no links: {entry.filename[:200]!r}")
    if entry.flag_bits & 1:
        raise OptionError(f"a bundle is not encrypted: {entry.filename[:200]!r}")
