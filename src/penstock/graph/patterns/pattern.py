"""A pattern: its tree, how long it may take, and what happens after a match."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass

from penstock.errors import FlowError, nearest
from penstock.graph.duration import shown
from penstock.graph.order import Term
from penstock.graph.patterns.tree import (
    Absence,
    Anchor,
    Choice,
    Contiguity,
    Empty,
    Exclusion,
    Part,
    Permutation,
    Preference,
    Repeat,
    Sequence,
    Stage,
    can_be_empty,
    stages_of,
    steps_of,
    taken_stages,
    walk,
)

MOST_STEPS = 20_000
"""So many stages a pattern may have; repetitions with bounds are written out."""


class Skip(enum.Enum):
    """Which runs are dropped after a match."""

    NONE = "none"
    """None: every match is emitted."""
    TO_NEXT = "next"
    """Those that began at the first event of the match."""
    PAST_LAST = "past_last"
    """Those that began before its last event, or at it."""
    TO_FIRST = "first"
    """Those that began before the first event of a stage."""
    TO_LAST = "last"
    """Those that began before the last event of a stage."""


@dataclass(frozen=True)
class AfterMatch:
    """What happens after a match; `stage` is that of TO_FIRST and TO_LAST, `must_exist` whether a match without it is an error."""

    skip: Skip = Skip.NONE
    stage: str = ""
    must_exist: bool = False

    def __str__(self) -> str:
        return f"{self.skip.value} {self.stage}".strip()


NO_SKIP = AfterMatch()
"""Every match is emitted."""


class Overflow(enum.Enum):
    """What happens when a key has more runs than it may."""

    DROP = "drop"
    """Its oldest runs are dropped, and counted."""
    ASIDE = "aside"
    """They are dropped, counted, and emitted to a stream of their own."""
    FAIL = "fail"
    """The flow fails."""


@dataclass(frozen=True)
class RunLimit:
    """How many runs a key may have, or all keys together where it `is_shared`, and what happens to those above that."""

    runs: int
    overflow: Overflow = Overflow.DROP
    is_shared: bool = False

    def __str__(self) -> str:
        of = "all keys" if self.is_shared else "each key"
        return f"{self.runs:,} runs for {of}, {self.overflow.value}"


@dataclass(frozen=True)
class Pattern:
    """A pattern over the events of a key; checked when it is made.

    Args:
        name: what errors and metrics call it.
        root: the tree.
        within: microseconds from the first event of a match to less than which the last must be, or None.
        gaps: microseconds by stage, less than which the event of the stage must be after the one taken before it.
        rounds: microseconds by stage, less than which there may be between two repetitions of it.
        after_match: which runs are dropped after a match.
        order: fields by which events of the same time are ordered; else they are taken as they arrive.
        limit: how many runs a key may have.
        skip_till_next: a run takes the next event that it can take, and passes over none of those, as SASE's skip-till-next-match does.
        partition: fields that the key of the stream must be, as SASE's partition_contiguity is about the events that are equal in them; () for any.

    Raises:
        FlowError: the pattern is not sound. The message names the stage, and says what to write instead.
    """

    name: str
    root: Part
    within: int | None = None
    gaps: tuple[tuple[str, int], ...] = ()
    after_match: AfterMatch = NO_SKIP
    order: tuple[Term, ...] = ()
    rounds: tuple[tuple[str, int], ...] = ()
    limit: RunLimit | None = None
    skip_till_next: bool = False
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_names(self.root)
        _check_size(self.root)
        for part in walk(self.root):
            _check_part(part)
        _check_ends(self)
        _check_times(self)
        _check_skip(self)
        _check_limit(self)

    def __str__(self) -> str:
        return str(self.root)

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that take events, from the left."""
        return tuple(dict.fromkeys(stage.name for stage in taken_stages(self.root)))

    def check_key(self, keys: tuple[str, ...]) -> None:
        """Refuses a stream by another key than the pattern is about; `keys` are its fields, () where there is none."""
        if self.partition and set(self.partition) != set(keys):
            wanted = ", ".join(map(repr, self.partition))
            got = f"one by {', '.join(map(repr, keys))}" if keys else "one without a key"
            raise FlowError(
                f"partition_contiguity is about the events that are equal in {wanted}: expected a stream by that key, got {got}; say "
                f"key_by({wanted}).match(...)"
            )

    def settings(self) -> dict[str, str]:
        """The pattern as people read it."""
        made = {"pattern": str(self.root)}
        if self.skip_till_next:
            made["strategy"] = "skip till next match"
        if self.within is not None:
            made["within"] = shown(self.within)
        for name, gaps in (("gaps", self.gaps), ("rounds", self.rounds)):
            if gaps:
                made[name] = ", ".join(f"{stage}: {shown(span)}" for stage, span in gaps)
        if self.limit is not None:
            made["limit"] = str(self.limit)
        if self.after_match.skip is not Skip.NONE:
            made["after match"] = str(self.after_match)
        return made


def _check_names(root: Part) -> None:
    names = [stage.name for stage in stages_of(root)]
    if not names:
        raise FlowError("a pattern needs at least one stage, such as .begin('a', 'n > 1')")
    for name in names:
        if not name or ":" in name:
            raise FlowError(f"the name of a stage is a text without ':', got {name!r}; write it with '_' instead")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FlowError(f"stage {twice[0]!r} appears twice in the pattern; every stage needs a name of its own")


