"""What `--archives` names: archives that Spark unpacks beside each worker, and the Python of one that `penstock pack` made."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import OptionError
from penstock.graph.run.master import is_in_one_jvm
from penstock.jobs.logs import event
from penstock.jobs.pack.manifest import Manifest, is_archive, read_manifest, this_implementation
from penstock.spark.workers.files import files_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENVIRONMENT = "environment"
"""Where a packed environment is unpacked unless the option names another directory."""
SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
"""What Spark can unpack."""
COMPARED = ("numpy", "pandas", "penstock", "pyarrow", "pyspark")
"""Packages that should have one version on the driver and on workers."""


@dataclass(frozen=True)
class Archive:
    """An archive, the directory it is unpacked to, and its manifest if it holds an environment that can be looked into."""

    location: str
    name: str
    manifest: Manifest | None = None

    @property
    def uri(self) -> str:
        """As Spark takes it."""
        return f"{self.location}#{self.name}"

    @property
    def has_environment(self) -> bool:
        """Whether workers take their Python from it. One that lies elsewhere goes by its name."""
        return self.manifest is not None or ("://" in self.location and self.name == ENVIRONMENT and not self._is_file)

    @property
    def _is_file(self) -> bool:
        return self.location.startswith("file://")


def read_archives(listed: Iterable[str]) -> tuple[Archive, ...]:
    """The archives that an option lists, each as `FILE`, `FILE#NAME` or a URL.

    Raises:
        OptionError: One is missing, has a name that Spark cannot use, or two have the same name or are both environments.
    """
    found = tuple(map(_archive, listed))
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise OptionError(f"--archives: each needs a name of its own, as in FILE#NAME, got {', '.join(names)}")
    if sum(each.has_environment for each in found) > 1:
        raise OptionError("--archives: workers take their Python from one environment, got several")
    return found


def worker_python(archives: Iterable[Archive]) -> str:
    """The command of the workers' Python, relative to where archives are unpacked; empty where it is their own."""
    return next((f"{each.name}/bin/python" for each in archives if each.has_environment), "")


def check_archives(archives: Iterable[Archive]) -> None:
    """Compares the driver with the environment of its workers; packages of other versions are logged.

    Raises:
        OptionError: The environment is for another Python than the driver's: functions could not be sent to it.
    """
    for archive in archives:
        if archive.manifest is not None:
            _check(archive, archive.manifest)


def send_archives(spark: SparkSession, archives: Iterable[Archive]) -> None:
    """Has Spark unpack archives beside each worker; workers take their Python from that which has one, unless `PYSPARK_PYTHON` names theirs.

    A local master has its workers in the driver, which unpacks them among its temporary files.
    """
    context = spark.sparkContext
    listed = tuple(archives)
    for archive in listed:
        context.addArchive(archive.uri)
    command = worker_python(listed)
    if command and os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable:
        is_local = is_in_one_jvm(str(context.master))
        context.pythonExec = str(files_directory() / command) if is_local else f"./{command}"


def _check(archive: Archive, packed: Manifest) -> None:
    here, minor = this_implementation(), ".".join(platform.python_version_tuple()[:2])
    if (packed.implementation, packed.minor) != (here, minor):
        raise OptionError(
            f"--archives: expected an environment of {here} {minor}, as this driver has, "
            f"got {packed.implementation} {packed.minor} in {archive.location}; pack it with the driver's Python"
        )
    if other := differing(packed):
        event("other_versions", level=logging.WARNING, archive=archive.location, packages="; ".join(other))


def differing(packed: Manifest) -> list[str]:
    """What has another version in the archive than here, of the packages that should not.

    >>> differing(Manifest("3.11.7", packages={"penstock": "0.0.1"}))[0].partition(",")[0]
    'penstock 0.0.1 in the archive'
    """
    return [
        f"{name} {packed.packages[name]} in the archive, {here} on the driver"
        for name in COMPARED
        if name in packed.packages and (here := _version(name)) != packed.packages[name]
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _archive(text: str) -> Archive:
    where, _, name = text.partition("#")
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise OptionError(f"--archives: expected a name of letters, digits, '_', '-' and '.' after '#', got {text!r}")
    if not where.endswith(SUFFIXES):
        raise OptionError(f"--archives: expected a file that ends in {', '.join(SUFFIXES)}, got {where!r}")
    if "://" in where and not where.startswith("file://"):
        return Archive(where, name or where.rpartition("/")[2])
    return _local(Path(where.removeprefix("file://")), name)


def _local(file: Path, name: str) -> Archive:
    if not file.is_file():
        raise OptionError(f"--archives: there is no file {file}; `penstock pack -o {file}` makes one")
    if not is_archive(file):
        raise OptionError(
            f"--archives: expected a tar or zip archive, as its name says, got something else in {file}; `penstock pack -o FILE` makes one"
        )
    try:
        manifest = read_manifest(file)
    except ValueError as error:
        raise OptionError(f"--archives: {file}: {error}") from None
    return Archive(file.absolute().as_uri(), name or (ENVIRONMENT if manifest is not None else file.name), manifest)
