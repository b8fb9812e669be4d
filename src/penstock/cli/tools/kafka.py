"""`penstock kafka`: a broker for development, topics and records by hand, and the JARs that Kafka flows need."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import count, show, show_json
from penstock.cli.tools.servers import stop_server
from penstock.connectors.kafka.jars import kafka_jars
from penstock.errors import OptionError
from penstock.graph.run.kinds import pairs
from penstock.jobs.broker import Broker, at
from penstock.jobs.kafka import KafkaTools
from penstock.spark.jvm.jars import get_jars

group = typer.Typer(
    name="kafka", help="Kafka: a broker for development, topics and records by hand.", no_args_is_help=True
)

PORT = 9092
Folder = Annotated[Path, option(help="Where the broker keeps its data.")]
Debug = Annotated[bool, option("--debug", help="Show full tracebacks.")]
_FOLDER = Path(".penstock") / "kafka"
Servers = Annotated[str, option(help="The bootstrap servers.")]
Settings = Annotated[
    list[str] | None,
    option("--setting", metavar="KEY=VALUE", help="A setting of the client, such as sasl.username=ada."),
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)]
_SERVERS = f"127.0.0.1:{PORT}"


@group.command()
def start(
    folder: Folder = _FOLDER,
    port: Annotated[int, option(help="Where it listens on 127.0.0.1; 0 takes a free port.")] = PORT,
    heap: Annotated[str, option(help="How much memory its JVM may use.")] = "512m",
    debug: Debug = False,
) -> None:
    """Start a broker of one node and leave it running. The first time its JARs (43 MB) are fetched."""
    with handled(debug=debug, runs=False):
        running = at(folder)
        if running is not None:
            typer.echo(f"runs already: {running.address} (process {running.pid})")
            return
        broker = Broker(folder, port, heap).start(detached=True)
        typer.echo(f"started: {broker.address} (process {broker.pid}, log {broker.log})")


@group.command()
def stop(folder: Folder = _FOLDER, debug: Debug = False) -> None:
    """Stop the broker; its data stays."""
    with handled(debug=debug, runs=False):
        stop_server(at(folder), "broker")


@group.command()
def status(folder: Folder = _FOLDER, debug: Debug = False) -> None:
    """Say whether a broker runs, and where. Ends with 1 when none does."""
    with handled(debug=debug, runs=False):
        running = at(folder)
        if running is None:
            typer.echo(f"no broker runs in {folder}; penstock kafka start")
            raise typer.Exit(1)
        typer.echo(f"runs: {running.address} (process {running.pid}, data {folder / 'data'})")


@group.command()
def jars(debug: Debug = False) -> None:
    """Fetch the JARs of Spark's Kafka connector and print where they are, for spark-submit --jars."""
    with handled(debug=debug, runs=False):
        typer.echo(",".join(map(str, get_jars(kafka_jars()))))


@group.command()
def topics(
    create: Annotated[str, option(metavar="TOPIC", help="Make a topic.", show_default=False)] = "",
    partitions: Annotated[int, option(min=1, help="How many partitions it has.")] = 1,
    delete: Annotated[
        str, option(metavar="TOPIC", help="Delete a topic with all its records.", show_default=False)
    ] = "",
    servers: Servers = _SERVERS,
    setting: Settings = None,
    as_json: Annotated[bool, option("--json", help="Print JSON, for programs.")] = False,
    debug: Debug = False,
) -> None:
    """List the topics of a cluster, or make or delete one."""
    with handled(debug=debug, runs=False):
        tools = _tools(servers, setting)
        if create:
            tools.create(create, partitions)
            typer.echo(f"created {create}: {count(partitions, 'partition')}")
        if delete:
            tools.delete(delete)
            typer.echo(f"deleted {delete}")
        if not create and not delete:
            found = tools.topics()
            show_json(found) if as_json else show(
                found, f"no topics at {servers}; penstock kafka topics --create TOPIC"
            )


@group.command()
def produce(
    topic: Topic,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to read.", show_default="standard input")] = "-",
    key_separator: Annotated[str, option(metavar="TEXT", help="A line is a key, this text and a value.")] = "",
    servers: Servers = _SERVERS,
    setting: Settings = None,
    debug: Debug = False,
) -> None:
    """Put a record into a topic for each line. Says how many when they are stored."""
    with handled(debug=debug, runs=False):
        if file != "-" and not Path(file).is_file():
            raise OptionError(f"there is no file {file}; - is standard input")
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as lines:
            cut = (line.rstrip(b"\r\n") for line in lines)
            many = _tools(servers, setting).produce(topic, cut, key_separator.encode())
        typer.echo(f"{topic}: {count(many, 'record')} stored", err=True)


@group.command()
def consume(
    topic: Topic,
    latest: Annotated[
        bool, option("--latest", help="Begin with what arrives from now on; goes with --follow.")
    ] = False,
    follow: Annotated[bool, option("--follow", "-f", help="Go on with what arrives; Ctrl-C ends.")] = False,
    limit: Annotated[int | None, option(min=1, help="At most so many records.", show_default=False)] = None,
    as_json: Annotated[bool, option("--json", help="Partition, offset, time, key and value as JSON lines.")] = False,
    servers: Servers = _SERVERS,
    setting: Settings = None,
    debug: Debug = False,
) -> None:
    """Print the values of a topic, a line for each record."""
    with handled(debug=debug, runs=False):
        records = _tools(servers, setting).consume(topic, latest=latest, follow=follow)
        try:
            for record in islice(records, limit):
                typer.echo(record.as_json() if as_json else record.value or "")
        except KeyboardInterrupt:
            if not follow:
                raise
        finally:
            records.close()  # type: ignore[attr-defined]  # it is a generator


def _tools(servers: str, settings: list[str] | None) -> KafkaTools:
    try:
        return KafkaTools(servers, pairs(example="sasl.username=ada").read(settings))
    except ValueError as error:
        raise OptionError(f"--setting: {error}, got {settings}") from None
