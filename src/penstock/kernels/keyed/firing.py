"""Timers of a process step: which are due at a barrier, and in which order they fire."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Any

from penstock.graph.logic.process import Timer
from penstock.graph.state.layout import CLOCK, EVENT
from penstock.graph.times import FOREVER, to_moment
from penstock.kernels.base import RecordFailed

if TYPE_CHECKING:
    from penstock.kernels.keyed.keyed import Key
    from penstock.kernels.keyed.process import ProcessKernel

MOST = 10_000
"""How often one timer of a key may fire at one barrier; more is a mistake."""


class Firing:
    """Fires the timers of a step at a barrier: those of event time first, then those of the clock, by time."""

    def __init__(self, kernel: ProcessKernel) -> None:
        self.kernel = kernel
        self.waiting: list[tuple[int, str, int, Key]] = []
        self.fired: Counter[tuple[Key, str]] = Counter()
        self.number = 0

    def run(self, made: list[Any]) -> None:
        """Fires all that is due, and says when the step wants to run again."""
        times, state = self.kernel.times, self.kernel.state
        if self.kernel.timers:
            self._clock("event", EVENT, times.late, times.watermark, made)
        self._clock("processing", CLOCK, times.before, times.now, made)
        if self.kernel.timers:
            state.wake(EVENT, times.watermark)
        state.wake(CLOCK, times.now)

    def _clock(self, clock: str, column: str, after: int, until: int, made: list[Any]) -> None:
        """Fires the timers of one clock. A timer may set others, which fire too if they are due."""
        self.fired.clear()
        for key in self.kernel.state.due(column, after, until):
            self._settle(key, clock, until)
        while self.waiting:
            at, name, _, key = heapq.heappop(self.waiting)
            kept = self.kernel.load(key)
            if self.kernel.logic._timers.get((clock, name)) == at:
                self._fire(key, Timer(to_moment(at), name, clock), at, made)
                self.kernel.store(key, kept)
                self._push(key, clock, until)

    def _settle(self, key: Key, clock: str, until: int) -> None:
        """A key that waits: cells that have outlived their time go, timers that are due stand in line."""
        kept = self.kernel.load(key)
        self.kernel.store(key, kept)
        self._push(key, clock, until)

    def _push(self, key: Key, clock: str, until: int) -> None:
        for (by, name), at in self.kernel.logic._timers.items():
            if by == clock and at <= until:
                self.number += 1
                heapq.heappush(self.waiting, (at, name, self.number, key))

    def _fire(self, key: Key, timer: Timer, at: int, made: list[Any]) -> None:
        logic = self.kernel.logic
        del logic._timers[timer.clock, timer.name]
        logic._dirty = True
        before, logic._event_time = logic._event_time, (lambda: at) if timer.clock == "event" else None
        try:
            self._refuse_endless(key, timer)
            made += logic.on_timer(timer) or ()
        except Exception as error:
            raise RecordFailed(self.kernel.node, f"{timer} of key {logic.key!r}", 0, error) from error
        finally:
            logic._event_time = before

    def _refuse_endless(self, key: Key, timer: Timer) -> None:
        self.fired[key, timer.name] += 1
        if self.fired[key, timer.name] > MOST:
            over = self.kernel.times.watermark >= FOREVER and timer.clock == "event"
            why = (
                "the input is over, and all timers fire: ask self.ended before you set it again"
                if over
                else "check when"
            )
            raise RuntimeError(
                f"timer {timer.name!r} has fired {MOST} times at one barrier and sets itself again; {why}"
            )
