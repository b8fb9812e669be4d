"""The messages of a spout that are neither acked nor failed, and what batches say of them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from penstock.graph.logic.topology.acks import AckReport


class Message(NamedTuple):
    """A tuple that a spout has emitted with an id: its root, the id, the task that emitted it, and the file of the feed that it is in."""

    root: int
    id: Any
    task: int
    file: int = 0


@dataclass(frozen=True)
class Settlement:
    """What a spout must know of a batch that is committed.

    Attributes:
        files: the files of its feed that batches have read.
        open: the roots of which tuples are held.
        failed: the roots that failed.
        renewed: the roots whose timeout begins again.
    """

    files: Collection[int] = ()
    open: Collection[int] = ()
    failed: Collection[int] = ()
    renewed: Collection[int] = ()


@dataclass
class AckLedger:
    """What is known of the messages of all spouts of a flow after a batch: how many tuples of each are held, and which failed.

    A message of which nothing stands here is done when the batch that read it is committed. The ledger is versioned with the batches: a batch that
    runs again begins with the ledger of the batch before it.

    >>> ledger = AckLedger()
    >>> ledger.add(0, AckReport({7: 2}))
    >>> ledger.add(1, AckReport({7: -2, 8: 1}, failed={9}))
    >>> ledger
    AckLedger(open={8: 1}, failed={9: 1})
    """

    open: dict[int, int] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)

    def add(self, batch: int, report: AckReport) -> None:
        """Takes in what the tasks of a batch have said."""
        for root, many in report.held.items():
            now = self.open.get(root, 0) + many
            if now > 0:
                self.open[root] = now
            else:
                self.open.pop(root, None)
        self.failed |= dict.fromkeys(report.failed, batch)

    def forget(self, roots: Iterable[int]) -> None:
        """Drops what is known of messages that are acked or failed, and of which that is saved."""
        for root in roots:
            self.open.pop(root, None)
            self.failed.pop(root, None)

    def copy(self) -> AckLedger:
        """The same ledger, to go on from."""
        return AckLedger(dict(self.open), dict(self.failed))


@dataclass
class MessageFile:
    """The open messages in one file of a feed: many at a time, since most are acked together.

    Attributes:
        seen: the id of each, by root, in the order of the emits, of those that somebody looked at.
        tasks: the tasks that emitted them, by root, of those that are not of task 0.
        size: how many were put into the file.
        is_read: whether a committed batch has read the file.
        is_old: whether its messages fail at the next rotation of the timeout.
        young: the roots of which that is not so, although the file is old.
        packed: the others, many at a time: roots, eight bytes each, and ids.
    """

    seen: dict[int, Any] = field(default_factory=dict)
    tasks: dict[int, int] = field(default_factory=dict)
    size: int = 0
    is_read: bool = False
    is_old: bool = False
    young: set[int] = field(default_factory=set)
    packed: list[tuple[bytes, list[Any]]] = field(default_factory=list)

    @property
    def ids(self) -> dict[int, Any]:
        """The id of each message, by root."""
        for roots, ids in self.packed:
            self.seen.update(zip(unpack_all(roots), ids, strict=True))
        self.packed = []
        return self.seen

    @property
    def many(self) -> int:
        """How many messages are open."""
        return len(self.seen) + sum(len(ids) for _, ids in self.packed)

    def add(self, task: int, messages: Mapping[int, Any]) -> None:
        """Takes messages of a task that are on their way."""
        self.ids.update(messages)
        self.size += len(messages)
        if task:
            self.tasks.update(dict.fromkeys(messages, task))
        if self.is_old:
            self.young.update(messages)

    def add_packed(self, task: int, roots: bytes, ids: list[Any]) -> None:
        """The same for many together; nobody looks at one of them before something is the matter with it."""
        if task or self.is_old:
            self.add(task, dict(zip(unpack_all(roots), ids, strict=True)))
        else:
            self.packed.append((roots, ids))
            self.size += len(ids)

    def take(self, root: int, file: int) -> Message:
        """Lets go of one message."""
        self.young.discard(root)
        return Message(root, self.ids.pop(root), self.tasks.pop(root, 0), file)

    def rotated(self) -> list[int]:
        """A timeout has passed: the roots of the messages that fail now. Those that were young are old from now on."""
        gone = [root for root in self.ids if root not in self.young] if self.is_old else []
        self.is_old, self.young = True, set()
        return gone

    def saved(self) -> SavedMessages:
        """The messages as they are kept for a restart."""
        if self.seen:
            return pack_all(self.ids), list(self.ids.values()), self.tasks
        return b"".join(r for r, _ in self.packed), [number for _, ids in self.packed for number in ids], self.tasks


SavedMessages = tuple[bytes, list[Any], dict[int, int]]
"""Roots, eight bytes each, the ids, and the tasks of those that are not of task 0."""


class MessageBlocks(Collection[Message]):
    """Messages of some files, made one by one when they are asked for."""

    def __init__(self) -> None:
        self.files: list[tuple[int, MessageFile]] = []

    def __iter__(self) -> Iterator[Message]:
        for file, block in self.files:
            for root, number in block.ids.items():
                yield Message(root, number, block.tasks.get(root, 0), file)

    def __len__(self) -> int:
        return sum(block.many for _, block in self.files)

    def __contains__(self, message: object) -> bool:
        return any(message == mine for mine in self)

    def by_task(self) -> dict[int, int]:
        """How many messages are of each task."""
        made = Counter(task for _, block in self.files for task in block.tasks.values())
        made[0] = len(self) - made.total()
        return made


class Outcome(NamedTuple):
    """The messages that a settlement, or the passing of time, has decided."""

    acked: Collection[Message]
    failed: Collection[Message]


class PendingMessages:
    """The open messages of the tasks of one spout.

    They stand in two buckets, which are rotated when a timeout has passed: a message fails between one and two timeouts after it was emitted.

    Args:
        most: how many messages of a task may be open; None for any number.
        timeout: the message timeout in seconds; None for none.
    """

    def __init__(self, most: int | None = None, timeout: float | None = None) -> None:
        self.most, self.timeout = most, timeout
        self.files: dict[int, MessageFile] = {}
        self.by_task: dict[int, int] = {}
        self.rotated: float | None = None

    def __len__(self) -> int:
        return sum(file.many for file in self.files.values())

    def __bool__(self) -> bool:
        return bool(self.files)

    @property
    def roots(self) -> list[int]:
        """The roots of all open messages."""
        return [root for file in self.files.values() for root in file.ids]

    def add(self, file: int, task: int, messages: Mapping[int, Any]) -> None:
        """Takes messages of a task that are on their way in a file: ids by root."""
        if messages:
            self.files.setdefault(file, MessageFile()).add(task, messages)

    def add_packed(self, file: int, task: int, roots: bytes, ids: list[Any]) -> None:
        """The same for many together: roots, eight bytes each, and ids."""
        if ids:
            self.files.setdefault(file, MessageFile()).add_packed(task, roots, ids)

    def count(self, task: int, many: int = 1) -> None:
        """A task has so many more open messages."""
        self.by_task[task] = self.by_task.get(task, 0) + many

    def is_full(self, task: int) -> bool:
        """Whether a task has as many open messages as it may."""
        return self.most is not None and self.by_task.get(task, 0) >= self.most

    def settle(self, given: Settlement) -> Outcome:
        """Decides what a batch has decided: what failed, and what was read and is held nowhere."""
        for number in given.files:
            if number in self.files:
                self.files[number].is_read = True
        for root, number in self._found(given.renewed).items():
            if self.files[number].is_old:
                self.files[number].young.add(root)
        failed = [self._take(root, number) for root, number in self._found(given.failed).items()]
        return Outcome(self._acked(set(given.open)), failed)

    def _acked(self, held: set[int]) -> MessageBlocks:
        """The messages of files that were read, without those that are held."""
        made = MessageBlocks()
        for number in sorted(n for n, file in self.files.items() if file.is_read):
            file = self.files[number]
            is_held = bool(held) and not held.isdisjoint(file.ids)
            kept = {root: file.ids[root] for root in file.ids if root in held} if is_held else {}
            gone = file if not kept else MessageFile({r: i for r, i in file.ids.items() if r not in kept}, file.tasks)
            made.files.append((number, gone))
            if kept:
                tasks = {root: file.tasks.pop(root) for root in kept if root in file.tasks}
                young = file.young & kept.keys()
                self.files[number] = replace(file, seen=kept, tasks=tasks, young=young)
            else:
                del self.files[number]
        for task, many in made.by_task().items():
            self.count(task, -many)
        return made

    def _found(self, roots: Iterable[int]) -> dict[int, int]:
        """The files of those of some roots that are open."""
        wanted = list(roots)
        found: dict[int, int] = {}
        left = set(wanted)
        for number, file in self.files.items():
            if not left:
                break
            here = file.ids.keys() & left
            found |= dict.fromkeys(here, number)
            left -= here
        return {root: found[root] for root in wanted if root in found}

    def expire(self, now: float) -> list[Message]:
        """The messages whose time is over; rotates the buckets once a timeout."""
        if self.timeout is None:
            return []
        if self.rotated is None:
            self.rotated = now
        if now - self.rotated < self.timeout:
            return []
        self.rotated = now
        gone = [(root, number) for number, file in self.files.items() for root in file.rotated()]
        return [self._take(root, number) for root, number in gone]

    def _take(self, root: int, number: int) -> Message:
        message = self.files[number].take(root, number)
        self.count(message.task, -1)
        if not self.files[number].ids:
            del self.files[number]
        return message

    def saved(self) -> dict[int, bytes | None]:
        """The open roots of each file of the feed, for a restart; None where all of the file are."""
        return {n: None if f.many == f.size else pack_all(f.ids) for n, f in self.files.items()}

    def restore(self, number: int, given: SavedMessages, packed: bytes | None) -> None:
        """Takes the messages of a file that were open when this was saved."""
        roots, ids, tasks = given
        every = dict(zip(unpack_all(roots), ids, strict=True))
        open_ = every.keys() if packed is None else frozenset(unpack_all(packed))
        kept = {root: every[root] for root in every if root in open_}
        if kept:
            self.files[number] = MessageFile(kept, {r: t for r, t in tasks.items() if r in kept}, len(every))
        for root in kept:
            self.count(tasks.get(root, 0))


def pack_all(roots: Collection[int]) -> bytes:
    """Roots as bytes, eight each, in their order.

    >>> unpack_all(pack_all([7, 1]))
    (7, 1)
    """
    return struct.pack(f">{len(roots)}Q", *roots)


def unpack_all(packed: bytes) -> tuple[int, ...]:
    """Roots from bytes."""
    return struct.unpack(f">{len(packed) // 8}Q", packed)


def merged(reports: Mapping[Any, AckReport]) -> AckReport:
    """The reports of many tasks as one."""
    made = AckReport()
    for report in reports.values():
        made.add(report)
    return made
