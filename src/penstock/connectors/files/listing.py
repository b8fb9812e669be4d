"""Which files of a store a URL stands for: an object, those of a folder, or those that a glob fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from penstock.storage import Storage, exists, is_url, storage_at
from penstock.storage.objects import read_parts

AT_ONCE = 64 << 20
"""Up to so many bytes a file is read with one request."""
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class StoredFile:
    """A file of a store. `url` is what users are shown; the folders in it may name fields and their values."""

    storage: Storage
    name: str
    url: str
    size: int

    def read(self) -> bytes:
        """Its content."""
        return self.storage.read(self.name)

    def parts(self) -> Iterable[bytes]:
        """Its content in parts, so that a large file need not be in memory."""
        return read_parts(self.storage, self.name) if self.size > AT_ONCE else [self.read()]


def is_stored(path: str) -> bool:
    """Whether a path is a URL of a store, and not of this machine."""
    return is_url(path) and not path.lower().startswith("file://")


@dataclass(frozen=True)
class Listing:
    """What finds the files of a URL, also in a process with another environment: the storages are opened when it is made.

    Attributes:
        url: The URL without a glob.
        pattern: The parts of the glob that follow.
        storage: What is under the URL.
        above: What is around it, for a URL that names an object; None where there is nothing around.
    """

    url: str
    pattern: tuple[str, ...]
    storage: Storage
    above: Storage | None

    @classmethod
    def of(cls, url: str) -> Listing:
        """That of a URL."""
        base, pattern = _split(url.rstrip("/"))
        above = base.rpartition("/")[0]
        around = None if pattern or above.endswith("/") else storage_at(above)
        return cls(base, tuple(pattern), storage_at(base), around)

    def files(self) -> list[StoredFile]:
        """The files that are there now, in order of name."""
        found = [
            StoredFile(self.storage, entry.name, f"{self.url}/{entry.name}", entry.size)
            for entry in self.storage.list(_static(self.pattern))
            if _fits(entry.name.split("/"), self.pattern)
        ]
        return found or list(self._itself())

    def _itself(self) -> Iterator[StoredFile]:
        """The object that the URL names."""
        name = self.url.rpartition("/")[2]
        if self.above is not None and exists(self.above, name):
            yield StoredFile(self.above, name, self.url, self.above.size(name))


def stored_files(url: str) -> list[StoredFile]:
    """The files a URL or glob stands for, in order of name; hidden ones and those with a leading underscore are not.

    >>> storage_at("memory://listing/in").write("day=1/a.json", b"{}")
    >>> storage_at("memory://listing/in").write("_penstock/probe", b"1")
    >>> [file.url for file in stored_files("memory://listing/in")], [file.name for file in stored_files("memory://listing/i*/d*/*.json")]
    (['memory://listing/in/day=1/a.json'], ['in/day=1/a.json'])
    """
    return Listing.of(url).files()


def _split(url: str) -> tuple[str, list[str]]:
    """A URL without a glob, and the parts of the glob that follow."""
    scheme, _, rest = url.partition("://")
    parts = rest.split("/")
    first = next((at for at, part in enumerate(parts) if at and _GLOB.search(part)), len(parts))
    return f"{scheme}://{'/'.join(parts[:first])}", parts[first:]


def _static(pattern: tuple[str, ...]) -> str:
    """What the names that fit a glob begin with."""
    return _GLOB.split(pattern[0])[0] if pattern else ""


def _fits(parts: list[str], pattern: tuple[str, ...]) -> bool:
    """Whether a name fits a glob: as a file, or in a folder that does."""
    if len(parts) < len(pattern) or parts[-1].startswith(("_", ".")):
        return False
    folders = parts[len(pattern) : -1] if len(parts) > len(pattern) else []
    return all(map(_fits_part, parts, pattern)) and all("=" in each for each in folders)


def _fits_part(part: str, pattern: str) -> bool:
    """What is aside is not found by a star."""
    return fnmatchcase(part, pattern) and (part[0] not in "_." or pattern[0] in "_.")
