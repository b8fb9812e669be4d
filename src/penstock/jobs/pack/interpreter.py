"""The interpreter itself, copied with its standard library so that workers need none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import SetupError
from penstock.jobs.pack.archive import Member

_NOT_NEEDED = frozenset(
    (
        "__pycache__",
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "idlelib",
        "turtledemo",
        "tkinter",
        "ensurepip",
        "lib2to3",
    )
)
_OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux\S*|lib(c|m|dl|pthread|rt|util|resolv|gcc_s|stdc\+\+))[.-]")
"""What every Linux with the same C library has."""


def interpreter() -> list[Member]:
    """The files of the base interpreter, under `python/`.

    Raises:
        SetupError: The interpreter cannot be found.
    """
    minor = sysconfig.get_python_version()
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    library = Path(sysconfig.get_path("stdlib")).resolve()
    if not program.is_file() or not library.is_dir():
        raise SetupError(f"--with-python: expected an interpreter with its library, got {program} and {library}")
    shared = [file for file in sorted(_library_folder().glob(f"libpython{minor}*.so*")) if file.is_file()]
    members = [Member(f"python/bin/python{minor}", program, is_executable=True)]
    members += [Member(f"python/lib/{file.name}", file, is_executable=True) for file in shared]
    return members + [Member(f"python/lib/python{minor}/{name}", file) for name, file in _library(library)]


def libraries_outside(members: list[Member]) -> list[str]:
    """The shared libraries of this machine that packed files are linked to, and that are not packed: workers need them."""
    files = [str(m.source) for m in members if m.name.endswith(".so") or m.is_executable]
    packed = {Path(member.name).name for member in members}
    done = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False) if files else None
    named = re.findall(r"^\s+(\S+) (?:=>|\()", done.stdout if done is not None else "", re.MULTILINE)
    return sorted({name for name in named if not _OF_THE_SYSTEM.match(Path(name).name)} - packed)


def _library_folder() -> Path:
    return Path(sysconfig.get_config_var("LIBDIR") or Path(sys.base_prefix) / "lib")


def _library(library: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(each for each in folders if each not in _NOT_NEEDED and not each.startswith("config-"))
        for name in sorted(names):
            if (file := Path(folder) / name).is_file() and not name.startswith("_tkinter."):
                yield str(file.relative_to(library)), file
