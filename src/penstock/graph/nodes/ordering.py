"""Steps that put records of a key in relation to each other: without doubles, in order, the best of them, their changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.aggregates import Aggregate
from penstock.graph.duration import shown
from penstock.graph.nodes.base import Timed
from penstock.graph.nodes.keyed import Keyed

OP = "op"
"""The field of a changelog that says what happened to a row."""
REMOVED = "removed"
"""The field of a table that is true in a row which takes its key out of it."""
INSERT, BEFORE, AFTER, DELETE = "insert", "update_before", "update_after", "delete"


@dataclass(frozen=True)
class Term:
    """A field to order by. As in SQL, null is the smallest value and not-a-number the largest."""

    column: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} desc" if self.descending else self.column


@dataclass(frozen=True)
class Distinct(Keyed):
    """The first record of each key to come; with `within`, again when so much event time lies between."""

    timed_by: Timed | None = None
    within: int | None = None
    kind: ClassVar[str] = "distinct"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    @property
    def stores(self) -> dict[str, str]:
        """The keys that were seen, each with the time of its kept record."""
        return {self.name: "rows"}

    def settings(self) -> dict[str, Any]:
        """The key and the span."""
        return super().settings() | ({} if self.within is None else {"within": shown(self.within)})


@dataclass(frozen=True)
class Held(Keyed):
    """The base of steps that hold records until event time has passed them, then look at them in order of time."""

    timed_by: Timed
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    @property
    def stores(self) -> dict[str, str]:
        """The records that wait."""
        return {self.name: "rows"}


@dataclass(frozen=True)
class DistinctInTime(Held):
    """The earliest record of each key, by event time; with `within`, again when so much event time lies between."""

    within: int | None = None
    kind: ClassVar[str] = "distinct"

    @property
    def kept(self) -> str:
        """The store of the keys that were seen."""
        return f"{self.name}@kept"

    @property
    def stores(self) -> dict[str, str]:
        """The records that wait, and the keys that were seen with the time of their kept record."""
        return {self.name: "rows", self.kept: "rows"}

    def settings(self) -> dict[str, Any]:
        """The key and the span."""
        return super().settings() | ({} if self.within is None else {"within": shown(self.within)})


@dataclass(frozen=True)
class Sort(Held):
    """The records of each key in order: of event time, or within spans of event time by `by` alone."""

    by: tuple[Term, ...] = ()
    span: int = 0
    kind: ClassVar[str] = "sort"

    @property
    def hold(self) -> int:
        """Records of a span are given when all of it has passed."""
        return self.span

    def settings(self) -> dict[str, Any]:
        """The key, the order and the span."""
        key = super().settings() if self.keys else {}
        by = {"by": ", ".join(map(str, self.by))} if self.by else {}
        return key | by | ({"within": shown(self.span)} if self.span else {})


@dataclass(frozen=True)
class Top(Keyed):
    """The first `n` records of each key in an order, as a table by key and rank whose changes are given."""

    n: int
    by: tuple[Term, ...]
    kind: ClassVar[str] = "top"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key, how many, and the order."""
        return {**super().settings(), "n": self.n, "by": ", ".join(map(str, self.by))}


@dataclass(frozen=True)
class Changelog(Keyed):
    """The changes of a table: each row with what happened to it. `before` says whether old rows are given too."""

    before: bool
    removed: str = ""
    kind: ClassVar[str] = "changelog"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key, and whether old rows are given."""
        return {**super().settings(), "before": self.before}


@dataclass(frozen=True)
class AsTable(Keyed):
    """A table from the changes of one: the last of each key in a batch counts. `op` is the field that says what happened."""

    op: str
    kind: ClassVar[str] = "as_table"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    @property
    def stores(self) -> dict[str, str]:
        """Nothing: the table is what comes out."""
        return {}

    def settings(self) -> dict[str, Any]:
        """The key, and the field that says what happened."""
        return {**super().settings(), "op": self.op}


@dataclass(frozen=True)
class Net(Keyed):
    """Aggregates over the changes of a table: what is taken back counts against. Keys without rows are removed."""

    aggregates: tuple[Aggregate, ...]
    kind: ClassVar[str] = "net"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key and the aggregates by name."""
        return {**super().settings(), **{a.name: str(a) for a in self.aggregates}}
