"""What the commands for servers of one's own have in common."""

from __future__ import annotations

from typing import Protocol

import typer


class RunningServer(Protocol):
    """A server that runs on this machine."""

    @property
    def pid(self) -> int:
        """Its process."""

    def stop(self) -> None:
        """Ends it; its data stays."""


def stop_server(running: RunningServer | None, what: str) -> None:
    """Ends a server, and says so."""
    if running is None:
        typer.echo(f"no {what} runs here")
        return
    running.stop()
    typer.echo(f"stopped: process {running.pid}")
