"""What a task says of the messages of spouts: which it keeps open, which it failed, which need more time.

A batch ends when every tuple of it has been delivered, so a message whose tuples were all acked in the batch needs no word. A task
reports what differs: for each root how many more or fewer of its tuples the task holds than before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock.graph.logic.topology.tuples import Tuple, roots_of


class FailedException(Exception):
    """Raised in `process`: the tuple fails, its messages are replayed by their spouts, and the bolt goes on.

    >>> import penstock as ps
    >>> class Store(ps.BasicBolt):
    ...     def process(self, tup):
    ...         raise ps.FailedException("no connection")
    """


class ReportedFailedException(FailedException):
    """A FailedException that is also reported as an error, as by `report_error`.

    >>> import penstock as ps
    >>> class Store(ps.BasicBolt):
    ...     def process(self, tup):
    ...         raise ps.ReportedFailedException("no connection")
    """


@dataclass
class AckReport:
    """What tasks say of messages, by root id.

    Attributes:
        held: how many more tuples of a root are held than before; below zero when held ones were acked.
        failed: the roots that failed.
        renewed: the roots whose timeout begins again.

    >>> one, other = AckReport({1: 1, 2: 1}), AckReport({1: -1}, failed={3})
    >>> one.add(other)
    AckReport(held={2: 1}, failed={3}, renewed=set())
    """

    held: dict[int, int] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    renewed: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.held or self.failed or self.renewed)

    def add(self, other: AckReport) -> AckReport:
        """Adds another report to this one, which it returns."""
        for root, many in other.held.items():
            self.hold(root, many)
        self.failed |= other.failed
        self.renewed |= other.renewed
        return self

    def hold(self, root: int, many: int = 1) -> None:
        """Notes that so many more tuples of a root are open."""
        now = self.held.get(root, 0) + many
        if now:
            self.held[root] = now
        else:
            self.held.pop(root, None)


@dataclass
class OpenTuples:
    """The tuples that a task has taken and neither acked nor failed.

    Attributes:
        taken: those of this batch, by edge id, with their roots.
        held: those of earlier batches.
        report: what the driver must know when the batch ends.
    """

    taken: dict[int, bytes] = field(default_factory=dict)
    held: dict[int, bytes] = field(default_factory=dict)
    report: AckReport = field(default_factory=AckReport)

    def ack(self, tup: Tuple) -> None:
        """The tuple is done."""
        self._let_go(tup)

    def fail(self, tup: Tuple) -> None:
        """The tuple failed, and every message that it stems from."""
        if tup._edge is None or self._let_go(tup):
            self.report.failed |= roots_of(tup._roots)

    def renew(self, tup: Tuple) -> None:
        """The messages of the tuple get more time."""
        self.report.renewed |= roots_of(tup._roots)

    def _let_go(self, tup: Tuple) -> bool:
        """Whether the tuple was open; a second ack counts for nothing."""
        if tup._edge is None:
            return False
        if self.taken.pop(tup._edge, None) is not None:
            return True
        packed = self.held.pop(tup._edge, None)
        for root in roots_of(packed):
            self.report.hold(root, -1)
        return packed is not None

    def finish(self, *, saved: bool = False) -> AckReport:
        """Ends a batch: what is still open is held from now on, or done where the batch saves it. Returns what there is to report."""
        if saved:
            self.taken = {}
        for root, many in Counter(r for packed in self.taken.values() for r in roots_of(packed)).items():
            self.report.hold(root, many)
        self.held |= self.taken
        self.taken = {}
        made, self.report = self.report, AckReport()
        return made
