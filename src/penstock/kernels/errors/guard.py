"""Keeps a pass going when a step fails on a record: the record is tried again, put aside or skipped, as the step's policy says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.nodes import DEAD_LETTER, Combine, Node, OnError
from penstock.graph.nodes.policy import FAIL
from penstock.kernels.base import Kernel, RecordFailed
from penstock.kernels.errors.payload import payload_of
from penstock.kernels.records.chunk import Chunk

Outputs = list[tuple[str, Chunk]]


@dataclass(frozen=True)
class DeadLetter:
    """A record that a step failed on: what broke, and the values from which it can be replayed."""

    step: str
    cause: str
    traceback: str
    record: str
    payload: str
    """The record as JSON."""
    input_index: int = 0
    """The input of the step it was meant for."""
    number: str = ""
    """Which record of the task's input it was, as far as that is known."""


@dataclass
class Guard:
    """The policy of one kernel at work."""

    policy: OnError
    dead_letters: list[DeadLetter] = field(default_factory=list)

    def take(self, kernel: Kernel, chunk: Chunk, input_index: int) -> Outputs:
        """What the kernel returns for the records it can take."""
        try:
            return list(kernel.take(chunk, input_index))
        except RecordFailed as failed:
            if kernel.node.keyed or isinstance(kernel.node, Combine):
                return self._go_on(kernel, chunk, input_index, failed)
            return [given for one in singles(chunk) for given in self._one(kernel, one, input_index)]

    def _go_on(self, kernel: Kernel, chunk: Chunk, input_index: int, failed: RecordFailed) -> Outputs:
        """A keyed step has taken the records before the one that failed, and must not take them twice."""
        assert failed.at is not None
        bad, rest = piece(chunk, failed.at, failed.at + 1), piece(chunk, failed.at + 1, len(chunk))
        given = self._retry(kernel, bad, input_index, failed)
        return [*(failed.made or []), *given, *(self.take(kernel, rest, input_index) if len(rest) else [])]

    def _one(self, kernel: Kernel, chunk: Chunk, input_index: int) -> Outputs:
        try:
            return list(kernel.take(chunk, input_index))
        except RecordFailed as failed:
            return self._retry(kernel, chunk, input_index, failed)

    def _retry(self, kernel: Kernel, chunk: Chunk, input_index: int, failed: RecordFailed) -> Outputs:
        for pause in self._pauses():
            time.sleep(pause)
            try:
                return list(kernel.take(chunk, input_index))
            except RecordFailed as again:
                failed = again
        self.give_up(kernel, chunk, input_index, failed)
        return []

    def done(self, kernel: Kernel, work: Callable[[], None], record: Callable[[], Chunk], input_index: int) -> None:
        """Does the work of one record, with as many retries as it needs; where none helps, gives it up: `record` makes a chunk of it alone."""
        if (failed := self.tried(work)) is not None:
            self.give_up(kernel, record(), input_index, failed)

    def tried(self, work: Callable[[], None]) -> RecordFailed | None:
        """Does some work, with as many retries as it needs; returns the failure where none helps."""
        pauses = self._pauses()
        while True:
            try:
                work()
                return None
            except RecordFailed as failed:
                if (pause := next(pauses, None)) is None:
                    return failed
                time.sleep(pause)

    def called(self, function: Callable[..., object], *given: object) -> object:
        """What a function returns that a kernel calls by itself, after as many retries as it needs.

        Raises:
            Exception: what it has raised the last time.
        """
        for pause in self._pauses():
            try:
                return function(*given)
            except Exception:
                time.sleep(pause)
        return function(*given)

    def _pauses(self) -> Iterator[float]:
        for nth in range(self.policy.retries):
            yield self.policy.backoff * 2**nth / 1_000_000

    def give_up(self, kernel: Kernel, chunk: Chunk, input_index: int, failed: RecordFailed) -> None:
        """Does what the policy says with a record that no retry has helped: a chunk of one."""
        if self.policy.action == FAIL:
            raise failed
        if self.policy.action == DEAD_LETTER:
            self.dead_letters.append(dead_letter(kernel.node, chunk, input_index, failed))
        else:
            kernel.counters.skipped += 1


def dead_letter(node: Node, chunk: Chunk, input_index: int, failed: RecordFailed) -> DeadLetter:
    """The dead letter of a chunk of one record."""
    failure = failed.failure("")
    values = next(iter(chunk.values()))
    return DeadLetter(
        node.name, failure.error, failure.traceback, failure.record, payload_of(values, chunk.shape.schema), input_index
    )


def piece(chunk: Chunk, begin: int, end: int) -> Chunk:
    """Some records of a chunk, one after the other."""
    columns = [column[begin:end] for column in chunk.columns()]
    hashes: Any = chunk.key_hashes[begin:end] if chunk.key_hashes is not None else None
    return Chunk(chunk.shape.schema, columns=columns, key_hashes=hashes)


def singles(chunk: Chunk) -> Iterator[Chunk]:
    """A chunk for each record."""
    return (piece(chunk, at, at + 1) for at in range(len(chunk)))
