"""Sends the user's own modules to the workers, which cannot import them from the driver's folders."""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from penstock.spark.workers.files import files_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGEST = 5 * 1024 * 1024
"""Files of a package that are larger than this stay behind: they are data, not code."""
_NUMBER = itertools.count()


@dataclass(frozen=True)
class Parcel:
    """What travels: the top-level modules and packages, each with the path it is imported from."""

    modules: dict[str, Path]

    def write(self, path: Path) -> Path:
        """Writes them as a zip that Python can import from; a package without an `__init__` needs its folder in it."""
        files = dict(self.contents())
        folders = sorted({parent for inside in files for parent in inside.parents if parent.name})
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for folder in folders:
                archive.mkdir(str(folder))
            for inside, file in files.items():
                archive.write(file, str(inside))
        return path

    def contents(self, largest: int | None = LARGEST) -> Iterator[tuple[Path, Path]]:
        """Each file by its path from the directory that Python imports from; without those that have more than `largest` bytes."""
        for name, path in sorted(self.modules.items()):
            for file in _files(path, largest):
                yield Path(name) / file.relative_to(path) if path.is_dir() else Path(file.name), file


def user_modules(folders: Iterable[Path]) -> Parcel:
    """The loaded modules that live in one of the folders and are neither Penstock's nor installed."""
    roots = [folder.resolve() for folder in folders]
    names = {name.partition(".")[0] for name in sys.modules} - {"penstock", "__main__", "__mp_main__"}
    paths = {name: path for name in names if (path := path_of(sys.modules.get(name))) is not None}
    return Parcel({n: p for n, p in paths.items() if _is_users(n, p, roots)})


def penstock_itself() -> Parcel:
    """Penstock's own package, for workers that do not have it."""
    return Parcel({"penstock": Path(__file__).resolve().parents[1]})


def ship(spark: SparkSession, parcels: Iterable[Parcel], files: Iterable[str] = ()) -> list[str]:
    """Gives the parcels and the user's `--py-files` to Spark; returns the names of what travels.

    They wait among Spark's own temporary files, which go when its JVM ends, however it ends. Each has a name of its own: Spark refuses a
    second file of one name, and a process may run several flows.
    """
    sent: list[str] = []
    for parcel in parcels:
        if parcel.modules:
            folder = Path(tempfile.mkdtemp(prefix="penstock-ship-", dir=files_directory()))
            spark.sparkContext.addPyFile(str(parcel.write(folder / f"penstock-code-{os.getpid()}-{next(_NUMBER)}.zip")))
            sent += sorted(parcel.modules)
    for file in files:
        spark.sparkContext.addPyFile(file)
        sent.append(file)
    return sent


def path_of(module: ModuleType | None) -> Path | None:
    """The folder of a package, the file of a module, None for what is built in."""
    file = getattr(module, "__file__", None)
    if file is not None:
        path = Path(file)
        return path.parent if path.name == "__init__.py" else path if path.suffix == ".py" else None
    folders = list(getattr(module, "__path__", ()))
    return Path(folders[0]) if folders else None


def _is_users(name: str, path: Path, roots: list[Path]) -> bool:
    path = path.resolve()
    inside = any(path.is_relative_to(root) for root in roots)
    return inside and name not in sys.stdlib_module_names and not is_installed(path)


def is_installed(path: Path) -> bool:
    """Whether a file belongs to Python or to a package that was installed."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    return "site-packages" in path.parts or "dist-packages" in path.parts or path.is_relative_to(library)


def _files(path: Path, largest: int | None) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(path).parts)
        if file.is_file() and not hidden and (largest is None or file.stat().st_size <= largest):
            yield file
