"""Joins of a stream with something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.nodes.base import Node
from penstock.graph.nodes.endpoint import Endpoint


@dataclass(frozen=True)
class JoinStatic(Node):
    """Each record with the rows of a static table that share its key; native."""

    table: Endpoint
    on: tuple[str, ...]
    how: str
    kind: ClassVar[str] = "join"

    def settings(self) -> dict[str, Any]:
        """The table, the key and the kind of join."""
        return {"with": self.table.kind, **self.table.shown(), "on": ", ".join(self.on), "how": self.how}
