"""Row patterns by the definition of the standard, in the simplest code that can be: all ways in the order of preference, the first that matches.

It shares the tree with Penstock and nothing else. Conditions and measures are Python functions of a `Seen`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.graph.patterns import tree as p

Label = tuple[str, bool]
Row = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What an expression may look at: all rows of the key, the rows matched so far with their variables, and the current one."""

    rows: list[Row]
    start: int
    labels: tuple[str, ...]
    number: int
    whole: tuple[str, ...] = ()

    def at(self, index: int | None, field: str = "n") -> Any:
        return None if index is None or not 0 <= index < len(self.rows) else self.rows[index][field]

    def near(self, index: int | None, step: int) -> Any:
        """The value so many rows from a row, if there is one."""
        return None if index is None else self.at(index + step)

    def of(self, names: str, *, final: bool = False) -> list[int]:
        """The rows of some variables; of all for an empty text."""
        labels = self.whole if final else self.labels
        return [self.start + i for i, label in enumerate(labels) if not names or label in names]

    def first(self, names: str = "", offset: int = 0, *, final: bool = False) -> int | None:
        found = self.of(names, final=final)
        return found[offset] if offset < len(found) else None

    def last(self, names: str = "", offset: int = 0, *, final: bool = False) -> int | None:
        found = self.of(names, final=final)
        return found[len(found) - 1 - offset] if offset < len(found) else None

    def label(self, index: int | None) -> str | None:
        if index is None or not 0 <= index - self.start < len(self.labels):
            return None
        return self.labels[index - self.start]

    def values(self, names: str = "", *, final: bool = False) -> list[Any]:
        return [self.at(i) for i in self.of(names, final=final)]


Condition = Callable[[Seen], bool]


@dataclass(frozen=True)
class Reference:
    """A row pattern over the rows of one key."""

    root: p.Part
    define: dict[str, Condition]
    measures: list[Callable[[Seen], Any]]
    rows: str = "one"
    after: tuple[str, str] = ("past last row", "")
    within: int | None = None
    most_rows: int | None = None
    subsets: tuple[tuple[str, str], ...] = ()

    def ways(  # noqa: C901 - a case for each kind of part
        self, part: p.Part, at: int, taken: tuple[Label, ...], here: Here
    ) -> Iterator[tuple[int, tuple[Label, ...]]]:
        """All ways to match a part from a row on, the preferred first: where each ends, and the rows taken so far."""
        if isinstance(part, p.Stage):
            if here.may_take(at, taken) and self.holds(part.name, taken, here):
                yield at + 1, (*taken, (part.name, here.hidden))
        elif isinstance(part, p.Empty):
            yield at, taken
        elif isinstance(part, p.Anchor):
            if at == (0 if part.edge is p.Edge.START else len(here.rows)):
                yield at, taken
        elif isinstance(part, p.Exclusion):
            for end, made in self.ways(part.part, at, taken, here):
                yield end, (*taken, *((name, True) for name, _ in made[len(taken) :]))
        elif isinstance(part, p.Choice):
            for each in part.parts:
                yield from self.ways(each, at, taken, here)
        elif isinstance(part, p.Permutation):
            for order in itertools.permutations(part.parts):
                yield from self.ways(p.Sequence(order), at, taken, here)
        elif isinstance(part, p.Sequence):
            yield from self.sequence(part.parts, at, taken, here)
        elif isinstance(part, p.Repeat):
            yield from self.repeated(part, part.least, part.most, at, taken, here)
        else:
            raise AssertionError(part)

    def sequence(self, parts: tuple[p.Part, ...], at: int, taken: Any, here: Here) -> Iterator[Any]:
        if not parts:
            yield at, taken
            return
        for end, made in self.ways(parts[0], at, taken, here):
            yield from self.sequence(parts[1:], end, made, here)

    def repeated(self, part: p.Repeat, least: int, most: int | None, at: int, taken: Any, here: Here) -> Iterator[Any]:
        """So many times. Without an upper bound, an iteration that takes nothing is the last."""
        if least == 0 and most != 0 and part.preference is p.Preference.RELUCTANT:
            yield at, taken
        if most != 0:
            for end, made in self.ways(part.part, at, taken, here):
                if most is None and end == at and least <= 1:
                    yield end, made
                else:
                    fewer = None if most is None else most - 1
                    yield from self.repeated(part, max(0, least - 1), fewer, end, made, here)
        if least == 0 and (most == 0 or part.preference is not p.Preference.RELUCTANT):
            yield at, taken

    def holds(self, variable: str, taken: tuple[Label, ...], here: Here) -> bool:
        condition = self.define.get(variable)
        labels = (*(name for name, _ in taken), variable)
        return condition is None or condition(Seen(here.rows, here.start, labels, here.number)) is True

    def run(self, rows: list[Row]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What is emitted: the row (None for one row per match), then the measures; and the measures of what ran out of time."""
        made: list[tuple[Any, ...]] = []
        late: list[tuple[Any, ...]] = []
        at, number, matched = 0, 0, 0
        while at < len(rows):
            here = Here(rows, at, number + 1, self.within, self.most_rows, [])
            found = next((labels for _, labels in self.ways(self.root, at, (), here)), None)
            if found is None:
                late += self.timed_out(here)
                if self.rows == "all with unmatched" and at >= matched:
                    made.append((at, *(None for _ in self.measures)))
                at += 1
                continue
            number += 1
            made += self.emitted(rows, at, found, number)
            matched = max(matched, at + len(found))
            at += self.skip(found)
        return made, late

    def timed_out(self, here: Here) -> Iterator[tuple[Any, ...]]:
        """The preferred way that might have gone on, had there been time."""
        if here.stuck and self.within is not None:
            labels = tuple(name for name, _ in here.stuck[0])
            seen = Seen(here.rows, here.start, labels, here.number, labels)
            yield tuple(measure(seen) for measure in self.measures)

    def emitted(self, rows: list[Row], at: int, found: tuple[Label, ...], number: int) -> Iterator[tuple[Any, ...]]:
        labels = tuple(name for name, _ in found)
        if self.rows == "one" or not found:
            if found or self.rows != "all omit empty":
                seen = Seen(rows, at, labels, number, labels)
                yield (None if self.rows == "one" else at, *(measure(seen) for measure in self.measures))
            return
        for index, (_, hidden) in enumerate(found):
            if not hidden:
                seen = Seen(rows, at, labels[: index + 1], number, labels)
                yield (at + index, *(measure(seen) for measure in self.measures))

    def skip(self, found: tuple[Label, ...]) -> int:
        how, name = self.after
        if not found or how == "to next row":
            return 1
        if how == "past last row":
            return len(found)
        names = dict(self.subsets).get(name, name)
        places = [i for i, (label, _) in enumerate(found) if label in names]
        if not places:
            raise LookupError("no row of the variable")
        to = places[0 if how == "to first" else -1]
        if to == 0:
            raise LookupError("the first row of the match")
        return to


@dataclass(frozen=True)
class Here:
    """Where a search stands."""

    rows: list[Row]
    start: int
    number: int
    within: int | None
    most_rows: int | None
    stuck: list[tuple[Label, ...]]
    """What had been taken wherever a row was missing, the preferred way first."""
    hidden: bool = False

    def may_take(self, at: int, taken: tuple[Label, ...]) -> bool:
        """Whether there is a row, and it is in time."""
        there = at < len(self.rows) and (self.most_rows is None or at - self.start < self.most_rows)
        if there and (self.within is None or self.rows[at]["t"] - self.rows[self.start]["t"] < self.within):
            return True
        self.stuck.append(taken)
        return False
