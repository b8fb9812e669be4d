"""The preferred match where a condition looks at what was matched before: threads in the order of preference, each with what it has taken.

Two threads at one instruction that would see the same are one; the less preferred is dropped. So the work is that of a plain pattern
wherever conditions look at a few rows, however many ways lead to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.graph.nodes import Node
from penstock.graph.patterns.conditions import NavigationExpr
from penstock.graph.patterns.row_pattern import RowExpressions
from penstock.graph.patterns.row_program import RowProgram, Take
from penstock.graph.schema import Schema
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.rows.closure import DONE, Closure
from penstock.kernels.patterns.rows.outcome import FAILED, WAITING, Outcome, RowLabel, Span
from penstock.kernels.patterns.rows.trackers import (
    AggregateTracker,
    RowTracker,
    Tracker,
    tracker_of,
)
from penstock.kernels.patterns.rows.values import RowExpression, RowValues


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The rows that a thread has taken, the last first."""

    before: Chain | None
    row: int
    label: RowLabel

    def labels(self) -> tuple[RowLabel, ...]:
        """The variables from the first row on."""
        made: list[RowLabel] = []
        at: Chain | None = self
        while at is not None:
            made.append(at.label)
            at = at.before
        return tuple(reversed(made))

    def label_of(self, row: int) -> str | None:
        """The variable of a row; None where it is not among them."""
        at: Chain | None = self
        while at is not None and at.row > row:
            at = at.before
        return at.label[0] if at is not None and at.row == row else None


@dataclass(frozen=True, slots=True)
class ChainLabels:
    """The variables of the rows of a thread."""

    chain: Chain | None

    def label(self, row: int) -> str | None:
        """The variable of a row; None where it is not in the match."""
        return None if self.chain is None else self.chain.label_of(row)


@dataclass(slots=True)
class Thread:
    """A way through the program: the instruction that may take the next row, the rows taken, and what the looks keep of them."""

    at: int
    chain: Chain | None
    kept: tuple[Any, ...]


class Condition:
    """The condition of a variable that looks at what was matched before."""

    def __init__(self, made: NavigationExpr, slots: list[int], trackers: list[Tracker]) -> None:
        own = made.schema.names[: len(made.schema.names) - len(slots)]
        self.expression = RowExpression(made.expr, made.schema, own)
        self.slots = slots
        self.trackers = [trackers[slot] for slot in slots]

    def holds(self, kept: tuple[Any, ...], row: int, chain: Chain, search: Search) -> bool:
        """Whether it is true of a row that was taken last."""
        looked = [
            self._value(tracker, kept[slot], chain, search)
            for slot, tracker in zip(self.slots, self.trackers, strict=True)
        ]
        return self.expression.value(search.rows, row, *looked) is True

    def _value(self, tracker: Tracker, kept: Any, chain: Chain, search: Search) -> object:
        if isinstance(tracker, RowTracker):
            return tracker.value(kept, search.rows, search.first, search.after, ChainLabels(chain))
        return tracker.value(kept) if isinstance(tracker, AggregateTracker) else search.number


@dataclass(frozen=True)
class Search:
    """What conditions may look at: the rows of the key, from `first` to before `after`, and the number of the match."""

    rows: RowValues
    first: int
    after: int
    number: int


