"""Patterns as users write them: stages, how they follow each other, and what is made of a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Unpack

from penstock.errors import FlowError, nearest
from penstock.frontends.streams.matches.quantifiers import (
    Quantifier,
    StageCondition,
    condition_of,
    quantified,
    rounds_of,
)
from penstock.graph.duration import Span, checked_span, shown
from penstock.graph.order import Term, terms_of
from penstock.graph.patterns.limits import PER_KEY, PER_PATTERN, run_limit
from penstock.graph.patterns.pattern import NO_SKIP, AfterMatch, Pattern, RunLimit, Skip
from penstock.graph.patterns.tree import (
    Absence,
    Choice,
    Contiguity,
    Part,
    Preference,
    Repeat,
    Sequence,
    Stage,
    stages_of,
)

PER_STAGE = "stage"


@dataclass(frozen=True)
class Alternatives:
    """Patterns of which one is taken; `ps.one_of` makes it."""

    patterns: tuple[PatternBuilder, ...]


@dataclass(frozen=True)
class PatternBuilder:
    """A pattern under way, as `ps.pattern` returns it. Each method returns a longer one.

    >>> import penstock as ps
    >>> ps.pattern("card-testing").begin("probe", "amount < 2", times=(3, None)).followed_by("big", "amount > 500").within("10m")
    PatternBuilder('card-testing': probe{3,} -> big, within 10m)
    """

    name: str
    parts: tuple[Part, ...] = ()
    links: tuple[Contiguity, ...] = ()
    span: int | None = None
    gaps: tuple[tuple[str, int], ...] = ()
    after: AfterMatch = NO_SKIP
    order: tuple[Term, ...] = ()
    rounds: tuple[tuple[str, int], ...] = ()
    most: RunLimit | None = None

    def begin(
        self,
        stage: str | PatternBuilder | Alternatives,
        condition: StageCondition = None,
        **quantifier: Unpack[Quantifier],
    ) -> PatternBuilder:
        """The first stage; every event is tried as a begin.

        Args:
            stage: the name of the stage; or a pattern, which is a group of stages; or `ps.one_of(...)` of several.
            condition: what must hold for an event to be taken: an expression such as "amount > 500 and country != first(probe).country", a
                function of the event, or one of the event and of what was taken before, by stage. None takes every event.
            quantifier: how often, if not once. `times`: 3, (2, 4), or (3, None) for three or more. `one_or_more=True`. `optional=True`: or not at all.
                `consecutive=True`: no other event may lie between two repetitions. `combinations=True`: an event may be left out although it
                matches. `greedy=True`: as many as there are. `until`: a condition; from the first event that satisfies it a repetition without
                upper bound takes nothing. `gap`: how long there may be between two repetitions.

        Returns:
            The pattern.

        Raises:
            FlowError: the settings do not go together; the message says what to write instead.
            ExpressionError: the condition cannot be read.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n > 1", times=2)
        PatternBuilder('p': a{2})
        """
        if self.parts:
            raise FlowError(
                f"pattern {self.name!r} has a begin already; go on with next, followed_by or followed_by_any"
            )
        return replace(
            self, parts=(quantified(*part_of(stage, condition), quantifier),), rounds=rounds_of(stage, quantifier)
        )

    def next(
        self,
        stage: str | PatternBuilder | Alternatives,
        condition: StageCondition = None,
        **quantifier: Unpack[Quantifier],
    ) -> PatternBuilder:
        """A stage that the very next event must satisfy. The arguments are those of `begin`.

        Args:
            stage: the name of the stage, a group, or alternatives.
            condition: what must hold.
            quantifier: how often; see `begin`.

        Returns:
            The pattern.

        Raises:
            FlowError: there is no begin, or the settings do not go together.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").next("b", "n = 2")
        PatternBuilder('p': a, b)
        """
        return self._quantified(stage, condition, quantifier, Contiguity.STRICT)

    def followed_by(
        self,
        stage: str | PatternBuilder | Alternatives,
        condition: StageCondition = None,
        **quantifier: Unpack[Quantifier],
    ) -> PatternBuilder:
        """A stage that a later event must satisfy; events that do not are passed over, and the first that does is taken.

        Args:
            stage: the name of the stage, a group, or alternatives.
            condition: what must hold.
            quantifier: how often; see `begin`.

        Returns:
            The pattern.

        Raises:
            FlowError: there is no begin, or the settings do not go together.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").followed_by("b", "n = 2", one_or_more=True)
        PatternBuilder('p': a -> b+)
        """
        return self._quantified(stage, condition, quantifier, Contiguity.RELAXED)

    def followed_by_any(
        self,
        stage: str | PatternBuilder | Alternatives,
        condition: StageCondition = None,
        **quantifier: Unpack[Quantifier],
    ) -> PatternBuilder:
        """A stage that any later event may satisfy: each that does makes a match of its own.

        Args:
            stage: the name of the stage, a group, or alternatives.
            condition: what must hold.
            quantifier: how often; see `begin`.

        Returns:
            The pattern.

        Raises:
            FlowError: there is no begin, or the settings do not go together.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").followed_by_any("b", "n = 2")
        PatternBuilder('p': a ->> b)
        """
        return self._quantified(stage, condition, quantifier, Contiguity.ANY)

    def not_next(self, stage: str, condition: StageCondition = None, **quantifier: object) -> PatternBuilder:
        """The very next event must not satisfy a condition.

        Args:
            stage: the name of what must not happen.
            condition: what must not hold.
            quantifier: nothing: what does not happen has no number.

        Returns:
            The pattern.

        Raises:
            FlowError: there is no begin, or a quantifier.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").not_next("b", "n = 2").followed_by("c", "n = 3")
        PatternBuilder('p': a -> !b -> c)
        """
        return self._longer(_absence(stage, condition, quantifier, strict=True), Contiguity.RELAXED)

    def not_followed_by(self, stage: str, condition: StageCondition = None, **quantifier: object) -> PatternBuilder:
        """No event up to the next stage may satisfy a condition; at the end of a pattern, none until its time is up.

        Args:
            stage: the name of what must not happen.
            condition: what must not hold.
            quantifier: nothing: what does not happen has no number.

        Returns:
            The pattern.

        Raises:
            FlowError: there is no begin, or a quantifier.

        >>> import penstock as ps
        >>> ps.pattern("unpaid").begin("order", "kind = 'order'").not_followed_by("paid", "kind = 'paid'").within("1h")
        PatternBuilder('unpaid': order -> !(paid), within 1h)
        """
        return self._longer(_absence(stage, condition, quantifier, strict=False), Contiguity.RELAXED)

    def within(self, span: Span, per: str = PER_PATTERN) -> PatternBuilder:
        """How long a match may take: from its first event to less than this. Of several the shortest counts.

        Args:
            span: a span of time, such as "10m".
            per: "pattern", or "stage" for the time from the event before the last stage so far to that stage.

        Returns:
            The pattern.

        Raises:
            FlowError: it is no span of time above zero, or there is no stage yet.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").followed_by("b", "n = 2").within("10s", per="stage").within("1m")
        PatternBuilder('p': a -> b, within 1m, b within 10s)
        """
        micros = checked_span(span, "within", least=1)
        if per == PER_PATTERN:
            return replace(self, span=micros if self.span is None else min(self.span, micros))
        if per != PER_STAGE:
            raise FlowError(f"within is per 'pattern' or per 'stage', got {per!r}")
        if not self.parts:
            raise FlowError(f"within per stage is of the stage before it, and pattern {self.name!r} has none yet")
        if isinstance(self.parts[-1], Repeat) and self.parts[-1].most != 1:
            raise FlowError(
                f"{self.parts[-1]} is repeated; say gap='10s' with it for the time between two repetitions, or within for the pattern"
            )
        stage = stages_of(self.parts[-1])[-1].name
        return replace(self, gaps=(*(each for each in self.gaps if each[0] != stage), (stage, micros)))

    def after_match(self, skip: str, stage: str = "", *, must_exist: bool = False) -> PatternBuilder:
        """Which runs are dropped after a match: without it none, so that every match is emitted.

        Args:
            skip: "none"; "next": runs that began with the match; "past_last": runs that began before it ended; "first" or "last": runs that began
                before the first or last event of a stage.
            stage: the stage of "first" and "last".
            must_exist: whether a match without an event of that stage is an error, and not as "none".

        Returns:
            The pattern.

        Raises:
            FlowError: there is no such strategy, or the stage is missing or too much.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1", one_or_more=True).after_match("past_last")
        PatternBuilder('p': a+, after match past_last)
        """
        known = [each.value for each in Skip]
        if skip not in known:
            raise FlowError(f"after_match: no strategy {skip!r}; {nearest(skip, known)}")
        to_stage = skip in (Skip.TO_FIRST.value, Skip.TO_LAST.value)
        if to_stage != bool(stage):
            needs = f"needs a stage: after_match({skip!r}, 'a')" if to_stage else f"takes no stage, got {stage!r}"
            raise FlowError(f"after_match({skip!r}) {needs}")
        return replace(self, after=AfterMatch(Skip(skip), stage, must_exist))

    def order_by(self, by: str) -> PatternBuilder:
        """What decides the order of events of the same time; else they are taken as they arrive.

        Args:
            by: fields, such as "priority desc, id".

        Returns:
            The pattern.

        Raises:
            FlowError: it is no order.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").order_by("n desc")
        PatternBuilder('p': a)
        """
        return replace(self, order=terms_of(by))

    def limit(self, runs: int, overflow: str = "drop", per: str = PER_KEY) -> PatternBuilder:
        """How many runs there may be at a time, so that a pattern which begins often and ends seldom does not grow without end.

        Args:
            runs: the most that a key may have, or the pattern.
            per: "key", at every event; or "pattern" for all keys together, at the end of a batch: each task of the step may have its share.
            overflow: what happens to the oldest runs above that. "drop": they are dropped, and counted in the report of the batch;
                "aside": they are emitted to `.side("dropped")` too; "fail": the flow fails.

        Returns:
            The pattern.

        Raises:
            FlowError: there is no such policy, it is per something else, or the limit is below one.

        >>> import penstock as ps
        >>> ps.pattern("p").begin("a", "n = 1").followed_by("b", "n = 2").limit(1_000)
        PatternBuilder('p': a -> b, limit 1,000 runs for each key, drop)
        """
        return replace(self, most=run_limit(runs, overflow, per))

    def built(self) -> Pattern:
        """The pattern, checked.

        Returns:
            The pattern as the step takes it.

        Raises:
            FlowError: it is not sound.

        >>> import penstock as ps
        >>> str(ps.pattern("p").begin("a", "n = 1").next("b").built())
        'a, b'
        """
        return Pattern(
            self.name, self.tree(), self.span, self.gaps, self.after, self.order, self.rounds, limit=self.most
        )

    def tree(self) -> Part:
        """The tree of the pattern.

        Returns:
            Its root.

        Raises:
            FlowError: it has no stage.

        >>> import penstock as ps
        >>> str(ps.pattern("p").begin("a", "n = 1").tree())
        'a'
        """
        if not self.parts:
            raise FlowError(f"pattern {self.name!r} has no stage; begin it with .begin('a', 'n > 1')")
        is_plain = len(self.parts) == 1 and not isinstance(self.parts[0], Sequence)
        return self.parts[0] if is_plain else Sequence(self.parts, self.links)

    def __repr__(self) -> str:
        tree = str(self.tree()) if self.parts else "no stage yet"
        more = [] if self.span is None else [f"within {shown(self.span)}"]
        more += [f"{stage} within {shown(span)}" for stage, span in self.gaps]
        more += [] if self.after.skip is Skip.NONE else [f"after match {self.after}"]
        more += [] if self.most is None else [f"limit {self.most}"]
        return f"PatternBuilder({self.name!r}: {', '.join([tree, *more])})"

    def _quantified(
        self, stage: str | PatternBuilder | Alternatives, condition: StageCondition, given: Quantifier, link: Contiguity
    ) -> PatternBuilder:
        made = self._longer(quantified(*part_of(stage, condition), given), link, optional=given.get("optional", False))
        return replace(made, rounds=(*self.rounds, *rounds_of(stage, given)))

    def _longer(self, part: Part, link: Contiguity, *, optional: bool = False) -> PatternBuilder:
        if not self.parts:
            raise FlowError(f"pattern {self.name!r} must start with .begin(...), got another stage")
        before = self.parts[-1]
        if optional and isinstance(before, Repeat) and before.preference is Preference.GREEDY:
            raise FlowError(f"{part} is optional and cannot follow {before}, which is greedy; leave out one of the two")
        return replace(self, parts=(*self.parts, part), links=(*self.links, link))


def part_of(stage: str | PatternBuilder | Alternatives, condition: StageCondition) -> tuple[str, Part]:
    """The part of a stage, a group or alternatives, with what errors call it."""
    if isinstance(stage, str):
        return stage, Stage(stage, condition_of(condition, stage))
    if not isinstance(stage, PatternBuilder | Alternatives):
        raise FlowError(f"a stage is a name, a pattern, or ps.one_of(...), got {stage!r}")
    if condition is not None:
        raise FlowError("a group of stages has no condition of its own; give each of its stages one")
    if isinstance(stage, Alternatives):
        return "one_of", Choice(tuple(_group(each, alone=True) for each in stage.patterns))
    return stage.name, _group(stage)


def _group(given: PatternBuilder, *, alone: bool = False) -> Part:
    if given.span is not None or given.gaps or given.rounds or given.after != NO_SKIP or given.order or given.most:
        raise FlowError(
            f"group {given.name!r}: within, after_match, order_by and limit belong to the whole pattern; say them there"
        )
    tree = given.tree()
    return tree if isinstance(tree, Sequence) or alone else Sequence((tree,))


def _absence(stage: str, condition: StageCondition, quantifier: Mapping[str, object], *, strict: bool) -> Absence:
    if not isinstance(stage, str):
        raise FlowError(f"what must not happen is one stage with a name, got {stage!r}")
    if quantifier:
        raise FlowError(f"stage {stage!r} must not happen, so {', '.join(quantifier)} has no meaning; leave it out")
    return Absence(Stage(stage, condition_of(condition, stage)), strict)


def pattern(name: str) -> PatternBuilder:
    """A pattern over the events of a key, to be begun with `.begin(...)`; see `KeyedStream.match`.

    Args:
        name: what errors and metrics call it.

    Returns:
        The pattern, without a stage yet.

    Raises:
        FlowError: the name is no text.

    >>> import penstock as ps
    >>> ps.pattern("p").begin("a", "n = 1").followed_by("b", "n = 2").within("10m")
    PatternBuilder('p': a -> b, within 10m)
    """
    if not isinstance(name, str) or not name:
        raise FlowError(f"the name of a pattern is a text, got {name!r}")
    return PatternBuilder(name)


def one_of(*patterns: PatternBuilder) -> Alternatives:
    """Alternatives as a stage of a pattern: one of them is taken.

    Args:
        patterns: two or more patterns.

    Returns:
        What `begin`, `next`, `followed_by` and `followed_by_any` take for a stage.

    Raises:
        FlowError: there are fewer than two.

    >>> import penstock as ps
    >>> sms, call = ps.pattern("s").begin("sms", "kind = 'sms'"), ps.pattern("c").begin("call", "kind = 'call'")
    >>> ps.pattern("p").begin("login", "kind = 'login'").followed_by(ps.one_of(sms, call))
    PatternBuilder('p': login -> (sms | call))
    """
    if len(patterns) < 2 or not all(isinstance(each, PatternBuilder) for each in patterns):
        raise FlowError(f"one_of takes two patterns or more, got {patterns!r}")
    return Alternatives(patterns)
