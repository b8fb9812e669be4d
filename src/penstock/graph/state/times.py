"""What a version of the state knows of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict


class StoredTimes(TypedDict, total=False):
    """What a version of the state keeps of time, as JSON holds it."""

    marks: dict[str, dict[str, tuple[int, int, int]]]
    at: dict[str, int]
    previous: dict[str, int]
    before: int
    ended: bool


@dataclass(frozen=True)
class Wakes:
    """The earliest times at which stores want a batch although no record may come, by event time and by processing time."""

    event: Mapping[str, int] = field(default_factory=dict)
    clock: Mapping[str, int] = field(default_factory=dict)
