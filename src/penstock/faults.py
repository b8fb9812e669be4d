"""Named places at which a test may end the process, as a power cut would: `PENSTOCK_CRASH="manifest published@3"`.

The number is the batch; `staged#3` is the third time that the place is passed, and a bare name the first. Nothing happens when
the setting is not there.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

SETTING = "PENSTOCK_CRASH"
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
"""The places around a batch, in the order in which it passes them."""
AT_START = ("reconcile", "reconciled")
"""Those before the first batch; their number is 0."""
_passed: Counter[str] = Counter()


def passing(point: str, batch: int) -> None:
    """Says that a batch passes a place."""
    wanted = os.environ.get(SETTING)
    if wanted is None:
        return
    _passed[point] += 1
    if wanted in (point, f"{point}@{batch}", f"{point}#{_passed[point]}"):
        os.kill(os.getpid(), signal.SIGKILL)
