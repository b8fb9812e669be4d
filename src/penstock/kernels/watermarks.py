"""How far event time has come: a mark for each partition of each input, and the watermark that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.nodes import EventTime
from penstock.graph.times import FOREVER, NEVER


@dataclass
class Mark:
    """The latest event time of a partition, and what the clock said when its last record came."""

    high: int
    seen: int


@dataclass
class Watermarks:
    """The watermark of every input of a flow. It never goes back.

    >>> from penstock.graph.expr import as_expr
    >>> from penstock.graph.nodes import EventTime
    >>> marks = Watermarks()
    >>> marks.note("clicks", {"0": 100, "1": 40}, now=1)
    >>> marks.move([EventTime("clicks", (), (), "ts", as_expr("ts"), lateness=10, max_lead=0, idle=50)], now=2)
    >>> marks.at["clicks"]
    30
    """

    marks: dict[str, dict[str, Mark]] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)
    """Where the watermark of each input stands."""

    def note(self, step: str, highs: Mapping[str, int], now: int) -> None:
        """Takes in the latest times of the partitions from which records came."""
        mine = self.marks.setdefault(step, {})
        for partition, high in highs.items():
            mark = mine.setdefault(partition, Mark(high, now))
            mark.high, mark.seen = max(mark.high, high), now

    def move(self, inputs: Iterable[EventTime], now: int) -> None:
        """Moves the watermark of each input as far as its marks allow."""
        for node in inputs:
            stood = self.at.get(node.name, NEVER)
            self.at[node.name] = max(stood, _reached(node, list(self.marks.get(node.name, {}).values()), now))

    def end(self, inputs: Iterable[EventTime]) -> None:
        """The input is over: all time has passed."""
        self.at |= {node.name: FOREVER for node in inputs}

    def resume(self, now: int) -> None:
        """A run begins: the time it was not running does not count as quiet."""
        for mine in self.marks.values():
            for mark in mine.values():
                mark.seen = max(mark.seen, now)

    def next_move(self, inputs: Iterable[EventTime], wanted: int) -> int:
        """When the clock alone brings some input past its hold-up, or event time to `wanted`; FOREVER when it never does."""
        return min((_when(n, list(self.marks.get(n.name, {}).values()), wanted) for n in inputs), default=FOREVER)

    def as_dict(self) -> dict[str, Any]:
        """The marks as plain values, ready for JSON."""
        marks = {s: {p: [m.high, m.seen] for p, m in mine.items()} for s, mine in self.marks.items()}
        return {"marks": marks, "at": self.at}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Watermarks:
        """The marks that plain values stand for."""
        marks = {s: {p: Mark(*m) for p, m in mine.items()} for s, mine in given.get("marks", {}).items()}
        return cls(marks, dict(given.get("at", {})))


def _reached(node: EventTime, marks: list[Mark], now: int) -> int:
    """The lowest partition that still counts; when all are quiet, time goes on with the clock from where it stood."""
    if not marks:
        return NEVER
    idle = FOREVER if node.idle is None else node.idle
    busy = [m.high for m in marks if now - m.seen < idle]
    if busy:
        return min(busy) - node.lateness
    return max(m.high + now - m.seen for m in marks) - node.lateness


def _when(node: EventTime, marks: list[Mark], wanted: int) -> int:
    if node.idle is None or not marks:
        return FOREVER
    quiet = max(m.seen for m in marks) + node.idle
    return max(quiet, min(m.seen + wanted + node.lateness - m.high for m in marks))
