"""Files in an object store, as a sink needs them: through `penstock.storage`, without Hadoop and its JARs.

An object store has no rename, so a file gets its final name by a copy that the store makes itself, and is then deleted where it waited.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import DeliveryError, RunError
from penstock.storage import Storage, delete_under, exists, move_object, storage_at

SCHEMES = ("s3", "gs", "az", "abfs", "abfss", "memory")
"""What is read and written through `penstock.storage`. Other URLs, such as `s3a://` and `hdfs://`, are Hadoop's on Spark."""


def store_of(path: str) -> Storage | None:
    """The storage of a path that is a URL of an object store; None for any other.

    >>> store_of("/data/out"), store_of("s3a://bucket/out")
    (None, None)
    """
    return storage_at(path) if is_in_store(path) else None


def is_in_store(path: str) -> bool:
    """Whether a path is a URL of an object store."""
    scheme, colon, _ = path.partition("://")
    return bool(colon) and scheme.lower() in SCHEMES


@dataclass(frozen=True)
class StoreDisk:
    """The files under a URL. Paths are relative to it, with a slash in front or without."""

    storage: Storage

    def names(self, folder: str, prefix: str, depth: int = 0) -> list[str]:
        """The names in a folder, or so many folders deep, that begin so."""
        above = _below(folder)
        if depth == 0:
            return [name for name in self.storage.children(above) if name.startswith(prefix)]
        found = (entry.name.removeprefix(above) for entry in self.storage.list(above))
        return [name for name in found if _is_deep(name, prefix, depth)]

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""
        move_object(self.storage, _name(old), _name(new))

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""
        self.storage.delete(_name(path))
        delete_under(self.storage, _below(path))

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return exists(self.storage, _name(path))

    def create(self, path: str, data: bytes) -> bool:
        """Puts an object unless there is one of that name."""
        return self.storage.put_if_absent(_name(path), data)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return self.storage.read(_name(path))

    def settle(self, path: str) -> tuple[int, str]:
        """An object is durable when it is there, and the store keeps its checksum."""
        return self.storage.size(_name(path)), ""


def check_shared(path: str, step: str) -> None:
    """Refuses a URL that the tasks of Spark cannot reach.

    Raises:
        RunError: It is the memory of this process.
    """
    if path.startswith("memory://"):
        raise RunError(
            f"{step}: {path} is the memory of one process, and the tasks of Spark run in others. "
            f"Take a path or an object store"
        )


def check_conditions(storage: Storage, url: str) -> None:
    """Refuses a store that does not hold the condition of a put: two drivers could both make the same batch real.

    Raises:
        DeliveryError: The store has taken a second put of the same name.
    """
    probe = "_penstock/probe"
    storage.put_if_absent(probe, b"1")
    if storage.put_if_absent(probe, b"2"):
        raise DeliveryError(
            f"{url} cannot hold exactly_once: the store replaces an object although the put asks that there is none "
            f"(If-None-Match). Use a store that checks it, or another delivery guarantee"
        )


def _name(path: str) -> str:
    return path.strip("/")


def _below(folder: str) -> str:
    return f"{_name(folder)}/" if _name(folder) else ""


def _is_deep(name: str, prefix: str, depth: int) -> bool:
    *folders, own = name.split("/")
    return len(folders) == depth and all("=" in each for each in folders) and own.startswith(prefix)
