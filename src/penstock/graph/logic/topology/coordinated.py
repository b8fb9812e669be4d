"""Bolts of a function that is called from outside: each tuple begins with its request, and a bolt knows when a request is finished.

In a micro-batch all tuples of a request pass a bolt before the batch ends there. So the end of the batch is what counts of tuples say in Storm. Which tasks finish a
request is as in Storm too: of the first bolt those that had a tuple of it, of the last the one that the request belongs to, of the others all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from penstock.errors import FlowError, SchemaError
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.topology.components import Bolt, streams_of
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.trident.keyed import FAILED, why
from penstock.graph.schema import Schema, schema_of
from penstock.graph.types import STRING

REQUESTS = "__requests"
"""The component from which every task hears of the requests of a batch."""


class Trial(Protocol):
    """What a task does for a bolt that must know at once whether what it emits is right."""

    def tried(self, work: Callable[[], Iterable[Any] | None]) -> Exception | None:
        """Does work of the bolt and takes what it gives; where that fails, or does not fit its stream, takes it back and returns why."""


class Coordinated:
    """What is put in front of the class of a bolt. `_notes` says that a task finishes the requests of which it had tuples."""

    _notes = False
    _task: Trial
    """The task that runs it."""

    def prepare(self, context: TaskContext) -> None:
        """Begins without requests."""
        self._requests: dict[str, None] = {}
        super().prepare(context)  # type: ignore[misc]  # of a bolt

    def process(self, tup: Any) -> list[Any]:
        """Hands a tuple to the bolt. Where it fails, its request fails, and no other."""
        if tup.component == REQUESTS:
            self._requests[tup[0]] = None
            return []
        if self._notes:
            self._requests[tup[0]] = None
        return self._tried(tup[0], super().process, tup)  # type: ignore[misc]  # of a bolt

    def end_batch(self, batch: int) -> list[Any]:
        """Tells the bolt that each request is finished."""
        requests, self._requests = self._requests, {}
        finish = getattr(self, "finished_id", None)
        return [made for each in requests for made in self._tried(each, finish, each)] if finish is not None else []

    def _tried(self, request: str, function: Any, *given: Any) -> list[Any]:
        error = self._task.tried(lambda: function(*given))
        return [] if error is None else [TaggedRecord(FAILED, (request, why(error)))]


def coordinated(name: str, bolt: Bolt, failures: Schema, *, notes: bool) -> Bolt:
    """A bolt of a function: the user's, with the stream of failed requests.

    Raises:
        FlowError: it has a stream of that name.
        SchemaError: a stream of it does not begin with the request.
    """
    streams = streams_of(bolt)
    if FAILED in streams:
        raise FlowError(
            f"bolt {name!r}: expected streams of other names than {FAILED!r}, which has the failed requests"
        )
    for stream, schema in streams.items():
        if schema.fields[0].type != STRING:
            raise SchemaError(
                f"bolt {name!r}: expected the request as the first field of stream {stream!r}, such as 'request string, ...', got {schema}"
            )
    made = copy.copy(bolt)
    made.__class__ = type(f"Coordinated{type(bolt).__name__}", (Coordinated, type(bolt)), {"_notes": notes})
    made.outputs = {**streams, FAILED: schema_of(failures)}
    return made
