"""`penstock bridge`: records that come over the network go into the log, and are answered when they are on disk."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

import penstock.bridge as bridges
from penstock.bridge import Limits, SocketBridge
from penstock.bridge.guard import Guard
from penstock.bridge.records import Keys
from penstock.bridge.request_format import RequestFormat
from penstock.cli.duration import seconds
from penstock.cli.log.directory import DEFAULT, Debug, LogDir, complain, examples, opened
from penstock.cli.log.topics import byte_count
from penstock.cli.options import option
from penstock.cli.output.listing import count
from penstock.errors import SetupError
from penstock.jobs.exit_codes import FAILED
from penstock.jobs.signals import stop_signals
from penstock.log import Log

if TYPE_CHECKING:
    from penstock.bridge import HttpBridge

    Bridge: TypeAlias = HttpBridge | SocketBridge

group = typer.Typer(name="bridge", help="Take records over the network into the log.", no_args_is_help=True)
GRACE = 9.0

Topic = Annotated[str, option(metavar="TOPIC", help="The topic that records go to.", show_default=False)]
Host = Annotated[str, option(metavar="HOST", help="The address to listen at.")]
Port = Annotated[int, option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one and prints it.")]
KeyField = Annotated[str, option(metavar="FIELD", help="The field of the JSON value that is the key: id, user.id.")]
TokenEnv = Annotated[
    str, option(metavar="NAME", help="The variable of the environment that holds the token to ask for.")
]
TokenFile = Annotated[str, option(metavar="FILE", help="The file that holds the token to ask for.")]
Open = Annotated[bool, option("--open", help="Anyone who can reach the address may hand in records, without a token.")]
MaxWaiting = Annotated[int, option(metavar="N", min=1, help="Requests that may wait for the disk at once.")]
MaxConnections = Annotated[int, option(metavar="N", min=1, help="Connections at once.")]


@group.command(
    epilog=examples(
        "penstock bridge http --topic orders",
        "penstock bridge http --topic hooks --host 0.0.0.0 --port 9000 --token-env HOOK_TOKEN",
        "curl --json '{\"id\": 1}' http://127.0.0.1:8900/topics/orders",
    )
)
def http(  # noqa: PLR0913 - each is an option of the command
    topic: Topic,
    host: Host = "127.0.0.1",
    port: Port = 8900,
    key_header: Annotated[str, option(metavar="NAME", help="The header of a request that is the key.")] = "",
    key_field: KeyField = "",
    keep_header: Annotated[
        list[str] | None,
        option("--keep-header", metavar="NAME", help="A header of a request to keep with its records."),
    ] = None,
    token_env: TokenEnv = "",
    token_file: TokenFile = "",
    anyone: Open = False,
    max_body: Annotated[str, option(metavar="SIZE", help="The longest body.")] = "1MiB",
    max_waiting: MaxWaiting = 1000,
    max_connections: MaxConnections = 1000,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Take records by POST /topics/TOPIC. Answers when they are on disk; Ctrl-C ends it."""
    if key_header and key_field:
        raise typer.BadParameter("--key-header and --key-field exclude each other: one says where the key is")
    guard = _guard(host, token_env, token_file, anyone)
    taking = RequestFormat(key_header, key_field, tuple(keep_header or ()))
    limits = _limits(max_body, max_waiting, max_connections)

    def made(found: Log) -> Bridge:
        return bridges.HttpBridge(found, topic, taking=taking, guard=guard, limits=limits)

    _run(log, made, host, port, f"http://{{}}/topics/{topic}", debug=debug)


