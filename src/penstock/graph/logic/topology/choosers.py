"""Custom groupings as Storm and Heron have them: they get the ids of the tasks, and return ids."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import FlowError
from penstock.graph.logic.topology.task_context import TaskContext


class StormChooser:
    """A grouping of Storm's, with `prepare(context, stream, target_tasks)` and `choose_tasks(task_id, values)`, or of Heron's, with
    `prepare(context, component, stream, target_tasks)` and `choose_tasks(values)`. Both may be written as in Java (`chooseTasks`).

    >>> class First:
    ...     def prepare(self, context, stream, target_tasks):
    ...         self.tasks = target_tasks
    ...     def choose_tasks(self, task_id, values):
    ...         return self.tasks[:1]
    >>> chooser = StormChooser(First())
    >>> chooser.prepare(TaskContext("words"), "default", [7, 8])
    >>> chooser.choose(("a",))
    [0]
    """

    def __init__(self, made: Any) -> None:
        self.made = made
        self.context, self.ids = TaskContext(""), list[int]()
        if _choose_of(made) is None:
            raise FlowError(f"expected choose(values) or choose_tasks(task_id, values) in {type(made).__name__}")

    def __repr__(self) -> str:
        return f"{type(self.made).__module__}:{type(self.made).__qualname__}"

    def prepare(self, context: TaskContext, stream: str, ids: Sequence[int]) -> None:
        """Tells the grouping which tasks there are."""
        self.context, self.ids = context, list(ids)
        if hasattr(self.made, "prepare"):
            named = [context.component] if _arguments(self.made.prepare) > 3 else []
            self.made.prepare(context, *named, stream, list(ids))

    def choose(self, values: Any) -> list[int]:
        """The numbers of the tasks of a tuple.

        Raises:
            ValueError: it chose a task that is not one of the bolt's.
        """
        choose = _choose_of(self.made)
        assert choose is not None, "it was there before"
        task = self.context.task_id if self.context.layout.components else self.context.task
        chosen = choose(list(values)) if _arguments(choose) < 2 else choose(task, list(values))
        wrong = [each for each in chosen if each not in self.ids]
        if wrong:
            raise ValueError(f"expected task ids of {self.ids}, got {wrong[0]!r}")
        return [self.ids.index(each) for each in chosen]


def _choose_of(made: Any) -> Callable[..., Any] | None:
    found: Callable[..., Any] | None = getattr(made, "choose_tasks", None) or getattr(made, "chooseTasks", None)
    return found


def _arguments(function: Callable[..., Any]) -> int:
    return len(inspect.signature(function).parameters)


def as_chooser(made: Any) -> Any:
    """A chooser: with `choose`, a function, or one of Storm's or Heron's."""
    return made if hasattr(made, "choose") or _choose_of(made) is None else StormChooser(made)
