"""`penstock submit`: a flow as a job, which runs on when this terminal is closed."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.flows.jobs import Json, Server, TokenFile, client_of, row_of
from penstock.cli.options import option, run_options
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import show
from penstock.cli.tools.server import Data
from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.graph.run import run_options as declared
from penstock.jobs.load import LoadedFlow, load_flow
from penstock.jobs.manager.bundle import pack
from penstock.jobs.run import use_py_files
from penstock.jobs.ship import user_modules


@run_options("submit")
def submit(
    target: Annotated[
        str, typer.Argument(help="FILE.py[:flow], package.module[:flow], FILE.sql or FILE.yaml", show_default=False)
    ],
    name: Annotated[str, option(metavar="NAME", help="The name of the job.", show_default="the flow's")] = "",
    include: Annotated[
        list[str] | None, option(metavar="GLOB", help="Further files for the bundle, such as 'data/*.csv'.")
    ] = None,
    data: Data = None,
    server: Server = "",
    token_file: TokenFile = None,
    as_json: Json = False,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
    **options: object,
) -> None:
    """Run a flow as a job of the server: it is built here, its code is sent, and the server keeps it running."""
    with handled(debug=debug, runs=False):
        spec = RunSpec.of(**options)
        use_py_files(spec.py_files)
        flow = load_flow(target)
        client = client_of(data, server, token_file)
        bundle = client.bundle(pack(_files(flow, include or [])))
        made = client.submit(
            name or flow.graph.name.lower(), bundle, _inside(flow, target), _given(spec), key=uuid.uuid4().hex
        )
        typer.echo(json.dumps(made, indent=2)) if as_json else show([row_of(made)], "")


def _given(spec: RunSpec) -> dict[str, object]:
    """The options that are not as they are by themselves."""
    written = spec.to_dict()
    return {n: written[n] for n, o in declared().items() if getattr(spec, n) != o.default}


def _inside(flow: LoadedFlow, target: str) -> str:
    """The flow by its path in the bundle; a module keeps its name."""
    _, colon, name = target.partition(":")
    if flow.path is None or "." in flow.module:
        return f"{flow.module}{colon}{name}"
    return f"{flow.path.name}{colon}{name}"


def _files(flow: LoadedFlow, globs: list[str]) -> list[tuple[str, Path]]:
    """The code of a flow, and the further files, by their paths in the bundle."""
    found = {str(inside): file for inside, file in user_modules([flow.folder, Path.cwd()]).contents()}
    if flow.path is not None and not flow.module.count("."):
        found[flow.path.name] = flow.path
    for glob in globs:
        matched = [path for path in Path().glob(glob) if path.is_file()]
        if not matched:
            raise OptionError(f"--include {glob!r} matches no file of {Path.cwd()}")
        found |= {str(path): path for path in matched}
    return list(found.items())
