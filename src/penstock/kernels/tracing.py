"""Traces of messages: of a few messages of spouts every tuple that stems from them, in every bolt that gets it.

Which messages they are nobody has to be told: each pass keeps those whose rank is the lowest, and the rank is made of the root id and the batch alone. So the
messages that rank lowest of all were kept by every pass that saw one of their tuples.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from penstock.graph.logic.topology.tuples import roots_of
from penstock.graph.nodes import Port
from penstock.graph.nodes.topology import ROOTS

if TYPE_CHECKING:
    from penstock.kernels.records.chunk import Chunk

MOST_ROOTS = 8
"""So many messages a pass follows."""
SHOWN_ROOTS = 5
"""So many are shown of a batch."""
MOST_TUPLES = 200
"""So many tuples of one message a pass keeps."""
LONGEST = 200
"""Of a longer text the beginning is kept."""


class TracedTuple(TypedDict):
    """A tuple that a bolt has taken: from which component and stream, in which task, with which values."""

    step: str
    source: str
    stream: str
    task: int
    values: dict[str, str]


Traces = dict[int, list[TracedTuple]]
"""Tuples by the root id of the message that they stem from."""


def rank_of(root: int, batch: int) -> int:
    """How a message ranks in a batch."""
    return zlib.crc32(root.to_bytes(8, "big"), batch & 0xFFFFFFFF)


class Tracer:
    """Follows the messages that rank lowest in a batch, in one pass."""

    def __init__(self, batch: int, task: int) -> None:
        self.batch, self.task = batch, task
        self.ranks: dict[int, int] = {}
        self.found: Traces = {}

    def take(self, step: str, port: Port, chunk: Chunk) -> None:
        """Looks at the tuples that a bolt takes."""
        if ROOTS.name not in chunk.shape.names:
            return
        wanted = [
            (root, at)
            for at, packed in enumerate(chunk.column(ROOTS.name))
            for root in roots_of(packed)
            if self._wants(root)
        ]
        names = [name for name in chunk.shape.names if not name.startswith("__")]
        columns = [chunk.column(name) for name in names] if wanted else []
        for root, at in wanted:
            if root in self.found and len(self.found[root]) < MOST_TUPLES:
                self.found[root].append(_traced(step, port, self.task, names, [column[at] for column in columns]))

    def _wants(self, root: int) -> bool:
        """Whether a message is among those that rank lowest so far; the one that ranks highest of more goes."""
        if root in self.ranks:
            return True
        rank = rank_of(root, self.batch)
        if len(self.ranks) >= MOST_ROOTS:
            last = max(self.ranks, key=self.ranks.__getitem__)
            if self.ranks[last] <= rank:
                return False
            del self.ranks[last], self.found[last]
        self.ranks[root], self.found[root] = rank, []
        return True


def _traced(step: str, port: Port, task: int, names: Sequence[str], values: Sequence[Any]) -> TracedTuple:
    shown = {name: str(value)[:LONGEST] for name, value in zip(names, values, strict=True)}
    return TracedTuple(step=step, source=port.step, stream=port.name, task=task, values=shown)


def shown_traces(found: Traces, batch: int, failed: set[int], held: Mapping[int, int]) -> list[dict[str, Any]]:
    """The messages that all passes have followed, with all their tuples, and what became of them.

    >>> shown_traces({7: []}, 0, {7}, {})
    [{'root': '0000000000000007', 'state': 'failed', 'tuples': []}]
    """
    first = sorted(found, key=lambda root: rank_of(root, batch))[:SHOWN_ROOTS]
    states = {root: "failed" if root in failed else "open" if held.get(root, 0) > 0 else "done" for root in first}
    return [{"root": f"{root:016x}", "state": states[root], "tuples": found[root]} for root in first]
