"""`penstock topology`: pauses the spouts of a flow that runs, and lets them go on."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.flows.checkpoint import CheckpointOption, checkpoint_of
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import show_json
from penstock.live.activation import Activation
from penstock.location import Address

group = typer.Typer(name="topology", help="Pause the spouts of a topology, and let them go on.", no_args_is_help=True)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FLOW",
        help="FILE.py[:topology], package.module[:topology], or a checkpoint (a directory or a URL)",
        show_default=False,
    ),
]
Debug = Annotated[bool, option("--debug", help="Show full tracebacks.")]
AsJson = Annotated[bool, option("--json", help="Print JSON, for programs.")]


@group.command()
def deactivate(target: Target, checkpoint: CheckpointOption = None, debug: Debug = False) -> None:
    """Pause the spouts after the batch under way. What they have emitted is processed; a restart leaves them paused."""
    with handled(debug=debug, runs=False):
        _ask(checkpoint_of(target, checkpoint), on=False)


@group.command()
def activate(target: Target, checkpoint: CheckpointOption = None, debug: Debug = False) -> None:
    """Let the spouts go on."""
    with handled(debug=debug, runs=False):
        _ask(checkpoint_of(target, checkpoint), on=True)


@group.command()
def status(target: Target, checkpoint: CheckpointOption = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Say whether the spouts emit."""
    with handled(debug=debug, runs=False):
        is_active = _activation(checkpoint_of(target, checkpoint)).is_active
        if as_json:
            show_json({"active": is_active})
        else:
            typer.echo(_word(is_active))


def _activation(folder: Address) -> Activation:
    return Activation(folder / "topology")


def _ask(folder: Address, *, on: bool) -> None:
    is_new = _activation(folder).ask(on)
    typer.echo(f"{_word(on)}; a run follows before its next batch" if is_new else f"{_word(on)} already")


def _word(is_active: bool) -> str:
    return "activated" if is_active else "deactivated"
