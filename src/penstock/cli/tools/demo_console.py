"""The demo as a job: a server of its own, the console, and posts that go into the log until Ctrl-C."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import typer

from penstock.cli.tools.server import serving_module
from penstock.client import Client
from penstock.demo.feed import PostFeed
from penstock.demo.job import NAME, job_file
from penstock.graph.run import RunSpec
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.manager import Manager
from penstock.jobs.signals import stop_signals

PORT = 8880
"""The port of the console, where it is free."""
PATIENCE = 30.0
"""How many seconds the job may take to end after its batch."""


def demo_console(folder: Path, rate: int, spec: RunSpec, port: int = 0, driver: tuple[str, ...] = ()) -> None:
    """Runs the demo as a job of a server that lives as long as this command, and leaves nothing behind."""
    serve = serving_module()
    manager, stopped = Manager(folder / "jobs", driver), threading.Event()
    where = serve.Listening(port=port or _free(PORT))
    with serve.serving(manager, where), stop_signals(stopped.set), PostFeed(folder / "log", rate):
        client = Client.found(manager.root)
        file = folder / "trending.py"
        file.write_text(job_file(folder, time.time()))
        options = {"interval": f"{spec.interval:g}s", **({"master": spec.master} if spec.master else {})}
        client.submit(NAME, client.bundle(pack([(file.name, file)])), file.name, options)
        typer.echo(f"{NAME}: {rate:,} posts a second, as a job")
        typer.echo(f"the console: {client.sign_in_link()}")
        typer.echo(
            "the link signs in once; the graph moves when Spark has started, in about ten seconds. Ctrl-C stops it"
        )
        try:
            stopped.wait(spec.duration)
        finally:
            typer.echo("stopping")
            _end(manager)


def _end(manager: Manager) -> None:
    """Ends the jobs after their batches, or at once when that takes too long."""
    deadline = time.monotonic() + PATIENCE
    for state in manager.states():
        manager.wish(state.job.name, "stopped", "demo")
    while any(state.is_supervised for state in manager.states()):
        if time.monotonic() > deadline:
            for state in manager.states():
                manager.wish(state.job.name, "stopped", "demo", is_forced=True)
            deadline = float("inf")
        time.sleep(0.2)
    for process in list(manager.supervisors.values()):
        process.wait(PATIENCE)


def _free(port: int) -> int:
    """The port, or 0 when something listens there."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port
