"""Walks an automaton over the events of keys, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeAlias

from penstock.errors import RunError
from penstock.graph.patterns.automaton import Automaton, Kind
from penstock.graph.patterns.pattern import AfterMatch, Overflow, RunLimit, Skip
from penstock.graph.times import FOREVER
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.queue import LAST, Last, Link, MatchQueue, Run, RunQueue
from penstock.kernels.patterns.transitions import MATCH, MATCH_WITHOUT, STAY, TAKE, Outcome, Transitions

Asked: TypeAlias = "Callable[[int, int, Last], bool]"
"""Whether an event satisfies a test that looks at what was taken: the number of the test, the number of the event, and the last event taken."""


Aside: TypeAlias = "Callable[[int, RecordFailed], None]"
"""Puts an event aside on which a condition fails, by its number."""

ENDLESS = FOREVER + 1
"""The time of a run that no time ends."""


class RunEvents(NamedTuple):
    """A match, or a run whose time was up: the number of its key, what it has taken, and when its time was up."""

    key: int
    taken: Link
    at: int = 0


class Deadlines:
    """When the time of runs is up."""

    def __init__(self, automaton: Automaton) -> None:
        self.within = automaton.within
        self.gaps = {at: state.gap for at, state in enumerate(automaton.states) if state.gap is not None}

    def of(self, run: Run, times: list[int]) -> int:
        """The time of a run."""
        state, first, taken = run
        if taken is None:
            return ENDLESS
        until = ENDLESS if self.within is None else times[first] + self.within
        gap = self.gaps.get(state)
        return until if gap is None else min(until, times[taken[1]] + gap)


@dataclass
class Walk:
    """One pass over events. `times` and `masks` are by the number of an event; events of a key have rising numbers."""

    transitions: Transitions
    after_match: AfterMatch
    times: list[int]
    masks: list[int]
    asked: Asked | None = None
    reports: bool = True
    matches: list[RunEvents] = field(default_factory=list)
    timed_out: list[RunEvents] = field(default_factory=list)
    limit: RunLimit | None = None
    dropped: list[RunEvents] = field(default_factory=list)
    expired: int = 0
    """How many runs have timed out."""
    pruned: int = 0
    """How many runs the after-match strategy has dropped."""
    aside: Aside | None = None
    """Where an event goes on which a condition fails; for the runs of its key it has not happened. None where that ends the pass."""
    begins: bool = True
    """Whether events begin runs; else those that are there go on to their end."""

    def __post_init__(self) -> None:
        automaton = self.transitions.automaton
        self.within = automaton.within
        self.deadlines = Deadlines(automaton)
        self.pending = {at for at, state in enumerate(automaton.states) if state.kind is Kind.PENDING}
        self.start = automaton.start
        simple = self.asked is None and self.limit is None
        self.is_plain = simple and not self.deadlines.gaps and self.after_match.skip is Skip.NONE

    def deadline(self, run: Run) -> int:
        """When the time of a run is up."""
        return self.deadlines.of(run, self.times)

    def plain(self, key: int, begin: int, end: int, runs: list[Run]) -> list[Run]:  # noqa: C901 - one loop, for speed
        """The runs of a key after events without conditions on what was taken, where every match counts: the quick way.

        Runs stay in the order of their first events, so those whose time is up are the first ones.
        """
        times, masks, within = self.times, self.masks, self.within
        known, of_mask, unchanged = self.transitions.known, self.transitions.of_mask, self.transitions.unchanged
        start, matches = self.start, self.matches
        first_known = known[start]
        for at in range(begin, end):
            mask = masks[at]
            if runs:
                if within is not None and times[runs[0][1]] + within <= times[at]:
                    runs = self.expire_plain(key, runs, times[at])
                fresh: list[Run] = []
                for run in runs:
                    state = run[0]
                    outcome = known[state].get(mask)
                    if outcome is None:
                        outcome = of_mask(state, mask)
                    if outcome is unchanged[state]:
                        fresh.append(run)
                        continue
                    for what, target, stage in outcome:
                        if what == STAY:
                            fresh.append((target, run[1], run[2]))
                        elif what == TAKE:
                            fresh.append((target, run[1], (stage, at, run[2])))
                        elif what == MATCH:
                            matches.append(RunEvents(key, (stage, at, run[2])))
                        else:
                            assert run[2] is not None
                            matches.append(RunEvents(key, run[2]))
                runs = fresh
            if not self.begins:
                continue
            outcome = first_known.get(mask)
            if outcome is None:
                outcome = of_mask(start, mask)
            for what, target, stage in outcome:
                if what == TAKE:
                    runs.append((target, at, (stage, at, None)))
                elif what == MATCH:
                    matches.append(RunEvents(key, (stage, at, None)))
        return runs

    def expire_plain(self, key: int, runs: list[Run], time: int) -> list[Run]:
        """The runs that are left when time has come to `time`; the others are matches if that is what they waited for."""
        if self.within is None:
            return runs
        edge, times = time - self.within, self.times
        count = 0
        for run in runs:
            if times[run[1]] > edge:
                break
            count += 1
        for run in runs[:count]:
            self._expired(key, run)
        return runs[count:]

    def _expired(self, key: int, run: Run) -> None:
        assert run[2] is not None
        if run[0] in self.pending:
            self.matches.append(RunEvents(key, run[2], self.deadline(run)))
        else:
            self._time_out(key, run)

    def _time_out(self, key: int, run: Run) -> None:
        assert run[2] is not None
        self.expired += 1
        if self.reports:
            self.timed_out.append(RunEvents(key, run[2], self.deadline(run)))

    def key(self, key: int, begin: int, end: int, runs: RunQueue, done: MatchQueue) -> RunQueue:
        """The runs of a key after events, in the general case. `done` are matches that wait for runs which began before them."""
        for at in range(begin, end):
            if not len(runs):
                break
            if min(map(self.deadline, runs)) <= self.times[at]:
                runs = self.expire(key, runs, done, self.times[at])
            runs = self._tried(key, at, runs, done)
            if self.limit is not None and not self.limit.is_shared and len(runs) - 1 > self.limit.runs:
                self._limit(key, runs, self.limit)
        return runs

    def _tried(self, key: int, at: int, runs: RunQueue, done: MatchQueue) -> RunQueue:
        """The runs after an event; as they were where it is put aside. Conditions are asked before anything is changed."""
        try:
            return self._event(key, at, runs, done)
        except RecordFailed as failed:
            if self.aside is None:
                raise
            self.aside(at, failed)
            return runs

    def _limit(self, key: int, runs: RunQueue, limit: RunLimit) -> None:
        """Drops the oldest of too many runs; the one that has taken nothing yet does not count."""
        if limit.overflow is Overflow.FAIL:
            raise RunError(
                f"a key has {len(runs) - 1:,} runs, and may have {limit.runs:,}; make the pattern shorter with within, allow more with "
                f".limit(...), or drop the oldest with .limit({limit.runs}, 'drop')"
            )
        begun = sum(run[2] is not None for run in runs)
        oldest = [runs.pop() for _ in range(begun - limit.runs)]
        self.dropped += [RunEvents(key, run[2]) for run in oldest if run[2] is not None]

    def _event(self, key: int, at: int, runs: RunQueue, done: MatchQueue) -> RunQueue:
        fresh: list[Run] = []
        found: list[Run] = []
        for run in runs:
            state, first, taken = run
            begun = at if taken is None else first
            for what, target, stage in self._outcome(state, at, taken):
                if what == STAY:
                    fresh.append((target, first, taken))
                elif what == TAKE:
                    fresh.append((target, begun, (stage, at, taken)))
                elif what == MATCH:
                    found.append((target, begun, (stage, at, taken)))
                elif what == MATCH_WITHOUT:
                    found.append((target, first, taken))
            if taken is None:
                fresh.append(run)
        left = RunQueue(fresh)
        self._emit(key, found, left, done)
        return left

    def _outcome(self, state: int, at: int, taken: Last) -> Outcome:
        mask, asked = self.masks[at], self.asked
        if asked is None or not self.transitions.is_dynamic[state]:
            return self.transitions.of_mask(state, mask)
        plain, known = self.transitions.plain, {}

        def holds(test: int) -> bool:
            if plain >> test & 1 or not mask >> test & 1:
                return bool(mask >> test & 1)
            if test not in known:
                known[test] = asked(test, at, taken)
            return known[test]

        return self.transitions.of(state, holds)

    def expire(self, key: int, runs: RunQueue, done: MatchQueue, time: int) -> RunQueue:
        """The runs that are left when time has come to `time`. It ends them deadline by deadline, as if it had come to each."""
        over = sorted((run for run in runs if self.deadline(run) <= time), key=self.deadline)
        for _, together in groupby(over, self.deadline):
            found: list[Run] = []
            for run in together:
                if not runs.end(run):
                    continue
                if run[0] in self.pending:
                    found.append(run)
                else:
                    self._time_out(key, run)
            self._emit(key, found, runs, done)
        return runs

    def _emit(self, key: int, found: list[Run], runs: RunQueue, done: MatchQueue) -> None:
        """Emits matches: at once where every match counts, else when it is their turn."""
        if self.after_match.skip is not Skip.NONE:
            self._emit_in_order(key, found, runs, done)
            return
        for run in found:
            self._matched(key, run)

    def _matched(self, key: int, run: Run) -> None:
        assert run[2] is not None
        self.matches.append(RunEvents(key, run[2], self.deadline(run) if run[0] in self.pending else 0))

    def _emit_in_order(self, key: int, found: list[Run], runs: RunQueue, done: MatchQueue) -> None:
        """Emits matches that no run began before; each drops what the after-match strategy says."""
        for run in found:
            done.add(run)
        while len(done) and done.first() <= runs.first():
            self._emit_first(key, runs, done)

    def _emit_first(self, key: int, runs: RunQueue, done: MatchQueue) -> None:
        run = done.pop()
        assert run[2] is not None
        self._prune(run[2], runs, done)
        self._matched(key, run)

    def end(self, key: int, runs: RunQueue, done: MatchQueue) -> None:
        """Emits the matches that wait when the input is over: the runs that began before them become no match any more."""
        while len(done):
            self._emit_first(key, runs, done)

    def _prune(self, taken: Link, runs: RunQueue, done: MatchQueue) -> None:
        edge = self._edge(taken)
        if edge is None:
            return
        self.pruned += runs.drop(edge) + done.drop(edge)

    def _edge(self, taken: Link) -> int | None:
        """The event up to which runs that began there are dropped."""
        after = self.after_match
        if after.skip is Skip.NONE:
            return None
        events = events_of(taken)
        if after.skip is Skip.PAST_LAST:
            return events[-1][1]
        if after.skip is Skip.TO_NEXT:
            return events[0][1]
        stages = self.transitions.automaton.stages
        mine = [at for each, at in events if stages[each] == after.stage]
        self._check(mine, events[0][1])
        if not mine:
            return None
        return (mine[0] if after.skip is Skip.TO_FIRST else mine[-1]) - 1

    def _check(self, mine: list[int], first: int) -> None:
        """Refuses a match without the stage to skip to, and a skip to the first event of the match, where that was asked for."""
        after = self.after_match
        if not after.must_exist:
            return
        if not mine:
            raise RunError(
                f"after_match skips to {after.skip.value} {after.stage!r}, and a match has no event of that stage"
            )
        if (mine[0] if after.skip is Skip.TO_FIRST else mine[-1]) == first:
            raise RunError(
                f"after_match skips to {after.skip.value} {after.stage!r}, which is the first event of the match; it would be found again and again"
            )


def first_run(start: int) -> Run:
    """The run that has taken nothing yet; every event is tried as its first."""
    return (start, LAST, None)


def events_of(taken: Last) -> list[tuple[int, int]]:
    """The events that a run has taken, the first one first, each as the stage and the number of the event."""
    found = []
    while taken is not None:
        found.append((taken[0], taken[1]))
        taken = taken[2]
    found.reverse()
    return found
