"""Marks the streams that several stages read, so that they are computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from penstock.compiler.plan import NATIVE, SOURCE, Plan, Stage
from penstock.graph.nodes import Branch, Port, WindowParts

CHEAP = 16
"""How many native steps are rather computed again than their result kept."""


def share_streams(plan: Plan) -> Plan:
    """The plan with its shared streams: read more than once, and dear to compute again.

    Dear is what reads a source, shuffles or runs Python. A short native chain on top of a shared stream is cheap, and
    is computed again rather than kept twice.
    """
    return _Sharing(plan, sources_kept=False).shared()


def share_behind_union(plan: Plan) -> Plan:
    """The same for a live run, where several sources come as one union that is kept as a whole.

    Their own streams then need not be shared, and native chains on them are cheap.
    """
    sources = sum(s.host == SOURCE for s in plan.stages)
    return _Sharing(plan, sources_kept=sources > 1).shared()


@dataclass
class _Sharing:
    """What is known so far, stage by stage: the shared streams, and how many steps it takes to read each stream."""

    plan: Plan
    sources_kept: bool
    found: set[Port] = field(default_factory=set)
    costs: dict[Port, float] = field(default_factory=dict)

    def shared(self) -> Plan:
        """The plan, with all its shared streams."""
        for stage in self.plan.stages:
            cost = self._cost(stage)
            self.costs |= dict.fromkeys(stage.outputs, cost)
            if cost > CHEAP:
                self._share([p for p in stage.outputs if self._reads(p) > 1])
        return Plan(self.plan.graph, self.plan.stages, frozenset(self.found))

    def _share(self, ports: list[Port]) -> None:
        self.found.update(ports)
        self.costs |= dict.fromkeys(ports, 0)

    def _cost(self, stage: Stage) -> float:
        if stage.host == SOURCE:
            return 0 if self.sources_kept else math.inf
        if stage.host != NATIVE or stage.shuffle:
            return math.inf
        return len(stage.nodes) + sum(self.costs[p] for p in stage.inputs)

    def _reads(self, port: Port) -> int:
        fed = sum(port == n.fed_by for n in self.plan.graph.loops)
        return fed + sum(_passes(s, port) for s in self.plan.readers(port))


def _passes(stage: Stage, port: Port) -> int:
    """How often a stage goes over its input: a native branch once for each output, a union of it with itself twice."""
    first = next(n for n in stage.nodes if port in n.inputs)
    if isinstance(first, Branch | WindowParts) and stage.host == NATIVE:
        return len(stage.outputs)
    return first.inputs.count(port) if stage.host == NATIVE else 1
