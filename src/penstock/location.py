"""Addresses: a path of this machine, or a URL of a storage that machines share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SLIP = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")


@dataclass(frozen=True)
class Location:
    """An address that is a URL. Parts are joined to it as they are to a path.

    >>> there = Location("s3://bucket/flows/count")
    >>> str(there / "state"), there.name, str(there.parent)
    ('s3://bucket/flows/count/state', 'count', 's3://bucket/flows')
    """

    url: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", self.url.rstrip("/") if not self.url.endswith("://") else self.url)

    def __truediv__(self, part: str) -> Location:
        return Location(f"{self.url}/{quote(part)}")

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part."""
        return unquote(self.url.rpartition("/")[2])

    @property
    def parent(self) -> Location:
        """The address above it; that of a bucket is the bucket itself."""
        above = self.url.rpartition("/")[0]
        return self if above.endswith("/") else Location(above)

    def with_name(self, name: str) -> Location:
        """The address of another name beside it."""
        return self.parent / name

    def absolute(self) -> Location:
        """Itself: a URL depends on no working directory."""
        return self


Address = Path | Location
"""Where a checkpoint, a savepoint or a dead-letter queue is."""


def is_url(address: str) -> bool:
    """Whether an address begins with a scheme, as `s3://` is; any other is a path.

    >>> is_url("s3://bucket/flow"), is_url("/var/flow"), is_url("C:/flow")
    (True, False, False)
    """
    return _SCHEME.match(address) is not None


def file_url(path: Path) -> str:
    """A path of this machine as Hadoop reads it, whatever its file system of choice is; nothing in it is escaped.

    >>> file_url(Path("/tmp/a b"))
    'file:///tmp/a b'
    """
    return f"file://{path.absolute()}"


def lacks_a_slash(address: str) -> bool:
    """Whether an address is a URL but for one slash; taken for a path, it would make a directory of that name.

    >>> lacks_a_slash("s3:/bucket/flow"), lacks_a_slash("s3://bucket/flow"), lacks_a_slash("C:/flow")
    (True, False, False)
    """
    return _SLIP.match(address) is not None


def address_of(text: str | Address) -> Address:
    """The address that a text names.

    >>> address_of("s3://bucket/flow"), address_of("/var/flow")
    (Location(url='s3://bucket/flow'), PosixPath('/var/flow'))
    """
    if isinstance(text, Path | Location):
        return text
    return Location(text) if is_url(text) else Path(text)
