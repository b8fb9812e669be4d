"""Where a flow keeps its place: what `FLOW` stands for in commands that look at it rather than run it."""

from __future__ import annotations

from pathlib import Path

from penstock.cli.load import load_flow
from penstock.errors import CheckpointError


def checkpoint_of(target: str, given: Path | None = None) -> Path:
    """The checkpoint folder of a flow: the one that is given, a folder itself, or where the flow runs by default."""
    if given is not None:
        return _found(given)
    if Path(target).is_dir():
        return _found(Path(target))
    return _found(Path(".penstock") / load_flow(target).graph.name)


def _found(folder: Path) -> Path:
    if not (folder / "flow.json").exists():
        raise CheckpointError(
            f"{folder} is no checkpoint folder: no flow has begun there. Has it run yet, and from this folder? "
            f"--checkpoint says where it keeps its place"
        )
    return folder.absolute()
