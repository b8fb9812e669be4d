"""Which sources had more records than a batch took, by what Spark reports of the batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.graph.graph import Graph
from penstock.graph.nodes import EventTime, Node, Source

Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | None
Progress = Mapping[str, Json]
"""What Spark reports of one source: the offsets at which a batch begins and ends, and how far the source reaches."""


@dataclass(frozen=True)
class Backlog:
    """The sources of a query in Spark's order, and the event times that their records bear.

    Attributes:
        limited: for each source, whether a batch may take less than there is without Spark telling.
        reaches: for each source, the steps that read the event time of its records.
    """

    limited: tuple[bool, ...]
    reaches: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, graph: Graph, sources: Sequence[Node]) -> Backlog:
        """The backlog of a graph's sources."""
        return cls(tuple(map(_is_limited, sources)), tuple(_event_times(graph, n.name) for n in sources))

    @property
    def inputs(self) -> frozenset[str]:
        """All event times."""
        return frozenset().union(*self.reaches)

    def waiting(self, progress: Sequence[Progress]) -> frozenset[str]:
        """The event times of sources of which records wait, or may wait."""
        pairs = zip(self.limited, self.reaches, progress, strict=False)
        return frozenset().union(*(mine for limited, mine, each in pairs if not _is_drained(each, limited)))


def _is_limited(node: Node) -> bool:
    """Whether a source takes a few files at a time; of files Spark does not report how many wait."""
    return isinstance(node, Source) and node.endpoint.capabilities.hides_backlog


def _event_times(graph: Graph, source: str) -> frozenset[str]:
    reached = {source}
    for node in graph.ordered:
        if any(port.step in reached for port in node.inputs):
            reached.add(node.name)
    return frozenset(n.name for n in graph.nodes if isinstance(n, EventTime) and n.name in reached)


def _is_drained(progress: Progress, limited: bool) -> bool:
    """Whether a batch took all that its source had when it was asked."""
    latest = _parsed(progress.get("latestOffset"))
    if latest is None:
        return not limited
    return _covers(_parsed(progress.get("endOffset")), latest)


def _parsed(offset: Json) -> Json:
    if not isinstance(offset, str):
        return offset
    try:
        parsed: Json = json.loads(offset)
    except ValueError:
        return offset
    return parsed


def _covers(end: Json, latest: Json) -> bool:
    """Whether an offset has come as far as another: number by number, partition by partition.

    >>> _covers({"0": 5, "1": 7}, {"0": 5, "1": 6}), _covers({"0": 5}, {"0": 6})
    (True, False)
    """
    if isinstance(latest, Mapping):
        return isinstance(end, Mapping) and all(_covers(end.get(k), v) for k, v in latest.items())
    if isinstance(latest, int | float) and isinstance(end, int | float):
        return end >= latest
    return end == latest
