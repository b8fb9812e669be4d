"""The checkpoint directory of a flow: what `FLOW` stands for in commands that look at it rather than run it."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import CheckpointError
from penstock.jobs.load import load_flow

BEGUN = "flow.json"
"""The note that a live flow makes when it begins."""


def checkpoint_of(target: str, given: Path | None = None, *, holds: tuple[str, ...] = (BEGUN,)) -> Path:
    """The checkpoint folder of a flow: the one that is given, a folder itself, or where the flow runs by default.

    It must hold one of some parts; a bounded run leaves no note that it has begun.
    """
    if given is not None:
        return _found(given, holds)
    if Path(target).is_dir():
        return _found(Path(target), holds)
    return _found(Path(".penstock") / load_flow(target).graph.name, holds)


def _found(folder: Path, holds: tuple[str, ...]) -> Path:
    if not any((folder / part).exists() for part in holds):
        raise CheckpointError(
            f"{folder} is no checkpoint folder: no flow has begun there. Has it run yet, and from this folder? "
            f"--checkpoint names its checkpoint directory"
        )
    return folder.absolute()
