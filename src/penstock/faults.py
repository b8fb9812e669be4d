"""Named points at which a test may end the process, as a power cut would: `PENSTOCK_CRASH="manifest published@3"`.

The number is the batch; `staged#3` is the third time that the point is passed, and a bare name the first. `PENSTOCK_PAUSE` stops the
process there instead, once, until it gets SIGCONT. Nothing happens when neither is set.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

SETTING = "PENSTOCK_CRASH"
PAUSE = "PENSTOCK_PAUSE"
POINTS = (
    "offsets written",
    "staged",
    "state staged",
    "manifest published",
    "purge",
    "before sink commit",
    "after sink commit",
    "sink written",
    "sinks written",
    "commit logged",
)
"""The points around a batch, in the order in which it passes them."""
AT_START = ("reconcile", "reconciled")
"""Those before the first batch; their number is 0."""
_passed: Counter[str] = Counter()


def passing(point: str, batch: int) -> None:
    """Says that a batch passes a point."""
    crash, pause = os.environ.get(SETTING), os.environ.get(PAUSE)
    if crash is None and pause is None:
        return
    _passed[point] += 1
    names = (point, f"{point}@{batch}", f"{point}#{_passed[point]}")
    if crash in names:
        os.kill(os.getpid(), signal.SIGKILL)
    if pause in names:
        del os.environ[PAUSE]
        os.kill(os.getpid(), signal.SIGSTOP)
