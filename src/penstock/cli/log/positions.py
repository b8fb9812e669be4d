"""Positions in a topic, as people write them: an offset, a partition and an offset, a time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import typer

from penstock.cli.duration import seconds
from penstock.log import Log, OffsetOutOfRange, UnknownTopic

Bounds = Mapping[int, tuple[int, int]]
_WORDS = {"earliest": 0, "beginning": 0, "latest": 1, "end": 1}


def moment(text: str, now: float | None = None) -> int:
    """Milliseconds since 1970 of a time: ISO 8601 (UTC unless it says otherwise), milliseconds, or a span back from now.

    >>> moment("2026-01-02T03:04:05+01:00"), moment("1970-01-02"), moment("90000")
    (1767319445000, 86400000, 90000)
    >>> moment("15m", now=1000.0)
    100000
    """
    if text.isdecimal():
        return int(text)
    if re.fullmatch(r"[\d.]+(ms|s|m|h|d).*", text):
        return int(((time.time() if now is None else now) - seconds(text)) * 1000)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write 2026-07-01T10:00, 2026-07-01T10:00+02:00, milliseconds since 1970, or 15m for that long ago"
        ) from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def at_time(log: Log, topic: str, timestamp: int) -> dict[int, int]:
    """The first offset of each partition that is at least as new; the end where all are older."""
    ends = log.offsets(topic)
    return {p: ends[p][1] if o is None else o for p, o in log.offsets_for_time(topic, timestamp).items()}


def chosen(bounds: Bounds, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The bounds of the partitions that were asked for; all when none was."""
    wanted = sorted(set(partitions)) or list(bounds)
    for number in wanted:
        if number not in bounds:
            raise UnknownTopic(f"topic {topic!r} has partitions 0 to {len(bounds) - 1}, not {number}")
    return {number: bounds[number] for number in wanted}


def at_offsets(bounds: Bounds, topic: str, texts: Iterable[str]) -> dict[int, int]:
    """Offsets by partition from `N` (all partitions), `P:N` (one), where N may be a word or count back from the end.

    >>> at_offsets({0: (0, 9), 1: (2, 4)}, "t", ["-3"])
    {0: 6, 1: 2}
    >>> at_offsets({0: (0, 9), 1: (2, 4)}, "t", ["1:latest", "0:5"])
    {1: 4, 0: 5}
    """
    found: dict[int, int] = {}
    for text in texts:
        match = re.fullmatch(r"(?:(\d+):)?(-?\d+|[a-z]+)", text)
        if match is None or (match[2].isalpha() and match[2] not in _WORDS):
            raise typer.BadParameter(
                f"--offset is OFFSET or PARTITION:OFFSET, as 42, 0:42, -10 (ten before the end), earliest, latest, got {text!r}"
            )
        partitions = chosen(bounds, topic, [] if match[1] is None else [int(match[1])])
        found |= {number: _offset(topic, number, ends, match[2]) for number, ends in partitions.items()}
    return found


def _offset(topic: str, partition: int, ends: tuple[int, int], text: str) -> int:
    start, end = ends
    if text in _WORDS:
        return ends[_WORDS[text]]
    if text.startswith("-"):
        return max(start, end + int(text))
    return within(topic, partition, ends, int(text))


def within(topic: str, partition: int, ends: tuple[int, int], offset: int) -> int:
    """The offset, or an error when the partition does not hold it."""
    if not ends[0] <= offset <= ends[1]:
        raise OffsetOutOfRange(topic, partition, offset, *ends)
    return offset
