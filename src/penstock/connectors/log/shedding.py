"""What a live read of a topic leaves out, as part of its offsets.

The end of a batch that sheds says for each partition up to where, and how many records that were. Spark logs it before the batch runs, so a
batch that runs again leaves out the same records, and the number is never a guess.
"""

from __future__ import annotations

from typing import Any

from penstock.graph.endpoints.shedding import ShedRule
from penstock.log import Log

SHED = "shed"
Offsets = dict[str, Any]


def plain(offset: Offsets) -> dict[str, int]:
    """An offset without what was shed before it.

    >>> plain({"0": 9, "shed": {"0": {"to": 5, "records": 5}}})
    {'0': 9}
    """
    return {p: n for p, n in offset.items() if p != SHED}


def begins(start: Offsets, end: Offsets) -> dict[str, int]:
    """Where a batch begins to read, after what it leaves out."""
    return plain(start) | {p: left["to"] for p, left in end.get(SHED, {}).items()}


def records_shed(start: Offsets | None, end: Offsets | None) -> int:
    """How many records a batch has left out; one that ends where it began has read nothing of this source."""
    if not end or start == end:
        return 0
    return sum(left["records"] for left in end.get(SHED, {}).values())


def left_out(
    shed: ShedRule, log: Log, topic: str, start: dict[str, int], ends: dict[str, int], now: int
) -> dict[str, Any]:
    """What a batch that begins at `start` leaves out: up to where in each partition, and how many records."""
    firsts = {str(p): first for p, (first, _) in log.offsets(topic).items()}
    begin = {p: max(start.get(p, 0), firsts.get(p, 0)) for p in ends}
    old = _not_older(shed, log, topic, begin, ends, now)
    new = newest(old, ends, shed.behind)
    return {p: {"to": new[p], "records": _count(log, topic, p, begin[p], new[p])} for p in ends if new[p] > begin[p]}


def _not_older(
    shed: ShedRule, log: Log, topic: str, begin: dict[str, int], ends: dict[str, int], now: int
) -> dict[str, int]:
    if not shed.older:
        return begin
    found = log.offsets_for_time(topic, now - shed.older // 1000)
    at = {p: n if (n := found.get(int(p))) is not None else ends[p] for p in ends}
    return {p: min(max(begin[p], at[p]), ends[p]) for p in ends}


def newest(begin: dict[str, int], ends: dict[str, int], most: int) -> dict[str, int]:
    """Where to begin so that at most so many records are ahead, spread over the partitions by what they have waiting.

    >>> newest({"0": 0, "1": 0}, {"0": 900, "1": 100}, 100)
    {'0': 810, '1': 90}
    """
    waiting = {p: end - begin[p] for p, end in ends.items()}
    total = sum(waiting.values())
    if not most or total <= most:
        return begin
    return {p: ends[p] - n * most // total for p, n in waiting.items()}


def _count(log: Log, topic: str, partition: str, begin: int, end: int) -> int:
    """The records between two offsets: as many as the offsets, unless compaction has taken some."""
    if log.describe(topic).config.cleanup != "compact":
        return end - begin
    return int(log.read_arrow(topic, int(partition), begin, end).num_rows)