class History:
    """Finds the preferred match of a start, with conditions that look at what was matched before.

    Args:
        node: the step, which errors name.
        program: the pattern.
        bits: the bit of each variable whose condition is known for each row; it holds as well.
        expressions: the conditions.
        schema: the fields of the rows.
    """

    def __init__(
        self, node: Node, program: RowProgram, bits: Mapping[str, int], expressions: RowExpressions, schema: Schema
    ) -> None:
        self.node, self.closure = node, Closure(program)
        self.takes = [each if isinstance(each, Take) else Take("") for each in program.instructions]
        self.bits = dict(bits)
        self.trackers: list[Tracker] = []
        self.conditions: dict[str, Condition] = {}
        for variable, made in expressions.define:
            if variable not in bits:
                slots = [self._slot(tracker_of(look, expressions.pattern, schema)) for look in made.inputs]
                self.conditions[variable] = Condition(made, slots, self.trackers)
        self.changes = {
            name: [(at, each) for at, each in enumerate(self.trackers) if name in each.members]
            for name in expressions.pattern.variables
        }
        self.has_lists = any(isinstance(each, AggregateTracker) and not each.is_plain for each in self.trackers)
        self.has_steps_to_labels = any(
            isinstance(each, RowTracker) and each.labelled and each.step for each in self.trackers
        )

    def _slot(self, tracker: Tracker) -> int:
        self.trackers.append(tracker)
        return len(self.trackers) - 1

    def find(self, masks: Sequence[int], span: Span, search: Search) -> Outcome:
        """The preferred match of the rows of a span."""
        threads, found = self.begin(at_start=span.at_start)
        row = span.start
        while row < span.end and threads:
            threads, done = self.step(threads, masks[row], row, search, at_end=span.at_end and row == span.end - 1)
            found = found if done is None else done
            row += 1
        if threads and not span.is_closed:
            return WAITING
        if found is not None:
            return Outcome(found)
        partial = threads[0].chain.labels() if threads and threads[0].chain is not None else ()
        return Outcome(None, partial) if partial else FAILED

    def begin(self, *, at_start: bool) -> tuple[list[Thread], tuple[RowLabel, ...] | None]:
        """The threads before the first row, and the empty match where there is one."""
        kept = tuple(tracker.begin() for tracker in self.trackers)
        found = self.closure.follow(0, set(), at_start=at_start)
        return [Thread(at, None, kept) for at in found if at != DONE], () if DONE in found else None

    def step(
        self, threads: list[Thread], mask: int, row: int, search: Search, *, at_end: bool
    ) -> tuple[list[Thread], tuple[RowLabel, ...] | None]:
        """The threads after a row, and the match that is complete with it, which ends the less preferred threads."""
        made: list[Thread] = []
        seen: dict[object, set[int]] = {}
        for thread in threads:
            taken = self.taken(thread, mask, row, search)
            if taken is None:
                continue
            chain, kept = taken
            known = seen.setdefault(self._sight(chain, kept), set())
            for at in self.closure.follow(thread.at + 1, known, at_end=at_end):
                if at == DONE:
                    return made, chain.labels()
                made.append(Thread(at, chain, kept))
        return made, None

    def taken(self, thread: Thread, mask: int, row: int, search: Search) -> tuple[Chain, tuple[Any, ...]] | None:
        """What a thread has after it takes a row; None where it may not."""
        take = self.takes[thread.at]
        bit = self.bits.get(take.variable)
        if bit is not None and not bit & mask:
            return None
        chain = Chain(thread.chain, row, (take.variable, take.hidden))
        try:
            kept = self._kept(thread.kept, row, take.variable, search.rows)
            condition = self.conditions.get(take.variable)
            if condition is not None and not condition.holds(kept, row, chain, search):
                return None
        except Exception as error:
            raise RecordFailed(self.node, search.rows[row], None, error) from error
        return chain, kept

    def _kept(self, kept: tuple[Any, ...], row: int, variable: str, rows: RowValues) -> tuple[Any, ...]:
        changes = self.changes[variable]
        if not changes:
            return kept
        made = list(kept)
        for at, tracker in changes:
            made[at] = tracker.take(kept[at], row, variable, rows)
        return tuple(made)

    def _sight(self, chain: Chain, kept: tuple[Any, ...]) -> object:
        """All that conditions of later rows may see; equal for threads that have the same future."""
        sight = (kept, chain.labels()) if self.has_steps_to_labels else kept
        return repr(sight) if self.has_lists else sight
