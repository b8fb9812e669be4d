"""Spouts whose tuples can be read again: the driver deals out ranges, the tasks of a bolt read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.errors import FlowError
from penstock.graph.logic.topology.components import Bolt, Component, Spout
from penstock.graph.logic.topology.task_context import TaskContext

RANGES = "partition string, first bigint, end bigint, turn bigint"
"""What the driver deals out. All ranges of a partition have one turn, whose remainder says which task reads them, however many there are."""

OPEN_RANGES = 10
"""So many ranges may be open for each task that reads, unless a setting says it: else those that wait would be failed by time. One task deals them out for all."""


class PartitionedSpout(Component):
    """The base of a source of your own whose records can be read again, by partition and number: they are read in the executors.

    `ends` says how far each partition goes just now, and `read` gives a part of one. Tasks read as Storm's spouts do: the tuples of a partition come in order,
    from one task. Each range of at most `most` records is a message: it is acked when all that stems from it is done and committed, and read again when a part of
    it failed or took too long, also after a restart. `read` may raise `ps.FailedException` itself. Where the tasks stand is saved with their tuples. A bounded run reads what is there when it begins.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Squares(ps.PartitionedSpout):
    ...     outputs = "n bigint"
    ...     def ends(self):
    ...         return {"a": 3, "b": 2}
    ...     def read(self, partition, first, end):
    ...         return [n * n for n in range(first, end)]
    >>> top = ps.Topology("demo")
    >>> top.spout("squares", Squares(), parallelism=2)
    >>> top.sink("out", ps.console(), from_="squares")
    >>> sorted(run_local(top)["out"])
    [Row(n=0), Row(n=0), Row(n=1), Row(n=1), Row(n=4)]
    """

    most: int = 10_000
    """How many records a message has at most."""

    def starts(self, partition: str) -> int:
        """Where a partition begins that was not there before.

        Args:
            partition: its name.

        Returns:
            The number of its first record; 0 unless you define it.
        """
        return 0

    def ends(self) -> Mapping[str, int]:
        """Called in the driver, again and again. You must define it.

        Returns:
            For each partition the number after that of its last record.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def read(self, partition: str, first: int, end: int) -> Iterable[Any] | None:
        """Called in a task. You must define it; the same numbers must give the same records.

        Args:
            partition: its name.
            first: the number of the first record.
            end: the number after the last.

        Returns:
            The records, as `Bolt.process` returns them.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def open(self, context: TaskContext) -> None:
        """Called once in each task that reads, before its first range; `close` when the task ends. On Spark an instance lives for one batch.

        Args:
            context: the component, the number of the task, and how many there are.
        """

    def acked(self, partition: str, first: int, end: int) -> None:
        """Called in the driver when all that stems from a range is done and committed; after a crash the last ones may be notified again.

        Args:
            partition: its name.
            first: the number of the first record.
            end: the number after the last.
        """


class RangeSpout(Spout):
    """Deals the ranges of a partitioned spout out, in the driver; what fails is dealt out again."""

    outputs = RANGES
    reliable = True
    ends_when_silent = True
    _ends: Mapping[str, int] | None = None

    def __init__(self, of: PartitionedSpout) -> None:
        self._of = of
        self.config = of.config
        self.at: dict[str, int] = {}
        self.again: list[tuple[str, int, int]] = []
        self._due: list[tuple[str, int]] = []

    def __repr__(self) -> str:
        return f"{type(self._of).__module__}:{type(self._of).__qualname__}"

    def next_tuple(self) -> Any:
        """One range: one that has failed, or the next of a partition that has one, in turn."""
        if self.again:
            self._deal(self.again.pop(0))
            return
        self._due = self._due or [pair for pair in self._known_ends().items() if self._first(pair[0]) < pair[1]]
        if self._due:
            partition, end = self._due.pop(0)
            first = self._first(partition)
            self.at[partition] = min(end, first + self._of.most)
            self._deal((partition, first, self.at[partition]))

    def _first(self, partition: str) -> int:
        """The number of the next record of a partition."""
        if partition not in self.at:
            self.at[partition] = self._of.starts(partition)
        return self.at[partition]

    def _known_ends(self) -> Mapping[str, int]:
        """How far the partitions go: just now, or, in a bounded run, when it began."""
        if self._ends is not None:
            return self._ends
        found = self._of.ends()
        wrong = [pair for pair in found.items() if not (isinstance(pair[0], str) and isinstance(pair[1], int))]
        if wrong:
            raise FlowError(
                f"ends() of {self!r}: expected names of partitions with numbers of records, got {wrong[0]!r}"
            )
        self._ends = found if self._is_bounded else None
        return found

    def _deal(self, part: tuple[str, int, int]) -> None:
        """A partition has one task, so that its tuples keep their order."""
        self.emit((*part, list(self.at).index(part[0])), id=part)

    def ack(self, id: Any) -> None:
        """Tells the user's spout."""
        self._of.acked(*id)

    def fail(self, id: Any) -> None:
        """Has the range read again."""
        self.again.append(tuple(id))


class RangeReader(Bolt):
    """Reads ranges, in a task."""

    stateful = False

    def __init__(self, of: PartitionedSpout) -> None:
        self._of = of
        self.outputs, self.config, self.direct = of.outputs, of.config, of.direct

    def __repr__(self) -> str:
        return f"{type(self._of).__module__}:{type(self._of).__qualname__}"

    def prepare(self, context: TaskContext) -> None:
        """Lets the user's spout emit for this task."""
        self._of._collector, self._of._context = self._collector, context
        self._of.open(context)

    def process(self, tup: Any) -> Any:
        """The records of a range, all or none where reading fails."""
        made = self._of.read(tup.partition, tup.first, tup.end)
        return made if made is None else list(made)

    def close(self) -> None:
        """Tells the user's spout."""
        self._of.close()


def as_partitioned(name: str, given: object, limit: int | None, line: str) -> PartitionedSpout | None:
    """An instance of a user's class, or an error that says what is wrong with it; None where it is another kind of spout."""
    kind = given if isinstance(given, type) else type(given)
    if not issubclass(kind, PartitionedSpout):
        return None
    if limit is not None:
        raise FlowError(f"spout {name!r} ({line}): a PartitionedSpout ends as ends() says, got limit={limit!r}")
    made: Any = given() if isinstance(given, type) else given
    for method, arguments in (("ends", "self"), ("read", "self, partition, first, end")):
        if getattr(type(made), method) is getattr(PartitionedSpout, method):
            raise FlowError(f"spout {name!r} ({line}): {type(made).__qualname__} must define {method}({arguments})")
    if isinstance(made.most, bool) or not isinstance(made.most, int) or made.most < 1:
        raise FlowError(f"spout {name!r} ({line}): most: expected a number of records from 1 on, got {made.most!r}")
    found: PartitionedSpout = made
    return found
