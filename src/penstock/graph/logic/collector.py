"""What a task emits, acks and fails, until its host takes it from there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from penstock.errors import FlowError, UnknownName, nearest
from penstock.graph.logic.acks import OpenTuples
from penstock.graph.logic.tuples import Tuple, joined_roots


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

    def anchor(self, roots: bytes | None) -> None:
        """Says from which roots the records stem that come from now on."""
        if self.rooted:
            for stream in self.records:
                self._sync(stream)
        self.current = roots

    def _sync(self, stream: str) -> None:
        """The roots of a stream are written when they change: records without any so far have the current ones."""
        records, roots = self.records[stream], self.roots[stream]
        if len(records) > len(roots):
            roots.extend(repeat(self.current, len(records) - len(roots)))

    def _add_task(self, stream: str, task: int | None) -> None:
        if stream not in self.tasks:
            raise FlowError(
                f"emit(..., task={task}) needs a direct stream; {stream!r} is not one. Say direct = ({stream!r},) in the class"
            )
        if not isinstance(task, int) or isinstance(task, bool) or task < 0:
            raise FlowError(f"stream {stream!r} is direct: emit(..., task=n) names the task that gets it, got {task!r}")
        self.tasks[stream].append(task)

    def taken(self, stream: str) -> tuple[list[Any], list[int], list[bytes | None]]:
        """What was emitted to a stream (records, tasks, roots), which is empty again afterwards."""
        if self.rooted:
            self._sync(stream)
        records, self.records[stream] = self.records[stream], []
        tasks, roots = self.tasks.get(stream, []), self.roots.get(stream, [])
        if tasks:
            self.tasks[stream] = []
        if roots:
            self.roots[stream] = []
        return records, tasks, roots
