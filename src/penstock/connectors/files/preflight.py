"""Whether the files that a source reads are there."""

from __future__ import annotations

import shlex
from pathlib import Path

from penstock.connectors.preflight import Options, Preflight
from penstock.errors import SetupError, nearest


def check_path(asked: Preflight) -> None:
    """A path of this machine must be there, unless a sink of the flow makes it."""
    path = str(asked.options["path"])
    if "://" in path or any(c in path for c in "*?[{") or Path(path).exists():
        return
    if written_path(asked.options) in asked.made:
        return
    folder = Path(path).absolute().parent
    there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    hint = f"; {nearest(Path(path).name, there)}" if there else ""
    raise SetupError(
        f"{asked.step!r} reads {path}, and there is no such file or directory{hint}. "
        f"If files will arrive there, make it first: mkdir -p {shlex.quote(path)}"
    )


def written_path(options: Options) -> str:
    """The directory that a sink makes."""
    return f"files {Path(str(options['path'])).absolute()}"
