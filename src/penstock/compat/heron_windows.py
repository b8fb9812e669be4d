"""The windowed bolts of heronpy: windows of processing time, which its ticks bring."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from penstock.compat.components import PortedTuple
from penstock.compat.heron_components import Bolt
from penstock.errors import FlowError
from penstock.graph.logic.topology.config import TICK

clock = time.time
"""What says the time of a tuple, in seconds."""


class WindowContext(NamedTuple):
    """When a window begins and ends, in seconds since 1970."""

    start: int
    end: int


class WindowBolt(Bolt):
    """What both have in common: a duration from the settings, and a tick whenever a window is due."""

    WINDOW_DURATION_SECS: ClassVar[str]

    @classmethod
    def needed(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """The tick."""
        return {TICK: cls._seconds(config, cls.WINDOW_DURATION_SECS)}

    @classmethod
    def _seconds(cls, config: Mapping[str, Any], name: str) -> int:
        given = config.get(name)
        if given is None or int(given) < 1:
            raise FlowError(f"{cls.__qualname__}: expected seconds, 1 or more, as config[{name!r}], got {given!r}")
        return int(given)

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        """Looks up the duration; a class that has its own `initialize` calls this one too."""
        self.window_duration = self._seconds(config, self.WINDOW_DURATION_SECS)
        self.current_tuples: list[tuple[PortedTuple, int]] = []

    def processWindow(self, window_info: WindowContext, tuples: list[Any]) -> None:  # noqa: N802 - heronpy's name
        """Called with the tuples of a window. You must define it."""
        raise NotImplementedError

    def process(self, tup: Any) -> None:
        """Keeps the tuple for its windows."""
        self.current_tuples.append((tup, int(clock())))

    def process_tick(self, tup: Any) -> None:
        """A window is due."""
        now = int(clock())
        self.processWindow(WindowContext(now - self.window_duration, now), [tup for tup, _ in self.current_tuples])
        self.expire(now)

    def expire(self, now: int) -> None:
        """Acks the tuples that are in no window any more."""
        gone, self.current_tuples = self.current_tuples, []
        for tup, _ in gone:
            self.ack(tup)


class TumblingWindowBolt(WindowBolt):
    """Windows that follow each other.

    >>> class Show(TumblingWindowBolt):
    ...     outputs = ["n"]
    ...     def processWindow(self, window_info, tuples):
    ...         self.emit([len(tuples)])
    >>> Show.spec(config={TumblingWindowBolt.WINDOW_DURATION_SECS: 10})
    Show.spec()
    """

    WINDOW_DURATION_SECS = "tumblingwindowbolt_duration_secs"


class SlidingWindowBolt(WindowBolt):
    """Windows that overlap: one of the last `duration` seconds every `slide interval`.

    >>> class Show(SlidingWindowBolt):
    ...     outputs = ["n"]
    ...     def processWindow(self, window_info, tuples):
    ...         self.emit([len(tuples)])
    >>> Show.needed({SlidingWindowBolt.WINDOW_DURATION_SECS: 10, SlidingWindowBolt.WINDOW_SLIDEINTERVAL_SECS: 2})
    {'topology.tick.tuple.freq.secs': 2}
    """

    WINDOW_DURATION_SECS = "slidingwindowbolt_duration_secs"
    WINDOW_SLIDEINTERVAL_SECS: ClassVar[str] = "slidingwindowbolt_slideinterval_secs"

    @classmethod
    def needed(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """The tick."""
        duration = cls._seconds(config, cls.WINDOW_DURATION_SECS)
        slide = cls._seconds({cls.WINDOW_SLIDEINTERVAL_SECS: duration, **config}, cls.WINDOW_SLIDEINTERVAL_SECS)
        if slide > duration:
            raise FlowError(
                f"{cls.__qualname__}: expected a slide of at most the duration, {duration} s, got {slide} s"
            )
        return {TICK: slide}

    def process(self, tup: Any) -> None:
        """Keeps the tuple for its windows."""
        super().process(tup)
        self.expire(self.current_tuples[-1][1])

    def expire(self, now: int) -> None:
        """Acks the tuples that are older than a window."""
        while self.current_tuples and now - self.window_duration > self.current_tuples[0][1]:
            self.ack(self.current_tuples.pop(0)[0])
