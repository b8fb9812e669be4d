"""Named places at which a test may end the process, as a power cut would: `PENSTOCK_CRASH="manifest published@3"`.

The number is the batch; without it the first time counts. Nothing happens when the setting is not there.
"""

from __future__ import annotations

import os
import signal

SETTING = "PENSTOCK_CRASH"
POINTS = (
    "offsets written",
    "staged",
    "state staged",
    "manifest published",
    "before sink commit",
    "after sink commit",
    "sink written",
    "sinks written",
    "commit logged",
)
"""The places around a batch, in the order in which it passes them."""
AT_START = ("reconcile", "reconciled")
"""Those before the first batch; their number is 0."""


def passing(point: str, batch: int) -> None:
    """Says that a batch passes a place."""
    wanted = os.environ.get(SETTING)
    if wanted is not None and wanted in (point, f"{point}@{batch}"):
        os.kill(os.getpid(), signal.SIGKILL)
