"""The end of a log, however large it is."""

from __future__ import annotations

from collections import deque
from pathlib import Path

LARGEST_LINE = 10_000
"""Of a longer line the beginning is shown."""
_READ = 4 << 20
"""How much of a log is looked at, from its end."""


def tail(log: Path, most: int, search: str = "") -> list[str]:
    """The newest lines of a log, those that have `search` in them; a log that is not there yet has none."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _READ))
        lines = file.read(_READ).decode(errors="replace").splitlines()
    found = deque((line for line in lines[size > _READ :] if search in line), most)
    return [line[:LARGEST_LINE] for line in found]
