"""The class a user writes for `map_async` where calls share something that must be opened, such as an HTTP client.

>>> class Score(AsyncFunction):
...     async def on_open(self):
...         self.client = {"ada": 7}
...     async def on_event(self, row):
...         return {"name": row.name, "score": self.client[row.name]}
"""

from __future__ import annotations

import inspect

from penstock.graph.logic.process import instance_of


class AsyncFunction:
    """The base of a step that calls a service: what its calls share is opened once and closed at the end.

    All methods run on one event loop, in one thread. An instance may be replaced at any time, so set what it opens in `on_open`.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Upper(ps.AsyncFunction):
    ...     async def on_open(self):
    ...         self.client = str.upper
    ...     async def on_event(self, row):
    ...         return self.client(row.word)
    >>> words = ps.Flow("demo").source("words", ps.items(["a"], "word string"))
    >>> words.map_async("upper", Upper).sink("out", ps.console())
    >>> run_local(words.flow)["out"]
    [Row(word='A')]
    """

    async def on_open(self) -> None:
        """Called once before the first call of each instance."""

    async def on_event(self, row: object) -> object:
        """Called for each record. You must define it.

        Args:
            row: the record.

        Returns:
            One record.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    async def on_close(self) -> None:
        """Called once after the last call of each instance; a worker that is killed does not get there."""


def check_calls(step: str, function: object) -> object:
    """A function as it is; an instance of an `AsyncFunction` class, or an error that says what is wrong with it."""
    if isinstance(function, AsyncFunction) or (isinstance(function, type) and issubclass(function, AsyncFunction)):
        return instance_of(step, function, AsyncFunction, "on_event(self, row)")
    return function


def called_by(function: object) -> object:
    """What is called for each record: the function, or `on_event` of an instance."""
    return function.on_event if isinstance(function, AsyncFunction) else function


def is_async(function: object) -> bool:
    """Whether a call returns something to await.

    >>> async def fetch(row): ...
    >>> is_async(fetch), is_async(len)
    (True, False)
    """
    called = called_by(function)
    return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(getattr(called, "__call__", None))  # noqa: B004 - an object with an async __call__
