"""Fires the timers of a process step that are due."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from penstock.graph.logic.process import Timer
from penstock.graph.state.timers import EVENT, PROCESSING, DueTimer
from penstock.graph.times import FOREVER, to_moment
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.several import several

if TYPE_CHECKING:
    from penstock.kernels.keyed.keyed import Key
    from penstock.kernels.keyed.process import ProcessKernel

MOST = 10_000
"""How often one timer of a key may fire in one move of time; more is a mistake."""


class Firing:
    """Fires the timers of a step in one move of time: those of event time first, then those of processing time."""

    def __init__(self, kernel: ProcessKernel) -> None:
        self.kernel = kernel
        self.fired: Counter[tuple[Key, str]] = Counter()

    def run(self, made: list[Any]) -> None:
        """Fires all that is due."""
        self._clock(EVENT, self.kernel.times.watermark, made)
        self._clock(PROCESSING, self.kernel.times.now, made)

    def _clock(self, clock: str, until: int, made: list[Any]) -> None:
        """Fires the timers of one clock. A timer may set others, which fire too if they are due."""
        self.fired.clear()
        for due in self.kernel.waits.due(clock, until):
            kept = self.kernel.load(due.key)
            if not due.tag.startswith("@"):
                self._fire(due, clock, made)
            self.kernel.store(due.key, kept)

    def _fire(self, due: DueTimer, clock: str, made: list[Any]) -> None:
        logic, timer = self.kernel.logic, Timer(to_moment(due.time), due.tag, clock)
        logic._dirty = True
        before, logic._event_time = logic._event_time, (lambda: due.time) if clock == EVENT else None
        try:
            self._refuse_endless(due.key, timer)
            made += several(logic.on_timer(timer))
        except Exception as error:
            raise RecordFailed(self.kernel.node, f"{timer} of key {logic.key!r}", 0, error) from error
        finally:
            logic._event_time = before

    def _refuse_endless(self, key: Key, timer: Timer) -> None:
        self.fired[key, timer.name] += 1
        if self.fired[key, timer.name] > MOST:
            over = self.kernel.times.watermark >= FOREVER and timer.clock == EVENT
            why = (
                "the input is over, and all timers fire: ask self.ended before you set it again"
                if over
                else "check when"
            )
            raise RuntimeError(
                f"timer {timer.name!r} has fired {MOST} times in one move of time and sets itself again; {why}"
            )
