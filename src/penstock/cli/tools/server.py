"""`penstock server`: the manager of jobs, and its API."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.errors import SetupError
from penstock.jobs.manager.manager import Manager, default_root

Data = Annotated[
    Path | None,
    option(metavar="DIR", help="Where jobs are kept.", show_default="~/.local/share/penstock/jobs"),
]


def server(
    data: Data = None,
    host: Annotated[str, option(metavar="HOST", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one and prints it.")
    ] = 8880,
    name: Annotated[list[str] | None, option(metavar="NAME", help="A host name by which clients reach it.")] = None,
    cert: Annotated[Path | None, option(metavar="FILE", help="The certificate, for TLS.")] = None,
    key: Annotated[Path | None, option(metavar="FILE", help="The key of the certificate.")] = None,
    plain_http: Annotated[
        bool, option("--plain-http", help="No TLS although others can reach it: a proxy before it speaks TLS.")
    ] = False,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Keep jobs running: what is submitted runs until it is stopped, also when this server is not there."""
    with handled(debug=debug, runs=False):
        serving = _serving()
        where = serving.Listening(host, port, tuple(name or ()), cert, key, plain_http)
        serving.serve(Manager(data or default_root()), where, lambda text: typer.echo(text, err=True))


def _serving() -> ModuleType:
    """What serves, which needs packages of its own."""
    try:
        from penstock.server import serve
    except ModuleNotFoundError as error:
        raise SetupError(f"the server needs {error.name}: pip install 'penstock[server]'") from None
    return serve
