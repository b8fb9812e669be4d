"""Conservation: where the records of a batch went. What was read is written, filtered, kept, late, bad or put aside.

Sums are over the steps that count. A step that gives a record for each must have done so; where it did not, a record was lost or
doubled inside the engine, and the balance says which step it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.graph.graph import Graph
from penstock.graph.nodes import AsRecords, Filter, Map, Node, Repartition, Select, Where, WithColumns

ONE_FOR_ONE = (Map, Select, WithColumns, AsRecords, Repartition)
FILTERS = (Filter, Where)
Counts = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Balance:
    """The books of a batch."""

    read: int = 0
    written: int = 0
    filtered: int = 0
    late: int = 0
    bad: int = 0
    dead: int = 0
    open: tuple[str, ...] = field(default=())
    """What does not add up, in words."""

    def as_dict(self) -> dict[str, object]:
        """The balance as plain values; what is zero is left out, but for what was read and written."""
        found = {n: getattr(self, n) for n in ("filtered", "late", "bad", "dead", "open") if getattr(self, n)}
        return {"read": self.read, "written": self.written, **found}


def balance(
    graph: Graph,
    sources: Mapping[str, int],
    steps: Counts,
    late: Mapping[str, int],
    bad: Mapping[str, int],
    dead: Mapping[str, int],
) -> Balance:
    """The books of a batch, from what its steps have counted."""
    filtered = sum(i - o - dead.get(n.name, 0) for n in graph.nodes if isinstance(n, FILTERS) for i, o in _of(n, steps))
    written = sum(steps[s.name][0] for s in graph.sinks if s.name in steps)
    wrong = tuple(text for n in graph.nodes for text in _wrong(n, steps, dead))
    return Balance(
        sum(sources.values()), written, filtered, sum(late.values()), sum(bad.values()), sum(dead.values()), wrong
    )


def _of(node: Node, steps: Counts) -> list[tuple[int, int]]:
    return [steps[node.name]] if node.name in steps else []


def _wrong(node: Node, steps: Counts, dead: Mapping[str, int]) -> list[str]:
    if not isinstance(node, ONE_FOR_ONE):
        return []
    lost = [(i, o) for i, o in _of(node, steps) if i != o + dead.get(node.name, 0)]
    return [
        f"step {node.name!r} took {i} records and gave {o}, with {dead.get(node.name, 0)} put aside" for i, o in lost
    ]
