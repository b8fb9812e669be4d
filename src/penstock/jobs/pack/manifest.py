"""What a packed environment says of itself, in the first file of its archive."""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

MANIFEST = "penstock-pack.json"
"""The name of the file; that an archive begins with it is how one is known."""


@dataclass(frozen=True)
class Manifest:
    """For which Python and platform an environment was packed, and what is in it.

    >>> Manifest("3.11.7", packages={"numpy": "2.1.0"}).minor
    '3.11'
    """

    python: str
    implementation: str = "cpython"
    platform: str = ""
    """Such as `linux-x86_64`; empty where everything is plain Python."""
    glibc: str = ""
    """The least C library that its compiled packages need, such as `2.28`; empty where none says so."""
    has_python: bool = False
    """Whether the interpreter is in it."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Name to version."""
    modules: tuple[str, ...] = ()
    """The flow's own."""

    @property
    def minor(self) -> str:
        """The version without its last number: what compiled packages and pickled functions depend on."""
        return ".".join(self.python.split(".")[:2])

    @property
    def needs(self) -> str:
        """What a worker must have, in a line."""
        python = "" if self.has_python else f"Python {self.minor}"
        compiled = f"{' on ' if python else ''}{self.platform}" if self.platform else ""
        return python + compiled + (f", glibc {self.glibc} or newer" if self.glibc else "")

    def to_json(self) -> str:
        """The manifest as it stands in the archive."""
        return json.dumps({"format": 1, **asdict(self)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """The manifest of what `to_json` wrote; raises ValueError for anything else."""
        found = json.loads(text)
        if not isinstance(found, dict) or found.pop("format", None) != 1:
            raise ValueError("it was made by another release of Penstock; pack it again")
        try:
            return cls(**{**found, "modules": tuple(found.get("modules", ()))})
        except TypeError as error:
            raise ValueError(f"its {MANIFEST} is not one: {error}") from None


def is_archive(file: Path) -> bool:
    """Whether a file begins as its name says: `.zip` and `.jar` as a zip archive, any other as a tar archive."""
    if file.suffix in (".zip", ".jar"):
        return zipfile.is_zipfile(file)
    try:
        with tarfile.open(file, "r|*") as archive:
            return archive.next() is not None
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        return False


def read_manifest(file: Path) -> Manifest | None:
    """The manifest of an archive; None where `penstock pack` has not made it. Reads the first few kilobytes alone.

    Raises:
        ValueError: It is an archive of `penstock pack` whose manifest this release cannot read.
    """
    try:
        with tarfile.open(file, "r|gz") as archive:
            first = archive.next()
            if first is None or first.name != MANIFEST:
                return None
            found = archive.extractfile(first)
            return None if found is None else Manifest.from_json(found.read())
    except (tarfile.TarError, EOFError, OSError):
        return None


def this_implementation() -> str:
    """The implementation of the running Python."""
    return sys.implementation.name
