"""Conservation: where the records of a batch went. What was read is written, filtered, kept, late, bad, put aside,
skipped or shed.

Sums are over the steps that count. A step that emits a record for each must have done so; where it did not, a record was lost or
doubled inside the engine, and the balance says which step it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    AsRecords,
    DeadLetters,
    Filter,
    Map,
    MapAsync,
    Node,
    Repartition,
    Select,
    Where,
    WithColumns,
)

ONE_FOR_ONE = (Map, MapAsync, Select, WithColumns, AsRecords, Repartition)
FILTERS = (Filter, Where)
Counts = Mapping[str, tuple[int, int]]
KINDS = ("filtered", "late", "bad", "dead", "skipped", "shed", "discrepancies")
NONE: Mapping[str, int] = {}


@dataclass(frozen=True)
class Balance:
    """The accounting of a batch."""

    read: int = 0
    written: int = 0
    filtered: int = 0
    late: int = 0
    bad: int = 0
    dead: int = 0
    skipped: int = 0
    shed: int = 0
    discrepancies: tuple[str, ...] = field(default=())
    """What does not add up, in words."""

    def as_dict(self) -> dict[str, object]:
        """The balance as plain values; what is zero is left out, but for what was read and written."""
        found = {n: getattr(self, n) for n in KINDS if getattr(self, n)}
        return {"read": self.read, "written": self.written, **found}


def balance(
    graph: Graph,
    sources: Mapping[str, int],
    steps: Counts,
    late: Mapping[str, int],
    bad: Mapping[str, int],
    dead: Mapping[str, int],
    skipped: Mapping[str, int] = NONE,
    shed: Mapping[str, int] = NONE,
) -> Balance:
    """The accounting of a batch, from what its steps have counted. What was shed counts as read."""
    aside = Counter(dead) + Counter(skipped)
    filtered = sum(i - o - aside[n.name] for n in graph.nodes if isinstance(n, FILTERS) for i, o in _of(n, steps))
    written = sum(steps[s.name][0] for s in graph.sinks if s.name in steps and not _of_dead_letters(graph, s))
    wrong = tuple(text for n in graph.nodes for text in _wrong(n, steps, aside))
    named = {"late": late, "bad": bad, "dead": dead, "skipped": skipped, "shed": shed}
    gone = {name: sum(counts.values()) for name, counts in named.items()}
    return Balance(sum(sources.values()) + gone["shed"], written, filtered, **gone, discrepancies=wrong)


def _of_dead_letters(graph: Graph, sink: Node) -> bool:
    """Whether a sink takes dead letters, which are counted as such already."""
    return isinstance(graph.node(sink.inputs[0].step), DeadLetters)


def _of(node: Node, steps: Counts) -> list[tuple[int, int]]:
    return [steps[node.name]] if node.name in steps else []


def _wrong(node: Node, steps: Counts, aside: Counter[str]) -> list[str]:
    if not isinstance(node, ONE_FOR_ONE):
        return []
    lost = [(i, o) for i, o in _of(node, steps) if i != o + aside[node.name]]
    return [f"step {node.name!r} took {i} records and emitted {o}, with {aside[node.name]} put aside" for i, o in lost]
