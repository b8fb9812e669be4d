"""Steps that move records between tasks and change nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from penstock.errors import FlowError
from penstock.graph.nodes.base import OUT, Inputs, Node, Output, Settings, label

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


class Chooser(Protocol):
    """A class of the user's that chooses the task, or the tasks, of a record."""

    def choose(self, values: tuple[object, ...]) -> object:
        """A task, or a list of tasks."""


@dataclass(frozen=True)
class Grouping:
    """Which tasks of the next step get a record."""

    kind: str
    fields: tuple[str, ...] = ()
    chooser: Chooser | Callable[..., object] | None = None

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
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """There is at least one task, and the fields are there."""
        if self.parallelism is None or self.parallelism < 1:
            raise FlowError(f"at least one task is needed, got {self.parallelism}")
        for name in self.fields:
            given[0].schema.field(name)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The same stream."""
        return (replace(given[0], name=OUT),)

    def settings(self) -> Settings:
        """The number of tasks and the fields."""
        return {"tasks": self.parallelism, "by": ", ".join(self.fields) or "turns"}
