"""Small objects of JSON with a checksum at the end: manifests, and what tasks report to the driver."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.errors import StateError
from penstock.graph.times import FOREVER
from penstock.storage import Conflict, NotFound, Storage, StorageError

TaskWakes = Mapping[str, int]
"""When a task next has work although no record arrives, by clock."""


def wake_note(wakes: TaskWakes | None) -> dict[str, int | None]:
    """What a task notes of when it next has work.

    >>> wake_note({"event": 5, "processing": FOREVER})
    {'event': 5, 'clock': None}
    """
    times = {"event": (wakes or {}).get("event", FOREVER), "clock": (wakes or {}).get("processing", FOREVER)}
    return {clock: time if time < FOREVER else None for clock, time in times.items()}


def put_note(storage: Storage, name: str, note: Mapping[str, Any]) -> None:
    """Writes a note so that it is there completely or not at all."""
    storage.write(name, note_bytes(note))


def swap_note(storage: Storage, name: str, note: Mapping[str, Any]) -> None:
    """Writes a note, which replaces one of the same epoch or an earlier one; the check and the replacement are one step.

    Raises:
        StateError: A later driver has written it.
    """
    content = note_bytes(note)
    if storage.put_if_absent(name, content):
        return
    while True:
        before, version = storage.read_versioned(name)
        if before == content:
            return
        epoch = _epoch(before)
        if epoch > note["epoch"]:
            raise StateError(
                f"{name} was written by a later driver (epoch {epoch}, this one is of epoch {note['epoch']}); this driver stops"
            )
        with suppress(Conflict):
            storage.compare_and_swap(name, version, content)
            return


def _epoch(content: bytes) -> int:
    """The epoch of the driver that wrote a note; one that is damaged, or of a driver without, has none."""
    try:
        return int(json.loads(content.decode().rpartition("\n")[0]).get("epoch", 0))
    except ValueError:
        return 0


def note_bytes(note: Mapping[str, Any]) -> bytes:
    """A note with its checksum."""
    body = json.dumps(note).encode()
    return b"%b\n%08x" % (body, zlib.crc32(body))


def read_note(storage: Storage, name: str, what: str = "note") -> dict[str, Any]:
    """A note as it was written; anything else is refused.

    Raises:
        NotFound: There is no such note.
        StateError: It is damaged, or cannot be read.
    """
    try:
        body, _, crc = storage.read(name).rpartition(b"\n")
    except NotFound:
        raise
    except StorageError as error:
        raise StateError(f"the {what} {_where(storage, name)} cannot be read ({error}); restore it") from None
    found = _object(body) if b"%08x" % zlib.crc32(body) == crc else None
    if found is None:
        raise StateError(
            f"the {what} {_where(storage, name)} is damaged; restore it, go back to a savepoint, or start afresh with --fresh"
        )
    return found


def _object(body: bytes) -> dict[str, Any] | None:
    """The object that a body says; None for what is none: the checksum of nothing is that of an empty note, too."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _where(storage: Storage, name: str) -> str:
    """Where an object is, for messages."""
    return str(storage.local_path(name) or name)
