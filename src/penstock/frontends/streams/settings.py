"""Settings of a single step, said behind it: `.on_error("dead_letter")`, `.parallelism(4)`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from penstock.errors import FlowError
from penstock.graph.caller import user_line
from penstock.graph.nodes import Source
from penstock.graph.nodes.policy import on_error_of

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream

MOST_TASKS = 128


class Settable:
    """What can be said of the step that a stream comes from."""

    def on_error(self, policy: Any) -> Self:
        """What the step does with a record it fails on: 'fail', 'dead_letter', 'skip', or `ps.retry(3, then='dead_letter')`."""
        node = cast("Stream", self)._node
        if isinstance(node, Source):
            raise FlowError(
                f"on_error ({user_line()}) of a source is said where it is made: flow.source({node.name!r}, ..., on_error='dead_letter')"
            )
        if not (node.runs_python or node.keyed):
            raise FlowError(
                f"on_error ({user_line()}) is for steps that run Python; {node.name!r} is a {node.kind}. For all the rest say "
                f"it of the flow: ps.Flow(name, on_error='dead_letter')"
            )
        return self._with(on_error=on_error_of(policy))

    def parallelism(self, tasks: int) -> Self:
        """How many tasks the step runs as: a power of two up to 128. It may change between runs; state moves along."""
        node = cast("Stream", self)._node
        if isinstance(tasks, bool) or not isinstance(tasks, int) or not 0 < tasks <= MOST_TASKS or tasks & (tasks - 1):
            raise FlowError(f"step {node.name!r} ({user_line()}): parallelism is 1, 2, 4, ... or 128, got {tasks!r}")
        if not node.keyed:
            raise FlowError(
                f"step {node.name!r} ({user_line()}): only steps by key have a parallelism of their own; for others put "
                f".repartition('name', {tasks}) before them"
            )
        return self._with(parallelism=tasks)

    def _with(self, **settings: Any) -> Self:
        stream = cast("Stream", self)
        stream.flow._nodes[stream.port.step] = replace(stream._node, **settings)
        return self
