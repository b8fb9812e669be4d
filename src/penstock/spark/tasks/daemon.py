"""The Python daemon of a run on one machine: what Spark starts, and what forks its workers.

Spark puts its own `pyspark.zip` first on the path of workers. There every module is compiled anew by each process that imports it, and the
directory of the archive is read again by each worker. The same modules lie compiled beside it, where pip installed them; and what
all workers need is imported once, before they are forked, as far as it starts no threads.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

BEFORE_FORK = ("pyspark.worker", "penstock.graph.builder")
"""What workers import anyhow. Not in it: numpy and pyarrow, which start threads, and a process with threads must not be forked."""


def without_archives(path: Sequence[str]) -> list[str]:
    """A module path without the archives of Spark's own whose package is installed beside others.

    >>> without_archives(["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10-src.zip", "/my/modules.zip"])
    ['/spark/python/lib/pyspark.zip', '/spark/python/lib/py4j-0.10-src.zip', '/my/modules.zip']
    """
    return [entry for entry in path if not _is_doubled(Path(entry), path)]


def _is_doubled(archive: Path, path: Sequence[str]) -> bool:
    """Whether an archive lies in an installed pyspark, and the package in it is installed."""
    pyspark = _installed("pyspark", path)
    if pyspark is None or archive.suffix != ".zip" or archive.parent != pyspark / "python" / "lib":
        return False
    return _installed(archive.stem.partition("-")[0], path) is not None


def _installed(package: str, path: Sequence[str]) -> Path | None:
    folders = (Path(entry) / package for entry in path if not entry.endswith(".zip"))
    return next((folder for folder in folders if (folder / "__init__.py").is_file()), None)


def main() -> None:
    """Runs Spark's own daemon, with a lighter path and the imports done."""
    sys.path[:] = without_archives(sys.path)
    for name in BEFORE_FORK:
        importlib.import_module(name)
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
