"""A flow as it will run, as plain values: the graph, where each step runs, the stages and the shuffles.

This is what `penstock describe --json` prints. `penstock.graph.picture.text` and `penstock.graph.picture.draw` turn it into text and
a picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from penstock.compiler.capture import check_capture
from penstock.compiler.compile import compile_graph
from penstock.compiler.placement import ALONE, APART, placed
from penstock.compiler.plan import NATIVE, PYTHON, Plan, Stage
from penstock.compiler.rewrites.prune_unused import unused
from penstock.graph.graph import Graph
from penstock.graph.ids import parent_of
from penstock.graph.nodes import AggregateBy, Combine, Node, Parts, Port, Reduce, Window
from penstock.graph.nodes.base import FOR_EVER
from penstock.graph.nodes.batch import KeyedBatch
from penstock.graph.picture.describe import VERSION, Description, describe_port, describe_step, describe_stream, streams


def describe(graph: Graph, *, live: bool = True, place: Iterable[str] = ()) -> Description:
    """What a flow will do, live or over bounded data, with what is asked about where its steps run. Nothing runs, and no Spark is needed.

    Raises CaptureError when a function could not travel to a worker, OptionError when a rule of `place` cannot be kept.
    """
    check_capture(graph)
    plan = placed(compile_graph(graph, live=live or bool(graph.loops)), place)
    return describe_plan(graph, plan, live=live)


def describe_plan(graph: Graph, plan: Plan, *, live: bool) -> Description:
    """What a plan says of itself; `graph` is the one the user wrote, before the compiler split any of its steps."""
    described = _Described(graph, plan, live)
    return {
        "version": VERSION,
        "flow": graph.name,
        "mode": "live" if live else "bounded",
        "totals": described.totals(),
        "steps": [described.step(n) for n in plan.graph.ordered],
        "streams": [described.stream(node, port, back) for node, port, back in streams(plan.graph)],
        "stages": described.stages(),
        "warnings": described.warnings(),
    }


class _Described:
    """A plan under description, with what the user wrote at hand."""

    def __init__(self, graph: Graph, plan: Plan, live: bool) -> None:
        self.graph, self.plan, self.live = graph, plan, live
        self.numbers = {name: i for i, stage in enumerate(plan.stages, 1) for name in stage.steps}

    def totals(self) -> Description:
        """The figures by which two plans are compared."""
        return {
            "steps": len(self.graph.nodes),
            "stages": len(self.plan.stages),
            "shuffles": self.plan.shuffles,
            "python_passes": self.plan.python_passes,
            "shared_streams": len(self.plan.shared),
            "state": self.live and self.plan.stateful,
        }

    def step(self, node: Node) -> Description:
        """A step, with the stage it runs in; shown as the user wrote it, where the user wrote it."""
        written = self.graph.by_name.get(node.name)
        made = describe_step(written or node)
        made["inputs"] = [describe_port(p) for p in node.inputs]
        made["runs"] = self._runs(node) or made["runs"]
        made["keeps"] = node.keeps if self.live and node.stores else ""
        made["kept_for_ever"] = made["keeps"].endswith(FOR_EVER)
        made["made_by"] = None if written else parent_of(node.name)
        made["stage"] = self.numbers.get(node.name)
        return made

    def _runs(self, node: Node) -> str:
        """Where the compiler put a step; a native aggregate of a live run is native but for the merge with its state."""
        if node.name not in self.numbers:
            return ""
        stage = self._stage_of(node.name)
        written = self.graph.by_name.get(node.name)
        if node.kind == "map" and written is not None and written.kind == "source":
            return "source+python"
        state = "+state" if self.live and node.keyed else ""
        native = isinstance(node, AggregateBy) and node.combined == "columns"
        return (NATIVE if native else stage.host) + state

    def _stage_of(self, step: str) -> Stage:
        return self.plan.stages[self.numbers[step] - 1]

    def stream(self, node: Node, port: Port, back: bool) -> Description:
        """A stream, with how its records move and whether it is kept."""
        made = describe_stream(self.plan.graph, node, port, back)
        made["shuffle"] = "" if back else self._shuffle(node, made["grouping"])
        made["shared"] = port in self.plan.shared
        return made

    def _shuffle(self, node: Node, grouping: str) -> str:
        if node.name not in self.numbers:
            return ""
        stage = self._stage_of(node.name)
        if stage.nodes[0] is not node or not stage.shuffle:
            return ""
        return grouping or stage.shuffle

    def stages(self) -> list[Description]:
        """The stages in the order they run."""
        passes = count(1)
        numbered = enumerate(self.plan.stages, 1)
        return [self._stage(n, s, next(passes) if s.host == PYTHON else None) for n, s in numbered]

    def _stage(self, number: int, stage: Stage, python_pass: int | None) -> Description:
        return {
            "number": number,
            "host": stage.host,
            "steps": [n.name for n in stage.nodes],
            "shuffle": stage.shuffle,
            "combined_first": bool(stage.shuffle) and self._combined(stage.nodes[0]),
            "state": self.live and stage.state,
            "python_pass": python_pass,
            "placed": ALONE if stage.alone else APART if stage.workers else "",
            "reads": [describe_port(p) for p in stage.inputs],
            "outputs": [describe_port(p) for p in stage.outputs],
        }

    def _combined(self, node: Node) -> bool:
        """Whether the records of a key are put together before they move, so that less moves."""
        if isinstance(node, Parts) or (isinstance(node, AggregateBy) and not node.runs_python):
            return True
        if isinstance(node, Window):
            return node.parts
        halved = isinstance(node, AggregateBy | Reduce | KeyedBatch)
        return halved and isinstance(self.plan.graph.node(node.inputs[0].step), Combine)

    def warnings(self) -> list[Description]:
        """What a user would want to know before the flow runs."""
        if not self.graph.sinks:
            return [{"step": None, "text": "the flow has no sink, so it does nothing; end it with stream.sink(...)"}]
        lost = [name for name in unused(self.plan) if name in self.graph.by_name]
        return [{"step": name, "text": "reaches no sink, so it is left out of the run"} for name in lost]
