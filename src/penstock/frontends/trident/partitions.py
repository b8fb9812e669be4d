"""How the tuples of a stream are dealt out to partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from penstock.errors import FlowError
from penstock.frontends.trident.base import BaseStream, Segment, check_hint, fields_of
from penstock.graph.caller import user_line
from penstock.graph.ids import child
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.logic.trident.bolts import PartitionRows
from penstock.graph.nodes import Bolt, Port, Route
from penstock.graph.nodes.exchange import Chooser, Grouping


@dataclass(frozen=True)
class Partitioning(BaseStream):
    """The methods that deal tuples out."""

    def shuffle(self, *, parallelism: int = 1, name: str = "") -> Self:
        """Deals the tuples out to partitions, in turn.

        Args:
            parallelism: how many partitions; `parallelism_hint` may say it later.
            name: the name of the step.

        Returns:
            The stream by partitions.
        """
        return self._dealt("shuffle", Grouping("shuffle"), parallelism, name)

    def broadcast(self, *, parallelism: int = 1, name: str = "") -> Self:
        """Each tuple to every partition.

        Args:
            parallelism: how many partitions; `parallelism_hint` may say it later.
            name: the name of the step.

        Returns:
            The stream by partitions.
        """
        return self._dealt("broadcast", Grouping("all"), parallelism, name)

    def partition_by(self, *fields: str, parallelism: int = 1, name: str = "") -> Self:
        """Equal values of the fields to the same partition.

        Args:
            fields: the fields.
            parallelism: how many partitions; `parallelism_hint` may say it later.
            name: the name of the step.

        Returns:
            The stream by partitions.

        Raises:
            FlowError: there is no field.
        """
        names = self._group(fields)
        return self._dealt("partition_by", Grouping("fields", names), parallelism, name)

    def global_(self, *, name: str = "") -> Self:
        """All tuples to one partition.

        Args:
            name: the name of the step.

        Returns:
            The stream in one partition.
        """
        return self._dealt("global", Grouping("global"), 1, name)

    def batch_global(self, *, parallelism: int = 1, name: str = "") -> Self:
        """All tuples of a batch to one partition; of a call, on the stream of a function.

        Args:
            parallelism: how many partitions calls are dealt out to.
            name: the name of the step.

        Returns:
            The stream by partitions.
        """
        grouping = Grouping("fields", self.scope) if self.scope else Grouping("global")
        return self._dealt("batch_global", grouping, parallelism, name)

    def partition(self, chooser: Chooser | Callable[..., object], *, parallelism: int = 1, name: str = "") -> Self:
        """To the partition that a function of yours names.

        Args:
            chooser: `choose(values)` returns a partition or a list of them, or an object with such a method, as `BoltDeclaration.custom` takes.
            parallelism: how many partitions; `parallelism_hint` may say it later.
            name: the name of the step.

        Returns:
            The stream by partitions.
        """
        made = chooser() if isinstance(chooser, type) else chooser
        return self._dealt("partition", Grouping("custom", chooser=made), parallelism, name)

    def _dealt(self, kind: str, grouping: Grouping, tasks: int, name: str) -> Self:
        called, stream = self.topology._named(kind, name), self
        if grouping.kind == "custom":
            route = Route(child(called, "to"), (self.port,), grouping, tasks, (self.port.step, DEFAULT))
            stream = self._at(self.builder.add(route))
        made = stream._bolt(called, PartitionRows(self.schema), grouping, tasks)
        if grouping.kind == "custom":
            return replace(made, segment=Segment(tasks, (child(called, "to"), called)))
        return made

    def parallelism_hint(self, tasks: int) -> Self:
        """The number of partitions of the steps since the last that dealt tuples out.

        Args:
            tasks: how many. Before the first such step Spark decides.

        Returns:
            The same stream.

        Raises:
            FlowError: it is no number of tasks.
        """
        check_hint(tasks)
        if self.segment is None:
            return self
        for step in self.segment.steps:
            node = self.builder.node(Port(step))
            if isinstance(node, Bolt):
                self.builder.replace(replace(node, parallelism=tasks))
            elif isinstance(node, Route):
                self.builder.replace(replace(node, tasks=tasks))
        return replace(self, segment=Segment(tasks, self.segment.steps))

    def _group(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(n for f in fields for n in fields_of(f))
        if not names:
            raise FlowError(f"expected at least one field ({user_line()}), got none")
        self._only(names)
        return names
