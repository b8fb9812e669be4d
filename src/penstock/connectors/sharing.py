"""How a batch shares its rows among partitions: never more than it may take, and something for each that has records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

P = TypeVar("P")


def shares(waiting: Mapping[P, int], most: int | None) -> dict[P, int]:
    """How many records to take of each partition: all, or exactly `most`, in proportion to what waits there.

    Each partition that has records gets at least one, as long as there are as many to give; else the fullest do.

    >>> shares({"a": 900, "b": 100, "c": 0}, 100)
    {'a': 90, 'b': 10, 'c': 0}
    >>> shares({"a": 1000, "b": 1}, 10), shares({"a": 5, "b": 3}, None)
    ({'a': 9, 'b': 1}, {'a': 5, 'b': 3})
    """
    if most is None or sum(waiting.values()) <= most:
        return dict(waiting)
    busy = sorted((p for p, many in waiting.items() if many), key=lambda p: -waiting[p])[:most]
    left, total = most - len(busy), sum(waiting[p] - 1 for p in busy)
    made = {p: 1 + ((waiting[p] - 1) * left // total if total else 0) for p in busy}
    for p in busy[: most - sum(made.values())]:
        made[p] += 1
    return {p: made.get(p, 0) for p in waiting}
