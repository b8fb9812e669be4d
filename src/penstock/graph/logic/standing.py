"""Which queries a record is for: the constants of standing queries as rules, found by the values of the record."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.graph.logic.broadcast import BroadcastProcess
from penstock.graph.logic.cells import value
from penstock.graph.logic.process import Process, Timer

DROP = ("drop", "remove", "delete", "disable")
"""What a change says of a query that is to end."""
Constants = tuple[Any, ...]


PAUSE = datetime.timedelta(seconds=2)
"""How often a query that waits for a plan is looked at."""


class AwaitPlan(Process):
    """Changes of queries, in order. A query whose shape has no plan waits, also over restarts, until the flow has one.

    Each time that a query is added it gets another version, so that one that is dropped and added in one batch is a new one.

    Args:
        shapes: the ids of the shapes that have a plan.
    """

    waiting = value(object)
    version = value(int)
    is_dropped = value(bool)

    def __init__(self, shapes: frozenset[str]) -> None:
        super().__init__()
        self.shapes = shapes

    def on_event(self, row: Any) -> Iterator[Any]:
        """A change of a query takes the place of one that waits."""
        if row.op == "add" and row.shape not in self.shapes:
            self.waiting = tuple(row)
            self.set_timer(PAUSE, clock="processing")
            return
        self.waiting, self.is_dropped = None, row.op != "add"
        if self.is_dropped:
            self.set_timer(PAUSE, clock="processing")
            yield tuple(row)
        else:
            yield self._added(tuple(row))

    def on_timer(self, timer: Timer) -> Iterator[Any]:
        """Looks whether there is a plan by now."""
        if self.waiting is None:
            if self.is_dropped:
                self.clear()
            return
        if self.waiting[SHAPE] in self.shapes:
            waiting, self.waiting, self.is_dropped = self.waiting, None, False
            yield self._added(waiting)
        else:
            self.set_timer(PAUSE, clock="processing")

    def _added(self, change: tuple[Any, ...]) -> tuple[Any, ...]:
        """A query that is added, with its version."""
        self.version = (self.version or 0) + 1
        return (*change[:VERSION], self.version)


SHAPE, VERSION = 2, 6
"""Which fields of a change are the shape and the version."""


class KeepQueries(BroadcastProcess):
    """The queries that stand: of each its shape, its constants and its end."""

    def on_rule(self, rule: Any) -> Any:
        """What is kept of a query; nothing of one that was dropped or has ended."""
        if rule.op != "add":
            return None
        return (rule.shape, tuple(_value(text) for text in rule.constants), rule.until)

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterator[Any]:
        """Nothing: which records a query wants, the step of its shape says."""
        return iter(())


@dataclass
class MatchQueries(KeepQueries):
    """Each record with each query of a shape that may want it, and the query's constants.

    Args:
        shape: the id of the shape; queries of others are left out.
        event: the fields of the record.
        equal: fields that must have the value of a constant, each with the number of the constant.
        time: the field of the event time, by which queries end; empty where there is none.
    """

    shape: str
    event: tuple[str, ...]
    equal: tuple[tuple[str, int], ...] = ()
    time: str = ""
    names_rule: ClassVar[str] = "query"
    _known: Any = field(default=None, repr=False, compare=False)
    _index: dict[Constants, list[tuple[str, Constants, Any]]] = field(default_factory=dict, repr=False, compare=False)

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterator[Any]:
        """The record for each query whose equalities it meets, unless the query has ended."""
        if self._known is not rules:
            self._known, self._index = rules, self._indexed(rules)
        values = tuple(getattr(row, name) for name in self.event)
        for query, constants, until in self._index.get(tuple(getattr(row, name) for name, _ in self.equal), ()):
            if until is None or self._is_before(row, until):
                yield (*values, query, *constants)

    def _indexed(self, rules: Mapping[Any, Any]) -> dict[Constants, list[tuple[str, Constants, Any]]]:
        made: dict[Constants, list[tuple[str, Constants, Any]]] = {}
        for query, (shape, constants, until) in rules.items():
            if shape == self.shape:
                made.setdefault(tuple(constants[at] for _, at in self.equal), []).append((query, constants, until))
        return made

    def _is_before(self, row: Any, until: datetime.datetime) -> bool:
        happened = getattr(row, self.time)
        return happened is not None and happened < until


def _value(text: str) -> Any:
    """A constant from its text: a letter for its kind, and the value.

    >>> _value("sx"), _value("i3"), _value("f1.5")
    ('x', 3, 1.5)
    """
    kind, rest = text[0], text[1:]
    return rest if kind == "s" else int(rest) if kind == "i" else float(rest)
