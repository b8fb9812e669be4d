"""`penstock kafka`: a broker for development, and the JARs that Kafka flows need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.connectors.kafka.jars import kafka_jars
from penstock.jobs.broker import Broker, at
from penstock.spark.jvm.jars import get_jars

app = typer.Typer(name="kafka", help="A Kafka broker on this machine, for development.", no_args_is_help=True)

PORT = 9092
Folder = Annotated[Path, option(help="Where the broker keeps its data.")]
Debug = Annotated[bool, option("--debug", help="Show whole tracebacks.")]
_FOLDER = Path(".penstock") / "kafka"


@app.command()
def start(
    folder: Folder = _FOLDER,
    port: Annotated[int, option(help="Where it listens on 127.0.0.1; 0 takes a free port.")] = PORT,
    heap: Annotated[str, option(help="How much memory its JVM may use.")] = "512m",
    debug: Debug = False,
) -> None:
    """Start a broker of one node and leave it running. The first time its JARs (43 MB) are fetched."""
    with handled(debug=debug):
        running = at(folder)
        if running is not None:
            typer.echo(f"runs already: {running.address} (process {running.pid})")
            return
        broker = Broker(folder, port, heap).start(detached=True)
        typer.echo(f"started: {broker.address} (process {broker.pid}, log {broker.log})")


@app.command()
def stop(folder: Folder = _FOLDER, debug: Debug = False) -> None:
    """Stop the broker; its data stays."""
    with handled(debug=debug):
        running = at(folder)
        if running is None:
            typer.echo("no broker runs here")
            return
        running.stop()
        typer.echo(f"stopped: process {running.pid}")


@app.command()
def status(folder: Folder = _FOLDER, debug: Debug = False) -> None:
    """Say whether a broker runs, and where. Ends with 1 when none does."""
    with handled(debug=debug):
        running = at(folder)
        if running is None:
            typer.echo(f"no broker runs in {folder}; penstock kafka start")
            raise typer.Exit(1)
        typer.echo(f"runs: {running.address} (process {running.pid}, data {folder / 'data'})")


@app.command()
def jars(debug: Debug = False) -> None:
    """Fetch the JARs of Spark's Kafka connector and print where they are, for spark-submit --jars."""
    with handled(debug=debug):
        typer.echo(",".join(map(str, get_jars(kafka_jars()))))
