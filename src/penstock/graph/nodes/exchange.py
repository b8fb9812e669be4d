"""Steps that move records between tasks and change nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.nodes.base import Node, label

GROUPINGS = (
    "shuffle",
    "fields",
    "all",
    "global",
    "none",
    "direct",
    "partial_key",
    "local_or_shuffle",
    "custom",
)


@dataclass(frozen=True)
class Grouping:
    """Which tasks of the next step get a record."""

    kind: str
    fields: tuple[str, ...] = ()
    chooser: Any = None

    def __str__(self) -> str:
        if self.kind == "custom":
            return f"custom({label(self.chooser)})"
        return f"{self.kind}({', '.join(self.fields)})" if self.fields else self.kind

    @property
    def by_column(self) -> bool:
        """Whether the tuple itself says which task it is for, in a field of Penstock's own."""
        return self.kind in ("direct", "partial_key", "custom")


@dataclass(frozen=True)
class Repartition(Node):
    """Spreads the records over a number of tasks, evenly or by fields."""

    fields: tuple[str, ...] = ()
    kind: ClassVar[str] = "repartition"

    def settings(self) -> dict[str, Any]:
        """The number of tasks and the fields."""
        return {"tasks": self.parallelism, "by": ", ".join(self.fields) or "turns"}
