"""Metrics of the user's own, as Storm has them: objects that a task counts with, whose values are taken batch by batch."""

from __future__ import annotations

from typing import Any


class Metric:
    """The base of a metric of your own: `value` is taken at the end of every batch, then `reset` is called.

    >>> import penstock as ps
    >>> class Largest(ps.Metric):
    ...     most = 0
    ...     def value(self):
    ...         return self.most
    ...     def reset(self):
    ...         self.most = 0
    """

    def value(self) -> Any:
        """The value of the batch; None when there is nothing to say.

        Returns:
            A number, or a dict of names to numbers.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def reset(self) -> None:
        """Starts over."""


class CountMetric(Metric):
    """Counts.

    >>> import penstock as ps
    >>> metric = ps.CountMetric()
    >>> metric.increment(); metric.increment(2)
    >>> metric.value()
    3
    """

    def __init__(self) -> None:
        self.count: float = 0

    def increment(self, by: float = 1) -> None:
        """Adds to the count.

        Args:
            by: how much.
        """
        self.count += by

    def value(self) -> float | None:
        """The count.

        Returns:
            What was added since the last batch; None for nothing.
        """
        return self.count or None

    def reset(self) -> None:
        """Back to zero."""
        self.count = 0


def amount_of(given: object) -> float:
    """What a component of another system adds to a count: a number, or one where it says something else.

    >>> amount_of(2.5), amount_of({"a": 1}), amount_of(True)
    (2.5, 1, 1)
    """
    return given if isinstance(given, int | float) and not isinstance(given, bool) else 1


class TaskHook:
    """The base of a hook: a task tells it what it does. Add it with `context.add_hook(...)`.

    >>> import penstock as ps
    >>> class Log(ps.TaskHook):
    ...     def failed(self, tup):
    ...         print("failed", tup)
    """

    def prepare(self, context: Any) -> None:
        """Called once, when the hook is added.

        Args:
            context: the context of the task.
        """

    def executed(self, tup: Any, seconds: float) -> None:
        """Called after `process`.

        Args:
            tup: the tuple.
            seconds: how long it took.
        """

    def emitted(self, record: object, stream: str) -> None:
        """Called for each emit.

        Args:
            record: what was emitted.
            stream: to which stream.
        """

    def acked(self, tup: Any) -> None:
        """Called when a tuple is acked; in a spout with the message id.

        Args:
            tup: the tuple.
        """

    def failed(self, tup: Any) -> None:
        """Called when a tuple is failed; in a spout with the message id.

        Args:
            tup: the tuple.
        """

    def cleanup(self) -> None:
        """Called when the task ends."""
