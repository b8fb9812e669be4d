"""`penstock jobs upgrade`: another version of a job, with a way back."""

from __future__ import annotations

from typing import Annotated

from penstock.cli.duration import seconds
from penstock.cli.jobs.code import SentFlow, given_options
from penstock.cli.jobs.connection import Json, Name, Server, TokenFile, asked, tell
from penstock.cli.options import FlowTarget, option, run_options
from penstock.cli.tools.server import Data
from penstock.graph.run import RunSpec
from penstock.jobs.load import load_flow
from penstock.jobs.run import use_py_files


@run_options("jobs_upgrade")
def upgrade(
    name: Name,
    target: FlowTarget,
    trial: Annotated[
        str, option(metavar="SPAN", help="The time in which the new version must come up, or the job goes back.")
    ] = "5m",
    include: Annotated[
        list[str] | None, option(metavar="GLOB", help="Further files for the bundle, such as 'data/*.csv'.")
    ] = None,
    data: Data = None,
    server: Server = "",
    token_file: TokenFile = None,
    as_json: Json = False,
    **options: object,
) -> None:
    """Run another version of a job, from a savepoint of the one that runs; if it does not come up, that one goes on. Options of before hold, unless given anew."""
    with asked(data, server, token_file) as client:
        spec = RunSpec.of(**options)
        use_py_files(spec.py_files)
        sent = SentFlow.of(load_flow(target), include or [], is_new=False)
        bundle, given = client.bundle(sent.archive), given_options(spec)
        made = client.upgrade(name, bundle, sent.target(target), given, seconds(trial), sent.packages)
        tell(made, as_json=as_json)
