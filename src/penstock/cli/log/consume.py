"""`penstock consume`: the records of a topic on standard output, as they come or as they are."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from penstock.cli.log.directory import DEFAULT, Debug, LogDir, TopicName, examples, opened
from penstock.cli.log.positions import at_offsets, at_time, chosen, moment
from penstock.cli.log.record_text import FORMATS, Formatter, Lines, json_line
from penstock.cli.options import option
from penstock.cli.output.listing import count
from penstock.jobs.signals import StopSignals, stop_signals
from penstock.log import Consumer, Log, LogDamaged, Record, TopicPartition

if TYPE_CHECKING:
    from penstock.jobs.subscriptions import Subscriptions

EXAMPLES = examples(
    "penstock consume orders",
    "penstock consume orders --from-beginning --max 10",
    "penstock consume orders --no-follow --where \"amount > 10 and kind = 'web'\" --format json",
    "penstock consume orders --offset 0:42 --no-follow",
    "penstock consume orders --from-time 15m",
    "penstock consume orders --group billing",
)
_POLL = 1000
_WAIT = 0.2
_COMMIT = 1.0


@dataclass(frozen=True)
class Start:
    """Where to begin: one of these, or else the end when following and the beginning when not."""

    beginning: bool
    offsets: tuple[str, ...]
    time: str
    partitions: tuple[int, ...]
    follow: bool

    def __post_init__(self) -> None:
        if self.beginning + bool(self.offsets) + bool(self.time) > 1:
            raise typer.BadParameter(
                "--from-beginning, --offset and --from-time exclude each other: each says where to begin"
            )

    @property
    def said(self) -> bool:
        """Whether a position other than the usual is named."""
        return bool(self.offsets or self.time)

    def positions(self, log: Log, topic: str) -> dict[TopicPartition, int]:
        """The partitions to read, and the offset to begin at in each; `P:N` reads partition P alone."""
        ends = chosen(log.offsets(topic), topic, self.partitions)
        if self.offsets:
            found = at_offsets(ends, topic, self.offsets)
        elif self.time:
            since = at_time(log, topic, moment(self.time))
            found = {p: since[p] for p in ends}
        else:
            at_end = self.follow and not self.beginning
            found = {p: end if at_end else start for p, (start, end) in ends.items()}
        return {TopicPartition(topic, p): offset for p, offset in found.items()}


@dataclass
class RecordOutput:
    """Writes records out, and commits what was written out: at most once a second, and at the end."""

    out: BinaryIO
    format: Formatter
    most: int = 0
    skip_damage: bool = False
    subscriptions: Subscriptions | None = None
    consumer: Consumer = field(init=False)
    count: int = 0
    written: dict[TopicPartition, int] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    committed_at: float = 0.0

    def run(self, stop: StopSignals, ends: dict[int, int] | None) -> None:
        """Read until stopped, or as many as were wanted, or up to these ends; where a group begins is committed first."""
        self.consumer.assignment()
        self.written = self.consumer.positions()
        self.commit()
        try:
            while not stop.asked:
                self.write(self.poll(_WAIT if ends is None else 0.0))
                if self._done(ends):
                    return
                if time.monotonic() - self.committed_at >= _COMMIT:
                    self.commit()
        finally:
            self.commit()

    def _done(self, ends: dict[int, int] | None) -> bool:
        if self.most and self.count >= self.most:
            return True
        return ends is not None and all(at >= ends[tp.partition] for tp, at in self.written.items())

    def poll(self, wait: float) -> list[Record]:
        """The next records; damage is gone past only when that is wanted."""
        try:
            return self.consumer.poll(min(_POLL, self.most - self.count) if self.most else _POLL, wait)
        except LogDamaged as error:
            if not self.skip_damage:
                raise
            damage = self.consumer.skip_damage(error.damage.topic, error.damage.partition)
            typer.echo(f"skipped: {damage}", err=True)
            return []

    def write(self, records: list[Record]) -> None:
        """Write records out; only then do they count as read."""
        if records:
            lines = self._lines(records)
            self.out.write(b"".join(lines))
            self.out.flush()
            self.count += len(lines)
        elif _abandoned(self.out):
            raise BrokenPipeError
        self.written = self.consumer.positions()

    def _lines(self, records: list[Record]) -> list[bytes]:
        """A line for each record, or for each that a subscription wants, after the names of those."""
        if self.subscriptions is None:
            return [*map(self.format, records)]
        wanted = self.subscriptions.wanted(records)
        return [",".join(names).encode() + b"\t" + self.format(record) for record, names in wanted]

    def commit(self) -> None:
        """Commit what was written out."""
        self.committed_at = time.monotonic()
        if self.consumer.group is not None and self.written != self.committed:
            self.consumer.commit(self.written)
            self.committed = dict(self.written)

    def revoked(self, lost: list[TopicPartition]) -> None:
        """Commit before another member goes on with these partitions."""
        self.commit()
        self.written = {tp: at for tp, at in self.written.items() if tp not in lost}


def _abandoned(out: BinaryIO) -> bool:
    """Whether whoever read the output has gone."""
    try:
        watch = select.poll()
        watch.register(out.fileno(), 0)
        return any(event & select.POLLERR for _, event in watch.poll(0))
    except OSError:
        return False


def consume(  # noqa: PLR0913 - each is an option of the command
    topic: TopicName,
    from_beginning: Annotated[
        bool, option("--from-beginning", help="Begin at the first record; a group, where it has not committed yet.")
    ] = False,
    offset: Annotated[
        list[str] | None,
        option("--offset", metavar="[P:]N", help="Begin at an offset: 42, 0:42, -10 (ten before the end), latest."),
    ] = None,
    from_time: Annotated[
        str, option(metavar="TIME", help="Begin at a time: 2026-07-01T10:00 (UTC), milliseconds, or 15m ago.")
    ] = "",
    group: Annotated[
        str, option(metavar="NAME", help="Go on where this group is, share with its members, commit.")
    ] = "",
    where: Annotated[str, option(metavar="PREDICATE", help="Only records whose JSON value matches.")] = "",
    subscriptions: Annotated[
        Path | None,
        option(metavar="FILE", help="Many predicates by name, as YAML: only records that one wants, with its name."),
    ] = None,
    partition: Annotated[
        list[int] | None, option("--partition", min=0, help="Read this partition; may be repeated.")
    ] = None,
    most: Annotated[
        int,
        option(
            "--max",
            envvar="PENSTOCK_CONSUME_MAX",
            metavar="N",
            min=0,
            help="Stop after so many.",
            show_default="no limit",
        ),
    ] = 0,
    follow: Annotated[bool, option("--follow/--no-follow", help="Wait for more at the end.")] = True,
    format: Annotated[str, option(help="value, key-value or json (has everything).")] = "value",
    key_separator: Annotated[
        str, option(metavar="TEXT", help="Between the fields of a line.", show_default="tab")
    ] = "\t",
    print_timestamp: Annotated[
        bool, option("--print-timestamp", help="CreateTime:MILLISECONDS before the value.")
    ] = False,
    print_partition: Annotated[bool, option("--print-partition", help="Partition:N before the value.")] = False,
    print_offset: Annotated[bool, option("--print-offset", help="Offset:N before the value.")] = False,
    print_headers: Annotated[bool, option("--print-headers", help="name:value,... before the value.")] = False,
    skip_damage: Annotated[
        bool,
        option("--skip-damage", help="Go on after records that cannot be read; says which, and is put on record."),
    ] = False,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Print the records of a topic: new ones as they come, or what is there with --no-follow. Ctrl-C ends it."""
    if format not in FORMATS:
        raise typer.BadParameter(f"--format is one of {', '.join(FORMATS)}, got {format!r}")
    if group and partition:
        raise typer.BadParameter("--group and --partition exclude each other: a group shares the partitions out itself")
    separator = key_separator.replace("\\t", "\t").encode()
    shape = Lines(format == "key-value", separator, print_timestamp, print_partition, print_offset, print_headers)
    start = Start(from_beginning, tuple(offset or ()), from_time, tuple(partition or ()), follow)
    with opened(log, debug=debug) as found, stop_signals(lambda: None) as stop:
        wanted = None if subscriptions is None else _subscriptions_of(subscriptions)
        ends = None if follow else {p: end for p, (_, end) in found.offsets(topic).items()}
        reading = RecordOutput(sys.stdout.buffer, json_line if format == "json" else shape, most, skip_damage, wanted)
        reading.consumer = _consumer(found, topic, group or None, where or None, start, reading.revoked)
        with reading.consumer:
            _say_what_is_shown(topic, group, start)
            reading.run(stop, ends)
        typer.echo(f"{topic}: {count(reading.count, 'record')}", err=True)


def _subscriptions_of(file: Path) -> Subscriptions:
    from penstock.jobs.subscriptions import subscriptions_of  # it loads pyarrow

    return subscriptions_of(file)


def _consumer(
    log: Log,
    topic: str,
    group: str | None,
    where: str | None,
    start: Start,
    revoked: Callable[[list[TopicPartition]], None],
) -> Consumer:
    """A consumer that stands where it is to begin; a group is moved there first, if it is to begin elsewhere."""
    if group is not None:
        if start.said:
            log.groups.move(group, start.positions(log, topic))
        return log.consumer(group, topic, where=where, on_revoke=revoked)
    positions = start.positions(log, topic)
    consumer = log.consumer(None, assignment=positions, where=where)
    for tp, offset in positions.items():
        consumer.seek(*tp, offset)
    return consumer


def _say_what_is_shown(topic: str, group: str, start: Start) -> None:
    """A word to a person who may wonder why nothing comes."""
    if start.follow and not (group or start.said or start.beginning) and sys.stderr.isatty():
        typer.secho(
            f"{topic}: new records from now on; --from-beginning shows the old ones, Ctrl-C ends", dim=True, err=True
        )
