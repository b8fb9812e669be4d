"""`penstock produce`: lines of a file or of standard input become records of the log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.log.directory import DEFAULT, Debug, LogDir, TopicName, examples, opened
from penstock.cli.log.input_lines import LineReader, Pair, chunks, lines
from penstock.cli.options import option
from penstock.cli.output.listing import count
from penstock.jobs.signals import stop_signals
from penstock.log import Producer

FORMATS = ("text", "json", "raw")
EXAMPLES = examples(
    "seq 10 | penstock produce numbers",
    "penstock produce orders orders.jsonl --format json --key user.id",
    "echo 'anna:3 apples' | penstock produce orders --key-separator :",
    "penstock produce pictures cat.jpg --format raw --header name=cat",
)


@dataclass
class Sender:
    """Appends records and counts those that are on disk."""

    producer: Producer
    topic: str
    headers: list[tuple[str, bytes]]
    keyed: bool
    batch: int = 0
    count: int = 0
    last: dict[int, int] = field(default_factory=dict)
    waiting: list[Pair] = field(default_factory=list)

    def add(self, record: Pair) -> None:
        """Take a record; one that fills a batch is on disk on return, with all of the batch."""
        self.waiting.append(record)
        if len(self.waiting) == self.batch:
            self.flush()

    def flush(self) -> None:
        """Append what waits; on disk on return."""
        records, self.waiting = self.waiting, []
        keys = [key for key, _ in records] if self.keyed else None
        headers = [self.headers] * len(records) if self.headers else None
        for done in self.producer.send_many(self.topic, [value for _, value in records], keys, headers):
            self.count += done.records
            self.last[done.partition] = done.offset + done.records - 1

    def summary(self) -> str:
        """How many, and the last offset of each partition."""
        offsets = " ".join(f"{p}:{o}" for p, o in sorted(self.last.items()))
        return f"{self.topic}: {count(self.count, 'record')} on disk{f', last offsets {offsets}' if offsets else ''}"


def produce(  # noqa: PLR0913 - each is an option of the command
    topic: TopicName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to read.", show_default="standard input")] = "-",
    format: Annotated[
        str, option(help="text (a record a line), json (the same, checked) or raw (one record).")
    ] = "text",
    key_separator: Annotated[str, option(metavar="TEXT", help="A line is a key, this text and a value.")] = "",
    key: Annotated[str, option(metavar="FIELD", help="The field of the JSON value that is the key: id, user.id.")] = "",
    header: Annotated[
        list[str] | None, option("--header", metavar="NAME=VALUE", help="A header of each record.")
    ] = None,
    null_marker: Annotated[
        str, option(metavar="TEXT", help="A value that reads so is none: it deletes its key on a compacted topic.")
    ] = "",
    batch: Annotated[
        int, option(min=0, help="Append so many at once, all or nothing.", show_default="what has come")
    ] = 0,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Append records to a topic, one for each line. Says how many when they are on disk."""
    reader = _reader(format, key_separator, key, null_marker)
    headers = _headers(header or [])
    with opened(log, debug=debug) as found, _input(file) as descriptor, stop_signals(lambda: None) as stop:
        found.offsets(topic)
        sender = Sender(found.producer(), topic, headers, reader.keyed, batch)
        parts = chunks(descriptor, lambda: stop.asked)
        try:
            if format == "raw":
                sender.add((None, b"".join(parts)))
                sender.flush()
            else:
                _send_lines(sender, reader, parts)
        finally:
            typer.echo(sender.summary(), err=True)


def _reader(format: str, separator: str, field: str, null_marker: str) -> LineReader:
    if format not in FORMATS:
        raise typer.BadParameter(f"--format is one of {', '.join(FORMATS)}, got {format!r}")
    if field and format != "json":
        raise typer.BadParameter(
            "--key names a field of a JSON value; give --format json with it, or use --key-separator"
        )
    if field and separator:
        raise typer.BadParameter("--key and --key-separator exclude each other: one says where the key is")
    if format == "raw" and (separator or null_marker):
        raise typer.BadParameter(
            "--format raw takes the input as it is; --key-separator and --null-marker do not go with it"
        )
    return LineReader(
        format == "json", separator.replace("\\t", "\t").encode(), field, null_marker.encode() if null_marker else None
    )


def _headers(texts: list[str]) -> list[tuple[str, bytes]]:
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, pairs, strict=True):
        if not name or not equals:
            raise typer.BadParameter(f"--header takes NAME=VALUE, such as source=web, got {text!r}")
    return [(name, value.encode()) for name, _, value in pairs]


@contextmanager
def _input(file: str) -> Iterator[int]:
    if file == "-":
        yield sys.stdin.fileno()
        return
    if not Path(file).exists() or Path(file).is_dir():
        raise typer.BadParameter(f"there is no file {file}; - is standard input")
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _send_lines(sender: Sender, reader: LineReader, parts: Iterator[bytes]) -> None:
    """Append what has come together, or full batches; also what is before a bad line, but no part of a batch."""
    number = 0
    for group in lines(parts):
        try:
            for number, line in enumerate(group, number + 1):  # noqa: B020 - counts on over the groups
                if reader.wanted(line):
                    sender.add(reader.read(line, number))
        finally:
            if not sender.batch:
                sender.flush()
    sender.flush()
