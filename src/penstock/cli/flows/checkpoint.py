"""The checkpoint of a flow: what `FLOW` stands for in commands that look at it rather than run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from penstock.cli.options import option
from penstock.errors import CheckpointError
from penstock.jobs.load import load_flow
from penstock.location import Address, address_of, is_url
from penstock.storage import open_storage

BEGUN = "flow.json"
"""The note that a live flow makes when it begins."""
CheckpointOption = Annotated[
    str | None,
    option(
        "--checkpoint", metavar="DIR|URL", help="The checkpoint: a directory or a URL.", show_default=".penstock/FLOW"
    ),
]


def checkpoint_of(target: str, given: str | None = None, *, holds: tuple[str, ...] = (BEGUN,)) -> Address:
    """The checkpoint of a flow: the one that is given, a directory or URL itself, or where the flow runs by default.

    It must hold one of some parts; a bounded run leaves no note that it has begun.
    """
    if given is not None:
        return _found(address_of(given), holds)
    if is_url(target) or Path(target).is_dir():
        return _found(address_of(target), holds)
    return _found(Path(".penstock") / load_flow(target).graph.name, holds)


def _found(folder: Address, holds: tuple[str, ...]) -> Address:
    if not any(_has(folder, part) for part in holds):
        raise CheckpointError(
            f"{folder} is no checkpoint folder: no flow has begun there. Has it run yet, and from this folder? "
            f"--checkpoint names its checkpoint"
        )
    return folder.absolute()


def _has(folder: Address, part: str) -> bool:
    """Whether a checkpoint has a part; of a directory also one that is empty."""
    return (folder / part).exists() if isinstance(folder, Path) else part in open_storage(folder).children()
