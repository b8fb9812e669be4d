"""Which event times a step depends on, and how far behind them it works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.graph.graph import Graph
from penstock.graph.nodes import EventTime, Node, Source
from penstock.graph.times import FOREVER, NEVER, Times


@dataclass(frozen=True)
class Timeline:
    """The event times of a graph: who assigns them, who depends on them."""

    graph: Graph

    @cached_property
    def inputs(self) -> tuple[EventTime, ...]:
        """The steps that give event times."""
        return tuple(n for n in self.graph.nodes if isinstance(n, EventTime))

    @cached_property
    def timed(self) -> bool:
        """Whether any step does something when time moves."""
        return any(n.timed for n in self.graph.nodes)

    @cached_property
    def behind(self) -> dict[str, tuple[frozenset[str], int]]:
        """For each step: the event times above it, and the longest hold of the steps in between."""
        found: dict[str, tuple[frozenset[str], int]] = {}
        for node in self.graph.ordered:
            above = [found[p.step] for p in node.inputs]
            names = frozenset().union(*(names for names, _ in above)) if above else frozenset()
            held = max((h for _, h in above), default=0)
            found[node.name] = (frozenset({node.name}), 0) if isinstance(node, EventTime) else (names, held)
            if node.hold and not isinstance(node, Source):
                found[node.name] = (found[node.name][0], held + node.hold)
        return found

    def times(
        self, previous: Mapping[str, int], watermark: Mapping[str, int], before: int, now: int, *, ended: bool = False
    ) -> dict[str, Times]:
        """The times of each step, from where each event time stood and stands; `ended` says that the input is over."""
        timeless = Times(watermark=FOREVER if ended else NEVER, before=before, now=now, timeless=True)
        return {n.name: self._times(n, previous, watermark, timeless) for n in self.graph.nodes}

    def store_watermark(self, store: str, at: Mapping[str, int]) -> int:
        """The watermark of the step that has a store, from that of each input."""
        return self._times(self.graph.node(self._owners[store]), {}, at, Times()).watermark

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {store: node.name for node in self.graph.nodes for store in node.stores}

    def _times(self, node: Node, previous: Mapping[str, int], watermark: Mapping[str, int], timeless: Times) -> Times:
        names, _ = self.behind[node.name]
        held = max((self.behind[p.step][1] for p in node.inputs), default=0)
        if isinstance(node, EventTime) or not names:
            return replace(timeless, timeless=getattr(node, "event_time", None) is None)
        lowest = [min(at.get(n, NEVER) for n in names) for at in (previous, watermark)]
        return Times(lowest[0], lowest[1], timeless.before, timeless.now).held(held)
