"""Who reads the streams of a task, and which of their tasks get a tuple: the same that the groupings choose on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.graph.logic.topology.collector import Collector
from penstock.graph.logic.topology.task_context import TaskContext, grouping_parts
from penstock.graph.nodes import Grouping
from penstock.graph.nodes.topology import route_name
from penstock.graph.schema import Schema
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.topology.routing import Local, Router, router_of

Choices = dict[str, list[Sequence[int]]]
"""The tasks that are chosen for the tuples of a chunk, by the route that asks for them."""


class Reader(NamedTuple):
    """A component that reads a stream: the ids of its tasks, and what chooses among them."""

    ids: list[int]
    router: Router | None
    route: str = ""
    """Where only Python can choose: the route between the two, which has the router."""


class Readers:
    """The readers of the streams of one task. `numbered` says that a tuple's number is its own, as that of a spout, and not its count in the task."""

    def __init__(
        self, context: TaskContext, schemas: Mapping[str, Schema], collector: Collector, *, numbered: bool = False
    ) -> None:
        self.context, self.schemas, self.collector, self.numbered = context, schemas, collector, numbered
        self.routers: Mapping[str, Router] = {}
        self.choices: dict[str, Choices] = {}
        self._known: dict[str, list[Reader]] = {}
        found = context.layout.readers(context.component) if context.layout.components else {}
        self._groupings = {stream: readers for stream, readers in found.items() if stream in schemas}
        chosen = {s for s, readers in self._groupings.items() if any(map(_by_python, readers.values()))}
        collector.chosen = frozenset() if numbered else frozenset(chosen)
        collector.find = self.ids

    def ids(self, stream: str, record: object, number: int, task: int | None) -> list[int]:
        """The ids of the tasks that get a record, the `number`-th of its stream."""
        if stream not in self._known:
            self._known[stream] = [self._reader(stream, *r) for r in self._groupings.get(stream, {}).items()]
        readers = self._known[stream]
        if task is not None:
            return [reader.ids[task] for reader in readers if task < len(reader.ids)]
        values = self._values(stream, [record])[0] if readers else ()
        return [reader.ids[to] for reader in readers for to in self._targets(stream, reader, values, number)]

    def _values(self, stream: str, records: list[Any]) -> list[tuple[Any, ...]]:
        return list(zip(*shape_of(self.schemas[stream]).columns(records), strict=True))

    def _reader(self, stream: str, name: str, text: str) -> Reader:
        kind, fields = grouping_parts(text)
        layout, own = self.context.layout, self.context.component
        ids = layout.task_ids(name)
        if _by_python(text):
            return Reader(ids, None, route_name(name, own, stream))
        if kind == "direct":
            return Reader(ids, None)
        if kind == "local_or_shuffle" and layout.are_twins(own, name):
            return Reader(ids, Local(len(ids)))
        return Reader(ids, router_of(Grouping(kind, fields), len(ids), self.schemas[stream]))

    def _targets(self, stream: str, reader: Reader, values: tuple[Any, ...], number: int) -> Sequence[int]:
        if reader.route:
            return self._chosen(stream, reader.route, number)
        if reader.router is None:
            return ()
        emitter = self.context.task
        return reader.router.targets(values, emitter, number if self.numbered else reader.router.turn(emitter, number))

    def _chosen(self, stream: str, route: str, number: int) -> Sequence[int]:
        """What a route chooses, in the order of the tuples; what is chosen here the route finds beside the chunk."""
        if self.numbered or route not in self.routers:
            return ()
        at = number - self.collector.gone[stream]
        return self._choose(stream, route, at + 1)[at]

    def _choose(self, stream: str, route: str, many: int) -> list[Sequence[int]]:
        made = self.choices.setdefault(stream, {}).setdefault(route, [])
        for values in self._values(stream, self.collector.records[stream][len(made) : many]):
            made.append(self.routers[route].targets(values, self.context.task))
        return made

    def taken_choices(self, stream: str) -> Choices:
        """What was chosen for the records of a stream that leave now, for all of them or for none."""
        found = self.choices.pop(stream, {})
        for route in found:
            self.choices[stream] = found
            self._choose(stream, route, len(self.collector.records[stream]))
        self.choices.pop(stream, None)
        return found


def _by_python(text: str) -> bool:
    """Whether only Python can choose the task."""
    return grouping_parts(text)[0] in ("partial_key", "custom")
