"""A look-up in a stream that is kept as a table: every event gets the newest row of its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.graph.logic.broadcast import BroadcastProcess


@dataclass
class LookUp(BroadcastProcess):
    """Adds the row of the event's key to the event, as a struct; null where there is none.

    Args:
        event: the fields of the event.
        keys: those of them that are the key.
        found: the fields of the table that are added.
    """

    event: tuple[str, ...]
    keys: tuple[str, ...]
    found: tuple[str, ...]

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterator[Any]:
        """The event with what was found."""
        key = tuple(getattr(row, name) for name in self.keys)
        kept = rules.get(key[0] if len(key) == 1 else key)
        values = None if kept is None else {name: getattr(kept, name) for name in self.found}
        yield (*(getattr(row, name) for name in self.event), values)
