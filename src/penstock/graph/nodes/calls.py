"""Steps that call services, many calls at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, cast

from penstock.errors import FlowError
from penstock.graph.duration import shown
from penstock.graph.logic.calls import called_by, check_calls
from penstock.graph.logic.capture import check_function
from penstock.graph.nodes.base import Inputs, Output, Settings
from penstock.graph.nodes.policy import DEAD_LETTER, OnError
from penstock.graph.nodes.stateless import PythonStep
from penstock.graph.schema import Schema, returned_schema

MOST_CALLS = 10_000
"""Calls that one task may have under way."""
TIMEOUT, BACKOFF = 30_000_000, 100_000
"""What holds where the user says nothing, in microseconds."""


@dataclass(frozen=True)
class MapAsync(PythonStep):
    """One record for each by a call that waits for a service, at most `concurrency` calls at a time in each task.

    `timeout` is how long a call may take and `backoff` the first pause before another one, in microseconds. `retries` counts the calls
    after the first; None is what the error policy says. With `ordered` the records come out in the order they went in.

    It reads records only: a row that a table takes back needs the same answer as the first time, which a service does not promise.
    """

    schema: Schema | None = None
    concurrency: int = field(default=32, kw_only=True)
    ordered_output: bool = field(default=True, kw_only=True)
    timeout: int = field(default=TIMEOUT, kw_only=True)
    retries: int | None = field(default=None, kw_only=True)
    backoff: int | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "map_async"
    over_records: ClassVar[str] = "a service may answer otherwise when a row goes than it did when the row was added"
    usual_policy: ClassVar[OnError | None] = OnError(DEAD_LETTER)

    def resolve(self, given: Inputs) -> Self:
        """An instance, where the user gave a class."""
        return replace(self, function=cast("Callable[..., object]", check_calls(self.name, self.function)))

    def check(self, given: Inputs) -> None:
        """The function takes one argument, and the numbers are such that calls can be made."""
        check_function(self.name, called_by(self.function), self.line)
        _need_count("concurrency", self.concurrency, 1, MOST_CALLS)
        _need_count("retries", self.retries if self.retries is not None else 0, 0, 100)
        if self.timeout <= 0:
            raise FlowError("the timeout of a call must be above zero, such as '5s'")
        if self.backoff is not None and self.backoff < 0:
            raise FlowError("the backoff of a retry must not be below zero")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """A record for each, as `map` does."""
        made = self.schema or returned_schema(called_by(self.function), many=False) or given[0].schema
        return (given[0].with_schema(made),)

    @property
    def tries(self) -> int:
        """How many calls a record gets."""
        policy = self.on_error.retries if self.on_error is not None else 0
        return 1 + (policy if self.retries is None else self.retries)

    @property
    def pause(self) -> int:
        """The first pause before another call, in microseconds; it doubles."""
        if self.backoff is not None:
            return self.backoff
        return self.on_error.backoff if self.on_error is not None and self.on_error.retries else BACKOFF

    def settings(self) -> Settings:
        """The function, and how it is called."""
        again: Settings = {"retries": self.tries - 1, "backoff": shown(self.pause)} if self.tries > 1 else {}
        order = "kept" if self.ordered_output else "as they finish"
        calls: Settings = {"concurrency": self.concurrency, "order": order, "timeout": shown(self.timeout)}
        return {**super().settings(), **calls, **again}


def _need_count(what: str, given: object, least: int, most: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise FlowError(f"{what} is a number from {least} to {most:,}, got {given!r}")
