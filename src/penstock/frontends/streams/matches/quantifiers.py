"""How often a stage is taken, and under which condition, as users write it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from penstock.errors import FlowError, nearest
from penstock.graph.duration import Span, checked_span
from penstock.graph.expr import Expr, as_expr
from penstock.graph.patterns.tree import Condition, Contiguity, Part, Predicate, Preference, Repeat

StageCondition: TypeAlias = str | Expr | Callable[..., object] | None
"""A condition as the user writes it: an expression, a function of the event, or one of the event and what was taken before."""
Repetitions: TypeAlias = int | tuple[int, int | None] | None


class Quantifier(TypedDict, total=False):
    """How often a stage is taken, as the user writes it."""

    times: Repetitions
    one_or_more: bool
    optional: bool
    consecutive: bool
    combinations: bool
    greedy: bool
    until: StageCondition
    gap: Span | None


def rounds_of(stage: object, given: Quantifier) -> tuple[tuple[str, int], ...]:
    """How long there may be between two repetitions of a stage."""
    gap = given.get("gap")
    if gap is None:
        return ()
    if not isinstance(stage, str):
        raise FlowError(
            "gap goes with one stage that is repeated, and a group has several; say within(..., per='stage') in it"
        )
    return ((stage, checked_span(gap, "gap", least=1)),)


def quantified(name: str, part: Part, given: Quantifier) -> Part:
    """A part that is taken so often; `name` is what errors call it."""
    unknown = sorted(given.keys() - Quantifier.__annotations__.keys())
    if unknown:
        raise FlowError(f"stage {name!r}: no setting {unknown[0]!r}; {nearest(unknown[0], Quantifier.__annotations__)}")
    return _Quantifier(**given).over(name, part)


@dataclass(frozen=True)
class _Quantifier:
    """How often a stage is taken."""

    times: Repetitions = None
    one_or_more: bool = False
    optional: bool = False
    consecutive: bool = False
    combinations: bool = False
    greedy: bool = False
    until: StageCondition = None
    gap: Span | None = None

    def over(self, name: str, part: Part) -> Part:
        """The part so often."""
        least, most, repeats = self._bounds(name)
        self._check(name, repeats)
        inner = Contiguity.STRICT if self.consecutive else Contiguity.ANY if self.combinations else Contiguity.RELAXED
        preference = Preference.GREEDY if self.greedy else Preference.EVERY
        until = condition_of(self.until, name)
        if not repeats:
            return Repeat(part, 0, 1) if self.optional else part
        if self.optional and least > 1:
            return Repeat(Repeat(part, least, most, inner, preference, until), 0, 1)
        return Repeat(part, 0 if self.optional else least, most, inner, preference, until)

    def _bounds(self, name: str) -> tuple[int, int | None, bool]:
        if self.times is not None and self.one_or_more:
            raise FlowError(f"stage {name!r} has two quantifiers, times and one_or_more; a stage has one")
        if self.optional and isinstance(self.times, tuple) and self.times[:1] == (0,):
            raise FlowError(
                f"stage {name!r}: times={self.times!r} says already that it may be left out; leave out optional"
            )
        if self.one_or_more:
            return 1, None, True
        if self.times is None:
            return 1, 1, False
        given = self.times if isinstance(self.times, tuple) else (self.times, self.times)
        if (
            len(given) != 2
            or not all(isinstance(n, int) and not isinstance(n, bool) for n in given if n is not None)
            or given[0] is None
        ):
            raise FlowError(
                f"stage {name!r}: times is a number, (2, 4), or (3, None) for three or more, got {self.times!r}"
            )
        least, most = given
        if least < 0 or (most is not None and (most < 1 or most < least)):
            raise FlowError(
                f"stage {name!r}: times rises from 0, and its upper bound is at least 1, got {self.times!r}"
            )
        return least, most, True

    def _check(self, name: str, repeats: bool) -> None:
        for setting in ("consecutive", "combinations", "greedy", "gap"):
            if getattr(self, setting) and not repeats:
                raise FlowError(
                    f"stage {name!r}: {setting} goes with a repeated stage; say times=... or one_or_more=True"
                )
        if self.consecutive and self.combinations:
            raise FlowError(
                f"stage {name!r}: consecutive and combinations do not go together; leave out one of the two"
            )
        is_loop = self.one_or_more or (isinstance(self.times, tuple) and self.times[-1] is None)
        if self.until is not None and not is_loop:
            raise FlowError(
                f"stage {name!r}: until goes with a loop without upper bound; say one_or_more=True or times=(n, None)"
            )


def condition_of(written: StageCondition, stage: str) -> Condition:
    """A condition from what the user wrote."""
    if written is None:
        return None
    if isinstance(written, str | Expr):
        return as_expr(written)
    if callable(written):
        return Predicate(written, _arguments(written) > 1)
    raise FlowError(
        f"stage {stage!r}: a condition is an expression such as 'amount > 500' or a function, got {written!r}"
    )


def _arguments(function: Callable[..., object]) -> int:
    """How many arguments a function must be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(
        1
        for each in parameters
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    )
