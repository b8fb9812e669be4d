"""Spouts at work: the tasks of one, called in turn, and the records they give."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from penstock.errors import Impossible, StateError, UnknownName, nearest
from penstock.graph.logic.collector import Collector
from penstock.graph.logic.components import END, EndOfSpout, Spout, kept_attributes, streams_of, task_of
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.task_context import TaskContext
from penstock.graph.logic.tuples import DEFAULT
from penstock.graph.nodes import Source
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, TASK
from penstock.graph.schema import Schema
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.records.records import BadRecord

STREAM = "__stream"
_MOST = 10_000_000
_SILENT = 10_000


class SpoutRecord(tuple[Any, ...]):
    """A record with all its fields, those of Penstock's own among them; `emitter` is the task it comes from."""

    emitter: int = 0


class EmittedTuples(NamedTuple):
    """What a task gave on a stream: the records, and beside them, where the stream carries them, tasks and roots."""

    stream: str
    records: list[Any]
    tasks: list[int] | None = None
    roots: list[bytes | None] | None = None


class SpoutShape:
    """How the records of a spout travel: fields, then number, task and roots; several streams as a struct each."""

    def __init__(self, node: Source) -> None:
        self.node = node
        self.spout: Spout = node.endpoint.options["spout"]
        self.streams: dict[str, Schema] = streams_of(self.spout)
        self.names = node.output().schema.names
        self.tagged = STREAM in self.names

    def full(self, emitted: EmittedTuples, number: int) -> list[SpoutRecord]:
        """The records of a stream, checked, complete, and numbered from `number` on."""
        if emitted.stream not in self.streams:
            raise UnknownName(f"no stream {emitted.stream!r}; {nearest(emitted.stream, self.streams)}")
        count = len(emitted.records)
        rows: Iterable[tuple[Any, ...]] = zip(
            *shape_of(self.streams[emitted.stream]).columns(emitted.records), strict=True
        )
        if self.tagged:
            rows = ((emitted.stream, *(row if s == emitted.stream else None for s in self.streams)) for row in rows)
        none = [None] * count
        beside = {
            SEQUENCE.name: range(number, number + count),
            TASK.name: emitted.tasks or none,
            ROOTS.name: emitted.roots or none,
        }
        hidden = [beside[n] for n in self.names if n in beside]
        return [SpoutRecord((*row, *more)) for row, *more in zip(rows, *hidden, strict=True)]


def completed(node: Source, record: object, number: int) -> SpoutRecord:
    """A record that a test emits instead of a spout, as the spout would have given it.

    `ps.to(stream, record)` says which stream it is of, when the spout has several.
    """
    if isinstance(record, SpoutRecord):
        return record
    tagged = record if isinstance(record, TaggedRecord) else TaggedRecord(DEFAULT, record)
    return SpoutShape(node).full(EmittedTuples(tagged.output, [tagged.record]), number)[0]


