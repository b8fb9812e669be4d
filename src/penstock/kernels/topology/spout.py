"""Spouts at work: the tasks of one, called in turn, and the records they give."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from penstock.errors import Impossible, StateError
from penstock.graph.graph import Graph
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.topology.collector import SpoutCollector
from penstock.graph.logic.topology.components import END, EndOfSpout, Spout, kept_attributes, task_of
from penstock.graph.logic.topology.config import ACKERS, PENDING, TIMEOUT, USUAL_TIMEOUT, seconds_of
from penstock.graph.logic.topology.task_context import TaskContext, TopologyLayout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Source
from penstock.graph.nodes.topology import ROOTS
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.reading import MalformedRecord
from penstock.kernels.records.records import BadRecord
from penstock.kernels.topology.pending import (
    Message,
    MessageBlocks,
    MessageFile,
    Outcome,
    PendingMessages,
    Settlement,
)
from penstock.kernels.topology.readers import Readers
from penstock.kernels.topology.spout_records import (
    EmittedTuples,
    PackedRoots,
    SpoutColumns,
    SpoutRecord,
    SpoutShape,
)
from penstock.kernels.topology.task_reports import taken_metrics

_MOST = 10_000_000
_SILENT = 10_000


def reliable_spouts(graph: Graph) -> list[Source]:
    """The sources of a graph that are spouts with acks."""
    spouts = [(n, n.endpoint.options.get("spout")) for n in graph.sources if n.endpoint.capabilities.emits_tuples]
    return [n for n, spout in spouts if isinstance(spout, Spout) and spout.reliable]


class EmittedMessages(NamedTuple):
    """The messages among what a task gave: their roots, eight bytes each, and ids."""

    task: int
    roots: bytes
    ids: list[Any]


def messages_of(task: int, ids: list[Any]) -> tuple[Sequence[bytes | None], EmittedMessages]:
    """New roots for those tuples that have ids, and the messages that they are."""
    packed = random.randbytes(8 * len(ids))
    roots = PackedRoots(packed)
    if None not in ids:
        return roots, EmittedMessages(task, packed, ids)
    rooted = [None if number is None else root for number, root in zip(ids, roots, strict=True)]
    found = b"".join(root for root in rooted if root is not None)
    return rooted, EmittedMessages(task, found, [number for number in ids if number is not None])


class SpoutTasks:
    """The tasks of a spout. `pull` calls one of them; `kept` is what must be saved to go on later.

    With `keeps_malformed` a tuple that does not fit its stream ends nothing: it comes along, and is acked when it is safe.
    """

    def __init__(
        self,
        node: Source,
        kept: dict[str, Any] | None = None,
        *,
        is_active: bool = True,
        keeps_malformed: bool = False,
    ) -> None:
        self.node, self.shape, self.keeps_malformed = node, SpoutShape(node), keeps_malformed
        self.set_aside: list[Message] = []
        self.number: int = (kept or {}).get("number", 0)
        self.numbers: dict[str, int] = dict.fromkeys(self.shape.streams, self.number)
        self.numbers |= (kept or {}).get("numbers", {})
        self.limit: int | None = node.endpoint.options.get("limit")
        self.parallelism: int = node.endpoint.options["tasks"]
        self.calls = 0
        self.config: dict[str, Any] = node.endpoint.options.get("config") or {}
        self.layout: TopologyLayout = node.endpoint.options.get("layout") or TopologyLayout()
        self.tracks = self.shape.spout.reliable and self.config.get(ACKERS) != 0
        timeout = seconds_of(self.config, TIMEOUT, USUAL_TIMEOUT)
        self.pending = PendingMessages(self.config.get(PENDING), timeout)
        self.emitted: list[EmittedMessages] = []
        self.at_once: Callable[[Outcome], object] = lambda outcome: None
        """Hears of messages that nobody tracks, which are acked at once."""
        self.extra: list[SpoutColumns] = []
        self.is_active, self.is_closed = is_active, False
        self.tasks = [self._task(i) for i in range(self.parallelism)]
        self._restore((kept or {}).get("tasks", []))
        self.waiting = list(range(len(self.tasks)))

    def _task(self, number: int) -> Spout:
        direct = [s for s in self.shape.streams if s in self.shape.spout.direct]
        collector = SpoutCollector(self.shape.streams, direct, self.shape.spout.reliable)
        made: Spout = task_of(self.shape.spout, collector)
        peers = {c.name: c.tasks for c in self.layout.components}
        made._context = TaskContext(self.node.name, number, self.parallelism, peers, self.layout, self.config)
        collector.gone = self.numbers
        Readers(made._context, self.shape.streams, collector, numbered=True)
        self._guard(lambda: made.open(made._context), "open")  # type: ignore[arg-type]  # it was made above
        if self.is_active:
            self._guard(made.activate, "activate")
        return made

    def taken_messages(self, file: int = 0) -> MessageFile | None:
        """Takes the messages emitted since the last time as pending; `file` is that of the feed in which they are put. Returns them, for a restart; None when
        there are none.
        """
        emitted, self.emitted = [m for m in self.emitted if m.ids], []
        if not emitted:
            return None
        made = MessageFile()
        for each in emitted:
            made.add_packed(*each)
            if self.tracks:
                self.pending.add_packed(file, *each)
        if not self.tracks:
            blocks = MessageBlocks()
            blocks.files.append((file, made))
            self.at_once(Outcome(blocks, []))
            self._tell(Outcome(blocks, []))
            return None
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
        acked = self._by_task(outcome.acked) if self._hears_acks else {}
        failed = self._by_task(outcome.failed)
        for at in sorted({*acked, *failed}):
            for message in acked.get(at, ()):
                self._say("ack", message)
            for message in failed.get(at, ()):
                self._say("fail", message)
                self.tasks[at]._done = False
                if at not in self.waiting:
                    self.waiting.append(at)
            self.extra += self._taken(at)

    def _by_task(self, messages: Collection[Message]) -> dict[int, Iterable[Message]]:
        """The messages of each task that has any."""
        if len(self.tasks) == 1:
            return {0: messages} if messages else {}
        made: dict[int, list[Message]] = {}
        for message in messages:
            made.setdefault(message.task, []).append(message)
        return dict(made)

    @property
    def _hears_acks(self) -> bool:
        """Whether anybody does something when a message is acked."""
        hooked = any(map(self._hooks, self.tasks))
        return hooked or type(self.shape.spout).ack is not Spout.ack or "ack" in vars(self.shape.spout)

    @staticmethod
    def _hooks(task: Spout) -> list[Any]:
        return task._context.hooks if task._context is not None else []

    def _say(self, what: str, message: Message) -> None:
        """Calls `ack` or `fail` of a task, then its hooks."""
        task = self.tasks[message.task]
        try:
            getattr(task, what)(message.id)
        except RecordFailed:
            raise
        except Exception as error:
            raise RecordFailed(self.node, f"{what} of {message.id!r}", 0, error) from error
        for hook in self._hooks(task):
            (hook.acked if what == "ack" else hook.failed)(message.id)

    def taken_metrics(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The values of the metrics of each task, which start over."""
        found = {at: taken_metrics(t._context.metrics) for at, t in enumerate(self.tasks) if t._context is not None}
        return {(self.node.name, at): values for at, values in found.items() if values}

    def taken_errors(self) -> dict[tuple[str, int], list[str]]:
        """What each task has reported as errors since the last time."""
        made: dict[tuple[str, int], list[str]] = {}
        for at, task in enumerate(self.tasks):
            if task._collector is not None and task._collector.errors:
                made[self.node.name, at], task._collector.errors = task._collector.errors, []
        return made

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
        for task in self.tasks:
            self._guard(task._about_to_save, "the state")
        tasks = [kept_attributes(t, spout) if spout.stateful else {} for t in self.tasks]
        return {"number": self.number, "numbers": dict(self.numbers), "tasks": tasks}

    def pull(self) -> list[SpoutRecord | MalformedRecord] | None:
        """What the next task in turn emits, which may be nothing; None when all are done, and no message is open."""
        made = self.pull_columns()
        return None if made is None else [record for part in made for record in part.records()]

    def pull_columns(self) -> list[SpoutColumns] | None:
        """The same, column by column."""
        if self.extra:
            made, self.extra = self.extra, []
            return made
        if not self.waiting or self.left == 0:
            return [] if self.pending or self._has_emitted else None
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

    def _taken(self, at: int) -> list[SpoutColumns]:
        collector = self.tasks[at]._collector
        assert isinstance(collector, SpoutCollector)
        streams = [stream for stream, found in collector.records.items() if found]
        for hook in self._hooks(self.tasks[at]) if streams else ():
            for stream in streams:
                for record in collector.records[stream]:
                    hook.emitted(record, stream)
        return [part for stream in streams for part in self._parts(collector, stream, at)]

    def _parts(self, collector: SpoutCollector, stream: str, at: int) -> list[SpoutColumns]:
        """What a task gave on a stream, and what of it is no record."""
        ids = collector.taken_ids(stream)
        records, tasks, _ = collector.taken(stream)
        emitted = EmittedTuples(stream, records, tasks, emitter=at)
        try:
            return [self._full(emitted, ids)]
        except BadRecord as error:
            if not self.keeps_malformed:
                raise RecordFailed(self.node, records[error.at], error.at, error) from error
            return self._apart(emitted, ids)

    def _apart(self, emitted: EmittedTuples, ids: list[Any] | None) -> list[SpoutColumns]:
        """The tuples that fit their stream, and those that do not."""
        stream, records, tasks, _, at = emitted
        wrong = {i: why for i, record in enumerate(records) if (why := self.shape.why_not(stream, record))}
        first, fits = self.numbers[stream] - len(records), [i for i in range(len(records)) if i not in wrong]
        self.set_aside += [Message(0, ids[i], at) for i in wrong if ids is not None and ids[i] is not None]
        bad = [
            MalformedRecord(self.shape.raw(stream, records[i]), f"tuple {first + i} of task {at}, {stream}", why)
            for i, why in wrong.items()
        ]
        good = EmittedTuples(stream, [records[i] for i in fits], tasks and [tasks[i] for i in fits], emitter=at)
        kept = [self._full(good, ids and [ids[i] for i in fits])] if fits else []
        return [*kept, self.shape.aside(at, bad)]

    def ack_set_aside(self) -> None:
        """Acks the messages that were no records, once these are safe."""
        messages, self.set_aside = self.set_aside, []
        for message in messages:
            self._say("ack", message)
            self.extra += self._taken(message.task)

    def _full(self, emitted: EmittedTuples, ids: list[Any] | None) -> SpoutColumns:
        """What a task gave on a stream, complete, up to the limit of the spout."""
        at = emitted.emitter
        whole = self.shape.full(emitted, self.numbers[emitted.stream] - len(emitted.records))
        made: list[Sequence[Any]] = [column if self.left is None else column[: self.left] for column in whole]
        if ids is not None:
            made[self.shape.names.index(ROOTS.name)] = self._rooted(at, ids[: len(made[0])])
        self.number += len(made[0])
        return SpoutColumns(at, made)

    def _rooted(self, at: int, ids: list[Any]) -> Sequence[bytes | None]:
        """The roots of tuples, which are messages where they have ids."""
        roots, messages = messages_of(at, ids)
        self.emitted.append(messages)
        if self.tracks:
            self.pending.count(at, len(messages.ids))
        return roots

    def _guard(self, work: Callable[[], Any], what: str) -> Any:
        try:
            return work()
        except RecordFailed:
            raise
        except Exception as error:
            raise RecordFailed(self.node, what, 0, error) from error

    def drained(self) -> Iterator[SpoutRecord | MalformedRecord]:
        """All that the spout emits until it is done; for runs that must end."""
        for part in self.drained_columns():
            yield from part.records()
            self.ack_set_aside()

    def drained_columns(self) -> Iterator[SpoutColumns]:
        """The same, column by column."""
        if self.shape.spout.endless and self.limit is None:
            raise Impossible(f"spout {self.node.name!r} never ends, so a bounded run would not finish; {self._fix()}")
        silent = 0
        for task in self.tasks:
            task._is_bounded = True
        while (made := self.pull_columns()) is not None:
            yield from made
            silent = 0 if made else silent + 1
            if not made and (self.has_to_wait or (silent > len(self.waiting) and self.has_open)):
                return
            if silent > len(self.waiting) and self.shape.spout.ends_when_silent:
                break
            if silent > _SILENT or self.number > _MOST:
                said = "nothing" if silent else f"{self.number:,} tuples"
                raise Impossible(
                    f"spout {self.node.name!r} emitted {said} in {self.calls:,} calls of next_tuple and did not say that it is "
                    f"done; a bounded run needs an end: {self._fix()}"
                )
        self.close()

    @property
    def _has_emitted(self) -> bool:
        """Whether there are messages that nobody has taken yet."""
        return any(m.ids for m in self.emitted)

    @property
    def has_to_wait(self) -> bool:
        """Whether nothing more can come before messages are acked or failed."""
        return self.has_open and all(self.is_blocked(at) for at in self.waiting)

    @property
    def has_open(self) -> bool:
        """Whether messages are neither acked nor failed."""
        return bool(self.pending or self._has_emitted)

    def _fix(self) -> str:
        return (
            f"return ps.END from next_tuple when there is no more, give it a limit (top.spout({self.node.name!r}, ..., "
            f"limit=1000)), or run it live"
        )

    def close(self) -> None:
        """Tells every instance that it is over, once."""
        if self.is_closed:
            return
        self.is_closed = True
        for task in self.tasks:
            if self.is_active:
                task.deactivate()
            task.close()
