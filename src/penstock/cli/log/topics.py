"""`penstock topics`: create, list, describe, clean and delete the topics of the log."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.cli.duration import seconds
from penstock.cli.log.directory import DEFAULT, AsJson, Debug, LogDir, TopicName, examples, opened
from penstock.cli.options import option
from penstock.cli.output.listing import count, show, show_json, size, span
from penstock.log import Log, TopicConfig, TopicInfo

group = typer.Typer(name="topics", help="The topics of the log: create, list, describe, delete.", no_args_is_help=True)
_UNITS = {"": 1, "b": 1} | {f"{p}b": 1000**n for n, p in enumerate("kmgt", 1)}
_UNITS |= {f"{p}ib": 1024**n for n, p in enumerate("kmgt", 1)}


def byte_count(text: str) -> int:
    """The bytes in `1000`, `10MB`, `64MiB`.

    >>> byte_count("1000"), byte_count("10MB"), byte_count("1.5 KiB")
    (1000, 10000000, 1536)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise typer.BadParameter(f"{text!r} is not a size; write 1000000, 10MB or 64MiB")
    return int(float(match[1]) * _UNITS[match[2]])


@group.command(
    epilog=examples(
        "penstock topics create orders",
        "penstock topics create orders --partitions 4 --retention 7d",
        "penstock topics create prices --compact",
    )
)
def create(  # noqa: PLR0913 - each is an option of the command
    topic: TopicName,
    partitions: Annotated[int, option(min=1, help="How many partitions; fixed from then on.")] = 1,
    retention: Annotated[
        str, option(metavar="SPAN", help="Keep records so long: 12h, 7d.", show_default="for ever")
    ] = "",
    retention_bytes: Annotated[
        str, option(metavar="SIZE", help="Keep about so much of a partition: 500MB, 2GiB.", show_default="all")
    ] = "",
    segment_bytes: Annotated[
        str, option(metavar="SIZE", help="Close a file of this size and begin another.", show_default="64MiB")
    ] = "",
    compact: Annotated[bool, option("--compact", help="Keep the last record of each key, instead of by age.")] = False,
    if_not_exists: Annotated[bool, option("--if-not-exists", help="Do nothing when the topic is there.")] = False,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Create a topic, and the log where there is none."""
    settings: dict[str, Any] = {"cleanup": "compact"} if compact else {}
    if compact and (retention or retention_bytes):
        raise typer.BadParameter(
            "--compact keeps the last record of each key; --retention and --retention-bytes do not go with it"
        )
    if retention:
        settings["retention_ms"] = int(seconds(retention) * 1000)
    if retention_bytes:
        settings["retention_bytes"] = byte_count(retention_bytes)
    if segment_bytes:
        settings["segment_bytes"] = byte_count(segment_bytes)
    with opened(log, debug=debug, create=True) as found:
        if if_not_exists and topic in found.topics():
            typer.echo(f"{topic} is there already")
            return
        made = found.create_topic(topic, partitions, **settings)
        typer.echo(f"created {topic}: {_settings(made.config)}")


@group.command("list", epilog=examples("penstock topics list", "penstock topics list --json | jq -r '.[].topic'"))
def list_(log: LogDir = DEFAULT, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the topics."""
    with opened(log, debug=debug) as found:
        rows = [_row(found.describe(name)) for name in found.topics()]
        if as_json:
            show_json(rows)
            return
        for row in rows:
            row["bytes"] = size(row["bytes"])
            row["retention"] = _retention(row.pop("retention_ms"), row.pop("retention_bytes"))
        show(rows, f"no topics in {log}; `penstock topics create TOPIC` makes one")


def _row(info: TopicInfo) -> dict[str, Any]:
    return {
        "topic": info.name,
        "partitions": len(info.partitions),
        "offsets": sum(p.end - p.start for p in info.partitions),
        "bytes": sum(p.bytes for p in info.partitions),
        "cleanup": info.config.cleanup,
        "retention_ms": info.config.retention_ms,
        "retention_bytes": info.config.retention_bytes,
    }


def _retention(ms: int | None, most: int | None) -> str:
    return (
        " or ".join(([span(ms)] if ms is not None else []) + ([size(most)] if most is not None else [])) or "for ever"
    )


@group.command(epilog=examples("penstock topics describe orders"))
def describe(topic: TopicName, log: LogDir = DEFAULT, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show the settings of a topic, the offsets and sizes of its partitions, and damage that was found."""
    with opened(log, debug=debug) as found:
        info = found.describe(topic)
        if as_json:
            show_json({"topic": topic, **asdict(info.config), "partitions": [asdict(p) for p in info.partitions]})
            return
        typer.echo(f"{topic}: {_settings(info.config)}")
        show([_partition(p) for p in asdict(info)["partitions"]], "")
        for damage in (d for p in info.partitions for d in p.damage):
            typer.secho(f"damaged: {damage}", fg="red")


def _settings(config: TopicConfig) -> str:
    kept = "the last record of each key is kept"
    if config.cleanup == "delete":
        kept = f"kept {_retention(config.retention_ms, config.retention_bytes)}"
    return f"{count(config.partitions, 'partition')}, {kept}, segments of {size(config.segment_bytes)}"


def _partition(info: dict[str, Any]) -> dict[str, Any]:
    return {**{k: v for k, v in info.items() if k != "damage"}, "bytes": size(info["bytes"])}


@group.command(epilog=examples("penstock topics clean", "penstock topics clean prices"))
def clean(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default="all")] = "",
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Apply retention and compaction now. Retention is also applied when a segment is closed, compaction only here."""
    with opened(log, debug=debug) as found:
        for name in [topic] if topic else found.topics():
            typer.echo(f"{name}: {_cleaned(found, name)}")


def _cleaned(log: Log, topic: str) -> str:
    compacted = log.describe(topic).config.cleanup == "compact"
    return f"{count(log.clean(topic), 'record' if compacted else 'segment')} removed"


@group.command(epilog=examples("penstock topics delete orders --yes"))
def delete(
    topic: TopicName,
    yes: Annotated[bool, option("--yes", "-y", help="Do not ask.")] = False,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Delete a topic with all its records. There is no way back."""
    with opened(log, debug=debug) as found:
        if not yes:
            _ask(topic, sum(end - start for start, end in found.offsets(topic).values()))
        found.delete_topic(topic)
        typer.echo(f"deleted {topic}")


def _ask(topic: str, offsets: int) -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"--yes is needed: {topic} holds {count(offsets, 'offset')}, and there is no way back")
    typer.confirm(f"Delete {topic} with {count(offsets, 'offset')}? There is no way back", abort=True)
