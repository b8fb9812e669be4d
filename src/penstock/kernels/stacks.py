"""Where the time goes: the stacks of threads, looked at a hundred times a second by a thread of the same process, while somebody wants to know.

It needs no right that the process has not, and works wherever Python runs. Native code counts for the Python function that has called it.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable
from types import FrameType

PAUSE = 0.01
"""Seconds between two looks."""
DEEPEST, MOST_STACKS = 80, 2_000
WAITING = "(waiting)"
"""What the stack of a thread begins with that waits for something."""
_WAITS = {
    "wait", "select", "poll", "accept", "get", "sleep", "readinto", "recv", "recv_into", "_wait_for_tstate_lock", "acquire", "join", "wait_for", "read_int", "__call__",
}  # fmt: skip
_WAITING_IN = (
    "threading",
    "selectors",
    "socket",
    "queue",
    "concurrent.futures",
    "py4j",
    "subprocess",
    "multiprocessing",
)


def folded(frame: FrameType | None) -> str:
    """A stack as one line: functions from the outermost to the innermost, with semicolons between."""
    names: list[str] = []
    leaf = frame
    while frame is not None and len(names) < DEEPEST:
        names.append(_named(frame))
        frame = frame.f_back
    if leaf is not None and _waits(leaf):
        names.append(WAITING)
    return ";".join(reversed(names))


def _named(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}".replace(";", ",")


def _waits(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_name in _WAITS and module.startswith(_WAITING_IN)


class StackSampler:
    """Counts the stacks of threads until it is stopped.

    Args:
        threads: the threads; all others of the process where it is None.
    """

    def __init__(self, threads: Iterable[int] | None = None) -> None:
        self.threads = None if threads is None else frozenset(threads)
        self.found: Counter[str] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-stacks", daemon=True)

    def start(self) -> StackSampler:
        """Begins to look."""
        self._thread.start()
        return self

    def stop(self) -> dict[str, int]:
        """Ends it; how often each stack was seen."""
        self._ended.set()
        self._thread.join(1.0)
        return dict(self.found)

    def taken(self) -> dict[str, int]:
        """How often each stack was seen since this was last asked."""
        found, self.found = self.found, Counter()
        return dict(found)

    def _run(self) -> None:
        own = threading.get_ident()
        while not self._ended.wait(PAUSE):
            self.look(own)

    def look(self, own: int) -> None:
        """Looks once."""
        for thread, frame in sys._current_frames().items():
            if thread != own and (self.threads is None or thread in self.threads):
                stack = folded(frame)
                if stack in self.found or len(self.found) < MOST_STACKS:
                    self.found[stack] += 1
