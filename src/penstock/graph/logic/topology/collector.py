"""What a task emits, acks and fails, until its host takes it from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import sub
from typing import Any, NamedTuple

from penstock.errors import FlowError, UnknownName, nearest
from penstock.graph.logic.topology.acks import OpenTuples
from penstock.graph.logic.topology.task_ids import Finder, TaskIds
from penstock.graph.logic.topology.tuples import DEFAULT, Tuple, joined_roots


class Size(NamedTuple):
    """How much was emitted to a stream, up to a moment."""

    records: int
    tasks: int
    roots: int


Sizes = dict[str, Size]


@dataclass(frozen=True)
class RootRuns:
    """The roots of records, as those of the tuples that they were emitted for, and how many records there were after each of these."""

    given: Sequence[bytes | None]
    ends: list[int]

    def __iter__(self) -> Iterator[bytes | None]:
        return chain.from_iterable(map(repeat, self.given, map(sub, self.ends, chain((0,), self.ends))))

    def __len__(self) -> int:
        return self.ends[-1]


class Collector:
    """Takes what a task emits; its host takes it from there.

    Each stream has its records, and beside them, where the stream carries them, the tasks they are meant for and the
    roots they stem from.
    """

    def __init__(self, streams: Iterable[str], direct: Iterable[str] = (), rooted: bool = False) -> None:
        self.records: dict[str, list[Any]] = {s: [] for s in streams}
        self.tasks: dict[str, list[int]] = {s: [] for s in direct}
        self.roots: dict[str, list[bytes | None]] = {s: [] for s in self.records} if rooted else {}
        self.rooted = rooted
        self.current: bytes | None = None
        self.open = OpenTuples()
        self.errors: list[str] = []
        self.gone: dict[str, int] = dict.fromkeys(self.records, 0)
        self.find: Finder | None = None
        self.chosen: frozenset[str] = frozenset()
        """The streams of which only the emitter can choose the tasks, one tuple after the other."""
        self.quick: dict[str, tuple[list[Any], list[Any] | None]] = {}
        """The records and ids of the streams to which a spout may emit without further ado."""
        self.ends: list[int] = []
        self._given: Sequence[bytes | None] | None = None
        self._filled = 0
        self._run: RootRuns | None = None

    def begin_run(self, given: Sequence[bytes | None]) -> None:
        """From now on the host notes in `ends` how many records of the default stream there are after each tuple; `given` has the roots of the tuples."""
        self.anchor(self.current)
        self._unroll()
        self._given, self._filled = given, 0
        self.ends.clear()

    def end_run(self) -> None:
        """The tuples are done: works out the roots of what was emitted for them."""
        given, ends = self._given, self.ends
        assert given is not None, "begin_run comes first"
        if self._filled or self.roots[DEFAULT]:
            self._fill(given)
        elif ends:
            self._run = RootRuns(given, ends.copy())
        self._given, self.current = None, None

    def _fill(self, given: Sequence[bytes | None]) -> None:
        """The roots of the records of all tuples that are done."""
        roots, ends = self.roots[DEFAULT], self.ends
        for at in range(self._filled, len(ends)):
            if ends[at] > len(roots):
                roots.extend(repeat(given[at], ends[at] - len(roots)))
        self._filled = len(ends)

    def add(self, record: object, stream: str, anchors: Tuple | Iterable[Tuple] | None, task: int | None) -> None:
        """One record for a stream; anchored to the tuple at hand unless `anchors` says otherwise."""
        if stream not in self.records:
            raise UnknownName(f"no stream {stream!r}; {nearest(stream, self.records)}")
        if task is not None or stream in self.tasks:
            self._add_task(stream, task)
        if self.rooted and anchors is not None:
            self._sync(stream)
            self.roots[stream].append(joined_roots(anchors))
        self.records[stream].append(record)

    def add_direct(self, record: object, stream: str, anchors: Tuple | Iterable[Tuple] | None, task_id: int) -> None:
        """One record for the task of an id; it travels as a number below zero, since numbers from zero on count the tasks of each reader."""
        self.add(record, stream, anchors, 0)
        self.tasks[stream][-1] = -task_id

    def task_ids(self, stream: str, record: object, task: int | None) -> TaskIds:
        """The tasks that get the record that was added last."""
        number = self.gone[stream] + len(self.records[stream]) - 1
        made = TaskIds()
        made.asked = (self.find, stream, record, number, task)
        if stream in self.chosen:
            made.look()
        return made

    def anchor(self, roots: bytes | None) -> None:
        """Says from which roots the records stem that come from now on."""
        if self.rooted:
            for stream in self.records:
                self._sync(stream)
        self.current = roots

    def _sync(self, stream: str) -> None:
        """The roots of a stream are written when they change: records without any so far have the current ones."""
        records, roots = self.records[stream], self.roots[stream]
        if self._run is not None and len(records) > len(self._run):
            self._unroll()
        if self._run is not None:
            return
        if self._given is not None:
            self._fill(self._given)
            self.current = self._given[len(self.ends)]
        if len(records) > len(roots):
            roots.extend(repeat(self.current, len(records) - len(roots)))

    def _unroll(self) -> None:
        """Writes the roots of the last run out, since more comes after it."""
        if self._run is not None:
            self.roots[DEFAULT] += self._run
            self._run = None

    def _add_task(self, stream: str, task: int | None) -> None:
        if stream not in self.tasks:
            raise FlowError(
                f"emit(..., task={task}) needs a direct stream; {stream!r} is not one. Say direct = ({stream!r},) in the class"
            )
        if not isinstance(task, int) or isinstance(task, bool) or task < 0:
            raise FlowError(f"stream {stream!r} is direct: emit(..., task=n) names the task that gets it, got {task!r}")
        self.tasks[stream].append(task)

    def taken(self, stream: str) -> tuple[list[Any], list[int], list[bytes | None] | RootRuns]:
        """What was emitted to a stream (records, tasks, roots), which is empty again afterwards."""
        if self.rooted:
            self._sync(stream)
        records, self.records[stream] = self.records[stream], []
        self.gone[stream] += len(records)
        tasks, roots = self.tasks.get(stream, []), self.roots.get(stream, [])
        if tasks:
            self.tasks[stream] = []
        if roots:
            self.roots[stream] = []
        if self._run is not None:
            run, self._run = self._run, None
            return records, tasks, run
        return records, tasks, roots

    def sizes(self) -> Sizes:
        """How much has been emitted to each stream since it was last taken."""
        self.anchor(self.current)
        self._unroll()
        return {
            stream: Size(len(records), len(self.tasks.get(stream, ())), len(self.roots.get(stream, ())))
            for stream, records in self.records.items()
        }

    def cut(self, sizes: Sizes, tup: Tuple | None) -> None:
        """Forgets what has been emitted since then, for a tuple on which the task failed; nobody waits for its ack."""
        for stream, size in sizes.items():
            del self.records[stream][size.records :]
            for beside, length in ((self.tasks, size.tasks), (self.roots, size.roots)):
                del beside.get(stream, [])[length:]
        self._given, self._run, self.current = None, None, None
        if tup is not None:
            self.open.ack(tup)

    def last(self, stream: str) -> int:
        """The number of the record that was added last."""
        return self.gone[stream] + len(self.records[stream]) - 1

    def cut_last(self, stream: str, numbers: set[int]) -> None:
        """Forgets the last records of a stream, as long as they have one of these numbers and have not been taken. Those whose tasks are chosen already stay."""
        if stream in self.chosen:
            return
        self.sizes()
        records, beside = self.records[stream], (self.tasks.get(stream), self.roots.get(stream))
        while records and self.gone[stream] + len(records) - 1 in numbers:
            for each in (records, *beside):
                if each:
                    each.pop()


class SpoutCollector(Collector):
    """Takes what a task of a spout emits; beside each record of a reliable one stands its id, or None."""

    def __init__(self, streams: Iterable[str], direct: Iterable[str] = (), reliable: bool = False) -> None:
        super().__init__(streams, direct)
        self.ids: dict[str, list[Any]] | None = {s: [] for s in self.records} if reliable else None
        for stream in self.records:
            self._open(stream)

    def _open(self, stream: str) -> None:
        """Lays the lists of a stream ready for emits that name no task, unless the stream is direct."""
        if stream not in self.tasks:
            self.quick[stream] = self.records[stream], None if self.ids is None else self.ids[stream]

    def taken(self, stream: str) -> tuple[list[Any], list[int], list[bytes | None] | RootRuns]:
        """What was emitted to a stream (records, tasks, roots), which is empty again afterwards."""
        made = super().taken(stream)
        self._open(stream)
        return made

    def taken_ids(self, stream: str) -> list[Any] | None:
        """The ids of what was emitted to a stream, None where there are none; they are empty again afterwards."""
        if self.ids is None:
            return None
        made, self.ids[stream] = self.ids[stream], []
        self._open(stream)
        return made
