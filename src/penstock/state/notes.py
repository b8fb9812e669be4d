"""Small files of JSON with a checksum behind: manifests, and what tasks tell the driver."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import StateError
from penstock.graph.times import FOREVER
from penstock.state.file import put_safely

TaskWakes = Mapping[str, int]
"""When a task next has work although no record arrives, by clock."""


def wake_note(wakes: TaskWakes | None) -> dict[str, int | None]:
    """What a task notes of when it next has work.

    >>> wake_note({"event": 5, "processing": FOREVER})
    {'event': 5, 'clock': None}
    """
    times = {"event": (wakes or {}).get("event", FOREVER), "clock": (wakes or {}).get("processing", FOREVER)}
    return {clock: time if time < FOREVER else None for clock, time in times.items()}


def put_note(path: Path, note: Mapping[str, Any]) -> None:
    """Writes a note so that it is there whole or not at all."""
    body = json.dumps(note)
    put_safely(path, [f"{body}\n{zlib.crc32(body.encode()):08x}".encode()])


def read_note(path: Path, what: str = "note") -> dict[str, Any]:
    """A note as it was written; anything else is refused."""
    try:
        body, _, crc = path.read_text(errors="replace").rpartition("\n")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StateError(f"the {what} {path} cannot be read ({error.strerror}); restore it") from None
    if f"{zlib.crc32(body.encode()):08x}" != crc:
        raise StateError(
            f"the {what} {path} is damaged; restore it, go back to a savepoint, or start afresh with --fresh"
        )
    found: dict[str, Any] = json.loads(body)
    return found