class SpoutTasks:
    """The tasks of a spout. `pull` calls one of them; `kept` is what must be saved to go on later."""

    def __init__(self, node: Source, kept: dict[str, Any] | None = None) -> None:
        self.node, self.shape = node, SpoutShape(node)
        self.number: int = (kept or {}).get("number", 0)
        self.limit: int | None = node.endpoint.options.get("limit")
        self.parallelism: int = node.endpoint.options["tasks"]
        self.calls = 0
        self.tasks = [self._task(i) for i in range(self.parallelism)]
        self._restore((kept or {}).get("tasks", []))
        self.waiting = list(range(len(self.tasks)))

    def _task(self, number: int) -> Spout:
        direct = [s for s in self.shape.streams if s in self.shape.spout.direct]
        collector = Collector(self.shape.streams, direct, self.shape.spout.reliable)
        made: Spout = task_of(self.shape.spout, collector)
        made._next_root = _random_root
        self._guard(lambda: made.open(TaskContext(self.node.name, number, self.parallelism)), "open")
        return made

    def _restore(self, kept: list[dict[str, Any]]) -> None:
        if len(kept) > len(self.tasks):
            raise StateError(
                f"spout {self.node.name!r} has {len(self.tasks)} tasks and had {len(kept)}: where the others stood would be "
                f"lost. Give it as many as before, or start afresh"
            )
        for task, attributes in zip(self.tasks, kept, strict=False):
            if attributes:
                vars(task).update(attributes)
                task.restored()

    def kept(self) -> dict[str, Any]:
        """Where every task stands."""
        spout = self.shape.spout
        tasks = [kept_attributes(t, spout) if spout.stateful else {} for t in self.tasks]
        return {"number": self.number, "tasks": tasks}

    def pull(self) -> list[SpoutRecord] | None:
        """What the next task in turn emits, which may be nothing; None when all are done."""
        if not self.waiting or self.left == 0:
            return None
        at = self.waiting.pop(0)
        self.calls += 1
        if not self._guard(lambda: self._call(self.tasks[at]), f"call {self.calls} of next_tuple"):
            self.waiting.append(at)
        return self._taken(at)

    @property
    def left(self) -> int | None:
        """How many tuples may still come; None when there is no limit."""
        return None if self.limit is None else max(self.limit - self.number, 0)

    def _call(self, task: Spout) -> bool:
        """One call; true when the task is done."""
        try:
            given = task.next_tuple()
            done = given is END
            if isinstance(given, Generator):
                done = self._give_all(task, given)
            elif given is not None and not done:
                done = any(self._give(task, record) for record in given)
        except EndOfSpout as end:
            end.__traceback__ = None
            return True
        return done or task._done

    def _give_all(self, task: Spout, given: Generator[Any, None, Any]) -> bool:
        while True:
            try:
                if self._give(task, next(given)):
                    return True
            except StopIteration as stop:
                return stop.value is END

    def _give(self, task: Spout, record: object) -> bool:
        if record is END:
            return True
        tagged = record if isinstance(record, TaggedRecord) else TaggedRecord(DEFAULT, record)
        task.emit(tagged.record, tagged.output)
        return False

    def _taken(self, at: int) -> list[SpoutRecord]:
        collector = self.tasks[at]._collector
        assert collector is not None
        made: list[SpoutRecord] = []
        for stream in self.shape.streams:
            if collector.records[stream]:
                made += self._full(EmittedTuples(stream, *collector.taken(stream)))
        for record in made if at else ():
            record.emitter = at
        return made

    def _full(self, emitted: EmittedTuples) -> list[SpoutRecord]:
        try:
            made = self.shape.full(emitted, self.number)[: self.left]
        except BadRecord as error:
            raise RecordFailed(self.node, emitted.records[error.at], error.at, error) from error
        self.number += len(made)
        return made

    def _guard(self, work: Callable[[], Any], what: str) -> Any:
        try:
            return work()
        except RecordFailed:
            raise
        except Exception as error:
            raise RecordFailed(self.node, what, 0, error) from error

    def drained(self) -> Iterator[SpoutRecord]:
        """All that the spout emits until it is done; for runs that must end."""
        if self.shape.spout.endless and self.limit is None:
            raise Impossible(f"spout {self.node.name!r} never ends, so a bounded run would not finish; {self._fix()}")
        silent = 0
        while (records := self.pull()) is not None:
            yield from records
            silent = 0 if records else silent + 1
            if silent > _SILENT or self.number > _MOST:
                said = "nothing" if silent else f"{self.number:,} tuples"
                raise Impossible(
                    f"spout {self.node.name!r} emitted {said} in {self.calls:,} calls of next_tuple and did not say that it is "
                    f"done; a bounded run needs an end: {self._fix()}"
                )
        self.close()

    def _fix(self) -> str:
        return (
            f"return ps.END from next_tuple when there is no more, give it a limit (top.spout({self.node.name!r}, ..., "
            f"limit=1000)), or run it live"
        )

    def close(self) -> None:
        """Tells every instance that it is over."""
        for task in self.tasks:
            task.close()


def _random_root(id: object) -> bytes:
    return random.getrandbits(64).to_bytes(8, "big")
