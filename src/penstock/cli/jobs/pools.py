"""`penstock pools`: how many cores and how much memory jobs may have together, and one owner of them."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.jobs.connection import Json, asking, removing
from penstock.cli.jobs.needs import mebibytes
from penstock.cli.options import option
from penstock.cli.output.listing import show, show_json
from penstock.client import Client
from penstock.client.answers import Pool

group = typer.Typer(name="pools", help="Limit what jobs may take of a machine.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="POOL", help="The name of the pool.", show_default=False)]


@group.command("list")
@asking
def list_pools(client: Client, as_json: Json = False) -> None:
    """List the pools that have limits, and what those are."""
    found = client.pools()
    show_json(found) if as_json else show([_row(pool) for pool in found], "no pools: jobs have no limits")


@group.command("set")
@asking
def set_pool(
    client: Client,
    name: Name,
    cores: Annotated[int | None, option(min=1, help="Cores of all jobs.", show_default="no limit")] = None,
    memory: Annotated[str, option(metavar="SIZE", help="Memory of all jobs: 16g.", show_default="no limit")] = "",
    owner_cores: Annotated[int | None, option(min=1, help="Cores of one owner.", show_default="no limit")] = None,
    owner_memory: Annotated[str, option(metavar="SIZE", help="Memory of one owner.", show_default="no limit")] = "",
    as_json: Json = False,
) -> None:
    """Make a pool, or give one other limits; what is left out has none. Jobs that run go on."""
    limits = {
        "cores": cores,
        "memory": mebibytes("--memory", memory),
        "owner_cores": owner_cores,
        "owner_memory": mebibytes("--owner-memory", owner_memory),
    }
    made = client.set_pool(name, limits)
    show_json(made) if as_json else show([_row(made)], "")


def _row(pool: Pool) -> dict[str, object]:
    """A pool as a row of the list; memory with its unit."""
    sizes = {name: f"{value} MiB" if value else None for name, value in pool.items() if name.endswith("memory")}
    return {**pool, **sizes}


group.command("remove")(removing("pool", "Forget a pool that has no jobs.", Client.remove_pool))
