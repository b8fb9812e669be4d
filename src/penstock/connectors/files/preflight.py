"""Whether the files that a source reads are there, and a sink can make its own."""

from __future__ import annotations

import getpass
import os
import shlex
from pathlib import Path

from penstock.connectors.files.disk import plain_path
from penstock.connectors.preflight import Missing, Options, Preflight, Submission
from penstock.errors import SetupError, nearest


def check_path(asked: Preflight) -> None:
    """A path of this machine must be there, unless a sink of the flow makes it."""
    path = str(asked.options["path"])
    if _is_elsewhere(path) or Path(path).exists():
        return
    if written_path(asked.options) in asked.made:
        return
    folder = Path(path).absolute().parent
    there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    hint = f"; {nearest(Path(path).name, there)}" if there else ""
    raise Missing(
        f"{asked.step!r} reads {path}, and there is no such file or directory{hint}. "
        f"If files will arrive there, make it first: mkdir -p {shlex.quote(str(Path(path).absolute()))}"
    )


def check_folder(asked: Preflight) -> None:
    """The directory of a sink must be one that this user may write, or could be made."""
    path = str(asked.options["path"])
    if not _is_elsewhere(path):
        check_writable(Path(plain_path(path)).absolute(), repr(asked.step))


def check_writable(folder: Path, who: str) -> None:
    """Refuses a directory that cannot be written, or made, by this user.

    Raises:
        SetupError: it cannot be; the message says which path is in the way.
    """
    there = next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110 - Path.exists raises where it may not look
    what = "" if there.is_dir() else "which is a file; name another directory"
    if there.is_dir() and not os.access(there, os.W_OK | os.X_OK):
        what = f"which {getpass.getuser()} may not write; name another directory, or change its owner or mode"
    if what:
        inside = "" if there == folder else f", below {there}"
        raise SetupError(f"{who} writes files to {folder}{inside}, {what}")


def check_sent(asked: Submission) -> str:
    """A relative path leads a job to files that travel with it; one beside the flow may mean such a file."""
    path = Path(str(asked.options["path"]))
    inside = path.relative_to(asked.folder) if path.is_relative_to(asked.folder) else path
    if _is_elsewhere(str(path)) or inside.is_absolute() or asked.has(inside):
        return ""
    if written_path(asked.options) in asked.made:
        return ""
    if path.is_absolute():
        return f"{asked.step!r} reads {path}, beside the flow. If the flow finds it by its own path, send it along: {_include(path)}"
    if path.exists() or not asked.is_new:
        return (
            f"{asked.step!r} reads {path}, and the job runs in a directory of its own. Send it along: {_include(path)}"
        )
    raise SetupError(
        f"{asked.step!r} reads {path}, which is not in the bundle, and the job runs in a directory of its own. Send it along with "
        f"--include, or name it by its absolute path on the machine of the server"
    )


def _include(path: Path) -> str:
    below = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"--include {shlex.quote(f'{below}/**/*' if path.is_dir() else str(below))}"


def _is_elsewhere(path: str) -> bool:
    """Whether it is a URL, or a pattern that may match nothing yet."""
    return "://" in path or any(c in path for c in "*?[{")


def written_path(options: Options) -> str:
    """The directory that a sink makes."""
    return f"files {Path(str(options['path'])).absolute()}"
