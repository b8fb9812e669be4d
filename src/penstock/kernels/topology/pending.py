"""The messages of a spout that are neither acked nor failed, and what batches say of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.graph.logic.acks import AckReport
from penstock.graph.logic.tuples import roots_of


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


class Outcome(NamedTuple):
    """The messages that a settlement, or the passing of time, has decided."""

    acked: list[Message]
    failed: list[Message]


class PendingMessages:
    """The open messages of the tasks of one spout.

    They stand in two buckets, which are rotated when a timeout has passed: a message fails between one and two timeouts after it was emitted.

    Args:
        most: how many messages of a task may be open; None for any number.
        timeout: the message timeout in seconds; None for none.
    """

    def __init__(self, most: int | None = None, timeout: float | None = None) -> None:
        self.most, self.timeout = most, timeout
        self.messages: dict[int, Message] = {}
        self.files: dict[int, dict[int, None]] = {}
        self.sizes: dict[int, int] = {}
        self.read: dict[int, None] = {}
        self.by_task: dict[int, int] = {}
        self.new: set[int] = set()
        self.old: set[int] = set()
        self.rotated: float | None = None

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, message: Message) -> None:
        """Takes a message that is on its way."""
        self.messages[message.root] = message
        self.files.setdefault(message.file, {})[message.root] = None
        self.sizes[message.file] = self.sizes.get(message.file, 0) + 1
        self.new.add(message.root)

    def count(self, task: int, many: int = 1) -> None:
        """A task has so many more open messages."""
        self.by_task[task] = self.by_task.get(task, 0) + many

    def is_full(self, task: int) -> bool:
        """Whether a task has as many open messages as it may."""
        return self.most is not None and self.by_task.get(task, 0) >= self.most

    def settle(self, given: Settlement) -> Outcome:
        """Decides what a batch has decided: what failed, and what was read and is held nowhere."""
        for file in sorted(f for f in given.files if f in self.files):
            self.read |= self.files[file]
        for root in given.renewed:
            if root in self.old:
                self.old.discard(root)
                self.new.add(root)
        failed = [self._take(root) for root in given.failed if root in self.messages]
        acked = [self._take(root) for root in list(self.read) if root not in given.open]
        return Outcome(acked, failed)

    def expire(self, now: float) -> list[Message]:
        """The messages whose time is over; rotates the buckets once a timeout."""
        if self.timeout is None:
            return []
        if self.rotated is None:
            self.rotated = now
        if now - self.rotated < self.timeout:
            return []
        gone = [self._take(root) for root in list(self.messages) if root in self.old]
        self.old, self.new, self.rotated = self.new, set(), now
        return gone

    def _take(self, root: int) -> Message:
        message = self.messages.pop(root)
        self.new.discard(root)
        self.old.discard(root)
        self.read.pop(root, None)
        self.count(message.task, -1)
        self.files[message.file].pop(root, None)
        if not self.files[message.file]:
            del self.files[message.file], self.sizes[message.file]
        return message

    def saved(self) -> dict[int, bytes | None]:
        """The open roots of each file of the feed, for a restart; None where all of the file are."""
        return {
            file: None if len(roots) == self.sizes[file] else b"".join(r.to_bytes(8, "big") for r in roots)
            for file, roots in self.files.items()
        }

    def restore(self, messages: Iterable[Message], packed: bytes | None) -> None:
        """Takes the messages of a file that were open when this was saved."""
        roots = None if packed is None else roots_of(packed)
        for message in messages:
            self.sizes[message.file] = self.sizes.get(message.file, 0) + (roots is not None)
            if roots is None or message.root in roots:
                self.sizes[message.file] -= roots is not None
                self.add(message)
                self.count(message.task)


def merged(reports: Mapping[Any, AckReport]) -> AckReport:
    """The reports of many tasks as one."""
    made = AckReport()
    for report in reports.values():
        made.add(report)
    return made