@group.command(
    epilog=examples(
        "penstock bridge socket --topic lines",
        "printf '%s\\n' one two | nc -N 127.0.0.1 8901",
        "penstock bridge socket --topic syslog --plain",
    )
)
def socket(  # noqa: PLR0913 - each is an option of the command
    topic: Topic,
    host: Host = "127.0.0.1",
    port: Port = 8901,
    key_separator: Annotated[str, option(metavar="TEXT", help="A line is a key, this text and a value.")] = "",
    key_field: KeyField = "",
    plain: Annotated[bool, option("--plain", help="Do not acknowledge lines: for programs that only send.")] = False,
    token_env: TokenEnv = "",
    token_file: TokenFile = "",
    anyone: Open = False,
    max_line: Annotated[str, option(metavar="SIZE", help="The longest line.")] = "1MiB",
    idle: Annotated[
        str, option(metavar="SPAN", help="Close a connection that says nothing for so long; 0 is never.")
    ] = "10m",
    max_waiting: MaxWaiting = 1000,
    max_connections: MaxConnections = 1000,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Take lines over TCP. Each is acknowledged with `ok PARTITION OFFSET` when it is on disk; Ctrl-C ends it."""
    if key_separator and key_field:
        raise typer.BadParameter("--key-separator and --key-field exclude each other: one says where the key is")
    guard = _guard(host, token_env, token_file, anyone)
    keys = Keys(key_field, key_separator.replace("\\t", "\t").encode())
    limits = _limits(max_line, max_waiting, max_connections, seconds(idle))

    def made(found: Log) -> Bridge:
        return SocketBridge(found, topic, keys=keys, guard=guard, acks=not plain, limits=limits)

    _run(log, made, host, port, "tcp://{}", debug=debug)


def _guard(host: str, variable: str, file: str, anyone: bool) -> Guard:
    if variable and file:
        raise typer.BadParameter("--token-env and --token-file exclude each other: one says where the token is")
    try:
        return Guard.of(host, _token(variable, file), anyone=anyone)
    except SetupError as error:
        raise typer.BadParameter(str(error)) from None


def _token(variable: str, file: str) -> str:
    if not variable and not file:
        return ""
    try:
        token = Path(file).read_text().strip() if file else os.environ.get(variable, "").strip()
    except (OSError, ValueError):
        raise typer.BadParameter(f"--token-file {file} cannot be read") from None
    if not token:
        raise typer.BadParameter(f"{f'the file {file}' if file else f'the variable {variable}'} holds no token")
    return token


def _limits(body: str, waiting: int, connections: int, idle: float = 60.0) -> Limits:
    size = byte_count(body)
    if not 0 < size <= 256 << 20:
        raise typer.BadParameter(f"a record has between 1 byte and 256MiB, got {body}")
    return Limits(body=size, waiting=waiting, held=max(64 << 20, 4 * size), connections=connections, idle_seconds=idle)


def _run(directory: Path, made: Callable[[Log], Bridge], host: str, port: int, shown: str, *, debug: bool) -> None:
    with opened(directory, debug=debug) as found:
        if not asyncio.run(_serve(found, made, host, port, shown)):
            complain("the log did not take the rest in time; what was not answered may not be stored")
            os._exit(FAILED)


def _taken(host: str, port: int, error: OSError) -> str:
    """Why nothing can listen there, and what to do."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    hint = "another program listens there; stop it, or choose another with --port (0 takes a free one)"
    return f"cannot listen at {host}:{port}: {reason.lower()}" + (
        f"; {hint}" if error.errno == errno.EADDRINUSE else ""
    )


async def _serve(log: Log, made: Callable[[Log], Bridge], host: str, port: int, shown: str) -> bool:
    """Serve until asked to stop; whether all that was taken is stored."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    with stop_signals(lambda: loop.call_soon_threadsafe(asked.set)):  # type: ignore[arg-type]  # gives a handle
        bridge = made(log)
        try:
            await bridge.start(host, port)
        except OSError as error:
            raise SetupError(_taken(host, port, error)) from None
        name = f"[{bridge.address[0]}]" if ":" in bridge.address[0] else bridge.address[0]
        typer.echo(f"listening at {shown.format(f'{name}:{bridge.address[1]}')}; Ctrl-C ends", err=True)
        await asked.wait()
        done = await bridge.stop(GRACE)
        typer.echo(f"{bridge.topic}: {count(bridge.intake.count, 'record')} on disk", err=True)
        return done
