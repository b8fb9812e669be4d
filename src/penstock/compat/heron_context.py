"""What a component of heronpy knows of its topology, and the metrics that it registers there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.compat.heron_hooks import HeronHook
from penstock.graph.logic.topology.metrics import Metric
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.multilang.handshake import context_of


class MadeAnew:
    """What is not saved with the attributes of a component: `initialize` makes it anew, and registers it."""

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} is made again by initialize")


class StreamId(NamedTuple):
    """A stream of a component."""

    id: str
    component_name: str


class TopologyContext(MadeAnew, dict[str, Any]):
    """The context of a task, with the methods of heronpy's; as a dict it has the keys of Storm's."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context_of(context) if context.layout.components else {})
        self._context = context

    def get_task_id(self) -> int:
        """The id of the task."""
        return self._context.task_id

    def get_component_id(self) -> str:
        """The name of the component."""
        return self._context.component

    def get_topology_name(self) -> str:
        """The name of the topology."""
        return self._context.topology

    def get_cluster_config(self) -> dict[str, Any]:
        """The settings of the component, over those of the topology."""
        return dict(self._context.config)

    def get_component_tasks(self, component_id: str) -> list[int]:
        """The ids of the tasks of a component."""
        return list(self._context.task_ids(component_id))

    def get_sources(self, component_id: str) -> dict[StreamId, str]:
        """What a component reads: the grouping of each stream."""
        return {StreamId(stream, source): how for (source, stream), how in self._context.sources(component_id).items()}

    def get_this_sources(self) -> dict[StreamId, str]:
        """What this component reads."""
        return self.get_sources(self.get_component_id())

    def register_metric(self, name: str, metric: Any, time_bucket_in_sec: int = 0) -> None:
        """Registers a metric; its value is taken at the end of every batch, whatever the interval."""
        self._context.register_metric(name, TakenMetric(metric))

    def add_task_hook(self, task_hook: Any) -> None:
        """Adds a hook, which hears what the task does."""
        self._context.add_hook(HeronHook(task_hook, self))


class TakenMetric(Metric):
    """A metric of heronpy's as one of Penstock's."""

    def __init__(self, metric: Any) -> None:
        self.metric = metric

    def value(self) -> Any:
        """The value, after which it starts over."""
        return self.metric.get_value_and_reset() or None


class BaseMetric(MadeAnew, ABC):
    """The base of the metrics."""

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """The value, after which it starts over."""


class CountMetric(BaseMetric):
    """Counts."""

    def __init__(self) -> None:
        self.value = 0

    def incr(self, to_add: int = 1) -> None:
        """Adds to the count."""
        self.value += to_add

    def get_value_and_reset(self) -> int:
        """The count."""
        made, self.value = self.value, 0
        return made


class MeanReducer:
    """The mean of values."""

    def __init__(self) -> None:
        self.init()

    def init(self) -> None:
        """Starts over."""
        self.sum, self.count = 0.0, 0

    def reduce(self, value: float) -> None:
        """Takes one value in."""
        self.sum += value
        self.count += 1

    def extract(self) -> float | None:
        """The mean; None of nothing."""
        return self.sum / self.count if self.count else None


class ReducedMetric(BaseMetric):
    """What a reducer makes of values."""

    def __init__(self, reducer: Any) -> None:
        self.value = reducer() if isinstance(reducer, type) else reducer

    def update(self, value: Any) -> None:
        """Takes one value in."""
        self.value.reduce(value)

    def get_value_and_reset(self) -> Any:
        """What the reducer has made."""
        made = self.value.extract()
        self.value.init()
        return made


class MeanReducedMetric(ReducedMetric):
    """The mean of values."""

    def __init__(self) -> None:
        super().__init__(MeanReducer)


class AssignableMetrics(BaseMetric):
    """The last value that was given."""

    def __init__(self, init_val: Any) -> None:
        self.value = init_val

    def update(self, value: Any) -> None:
        """Another value."""
        self.value = value

    def get_value_and_reset(self) -> Any:
        """The value, which stays."""
        return self.value


class MultiMetric(BaseMetric):
    """Metrics of one kind by key."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self.made = made
        self.value: dict[str, Any] = {}

    def add_key(self, key: str) -> None:
        """A key that counts from now on."""
        if key not in self.value:
            self.value[key] = self.made()

    def at(self, key: str) -> Any:
        """The metric of a key."""
        self.add_key(key)
        return self.value[key]

    def get_value_and_reset(self) -> dict[str, Any]:
        """The values by key."""
        found = {key: metric.get_value_and_reset() for key, metric in self.value.items()}
        return {key: value for key, value in found.items() if value is not None}


class MultiCountMetric(MultiMetric):
    """Counts by key."""

    def __init__(self) -> None:
        super().__init__(CountMetric)

    def incr(self, key: str, to_add: int = 1) -> None:
        """Adds to the count of a key."""
        self.at(key).incr(to_add)


class MultiReducedMetric(MultiMetric):
    """What reducers make of values, by key."""

    def __init__(self, reducer: Any) -> None:
        super().__init__(lambda: ReducedMetric(reducer))

    def update(self, key: str, value: Any) -> None:
        """Takes a value of a key in."""
        self.at(key).update(value)


class MultiMeanReducedMetric(MultiReducedMetric):
    """The mean of values by key."""

    def __init__(self) -> None:
        super().__init__(MeanReducer)
