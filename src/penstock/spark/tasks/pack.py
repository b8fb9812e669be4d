"""Packs the steps of a stage for the workers, once per run."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from types import ModuleType

from pyspark import cloudpickle
from pyspark.sql.types import StructType

from penstock.compiler.plan import Plan, Stage
from penstock.errors import CaptureError
from penstock.graph.graph import Graph
from penstock.graph.nodes import ExternalStep, Node
from penstock.spark.tasks.worker import Work


@dataclass
class Packer:
    """Keeps what it packed. Modules named in `by_value` travel inside; workers need not be able to import them."""

    by_value: tuple[str, ...] = ()
    packed: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    schemas: dict[str, StructType] = field(default_factory=dict)

    def pack(self, plan: Plan, stage: Stage) -> tuple[str, bytes]:
        """The stage as bytes, and a short name for them."""
        if stage.name not in self.packed:
            data = self._dump(plan, stage)
            self.packed[stage.name] = (hashlib.sha256(data).hexdigest()[:16], data)
        return self.packed[stage.name]

    def _dump(self, plan: Plan, stage: Stage) -> bytes:
        work = Work(_part(plan.graph, stage), stage.nodes, stage.inputs, stage.outputs)
        modules = [sys.modules[m] for m in self.by_value if m in sys.modules]
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(work, protocol=5))
        except Exception as error:
            raise self._blame(stage, error) from error
        finally:
            self._unregister(modules)

    def _unregister(self, modules: list[ModuleType]) -> None:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)

    def _blame(self, stage: Stage, error: Exception) -> CaptureError:
        for node in stage.nodes:
            try:
                cloudpickle.dumps(node)
            except Exception as own:
                return CaptureError(
                    f"step {node.name!r} ({node.line}): its function cannot travel to a worker: {own}. "
                    f"Make what it uses inside the function, or in on_open of a process step"
                )
        return CaptureError(f"stage {stage.name!r} cannot travel to a worker: {error}")


def _part(graph: Graph, stage: Stage) -> Graph:
    """The steps of a stage and those it reads from, without what those hold: enough to know every schema."""
    before = [_bare(graph.node(p.step)) for p in stage.inputs]
    unique = {n.name: n for n in before}
    return Graph(graph.name, (*unique.values(), *stage.nodes))


def _bare(node: Node) -> Node:
    return ExternalStep(node.name, (), node.outputs)
