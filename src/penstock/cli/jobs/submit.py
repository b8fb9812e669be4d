"""`penstock submit`: a flow as a job, which runs on when this terminal is closed."""

from __future__ import annotations

import json
import uuid
from typing import Annotated

import typer

from penstock.cli.jobs.code import SentFlow, given_options
from penstock.cli.jobs.connection import Json, Server, TokenFile, client_of, row_of
from penstock.cli.jobs.needs import needs_of
from penstock.cli.options import FlowTarget, option, run_options
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import show
from penstock.cli.tools.server import Data
from penstock.graph.run import RunSpec
from penstock.jobs.load import load_flow
from penstock.jobs.run import use_py_files


@run_options("submit")
def submit(  # noqa: PLR0913 - options of a command
    target: FlowTarget,
    name: Annotated[str, option(metavar="NAME", help="The name of the job.", show_default="the flow's")] = "",
    include: Annotated[
        list[str] | None, option(metavar="GLOB", help="Further files for the bundle, such as 'data/*.csv'.")
    ] = None,
    needs: Annotated[
        list[str] | None,
        option(
            "--needs",
            metavar="NAME=VALUE",
            help="What the job asks for: pool=NAME, cores=N, memory=4g, priority=N; may be repeated.",
        ),
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
        sent = SentFlow.of(load_flow(target), include or [])
        client = client_of(data, server, token_file)
        bundle, key = client.bundle(sent.archive), uuid.uuid4().hex
        called, asked = name or sent.flow.graph.name.lower(), needs_of(needs or [])
        made = client.submit(called, bundle, sent.target(target), given_options(spec), key, asked, sent.packages)
        typer.echo(json.dumps(made, indent=2)) if as_json else show([row_of(made)], "")
