"""Spouts whose tuples can be read again: the driver deals out ranges, the tasks of a bolt read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.errors import FlowError
from penstock.graph.logic.topology.components import Bolt, Component, Spout
from penstock.graph.logic.topology.task_context import TaskContext

RANGES = "partition string, first bigint, end bigint"
"""What the driver deals out."""


class PartitionedSpout(Component):
    """The base of a source of your own whose records can be read again, by partition and number: they are read in the executors.

    `ends` says how far each partition goes just now, and `read` gives a part of one. Tasks read as Storm's spouts do: the tuples of a partition come in order,
    from one task. Each range of at most `most` records is a message: it is acked when all that stems from it is done and committed, and read again when a part of
    it failed or took too long, also after a restart. Where the tasks stand is saved with their tuples. A bounded run reads what is there when it begins.

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

    def acked(self, partition: str, first: int, end: int) -> None:
        """Called in the driver when all that stems from a range is done and committed.

        Args:
            partition: its name.
            first: the number of the first record.
            end: the number after the last.
        """


class RangeSpout(Spout):
    """Deals the ranges of a partitioned spout out, in the driver; what fails is dealt out again."""

    outputs = RANGES
    direct = ("default",)
    reliable = True
    ends_when_silent = True
    _ends: Mapping[str, int] | None = None

    def __init__(self, name: str, of: PartitionedSpout) -> None:
        self._name, self._of = name, of
        self.config = of.config
        self.at: dict[str, int] = {}
        self.again: list[tuple[str, int, int]] = []

    def __repr__(self) -> str:
        return f"{type(self._of).__module__}:{type(self._of).__qualname__}"

    def open(self, context: TaskContext) -> None:
        """Looks up how many tasks read."""
        self._tasks = context.tasks_of(self._name)

    def next_tuple(self) -> Any:
        """The next range of each partition that has one; first those that have failed."""
        again, self.again = self.again, []
        for part in again:
            self._deal(part)
        for partition, end in self._known_ends().items():
            first = self.at.setdefault(partition, self._of.starts(partition))
            if first < end:
                self.at[partition] = until = min(end, first + self._of.most)
                self._deal((partition, first, until))

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
        task = list(self.at).index(part[0]) % self._tasks
        self.emit(part, id=part, task=task)

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

    def process(self, tup: Any) -> Any:
        """The records of a range; ticks of the topology are not for a spout."""
        return None if tup.is_tick else self._of.read(tup.partition, tup.first, tup.end)


def check_partitioned(name: str, given: PartitionedSpout | type[PartitionedSpout], line: str) -> PartitionedSpout:
    """An instance of a user's class, or an error that says what is wrong with it."""
    made = given() if isinstance(given, type) else given
    for method, arguments in (("ends", "self"), ("read", "self, partition, first, end")):
        if getattr(type(made), method) is getattr(PartitionedSpout, method):
            raise FlowError(f"spout {name!r} ({line}): {type(made).__qualname__} must define {method}({arguments})")
    if isinstance(made.most, bool) or not isinstance(made.most, int) or made.most < 1:
        raise FlowError(f"spout {name!r} ({line}): most: expected a number of records from 1 on, got {made.most!r}")
    return made
