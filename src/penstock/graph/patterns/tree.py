"""The tree of a pattern, whichever way it is written: stages, and what may come after, instead of, and how often.

Two families read it. With `ps.pattern` every run that completes is a match; with `ps.row_pattern` the preferred one is.

>>> rise = Repeat(Stage("up"), 1, None)
>>> str(Sequence((Stage("start"), rise), (Contiguity.STRICT,)))
'start, up+'
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.graph.expr import Expr


class Contiguity(enum.Enum):
    """Which events may lie between two that are taken."""

    STRICT = "strict"
    """None: the very next event."""
    RELAXED = "relaxed"
    """Those that do not match; the first that matches is taken."""
    ANY = "any"
    """All: an event that matches is taken, and is passed over too."""


class Preference(enum.Enum):
    """Which of several lengths of a repetition is taken."""

    GREEDY = "greedy"
    RELUCTANT = "reluctant"
    EVERY = "every"
    """Each of them is a match of its own."""


class Edge(enum.Enum):
    """An end of the rows of a key."""

    START = "start"
    END = "end"


@dataclass(frozen=True)
class Predicate:
    """A Python function as a condition: of the event, or of the event and what was taken before it."""

    function: Callable[..., object]
    sees_taken: bool = False


Condition: TypeAlias = Expr | Predicate | None
"""What must hold for an event to be taken; None takes every event."""


def _shape(condition: Condition) -> object:
    return condition.shape() if isinstance(condition, Expr) else condition


@dataclass(frozen=True, eq=False)
class Stage:
    """One event that satisfies a condition, under a name."""

    name: str
    condition: Condition = None

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stage) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self.name, _shape(self.condition))


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other; `links[i]` is the contiguity between `parts[i]` and the next. As a part of another it is a group."""

    parts: tuple[Part, ...]
    links: tuple[Contiguity, ...] = ()

    def __str__(self) -> str:
        signs = {Contiguity.STRICT: ", ", Contiguity.RELAXED: " -> ", Contiguity.ANY: " ->> "}
        first, *rest = map(_inner, self.parts)
        return first + "".join(signs[link] + part for link, part in zip(self.links, rest, strict=True))


@dataclass(frozen=True)
class Choice:
    """One of several parts; the first listed is preferred where only one may match."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return " | ".join(map(_inner, self.parts))


@dataclass(frozen=True, eq=False)
class Repeat:
    """A part so many times; `most` is None without an upper bound. Optional is 0 to 1.

    `inner` is the contiguity between two repetitions. A repetition takes nothing from the first event that satisfies `until`.
    """

    part: Part
    least: int
    most: int | None
    inner: Contiguity = Contiguity.RELAXED
    preference: Preference = Preference.EVERY
    until: Condition = None

    def __str__(self) -> str:
        suffix = {Preference.GREEDY: "", Preference.RELUCTANT: "?", Preference.EVERY: ""}[self.preference]
        return f"{_inner(self.part)}{self.mark}{suffix}"

    @property
    def mark(self) -> str:
        """How often, as patterns write it."""
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.least, self.most))
        if short is not None:
            return short
        if self.least == self.most:
            return f"{{{self.least}}}"
        return f"{{{self.least},{'' if self.most is None else self.most}}}"

    @property
    def is_loop(self) -> bool:
        """Whether there is no upper bound."""
        return self.most is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repeat) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self.part, self.least, self.most, self.inner, self.preference, _shape(self.until))


@dataclass(frozen=True)
class Absence:
    """A stage that must not happen: not as the very next event (`strict`), or not before the next part (not until the time is up, at the end)."""

    stage: Stage
    strict: bool = False

    def __str__(self) -> str:
        return f"!{self.stage}" if self.strict else f"!({self.stage})"


@dataclass(frozen=True)
class Permutation:
    """All parts, in any order."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return f"permute({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Empty:
    """Nothing."""

    def __str__(self) -> str:
        return "()"


@dataclass(frozen=True)
class Anchor:
    """An end of the rows of a key, which takes no row."""

    edge: Edge

    def __str__(self) -> str:
        return "^" if self.edge is Edge.START else "$"


@dataclass(frozen=True)
class Exclusion:
    """A part whose rows are matched and left out of the output."""

    part: Part

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


Part: TypeAlias = Stage | Sequence | Choice | Repeat | Absence | Permutation | Empty | Anchor | Exclusion
"""A node of the tree."""


def _inner(part: Part) -> str:
    return f"({part})" if isinstance(part, Sequence | Choice) else str(part)


def children(part: Part) -> tuple[Part, ...]:
    """The parts inside a part, in order."""
    if isinstance(part, Sequence | Choice | Permutation):
        return part.parts
    if isinstance(part, Repeat | Exclusion):
        return (part.part,)
    return (part.stage,) if isinstance(part, Absence) else ()


def walk(part: Part) -> Iterator[Part]:
    """The part and all parts inside it, from the left."""
    yield part
    for each in children(part):
        yield from walk(each)


def stages_of(part: Part) -> list[Stage]:
    """The stages, from the left; those that must not happen too."""
    return [each for each in walk(part) if isinstance(each, Stage)]


def taken_stages(part: Part) -> list[Stage]:
    """The stages that take events, from the left."""
    if isinstance(part, Absence):
        return []
    if isinstance(part, Stage):
        return [part]
    return [stage for each in children(part) for stage in taken_stages(each)]


def steps_of(part: Part) -> int:
    """How many stages a part has when its repetitions are written out.

    >>> steps_of(Repeat(Sequence((Repeat(Stage("a"), 2, 3), Stage("b")), (Contiguity.STRICT,)), 10, None))
    40
    """
    rounds = max(part.least, part.most or 1, 1) if isinstance(part, Repeat) else 1
    return rounds * max(sum(map(steps_of, children(part))), 1)


def can_be_empty(part: Part) -> bool:
    """Whether a part may take no event at all."""
    if isinstance(part, Stage):
        return False
    if isinstance(part, Choice):
        return any(map(can_be_empty, part.parts))
    if isinstance(part, Repeat):
        return part.least == 0 or can_be_empty(part.part)
    return all(map(can_be_empty, children(part))) if not isinstance(part, Absence) else True


def with_conditions(part: Part, change: Callable[[Expr], Expr]) -> Part:
    """The tree with its expressions changed."""
    if isinstance(part, Stage):
        return replace(part, condition=_changed(part.condition, change))
    if isinstance(part, Sequence | Choice | Permutation):
        return replace(part, parts=tuple(with_conditions(each, change) for each in part.parts))
    if isinstance(part, Repeat):
        return replace(part, part=with_conditions(part.part, change), until=_changed(part.until, change))
    if isinstance(part, Exclusion):
        return replace(part, part=with_conditions(part.part, change))
    if isinstance(part, Absence):
        return replace(part, stage=replace(part.stage, condition=_changed(part.stage.condition, change)))
    return part


def _changed(condition: Condition, change: Callable[[Expr], Expr]) -> Condition:
    return change(condition) if isinstance(condition, Expr) else condition
