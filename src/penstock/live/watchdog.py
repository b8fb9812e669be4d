"""Notices that a batch makes no progress. It knows no Spark and no clock: it gets what is seen, and when."""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass


class Finding(enum.Enum):
    """What is to be done about a batch without progress."""

    SAY = "say"
    """Say so, and have the Python workers write down where they stand."""
    KILL = "kill"
    """Kill the Python workers: Spark runs their tasks again."""


@dataclass
class Watchdog:
    """Watches the batch under way.

    Attributes:
        say_after: after how many seconds without progress it is said, and said again.
        kill_after: after how many the Python workers are killed; None: never. It doubles each time, since a task that only takes long
            would be killed until Spark gives up.

    >>> watchdog = Watchdog(say_after=10.0, kill_after=25.0)
    >>> [watchdog.look(now, "batch 3, 1 task done") for now in (0.0, 9.0, 10.0, 15.0, 20.0, 25.0)]
    [None, None, <Finding.SAY: 'say'>, None, <Finding.SAY: 'say'>, <Finding.KILL: 'kill'>]
    """

    say_after: float = 600.0
    kill_after: float | None = None
    _sign: Hashable = None
    _since: float = 0.0
    _said: float = 0.0
    _kills: int = 0

    def look(self, now: float, sign: Hashable) -> Finding | None:
        """Takes in a sign of where the batch stands, which changes with any progress; None when none is under way."""
        if sign is None or sign != self._sign:
            self._sign, self._since, self._said = sign, now, now
            self._kills = 0 if sign is None else self._kills
            return None
        if self.kill_after is not None and now - self._since >= self.kill_after * 2**self._kills:
            self._since = self._said = now
            self._kills += 1
            return Finding.KILL
        if now - self._said >= self.say_after:
            self._said = now
            return Finding.SAY
        return None

    def quiet_for(self, now: float) -> float:
        """For how many seconds there has been no progress."""
        return now - self._since
