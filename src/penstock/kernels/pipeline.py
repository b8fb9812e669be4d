"""A pipeline: several kernels that run as one pass, wired output to input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter

from penstock.graph.nodes import LATE, LATE_RIGHT, Node, Port
from penstock.graph.nodes.policy import FAIL
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Context, Kernel
from penstock.kernels.counts import PassCounts, StepCounts
from penstock.kernels.errors.guard import DeadLetter, Guard
from penstock.kernels.records.chunk import Chunk


@dataclass(frozen=True)
class Wire:
    """Where a stream goes: the kernel at `to`, as its input number `input_index`."""

    to: int
    input_index: int


class Pipeline:
    """Kernels in an order in which each stands after those it reads from.

    Chunks go in at ports; what reaches a port of `outputs` comes out. Rows in and out are counted per step.
    """

    def __init__(self, kernels: list[Kernel], outputs: Iterable[Port]) -> None:
        self.kernels = kernels
        self.outputs = frozenset(outputs)
        for kernel in kernels:
            kernel.counters = StepCounts()
        self.wires: dict[Port, list[Wire]] = {}
        for at, kernel in enumerate(kernels):
            for input_index, port in enumerate(kernel.node.inputs):
                self.wires.setdefault(port, []).append(Wire(at, input_index))

        self.guards = {k.node.name: Guard(k.node.on_error) for k in kernels if k.node.on_error and _guarded(k.node)}
        for kernel in kernels:
            kernel.guarded = kernel.node.name in self.guards
            kernel.guard = self.guards.get(kernel.node.name)
            ports = [Port(kernel.node.name, o.name) for o in kernel.node.outputs]
            kernel.leaving = all(kernels[w.to].arrow for port in ports for w in self.wires.get(port, ()))

    def open(self, context: Context) -> None:
        """Opens every kernel."""
        for kernel in self.kernels:
            kernel.open(context)

    def begin(self, times: Callable[[str], Times]) -> None:
        """Tells every kernel the times of the batch that begins, by the name of its step."""
        for kernel in self.kernels:
            kernel.begin(times(kernel.node.name))

    def take(self, port: Port, chunk: Chunk) -> Iterator[tuple[Port, Chunk]]:
        """Pushes a chunk in at a port, as far as it goes."""
        for wire in self.wires.get(port, ()):
            yield from self._take(self.kernels[wire.to], chunk, wire.input_index)

    def take_at(self, step: str, chunk: Chunk) -> Iterator[tuple[Port, Chunk]]:
        """Pushes a chunk into one step, past those that read the same stream."""
        yield from self._take(next(k for k in self.kernels if k.node.name == step), chunk, 0)

    def _take(self, kernel: Kernel, chunk: Chunk, input_index: int) -> Iterator[tuple[Port, Chunk]]:
        kernel.counters.taken += len(chunk)
        guard = None if kernel.handles_errors else self.guards.get(kernel.node.name)
        began = perf_counter()
        given = kernel.take(chunk, input_index) if guard is None else guard.take(kernel, chunk, input_index)
        kernel.counters.seconds += perf_counter() - began
        yield from self._on(kernel, given)

    def _on(self, kernel: Kernel, given: Iterable[tuple[str, Chunk]]) -> Iterator[tuple[Port, Chunk]]:
        for name, chunk in _timed(kernel.counters, given):
            if not len(chunk):
                continue
            port = Port(kernel.node.name, name)
            if name in (LATE, LATE_RIGHT) and port not in self.outputs and port not in self.wires:
                kernel.counters.late += len(chunk)
                continue
            kernel.counters.emitted += len(chunk)
            if port in self.outputs:
                yield port, chunk
            yield from self.take(port, chunk)

    def advance(self, times: Callable[[str], Times]) -> Iterator[tuple[Port, Chunk]]:
        """Moves time: every kernel emits what is due or held back, the first ones first."""
        for kernel in self.kernels:
            yield from self._on(kernel, kernel.advance(times(kernel.node.name)))

    def barrier(self) -> Iterator[tuple[Port, Chunk]]:
        """Ends a batch: time moves as `begin` said, and every kernel completes its state, the first ones first."""
        for kernel in self.kernels:
            yield from self._on(kernel, kernel.advance(kernel.times))
            yield from self._on(kernel, kernel.barrier())

    def wake(self, clock: str) -> int:
        """The earliest time by a clock at which some step has work although no record arrives; FOREVER when there is none."""
        return min((kernel.wake(clock) for kernel in self.kernels), default=FOREVER)

    def counts(self) -> PassCounts:
        """What each step has counted so far."""
        made = PassCounts({k.node.name: k.counters for k in self.kernels})
        for kernel in self.kernels:
            kernel.report(made)
        return made

    def dead_letters(self) -> list[DeadLetter]:
        """The records that steps have put aside since they were last asked for."""
        made = [dead_letter for guard in self.guards.values() for dead_letter in guard.dead_letters]
        for guard in self.guards.values():
            guard.dead_letters = []
        return made

    def close(self) -> None:
        """Closes every kernel."""
        for kernel in self.kernels:
            kernel.close()

    def abandon(self) -> None:
        """Ends early: every kernel lets go of what it holds."""
        for kernel in self.kernels:
            kernel.abandon()


def _timed(counters: StepCounts, given: Iterable[tuple[str, Chunk]]) -> Iterator[tuple[str, Chunk]]:
    """What a kernel emits; the time that it takes is its own, what others do with it is not."""
    chunks = iter(given)
    while True:
        began = perf_counter()
        made = next(chunks, None)
        counters.seconds += perf_counter() - began
        if made is None:
            return
        yield made


def _guarded(node: Node) -> bool:
    return node.on_error is not None and (node.on_error.action != FAIL or node.on_error.retries > 0)
