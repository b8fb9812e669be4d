"""`penstock savepoint`: a copy of a flow's state and offsets, to go back to or to start a changed flow from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.cli.flows.checkpoint import CheckpointOption, checkpoint_of
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.spark.checkpoint.savepoint import describe, directory_of, fresh_name, saved, take
from penstock.spark.checkpoint.sparklog import SparkLog


def savepoint(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FLOW",
            help="FILE.py[:flow], package.module[:flow], or a checkpoint (a directory or a URL)",
            show_default=False,
        ),
    ],
    name: Annotated[
        str, typer.Argument(help="A name, or a path with a slash or a URL.", show_default="version and time")
    ] = "",
    checkpoint: CheckpointOption = None,
    version: Annotated[
        int | None, option(help="Which version; batch N makes version N.", show_default="the newest")
    ] = None,
    copy: Annotated[bool, option("--copy", help="Copy the files, also where hard links would do.")] = False,
    list_: Annotated[
        bool, option("--list", envvar="PENSTOCK_SAVEPOINT_LIST", help="List the savepoints that are there.")
    ] = False,
    as_json: Annotated[bool, option("--json", help="Print JSON, for programs.")] = False,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Save the state and the offsets of a flow, while it runs or after. `penstock run FLOW --from NAME` starts from it."""
    with handled(debug=debug, runs=False):
        folder = checkpoint_of(target, checkpoint)
        if list_:
            found = [describe(s) for s in saved(folder)]
            typer.echo(json.dumps(found, indent=1) if as_json else "\n".join(map(_line, found)) or "no savepoints")
            return
        number = SparkLog(folder / "spark").last() if version is None else version
        made = describe(take(folder, directory_of(name or fresh_name(number), folder), version, copy=copy))
        typer.echo(json.dumps(made, indent=1) if as_json else _line(made))


def _line(about: dict[str, object]) -> str:
    files = "1 file" if about["files"] == 1 else f"{about['files']} files"
    return "{savepoint}: version {version} of {flow}, {made}, {many}, {bytes:,} bytes".format(many=files, **about)
