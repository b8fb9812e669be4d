"""Events, what an expression has tagged, and how both are kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from penstock.graph.schema import Schema
from penstock.kernels.records.json_values import Json, value_from_json, value_to_json


class Event(NamedTuple):
    """A record of the key: its number in the key, its time, and its values."""

    number: int
    time: int
    values: tuple[object, ...]


Match: TypeAlias = Mapping[str, tuple[Event, ...]]
"""The events that were tagged, by tag; several under the tag of a repetition. Never changed once it is made."""
NOTHING: Match = {}


def numbers_of(match: Match) -> set[int]:
    """The numbers of the events of a match."""
    return {event.number for events in match.values() for event in events}


class Pool:
    """The matches and events that a state holds, each of them once, and their form as JSON."""

    def __init__(self, schema: Schema, kept: Mapping[str, Json] | None = None) -> None:
        self.schema = schema
        self.events: dict[int, Event] = {}
        self.matches: list[Match] = []
        self._known: dict[tuple[tuple[str, tuple[int, ...]], ...], int] = {}
        if kept is not None:
            self._read(kept)

    def put(self, match: Match) -> int:
        """The number under which a match is kept."""
        shape = tuple((tag, tuple(e.number for e in events)) for tag, events in match.items())
        at = self._known.setdefault(shape, len(self.matches))
        if at == len(self.matches):
            self.matches.append(match)
            self.events |= {event.number: event for events in match.values() for event in events}
        return at

    def get(self, at: object) -> Match:
        """The match of a number."""
        assert isinstance(at, int)
        return self.matches[at]

    def dump(self) -> dict[str, Json]:
        """All that was put, as JSON."""
        kinds = [f.type for f in self.schema.fields]
        events: dict[str, Json] = {
            str(e.number): [e.time, *map(value_to_json, e.values, kinds)] for e in self.events.values()
        }
        matches: list[Json] = [{tag: [e.number for e in events] for tag, events in m.items()} for m in self.matches]
        return {"events": events, "matches": matches}

    def _read(self, kept: Mapping[str, Json]) -> None:
        kinds = [f.type for f in self.schema.fields]
        events, matches = kept["events"], kept["matches"]
        assert isinstance(events, dict)
        assert isinstance(matches, list)
        for number, row in events.items():
            time, *values = _listed(row)
            self.events[int(number)] = Event(int(number), time, tuple(map(value_from_json, values, kinds)))
        self.matches = [self._match(each) for each in matches]

    def _match(self, kept: Json) -> Match:
        assert isinstance(kept, dict)
        return {tag: tuple(self.events[n] for n in _listed(numbers)) for tag, numbers in kept.items()}


def _listed(kept: Json) -> list[Any]:
    assert isinstance(kept, list)
    return kept
