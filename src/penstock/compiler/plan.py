"""The plan: which steps run together, where, and what moves between them. No Spark in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from penstock.graph.graph import Graph
from penstock.graph.nodes import Feedback, Node, Port

SOURCE, NATIVE, PYTHON, SINK = "source", "native", "python", "sink"


@dataclass(frozen=True)
class Stage:
    """Steps that run as one pass on one host: the JVM (native), a Python worker, or a connector.

    `shuffle` says how records move before the stage, empty when they stay where they are. `workers` names Python workers that run this
    stage alone, empty for those of all stages; `alone` says that a task of it has its executor for itself.
    """

    host: str
    nodes: tuple[Node, ...]
    outputs: tuple[Port, ...] = ()
    shuffle: str = ""
    state: bool = False
    workers: str = ""
    alone: bool = False

    @property
    def name(self) -> str:
        """The names of its steps."""
        return " + ".join(n.name for n in self.nodes)

    @cached_property
    def steps(self) -> frozenset[str]:
        """The names of its steps, as a set."""
        return frozenset(n.name for n in self.nodes)

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """The streams it reads from other stages."""
        return tuple(dict.fromkeys(node.inputs[index] for node, index in self.reads))

    @cached_property
    def reads(self) -> tuple[tuple[Node, int], ...]:
        """Its steps that read other stages, each with the number of that input."""
        inputs = ((node, index, port) for node in self.nodes for index, port in enumerate(node.inputs))
        return tuple((node, index) for node, index, port in inputs if port.step not in self.steps)


@dataclass(frozen=True)
class Plan:
    """The stages of a flow, in the order they run; `shared` are the streams kept because several stages read them."""

    graph: Graph
    stages: tuple[Stage, ...]
    shared: frozenset[Port] = frozenset()

    def reading_steps(self, port: Port) -> list[tuple[Node, int]]:
        """The steps of other stages that read a stream, each with the number of that input."""
        stages = (s for s in self.stages if port.step not in s.steps)
        return [(node, i) for s in stages for node, i in s.reads if node.inputs[i] == port]

    def stage_of(self, step: str) -> Stage:
        """The stage a step runs in."""
        return next(s for s in self.stages if step in s.steps)

    def readers(self, port: Port) -> list[Stage]:
        """The stages that read a stream."""
        return [s for s in self.stages if port in s.inputs]

    @property
    def shuffles(self) -> int:
        """How often records move between tasks."""
        return sum(1 for s in self.stages if s.shuffle)

    @property
    def python_passes(self) -> int:
        """How often records pass through Python workers."""
        return sum(1 for s in self.stages if s.host == PYTHON)

    @property
    def stateful(self) -> bool:
        """Whether any step keeps state."""
        return any(s.state for s in self.stages)


def external(plan_stages: Iterable[Stage], stage: Stage) -> tuple[Port, ...]:
    """The streams of a stage that other stages read."""
    wanted = {p for other in plan_stages if other is not stage for p in other.inputs}
    wanted |= {n.fed_by for s in plan_stages for n in s.nodes if isinstance(n, Feedback) and n.fed_by}
    ports = (Port(n.name, o.name) for n in stage.nodes for o in n.outputs)
    return tuple(p for p in ports if p in wanted)
