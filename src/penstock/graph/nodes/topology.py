"""Bolts: the user's own classes, fed by groupings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph import types as t
from penstock.graph.nodes.base import Node, label
from penstock.graph.nodes.exchange import Grouping
from penstock.graph.schema import Schema

SEQUENCE = t.Field("__seq", t.BIGINT)
"""The number of a spout's tuple, so that its order outlives files and partitions."""
TASK = t.Field("__task", t.INT)
"""The task a tuple is meant for, where its producer decides that."""
ROOTS = t.Field("__roots", t.BINARY)
"""The roots a tuple stems from, eight bytes each."""


@dataclass(frozen=True)
class Bolt(Node):
    """A component of a topology. `groupings` and `origins` (component, stream) have one entry for each input.

    A bolt runs as `parallelism` tasks. What a task keeps in its instance is saved with each batch.
    """

    logic: Any
    groupings: tuple[Grouping, ...]
    origins: tuple[tuple[str, str], ...] = ()
    peers: tuple[tuple[str, int], ...] = ()
    kind: ClassVar[str] = "bolt"
    python: ClassVar[bool] = True

    @property
    def keyed(self) -> bool:  # type: ignore[override]  # a bolt's class decides
        """Whether its tasks keep state."""
        return bool(self.logic.stateful)

    @property
    def tasks(self) -> int:
        """How many tasks it runs as."""
        return self.parallelism or 1

    def stays_with(self, producer: Node) -> bool:
        """Whether tuples need not move: each task of the producer hands them to its own twin here."""
        alone = len(self.inputs) == 1 and self.groupings[0].kind == "local_or_shuffle"
        return alone and isinstance(producer, Bolt) and producer.tasks == self.tasks

    def settings(self) -> dict[str, Any]:
        """The class, its tasks and how each input reaches them."""
        names = self.origins or tuple((str(p), "") for p in self.inputs)
        routes = {_origin(*o): str(g) for o, g in zip(names, self.groupings, strict=True)}
        return {"class": label(self.logic), "tasks": self.tasks, **routes}


def _origin(component: str, stream: str) -> str:
    return component if stream in ("", "default") else f"{component}.{stream}"


@dataclass(frozen=True)
class Route(Node):
    """Chooses the task of the next bolt for each tuple, where only Python can: it runs with the tuple's producer."""

    grouping: Grouping
    tasks: int
    origin: tuple[str, str]
    kind: ClassVar[str] = "route"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The grouping and the number of tasks."""
        return {"grouping": str(self.grouping), "tasks": self.tasks}


def with_hidden(schema: Schema, *fields: t.Field) -> Schema:
    """A schema with fields of Penstock's own behind those of the user."""
    new = tuple(f for f in fields if f.name not in schema.names)
    return Schema(schema.fields + new, internal=True) if new else schema


def visible(schema: Schema) -> Schema:
    """A schema without the fields of Penstock's own."""
    kept = tuple(f for f in schema.fields if not f.name.startswith("__"))
    return schema if len(kept) == len(schema.fields) else Schema(kept)
