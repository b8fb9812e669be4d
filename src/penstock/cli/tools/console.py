"""`penstock console`: a link that signs a browser in to the console of a server."""

from __future__ import annotations

import typer

from penstock.cli.jobs.connection import asking
from penstock.client import Client


@asking
def console(client: Client) -> None:
    """Print a link that signs a browser in to the console, once, within ten minutes."""
    typer.echo(client.sign_in_link())
