"""What a task may know of itself and of the topology around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import FlowError, UnknownName, nearest
from penstock.graph.logic.topology.metrics import Metric
from penstock.graph.logic.topology.tuples import DEFAULT

_GROUPING = re.compile(r"([a-z_]+)(?:\((.*)\))?", re.DOTALL)


def grouping_parts(text: str) -> tuple[str, tuple[str, ...]]:
    """The kind of a grouping, and the fields it goes by, from its text.

    >>> grouping_parts("fields(word, n)"), grouping_parts("shuffle"), grouping_parts("custom(own:Chooser)")
    (('fields', ('word', 'n')), ('shuffle', ()), ('custom', ()))
    """
    found = _GROUPING.fullmatch(text)
    kind, inside = (found[1], found[2]) if found else (text, None)
    return kind, tuple(inside.split(", ")) if inside and kind in ("fields", "partial_key") else ()


@dataclass(frozen=True)
class ComponentLayout:
    """A spout or bolt as others see it.

    Attributes:
        name: the name of the component.
        tasks: as how many tasks it runs.
        streams: the fields of each stream that it emits.
        sources: what it reads: component, stream and grouping.
    """

    name: str
    tasks: int
    streams: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sources: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class TopologyLayout:
    """The components of a topology. Task ids go from 1 on, over the components in the order of their names.

    >>> layout = TopologyLayout("words", (ComponentLayout("split", 2), ComponentLayout("lines", 1)))
    >>> layout.task_ids("split"), layout.component_of(1)
    ([2, 3], 'lines')
    """

    topology: str = ""
    components: tuple[ComponentLayout, ...] = ()

    def component(self, name: str) -> ComponentLayout:
        """The component of a name.

        Raises:
            UnknownName: there is none.
        """
        found = {c.name: c for c in self.components}
        if name not in found:
            raise UnknownName(f"the topology has no component {name!r}; {nearest(name, found)}")
        return found[name]

    def task_ids(self, component: str) -> list[int]:
        """The ids of the tasks of a component."""
        tasks = self.component(component).tasks
        first = 1 + sum(c.tasks for c in self.components if c.name < component)
        return list(range(first, first + tasks))

    def readers(self, component: str) -> dict[str, dict[str, str]]:
        """Who reads the streams of a component: stream to component to grouping."""
        made: dict[str, dict[str, str]] = {}
        for reader in self.components:
            for source, stream, grouping in reader.sources:
                if source == component:
                    made.setdefault(stream, {})[reader.name] = grouping
        return made

    def are_twins(self, producer: str, reader: str) -> bool:
        """Whether each task of a bolt may hand its tuples to the task of the same number of the only bolt that reads nothing else."""
        one, other = self.component(producer), self.component(reader)
        return bool(one.sources) and len(other.sources) == 1 and one.tasks == other.tasks

    def component_of(self, task_id: int) -> str:
        """The component that a task belongs to.

        Raises:
            FlowError: there is no task of that id.
        """
        for each in self.components:
            if task_id in self.task_ids(each.name):
                return each.name
        last = sum(c.tasks for c in self.components)
        raise FlowError(f"expected the id of a task, 1 to {last}, got {task_id!r}")


@dataclass(frozen=True)
class TaskContext:
    """What a task may know of itself: its component, its number (from 0), how many tasks there are, and the topology around it."""

    component: str
    task: int = 0
    tasks: int = 1
    peers: Mapping[str, int] = field(default_factory=dict)
    layout: TopologyLayout = field(default_factory=TopologyLayout)
    config: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the topology, with those of the component over them."""
    metrics: dict[str, Metric] = field(default_factory=dict, compare=False, repr=False)
    hooks: list[Any] = field(default_factory=list, compare=False, repr=False)
    resources: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """A place for things that parts of one task share; it lives as long as the instance."""

    def tasks_of(self, component: str) -> int:
        """How many tasks another component runs as; for direct streams."""
        if component not in self.peers:
            raise UnknownName(f"the topology has no component {component!r}; {nearest(component, self.peers)}")
        return self.peers[component]

    @property
    def topology(self) -> str:
        """The name of the topology."""
        return self.layout.topology

    @property
    def task_id(self) -> int:
        """The id of this task, unique in the topology; `emit_direct` takes such ids."""
        return self.layout.task_ids(self.component)[self.task]

    @property
    def components(self) -> list[str]:
        """The names of all spouts and bolts."""
        return [c.name for c in self.layout.components]

    def task_ids(self, component: str | None = None) -> list[int]:
        """The ids of the tasks of a component; of this one without a name."""
        return self.layout.task_ids(component or self.component)

    def component_of(self, task_id: int) -> str:
        """The component that a task belongs to."""
        return self.layout.component_of(task_id)

    @property
    def task_to_component(self) -> dict[int, str]:
        """Every task id with its component."""
        return {number: c.name for c in self.layout.components for number in self.layout.task_ids(c.name)}

    def streams(self, component: str | None = None) -> list[str]:
        """The streams that a component emits; this one without a name."""
        return [name for name, _ in self.layout.component(component or self.component).streams]

    def fields(self, stream: str = DEFAULT, component: str | None = None) -> tuple[str, ...]:
        """The fields of a stream of a component; of this one without a name.

        Raises:
            UnknownName: there is no such component or stream.
        """
        name = component or self.component
        found = dict(self.layout.component(name).streams)
        if stream not in found:
            raise UnknownName(f"component {name!r} has no stream {stream!r}; {nearest(stream, found)}")
        return found[stream]

    def sources(self, component: str | None = None) -> dict[tuple[str, str], str]:
        """What a component reads: (component, stream) to the grouping."""
        found = self.layout.component(component or self.component).sources
        return {(source, stream): grouping for source, stream, grouping in found}

    def targets(self, component: str | None = None) -> dict[str, dict[str, str]]:
        """Who reads the streams of a component: stream to component to grouping."""
        return self.layout.readers(component or self.component)

    def register_metric(self, name: str, metric: Metric) -> Metric:
        """Registers a metric of yours; its value is taken, and it starts over, at the end of every batch.

        Raises:
            FlowError: the task has a metric of that name.
        """
        if name in self.metrics:
            raise FlowError(f"expected a new name for a metric of {self.component!r}, got {name!r} again")
        self.metrics[name] = metric
        return metric

    def add_hook(self, hook: Any) -> None:
        """Adds a `TaskHook`: it hears what the task executes, emits, acks and fails."""
        self.hooks.append(hook)
        hook.prepare(self)
