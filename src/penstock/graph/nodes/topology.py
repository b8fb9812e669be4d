"""Bolts: the user's own classes, fed by groupings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.nodes.base import Node, label
from penstock.graph.nodes.exchange import Grouping


@dataclass(frozen=True)
class Bolt(Node):
    """A component of a topology. `groupings` has one entry for each input.

    A bolt runs as `parallelism` tasks. What a task keeps in its instance is saved with each batch.
    """

    logic: Any
    groupings: tuple[Grouping, ...]
    kind: ClassVar[str] = "bolt"
    python: ClassVar[bool] = True
    keyed: ClassVar[bool] = True

    @property
    def tasks(self) -> int:
        """How many tasks it runs as."""
        return self.parallelism or 1

    def settings(self) -> dict[str, Any]:
        """The class, its tasks and how each input reaches them."""
        routes = {str(p): str(g) for p, g in zip(self.inputs, self.groupings, strict=True)}
        return {"class": label(self.logic), "tasks": self.tasks, **routes}
