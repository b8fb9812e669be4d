"""`penstock tokens`: who may speak to the server of jobs, in which role and for how long."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated

import typer

from penstock.cli.duration import seconds
from penstock.cli.jobs.connection import Json, asking
from penstock.cli.options import one_of, option
from penstock.cli.output.listing import show, show_json
from penstock.client import Client
from penstock.jobs.manager.access.tokens import ROLES

group = typer.Typer(name="tokens", help="Make, list and revoke tokens of the server of jobs.", no_args_is_help=True)


@group.command("make")
@asking
def make(
    client: Client,
    owner: Annotated[str, typer.Argument(help="Whose it is.", show_default=False)],
    role: Annotated[str, option(metavar="ROLE", help="viewer, operator, developer or admin.")] = "viewer",
    expires: Annotated[str, option(metavar="SPAN", help="When it ends: 12h, 30d.", show_default="never")] = "",
) -> None:
    """Make a token and print it. It is shown once: the server keeps a hash of it."""
    made = client.make_token(owner, one_of("--role", role, *ROLES), seconds(expires) if expires else None)
    typer.echo(made["token"])
    typer.echo(f"token {made['id']}: {made['role']} {made['owner']}, {_end(made)}", err=True)


@group.command("list")
@asking
def list_tokens(client: Client, as_json: Json = False) -> None:
    """List tokens: whose they are, not what they are."""
    found = client.tokens()
    rows = [
        {"token": t["id"], "owner": t["owner"], "role": t["role"], "ends": _end(t), "used": _used(t)} for t in found
    ]
    show_json(found) if as_json else show(rows, "no tokens")


@group.command("revoke")
@asking
def revoke(
    client: Client,
    token: Annotated[str, typer.Argument(metavar="ID", help="The id of the token.", show_default=False)],
) -> None:
    """End a token at once."""
    client.revoke_token(token)
    typer.echo(f"revoked {token}", err=True)


def _end(token: Mapping[str, object]) -> str:
    """When a token ends, in words."""
    if token["revoked"] is not None:
        return "revoked"
    if token["expires"] is None:
        return "holds until it is revoked"
    moment = float(str(token["expires"]))
    return f"{'ended' if moment < time.time() else 'ends'} {_moment(moment)}"


def _used(token: Mapping[str, object]) -> str:
    return "-" if token["used"] is None else _moment(float(str(token["used"])))


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