def _check_size(root: Part) -> None:
    size = steps_of(root)
    if size > MOST_STEPS:
        raise FlowError(
            f"the pattern is too large: its repetitions, written out, take {size:,} stages, expected at most {MOST_STEPS:,}; use smaller "
            f"bounds, or a loop without an upper bound and a condition that counts"
        )


def _check_part(part: Part) -> None:
    if isinstance(part, Anchor | Exclusion | Empty):
        raise FlowError(f"{part} belongs to row patterns, where one match is preferred; use ps.row_pattern for it")
    if isinstance(part, Choice | Permutation):
        _check_alternatives(part)
    elif isinstance(part, Sequence):
        _check_sequence(part)
    elif isinstance(part, Repeat):
        _check_repeat(part)


def _check_alternatives(part: Choice | Permutation) -> None:
    if len(part.parts) < 2:
        raise FlowError(f"alternatives are two parts or more, got {part}")
    for each in part.parts:
        if isinstance(each, Absence) or can_be_empty(each):
            raise FlowError(
                f"an alternative takes at least one event, and {each} may take none; make the choice optional instead"
            )


def _check_sequence(part: Sequence) -> None:
    if not part.parts or len(part.links) != len(part.parts) - 1:
        raise FlowError(
            f"a sequence of {len(part.parts)} parts has a link between each two, got {len(part.links)} links"
        )
    if isinstance(part.parts[0], Absence):
        raise FlowError(
            f"a pattern cannot begin with the absence of {part.parts[0].stage.name!r}; put a stage before it"
        )
    for before, after in zip(part.parts, part.parts[1:], strict=False):
        _check_pair(before, after)


def _check_pair(before: Part, after: Part) -> None:
    if isinstance(after, Absence) and isinstance(before, Repeat) and can_be_empty(before):
        raise FlowError(
            f"the absence of {after.stage.name!r} cannot follow {before}, which is optional; write two patterns, one with the "
            f"optional part and one without"
        )
    if isinstance(before, Repeat) and before.preference is Preference.GREEDY and _is_optional(after):
        raise FlowError(f"{after} is optional and cannot follow {before}, which is greedy; leave out one of the two")


def _is_optional(part: Part) -> bool:
    return isinstance(part, Repeat) and part.least == 0 and part.most in (1, None)


def _check_repeat(part: Repeat) -> None:
    if isinstance(part.part, Absence):
        raise FlowError(f"the absence of {part.part.stage.name!r} cannot be repeated or optional")
    if part.least < 0 or part.most == 0 or (part.most is not None and part.most < part.least):
        raise FlowError(
            f"{part.part} cannot repeat {part.least} to {part.most} times; the bounds rise from 0, the upper is above 0"
        )
    if part.until is not None and not part.is_loop:
        raise FlowError(f"until goes with a loop without upper bound, such as one_or_more; {part} is none")
    if part.preference is Preference.GREEDY and not isinstance(part.part, Stage | Choice):
        raise FlowError(f"greedy goes with a stage that is repeated, and {part.part} is a group")
    if part.preference is Preference.GREEDY and part.inner is Contiguity.ANY:
        raise FlowError(
            f"greedy and combinations do not go together in {part}: one takes as many as can be, the other every choice"
        )
    if part.preference is Preference.RELUCTANT:
        raise FlowError(f"reluctant repetitions belong to row patterns, where one match is preferred; got {part}")
    if part.is_loop and can_be_empty(part.part) and not isinstance(part.part, Repeat):
        raise FlowError(
            f"{part.part} may take no event, so it cannot be repeated without end; make one of its stages mandatory"
        )
    if isinstance(part.part, Repeat) and (part.least, part.most) != (0, 1):
        raise FlowError(f"{part.part} is repeated already; a stage has one quantifier")


def _check_ends(pattern: Pattern) -> None:
    last = pattern.root.parts[-1] if isinstance(pattern.root, Sequence) else pattern.root
    if not isinstance(last, Absence):
        return
    if not last.strict and pattern.within is None and last.stage.name not in dict(pattern.gaps):
        raise FlowError(
            f"the pattern ends with the absence of {last.stage.name!r}, so a match is known when time is up; say how long with "
            f".within('10m')"
        )


def _check_times(pattern: Pattern) -> None:
    known = [stage.name for stage in stages_of(pattern.root)]
    for stage, span in (*pattern.gaps, *pattern.rounds):
        if stage not in known:
            raise FlowError(f"within names stage {stage!r}; {nearest(stage, known)}")
        if pattern.within is not None and span > pattern.within:
            raise FlowError(
                f"stage {stage!r} may take {shown(span)} after the one before it, which is more than the {shown(pattern.within)} of the "
                f"pattern; make it shorter"
            )
        if span <= 0:
            raise FlowError(f"within is a span of time above zero, got {shown(span)} for stage {stage!r}")
    if pattern.within is not None and pattern.within <= 0:
        raise FlowError(f"within is a span of time above zero such as '10m', got {pattern.within} microseconds")


def _check_limit(pattern: Pattern) -> None:
    if pattern.limit is not None and pattern.limit.runs < 1:
        raise FlowError(f"a key may have one run or more, got a limit of {pattern.limit.runs}")


def _check_skip(pattern: Pattern) -> None:
    after = pattern.after_match
    known = [stage.name for stage in stages_of(pattern.root)]
    if after.skip in (Skip.TO_FIRST, Skip.TO_LAST) and after.stage not in known:
        raise FlowError(f"after_match skips to stage {after.stage!r}; {nearest(after.stage, known)}")
