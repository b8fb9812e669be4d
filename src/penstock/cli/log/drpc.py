"""`penstock drpc`: call functions that flows serve, and serve calls by HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from penstock.bridge.drpc.calls import CallLimits, Calls
from penstock.bridge.guard import Guard
from penstock.bridge.listening import listening_socket
from penstock.cli.duration import seconds
from penstock.cli.log.directory import DEFAULT, Debug, LogDir, examples, reported
from penstock.cli.log.topics import byte_count
from penstock.cli.options import option
from penstock.drpc import Client, LogClient
from penstock.errors import SetupError

group = typer.Typer(name="drpc", help="Call functions that flows serve.", no_args_is_help=True)

TokenEnv = Annotated[str, option("--token-env", metavar="NAME", help="The variable that holds the token.")]
TokenFile = Annotated[str, option("--token-file", metavar="FILE", help="The file that holds the token.")]
Timeout = Annotated[str, option("--timeout", metavar="SPAN", help="How long a call waits for its answer.")]


@group.command(
    epilog=examples(
        "penstock drpc call reach foo.com",
        "penstock drpc call reach foo.com --url http://10.0.0.5:3774 --token-env DRPC_TOKEN",
        "penstock drpc call reach foo.com --log .penstock/log",
    )
)
def call(
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="The function.", show_default=False)],
    args: Annotated[str, typer.Argument(metavar="ARGS", help="Its arguments; - reads them from standard input.")] = "",
    url: Annotated[str, option("--url", metavar="URL", help="The server.")] = "http://127.0.0.1:3774",
    log: Annotated[
        Path | None, option("--log", metavar="DIR", help="Call through this log, without a server.", show_default=False)
    ] = None,
    timeout: Timeout = "600s",
    token_env: TokenEnv = "",
    token_file: TokenFile = "",
    debug: Debug = False,
) -> None:
    """Call a function and print its answer."""
    given = sys.stdin.read() if args == "-" else args
    with reported(debug=debug):
        if log is not None:
            with LogClient(log, timeout=seconds(timeout)) as client:
                typer.echo(client.execute(function, given))
            return
        typer.echo(Client(url, token=_token(token_env, token_file), timeout=seconds(timeout)).execute(function, given))


@group.command(epilog=examples("penstock drpc serve", "curl http://127.0.0.1:3774/drpc/reach/foo.com"))
def serve(  # noqa: PLR0913 - each is an option of the command
    host: Annotated[str, option("--host", metavar="HOST", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, option("--port", metavar="PORT", help="Where to listen.", min=0, max=65535)] = 3774,
    timeout: Timeout = "600s",
    queue: Annotated[int, option("--queue", metavar="N", help="How many calls of a function may wait.", min=1)] = 128,
    max_args: Annotated[str, option("--max-args", metavar="SIZE", help="The longest arguments.")] = "1MiB",
    token_env: TokenEnv = "",
    token_file: TokenFile = "",
    anyone: Annotated[bool, option("--open", help="Anyone who can reach it may call, without a token.")] = False,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Serve calls by GET /drpc/FUNCTION/ARGS and POST /drpc/FUNCTION; Ctrl-C ends it."""
    try:
        guard = Guard.of(host, _token(token_env, token_file), anyone=anyone)
        limits = CallLimits(queue, seconds(timeout), byte_count(max_args))
    except SetupError as error:
        raise typer.BadParameter(str(error)) from None
    with reported(debug=debug), Calls(log, limits) as calls, listening_socket(host, port) as listening:
        served = _served()
        typer.echo(f"calls at http://{host}:{listening.getsockname()[1]}/drpc/FUNCTION/ARGS; Ctrl-C ends", err=True)
        served.serve_calls(calls, guard, listening)


def _served() -> ModuleType:
    """What serves calls, which needs packages of its own."""
    try:
        from penstock.bridge.drpc import app
    except ModuleNotFoundError as error:
        raise SetupError(f"the server of calls needs {error.name}: pip install 'penstock[server]'") from None
    return app


def _token(variable: str, file: str) -> str:
    if variable and file:
        raise typer.BadParameter("--token-env and --token-file exclude each other: one says where the token is")
    if not variable and not file:
        return ""
    try:
        found = Path(file).read_text().strip() if file else os.environ.get(variable, "").strip()
    except (OSError, ValueError):
        raise typer.BadParameter(f"--token-file {file} cannot be read") from None
    if not found:
        raise typer.BadParameter(f"{f'the file {file}' if file else f'the variable {variable}'} holds no token")
    return found
