"""Spouts at work: the tasks of one, called in turn, and the records they give."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from penstock.errors import Impossible, StateError, UnknownName, nearest
from penstock.graph.graph import Graph
from penstock.graph.logic.collector import Collector
from penstock.graph.logic.components import END, EndOfSpout, Spout, kept_attributes, streams_of, task_of
from penstock.graph.logic.config import ACKERS, PENDING, TIMEOUT, USUAL_TIMEOUT, seconds_of
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.task_context import TaskContext, TopologyLayout
from penstock.graph.logic.tuples import DEFAULT
from penstock.graph.nodes import Source
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, TASK
from penstock.graph.schema import Schema
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.records.records import BadRecord
from penstock.kernels.topology.pending import Message, Outcome, PendingMessages, Settlement

STREAM = "__stream"
_MOST = 10_000_000
_SILENT = 10_000


class SpoutRecord(tuple[Any, ...]):
    """A record with all its fields, those of Penstock's own among them; `emitter` is the task it comes from."""

    emitter: int = 0


def reliable_spouts(graph: Graph) -> list[Source]:
    """The sources of a graph that are spouts with acks."""
    spouts = [(n, n.endpoint.options.get("spout")) for n in graph.sources if n.endpoint.capabilities.emits_tuples]
    return [n for n, spout in spouts if isinstance(spout, Spout) and spout.reliable]


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
        self.config: dict[str, Any] = node.endpoint.options.get("config") or {}
        self.layout: TopologyLayout = node.endpoint.options.get("layout") or TopologyLayout()
        self.tracks = self.shape.spout.reliable and self.config.get(ACKERS) != 0
        timeout = seconds_of(self.config, TIMEOUT, USUAL_TIMEOUT)
        self.pending = PendingMessages(self.config.get(PENDING), timeout)
        self.emitted: list[Message] = []
        self.extra: list[SpoutRecord] = []
        self.is_active = True
        self.tasks = [self._task(i) for i in range(self.parallelism)]
        self._restore((kept or {}).get("tasks", []))
        self.waiting = list(range(len(self.tasks)))

    def _task(self, number: int) -> Spout:
        direct = [s for s in self.shape.streams if s in self.shape.spout.direct]
        collector = Collector(self.shape.streams, direct, self.shape.spout.reliable)
        made: Spout = task_of(self.shape.spout, collector)
        made._next_root = partial(self._next_root, number)
        peers = {c.name: c.tasks for c in self.layout.components}
        made._context = TaskContext(self.node.name, number, self.parallelism, peers, self.layout, self.config)
        self._guard(lambda: made.open(made._context), "open")  # type: ignore[arg-type]  # it was made above
        self._guard(made.activate, "activate")
        return made

    def _next_root(self, task: int, id: object) -> bytes:
        root = random.getrandbits(64)
        self.emitted.append(Message(root, id, task))
        if self.tracks:
            self.pending.count(task)
        return root.to_bytes(8, "big")

    def taken_messages(self, file: int = 0) -> list[Message]:
        """The messages emitted since the last time, which are pending now; `file` is that of the feed in which they are put."""
        made, self.emitted = [m._replace(file=file) for m in self.emitted], []
        if not self.tracks:
            self._tell(Outcome(made, []))
            return []
        for message in made:
            self.pending.add(message)
        return made

    def settle(self, given: Settlement) -> Outcome:
        """Tells the tasks what a committed batch has decided of their messages."""
        made = self.pending.settle(given)
        self._tell(made)
        return made

    def expire(self, now: float) -> list[Message]:
        """Fails the messages whose time is over, at a processing time in seconds."""
        made = self.pending.expire(now)
        self._tell(Outcome([], made))
        return made

    def _tell(self, outcome: Outcome) -> None:
        """Calls `ack` and `fail` of the tasks; one that has failed something is asked for tuples again, even if it was done."""
        for message in outcome.acked:
            task = self.tasks[message.task]
            self._guard(partial(task.ack, message.id), f"ack of {message.id!r}")
            self._hooked("acked", task, message)
        for message in outcome.failed:
            task = self.tasks[message.task]
            self._guard(partial(task.fail, message.id), f"fail of {message.id!r}")
            self._hooked("failed", task, message)
            task._done = False
            if message.task not in self.waiting:
                self.waiting.append(message.task)
        for at in {m.task for m in (*outcome.acked, *outcome.failed)}:
            self.extra += self._taken(at)

    def _hooked(self, what: str, task: Spout, message: Message) -> None:
        for hook in task._context.hooks if task._context is not None else ():
            getattr(hook, what)(message.id)

    def activate(self, on: bool) -> None:
        """Pauses the spout, or lets it go on."""
        if on != self.is_active:
            self.is_active = on
            for task in self.tasks:
                self._guard(task.activate if on else task.deactivate, "activate" if on else "deactivate")

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
        """What the next task in turn emits, which may be nothing; None when all are done, and no message is open."""
        if self.extra:
            made, self.extra = self.extra, []
            return made
        if not self.waiting or self.left == 0:
            return [] if self.pending or self.emitted else None
        if not self.is_active:
            return []
        at = next((at for at in self.waiting if not self.is_blocked(at)), None)
        if at is None:
            return []
        self.waiting.remove(at)
        self.calls += 1
        if not self._guard(lambda: self._call(self.tasks[at]), f"call {self.calls} of next_tuple"):
            self.waiting.append(at)
        return self._taken(at)

    def is_blocked(self, task: int) -> bool:
        """Whether a task must wait until its messages are acked or failed."""
        return self.pending.is_full(task)

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
        if self.emitted and len(made) < len(emitted.records):
            gone = {int.from_bytes(r, "big") for r in (emitted.roots or [])[len(made) :] if r is not None}
            for message in [m for m in self.emitted if m.root in gone]:
                self.emitted.remove(message)
                self.pending.count(message.task, -1 if self.tracks else 0)
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
            if not records and self.has_to_wait:
                return
            silent = 0 if records else silent + 1
            if silent > _SILENT or self.number > _MOST:
                said = "nothing" if silent else f"{self.number:,} tuples"
                raise Impossible(
                    f"spout {self.node.name!r} emitted {said} in {self.calls:,} calls of next_tuple and did not say that it is "
                    f"done; a bounded run needs an end: {self._fix()}"
                )
        self.close()

    @property
    def has_to_wait(self) -> bool:
        """Whether nothing more can come before messages are acked or failed."""
        open_ = bool(self.pending or self.emitted)
        return open_ and all(self.is_blocked(at) for at in self.waiting)

    def _fix(self) -> str:
        return (
            f"return ps.END from next_tuple when there is no more, give it a limit (top.spout({self.node.name!r}, ..., "
            f"limit=1000)), or run it live"
        )

    def close(self) -> None:
        """Tells every instance that it is over."""
        for task in self.tasks:
            if self.is_active:
                task.deactivate()
            task.close()
