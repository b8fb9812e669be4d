"""heronpy's `global_metrics`: counts that need no registration.

In place of `from heronpy.api import global_metrics` write `from penstock.compat import heron_global_metrics as global_metrics`. A count belongs to
the task that is at work, and is among its metrics under its name.
"""

from __future__ import annotations

from threading import Lock

from penstock.compat.components import counted_at_work

_LOCK = Lock()


def incr(key: str, to_add: int = 1) -> None:
    """Adds to a count.

    Args:
        key: its name.
        to_add: how much.

    Raises:
        FlowError: no task is at work.
    """
    counted_at_work(key, to_add)


def safe_incr(key: str, to_add: int = 1) -> None:
    """Adds to a count, from any thread of a task.

    Args:
        key: its name.
        to_add: how much.

    Raises:
        FlowError: no task is at work.
    """
    with _LOCK:
        counted_at_work(key, to_add)
