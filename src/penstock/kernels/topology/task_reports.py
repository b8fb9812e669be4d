"""What the tasks of spouts and bolts measure and report beside their tuples."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.graph.logic.topology.collector import Collector
from penstock.graph.logic.topology.metrics import Metric
from penstock.graph.logic.topology.tuples import Tuple

log = logging.getLogger("penstock")
MOST = 20
"""So many errors of a task are logged for a batch; of the others only the number."""


def log_errors(noun: str, component: str, task: int, errors: Sequence[str]) -> None:
    """Logs what a task has reported as errors."""
    for error in errors[:MOST]:
        log.warning("%s %r, task %d: %s", noun, component, task, error)
    if len(errors) > MOST:
        log.warning("%s %r, task %d: and %d more errors", noun, component, task, len(errors) - MOST)


def taken_metrics(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """The values of metrics, which start over."""
    found = {name: metric.value() for name, metric in metrics.items()}
    for metric in metrics.values():
        metric.reset()
    return {name: value for name, value in found.items() if value is not None}


def call_hooks(hooks: Iterable[Any], what: str, *about: Any) -> None:
    """Calls a method of each hook, by its name."""
    for hook in hooks:
        getattr(hook, what)(*about)


def observed_add(collector: Collector, hooks: Iterable[Any]) -> Callable[..., None]:
    """What a collector does with a record, with a call of each hook."""

    def add(record: object, stream: str, anchors: Tuple | Iterable[Tuple] | None, task: int | None) -> None:
        Collector.add(collector, record, stream, anchors, task)
        call_hooks(hooks, "emitted", record, stream)

    return add
