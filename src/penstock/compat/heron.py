"""Topologies of heronpy: `from penstock.compat.heron import Bolt, Grouping, Spout, Stream, Topology, TopologyBuilder`.

>>> class Words(Spout):
...     outputs = ["word"]
...     def initialize(self, config, context):
...         self.left = ["a", "b"]
...     def next_tuple(self):
...         if self.left:
...             self.emit([self.left.pop(0)], tup_id=len(self.left))
>>> class Show(Bolt):
...     outputs = ["word"]
...     def process(self, tup):
...         self.emit([tup.values[0]])
>>> builder = TopologyBuilder("demo")
>>> words = builder.add_spout("words", Words, par=1)
>>> _ = builder.add_bolt("show", Show, par=2, inputs={words: Grouping.SHUFFLE})
>>> builder.topology
Topology('demo', 2 components)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from penstock.compat.components import PortedTuple, Stream
from penstock.compat.heron_components import Bolt, HashMapState, Spout, StatefulComponent
from penstock.compat.heron_context import (
    AssignableMetrics,
    BaseMetric,
    CountMetric,
    MeanReducedMetric,
    MeanReducer,
    MultiCountMetric,
    MultiMeanReducedMetric,
    MultiReducedMetric,
    ReducedMetric,
    TopologyContext,
)
from penstock.compat.heron_hooks import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    ITaskHook,
    SpoutAckInfo,
    SpoutFailInfo,
)
from penstock.compat.heron_windows import SlidingWindowBolt, TumblingWindowBolt, WindowContext
from penstock.compat.topology import Grouping, Spec, Topology, built
from penstock.errors import FlowError
from penstock.frontends.topology.topology import Topology as PenstockTopology
from penstock.graph.graph import Graph

Tuple = PortedTuple
__all__ = [
    "AssignableMetrics",
    "BaseMetric",
    "Bolt",
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "CountMetric",
    "EmitInfo",
    "Grouping",
    "HashMapState",
    "ICustomGrouping",
    "ITaskHook",
    "MeanReducedMetric",
    "MeanReducer",
    "MultiCountMetric",
    "MultiMeanReducedMetric",
    "MultiReducedMetric",
    "ReducedMetric",
    "SlidingWindowBolt",
    "Spec",
    "Spout",
    "SpoutAckInfo",
    "SpoutFailInfo",
    "StatefulComponent",
    "Stream",
    "Topology",
    "TopologyBuilder",
    "TopologyContext",
    "TumblingWindowBolt",
    "Tuple",
    "WindowContext",
]


class ICustomGrouping:
    """The base of a grouping of your own, for `Grouping.custom`.

    >>> class First(ICustomGrouping):
    ...     def prepare(self, context, component, stream, target_tasks):
    ...         self.target_tasks = target_tasks
    ...     def choose_tasks(self, values):
    ...         return self.target_tasks[:1]
    """

    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        """Called once, with the ids of the tasks to choose from."""

    def choose_tasks(self, values: list[Any]) -> list[int]:
        """The ids of the tasks that get a tuple. You must define it."""
        raise NotImplementedError


class TopologyBuilder:
    """A topology put together by calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.specs: dict[str, Spec] = {}
        self.config: dict[str, Any] = {}

    def add_spout(
        self, name: str, spout_cls: type[Spout], par: int, config: Any = None, optional_outputs: Any = None
    ) -> Spec:
        """Adds a spout."""
        return self.add_spec(spout_cls.spec(name, par, config, optional_outputs))

    def add_bolt(
        self, name: str, bolt_cls: type[Bolt], par: int, inputs: Any, config: Any = None, optional_outputs: Any = None
    ) -> Spec:
        """Adds a bolt."""
        return self.add_spec(bolt_cls.spec(name, inputs, par, config, optional_outputs))

    def add_spec(self, *specs: Spec) -> Spec:
        """Adds components; returns the last.

        Raises:
            FlowError: one has no name, or a name that another has.
        """
        for spec in specs:
            if not spec.name or spec.name in self.specs:
                raise FlowError(
                    f"topology {self.name!r}: expected a name of its own for {spec.component.__qualname__}, got {spec.name!r}"
                )
            self.specs[spec.name] = spec
        return specs[-1]

    def set_config(self, config: Mapping[str, Any]) -> None:
        """The settings of the topology."""
        self.config = dict(config)

    @property
    def topology(self) -> PenstockTopology:
        """The topology."""
        return built(self.name, self.specs, self.config)

    @property
    def graph(self) -> Graph:
        """Its graph, by which `penstock run` and the test kit know it."""
        return self.topology.graph

    def build_and_submit(self) -> None:
        """Runs the topology, as `ps.run` does, where the file was started as a program; `penstock run` finds the builder by itself."""
        if sys._getframe(1).f_globals.get("__name__") == "__main__":
            importlib.import_module("penstock").run(self)
