"""File systems, as a sink of files needs them: this machine's disk, object stores, and whatever else Spark knows."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from penstock.connectors.files.store import StoreDisk, store_of
from penstock.errors import RunError
from penstock.location import file_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FOLDER = "*=*/"
"""A folder that is named by a field and its value."""


class Disk(Protocol):
    """What a sink of files asks of a file system."""

    def names(self, folder: str, prefix: str, depth: int = 0) -> list[str]:
        """The names in a folder that begin so; so many folders deep, each named by a field and its value, with the way there."""

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""

    def exists(self, path: str) -> bool:
        """Whether a file is there."""

    def create(self, path: str, data: bytes) -> bool:
        """Makes a file that is there completely or not at all; false when there was one of that name already."""

    def read(self, path: str) -> bytes:
        """The content of a file."""

    def settle(self, path: str) -> tuple[int, str]:
        """Makes a file safe against a power cut, where it can; returns its size and checksum."""


class LocalDisk:
    """This machine's disk, without the way through the JVM."""

    def names(self, folder: str, prefix: str, depth: int = 0) -> list[str]:
        """The names in a folder, or so many folders deep, that begin so."""
        found = Path(folder).glob(f"{_FOLDER * depth}{glob.escape(prefix)}*")
        return [p.relative_to(folder).as_posix() for p in found]

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        Path(old).rename(new)

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return Path(path).exists()

    def create(self, path: str, data: bytes) -> bool:
        """Written aside, made safe, and linked, which fails if the name is taken."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        aside.write_bytes(data)
        fsync(aside)
        try:
            os.link(aside, target)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
        fsync(target.parent)
        return True

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return Path(path).read_bytes()

    def settle(self, path: str) -> tuple[int, str]:
        """Calls fsync; the checksum is SHA-256."""
        fsync(Path(path))
        with Path(path).open("rb") as file:
            return Path(path).stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def fsync(path: Path) -> None:
    """Makes a file, or the names in a folder, safe against a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class HadoopDisk:
    """Any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self.path_of = jvm.org.apache.hadoop.fs.Path
        self.files = self.path_of(path).getFileSystem(spark._jsc.hadoopConfiguration())
        self.scheme = str(self.files.getUri().getScheme())

    def names(self, folder: str, prefix: str, depth: int = 0) -> list[str]:
        """The names in a folder, or so many folders deep, that begin so."""
        found = self.files.globStatus(self.path_of(folder, f"{_FOLDER * depth}{prefix}*")) or []
        return ["/".join(str(status.getPath()).split("/")[-1 - depth :]) for status in found]

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""
        self.files.mkdirs(self.path_of(new).getParent())
        if not self.files.rename(self.path_of(old), self.path_of(new)):
            raise RunError(f"{old} could not be renamed to {new}")

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""
        self.files.delete(self.path_of(path), True)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return bool(self.files.exists(self.path_of(path)))

    def create(self, path: str, data: bytes) -> bool:
        """Written aside and renamed, which fails if the name is taken."""
        if self.exists(path):
            return False
        folder, _, name = path.rpartition("/")
        aside = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}"
        out = self.files.create(self.path_of(aside))
        out.write(bytearray(data))
        out.hsync()
        out.close()
        made = bool(self.files.rename(self.path_of(aside), self.path_of(path)))
        if not made:
            self.remove(aside)
        return made

    def read(self, path: str) -> bytes:
        """The content of a file."""
        stream = self.files.open(self.path_of(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def settle(self, path: str) -> tuple[int, str]:
        """The file system keeps its own checksums."""
        return int(self.files.getFileStatus(self.path_of(path)).getLen()), ""


def plain_path(address: str) -> str:
    """A path of this machine without the `file:` in front.

    >>> plain_path("file:///data/a%20b"), plain_path("/data"), plain_path("s3a://bucket/x")
    ('/data/a b', '/data', 's3a://bucket/x')
    """
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else address


def address_of_path(path: Path) -> str:
    """A path of this machine as Spark and a sink of files both read it, also where Spark's file system of choice is another.

    >>> address_of_path(Path("/a b")), address_of_path(Path("/a%20b"))
    ('file:///a b', '/a%20b')
    """
    url = file_url(path)
    return url if plain_path(url) == str(path) else str(path)


def disk_of(path: str) -> tuple[Disk, str]:
    """The file system a path lies on, and the path as that one takes it."""
    storage = store_of(path)
    if storage is not None:
        return StoreDisk(storage), ""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is not None:
        hadoop = HadoopDisk(spark, path)
        if hadoop.scheme != "file":
            return hadoop, path
    return LocalDisk(), plain_path(path)
