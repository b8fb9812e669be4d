"""What calls share outlives a task: a worker process opens an HTTP client once, not with each batch."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict

from penstock.graph.nodes import Node
from penstock.kernels.calls.loop import CallLoop

MOST = 16
"""Loops that a process keeps for later tasks."""


class LoopPool:
    """Loops that no task uses now, by the step they were opened for.

    A step is known by its identity: workers unpack the steps of a stage once, and use them for each batch.
    """

    def __init__(self) -> None:
        self._loops: OrderedDict[int, tuple[int, Node, CallLoop]] = OrderedDict()

    def take(self, node: Node) -> CallLoop | None:
        """The loop of a step, which is the caller's then; None where there is none. A forked process has no threads, so no loops either."""
        process, _, found = self._loops.pop(id(node), (0, node, None))
        return found if process == os.getpid() else None

    def put(self, node: Node, loop: CallLoop) -> None:
        """Keeps a loop; the oldest is closed where there are too many."""
        _stop(self.take(node))
        self._loops[id(node)] = (os.getpid(), node, loop)
        while len(self._loops) > MOST:
            _stop(self.take(next(iter(self._loops.values()))[1]))


def _stop(loop: CallLoop | None) -> None:
    if loop is not None:
        with contextlib.suppress(Exception):
            loop.stop()
