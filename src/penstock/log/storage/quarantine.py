"""The damage of a partition, on record: what was found, and who chose to go on without it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from penstock.log.errors import Damage
from penstock.log.storage.files import FileLock, read_json, write_json
from penstock.log.storage.position import PartitionDirectory

_NAME = "damage.json"


@dataclass(frozen=True)
class Skip:
    """A reader went on at `next`, knowing that the records from `first` on are lost to it."""

    first: int
    next: int
    by: str
    at_ms: int


def _load(directory: PartitionDirectory) -> dict[str, list[Any]]:
    return read_json(directory.path / _NAME) or {"damage": [], "skips": []}


def damage_of(directory: PartitionDirectory) -> list[Damage]:
    """All damage found so far."""
    return [Damage(**entry) for entry in _load(directory)["damage"]]


def skips_of(directory: PartitionDirectory) -> list[Skip]:
    """All skips so far."""
    return [Skip(**entry) for entry in _load(directory)["skips"]]


def _add(directory: PartitionDirectory, kind: str, entry: dict[str, Any]) -> None:
    with FileLock(directory.path / "damage.lock"):
        data = _load(directory)
        if entry not in data[kind]:
            data[kind].append(entry)
            write_json(directory.path / _NAME, data)


def record(directory: PartitionDirectory, damage: Damage) -> None:
    """Put damage on record; a reader that may not write here still raises it."""
    with suppress(PermissionError):
        _add(directory, "damage", asdict(damage))


def record_skip(directory: PartitionDirectory, damage: Damage, by: str) -> None:
    """Put on record that a reader goes on after the damage."""
    _add(directory, "skips", asdict(Skip(damage.first, damage.next, by, time.time_ns() // 1_000_000)))
