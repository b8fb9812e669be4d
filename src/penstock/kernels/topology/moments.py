"""What the policy of a bolt does where the bolt fails although no tuple is at hand: in a window, at a tick, at the end of a batch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.graph.graph import Graph
from penstock.graph.logic.topology.bolts import TupleWindow
from penstock.graph.nodes import Bolt
from penstock.graph.nodes.policy import FAIL
from penstock.graph.nodes.topology import visible
from penstock.kernels.base import Kernel, RecordFailed
from penstock.kernels.errors.guard import Guard
from penstock.kernels.records.chunk import Chunk

if TYPE_CHECKING:
    from penstock.kernels.topology.task import Task

log = logging.getLogger("penstock")


class MomentGuard:
    """The policy of a bolt for its moments. What failed is tried as often as the policy says; what it emitted is forgotten.

    Of a window that fails in the end, the tuples that are new in it are put aside, each by itself: so each is put aside once, however many windows it is in. A
    tick, or the end of a batch, has no record to put aside: it is logged and counted as skipped.
    """

    def __init__(self, kernel: Kernel, guard: Guard, node: Bolt, graph: Graph) -> None:
        self.kernel, self.guard = kernel, guard
        schemas = [visible(graph.output(port).schema) for port in node.inputs]
        self.inputs = {origin: (at, schemas[at]) for at, origin in enumerate(node.origins)}

    def window(self, task: Task, window: TupleWindow, work: Callable[[], None]) -> None:
        """Does the work of a window."""
        if (failed := self._failed(task, work)) is not None:
            for tup in window.new:
                at, schema = self.inputs[tup.component, tup.stream]
                one = Chunk(schema, columns=[[value] for value in tup.values])
                self.guard.give_up(self.kernel, one, at, failed)

    def moment(self, task: Task, work: Callable[[], None]) -> None:
        """Does the work of a tick, or of the end of a batch."""
        if (failed := self._failed(task, work)) is not None:
            log.warning("bolt %r, task %d: %s", task.node.name, task.number, failed.failure("").error)
            self.kernel.counters.skipped += 1

    def _failed(self, task: Task, work: Callable[[], None]) -> RecordFailed | None:
        failed = self.guard.tried(partial(_attempt, task, work))
        if failed is not None and self.guard.policy.action == FAIL:
            raise failed
        return failed


def _attempt(task: Task, work: Callable[[], Any]) -> None:
    before = task.collector.sizes()
    try:
        work()
        task.check(before, "a moment", None)
    except RecordFailed:
        task.forget(before)
        raise
