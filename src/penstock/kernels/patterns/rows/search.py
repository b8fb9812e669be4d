"""The search through the rows of a key: from each start the preferred match, then on to where the pattern says."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.graph.nodes import Node
from penstock.graph.patterns.pattern import Skip
from penstock.graph.patterns.row_pattern import RowExpressions, RowsPerMatch
from penstock.graph.patterns.row_program import compile_rows
from penstock.graph.schema import Schema
from penstock.graph.times import FOREVER
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.rows.automaton import Automaton
from penstock.kernels.patterns.rows.conditions import RowMasks
from penstock.kernels.patterns.rows.history import History, Search
from penstock.kernels.patterns.rows.measures import Match, Output
from penstock.kernels.patterns.rows.outcome import WAITING, Outcome, RowLabel, Span
from penstock.kernels.patterns.rows.reach import Reach
from penstock.kernels.patterns.rows.values import RowValues

ROUNDS = 8
"""When the starts of a key have looked at so many times its rows, those that cannot match are found out first."""
ENDLESS = 1 << 62


class SkipFailed(ValueError):
    """There is no row to go on at after a match."""


@dataclass(slots=True)
class Progress:
    """How far the search has come in the rows of a key that are kept.

    Args:
        start: the row at which the next search starts; those before it are kept to be looked at.
        before: how many rows of the key there were before those that are kept.
        matches: how many matches there were.
        matched: the row after the last one that is in a match.
    """

    start: int = 0
    before: int = 0
    matches: int = 0
    matched: int = 0


@dataclass(frozen=True)
class Rows:
    """The rows of a batch, by key and in order, as the search reads them."""

    values: RowValues
    masks: Sequence[int]
    times: Sequence[int]
    starts: Sequence[int] | None
    """The rows that may begin a match, in order; None where any may."""


@dataclass(frozen=True)
class Now:
    """Where event time stands: no row before `watermark` is to come; FOREVER is the end of the input."""

    watermark: int

    @property
    def has_ended(self) -> bool:
        """Whether no row is to come at all."""
        return self.watermark >= FOREVER


class RowSearch:
    """Finds the matches of keys.

    Args:
        node: the step, which errors name.
        expressions: the pattern, with its conditions and measures.
        schema: the fields of the rows.
    """

    def __init__(self, node: Node, expressions: RowExpressions, schema: Schema) -> None:
        self.node, self.pattern = node, expressions.pattern
        self.program = compile_rows(self.pattern.root)
        self.masks = RowMasks(node, expressions, schema)
        self.ahead = max(expressions.ahead, 1 if self.program.looks_for_end else 0)
        self.ahead_of_match = expressions.ahead_of_match
        self.behind = expressions.behind
        self.counts_matches = expressions.counts_matches
        self.automaton = Automaton(self.program, self.masks.bits, has_partial=self.pattern.within is not None)
        dynamic = {name for name, _ in expressions.define} - self.masks.bits.keys()
        self.history = History(node, self.program, self.masks.bits, expressions, schema) if dynamic else None
        self.first_bits = self.automaton.first_bits()
        bounded = self.history is not None or self.pattern.within is not None
        self.reach = None if bounded else Reach(self.automaton)
        self.starts: Sequence[int] | None = None
        """The rows that may begin a match; None where any may."""

    def run(
        self, rows: Rows, key: range, progress: Progress, now: Now, found: Output, timed_out: Output | None
    ) -> None:
        """Emits what is sure of a key, and moves its progress on.

        Args:
            rows: the rows of the batch.
            key: those of the key.
            progress: where the search goes on; its rows count from the first of the key.
            now: where event time stands.
            found: where rows are emitted.
            timed_out: where partial matches go whose time ran out, if anyone asks.
        """
        known = key.stop if now.has_ended else key.stop - self.ahead
        self.starts, budget = rows.starts, self.automaton.steps + ROUNDS * len(key)
        for at in self._starts(key, progress, known, found):
            if self.reach is not None and self.automaton.steps > budget:
                self.starts, budget = self.reach.starts(rows.masks, at, known, is_closed=now.has_ended), ENDLESS
                continue
            outcome = self._find(rows, key, at, known, progress, now)
            emitted = outcome.labels if timed_out is None or outcome.labels is not None else outcome.partial or None
            is_cut = emitted is not None and at + len(emitted) + self.ahead_of_match > key.stop
            if outcome is WAITING or (is_cut and not now.has_ended):
                return
            self._settle(outcome, at, key, progress, found, timed_out)

    def _starts(self, key: range, progress: Progress, known: int, found: Output) -> Iterator[int]:
        """The rows at which a match may start, one after the other; those that are passed over are in no match that starts there."""
        while (at := key.start + progress.start) < key.stop:
            start = self._next_start(at, known)
            self._pass_over(key, range(at, start), progress, found)
            progress.start = start - key.start
            if start >= known:
                return
            yield start

    def _next_start(self, at: int, known: int) -> int:
        """The first row from `at` on that may begin a match; where there is none, the first that is not known yet."""
        if self.starts is None or at >= known:
            return at
        place = bisect_left(self.starts, at)
        return min(self.starts[place], known) if place < len(self.starts) else known

    def _pass_over(self, key: range, passed: range, progress: Progress, found: Output) -> None:
        if self.pattern.rows is RowsPerMatch.ALL_WITH_UNMATCHED:
            for row in range(max(passed.start, key.start + progress.matched), passed.stop):
                found.add_unmatched(row)

    def _find(self, rows: Rows, key: range, at: int, known: int, progress: Progress, now: Now) -> Outcome:
        span = self._span(rows, key, at, known, progress, now)
        if self.history is None:
            return self.automaton.find(rows.masks, span)
        rows.values.number = progress.matches + 1
        return self.history.find(rows.masks, span, Search(rows.values, key.start, key.stop, progress.matches + 1))

    def _span(self, rows: Rows, key: range, at: int, known: int, progress: Progress, now: Now) -> Span:
        end, closed = known, now.has_ended
        if self.pattern.within is not None:
            limit = rows.times[at] + self.pattern.within
            end = bisect_left(rows.times, limit, at, known)
            closed = closed or end < known or (now.watermark >= limit and known == key.stop)
        most = self.pattern.most_rows
        if most is not None and at + most <= end:
            end, closed = at + most, True
        at_start = at == key.start and progress.before == 0
        return Span(at, end, at_start, now.has_ended and end == key.stop, closed)

    def _settle(
        self, outcome: Outcome, at: int, key: range, progress: Progress, found: Output, timed_out: Output | None
    ) -> None:
        """Emits the match of a start, if there is one, and moves on."""
        labels = outcome.labels
        if labels is None:
            if timed_out is not None and outcome.partial and self.pattern.within is not None:
                timed_out.add_one(Match(at, outcome.partial, progress.matches + 1, key.start, key.stop))
            self._pass_over(key, range(at, at + 1), progress, found)
            progress.start += 1
            return
        progress.matches += 1
        self._emit(Match(at, labels, progress.matches, key.start, key.stop), found)
        if not labels:
            progress.start += 1
            return
        progress.matched = max(progress.matched, at - key.start + len(labels))
        progress.start += self._skip(labels, at, found)

    def _emit(self, match: Match, found: Output) -> None:
        rows = self.pattern.rows
        if rows.is_one:
            found.add_one(match)
        elif match.labels or rows is not RowsPerMatch.ALL_OMIT_EMPTY:
            found.add_all(match)

    def _skip(self, labels: tuple[RowLabel, ...], at: int, found: Output) -> int:
        """How many rows after the first of a match the search goes on."""
        after = self.pattern.after_match
        if after.skip is Skip.PAST_LAST:
            return len(labels)
        if after.skip is Skip.TO_NEXT:
            return 1
        members = self.pattern.members(after.stage)
        places = [place for place, (label, _) in enumerate(labels) if label in members]
        if places and (to := places[0 if after.skip is Skip.TO_FIRST else -1]):
            return to
        raise RecordFailed(self.node, found.rows[at], None, self._failure(places)) from None

    def _failure(self, places: list[int]) -> SkipFailed:
        after = self.pattern.after_match
        to = f"after_match skips to the {after.skip.value} row of {after.stage}"
        if places:
            return SkipFailed(
                f"{to}, which is the first row of the match itself, so the search would never end; skip to a later row"
            )
        return SkipFailed(
            f"{to}, and no row of the match is {after.stage}; skip past the last row, or to a variable that every match has"
        )

    def left_of(self, progress: Progress) -> tuple[Progress, int]:
        """What a later search needs to know of the progress, and how many rows of the key it will not look at any more."""
        dropped = max(0, progress.start - self.behind)
        before = min(1, progress.before + dropped) if self.program.looks_for_start else 0
        matches = progress.matches if self.counts_matches else 0
        return Progress(progress.start - dropped, before, matches, max(0, progress.matched - dropped)), dropped
