"""The clock of a local run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Processing time that stands still until it is moved.

    >>> clock = Clock(100.0)
    >>> clock.advance(2.5)
    >>> clock()
    102.5
    """

    time: float = field(default_factory=time.time)

    def __call__(self) -> float:
        """The time, in seconds since 1970."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Moves it on by so many seconds."""
        self.time += seconds
