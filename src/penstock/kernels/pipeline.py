"""A pipeline: several kernels that run as one pass, wired output to input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from penstock.graph.nodes import Port
from penstock.kernels.base import Context, Kernel
from penstock.kernels.chunk import Chunk
from penstock.kernels.times import Times


@dataclass(frozen=True)
class Wire:
    """Where a stream goes: the kernel at `to`, as its input number `place`."""

    to: int
    place: int


class Pipeline:
    """Kernels in an order in which each stands behind those it reads from.

    Chunks go in at ports; what reaches a port of `outputs` comes out. Rows in and out are counted per step.
    """

    def __init__(self, kernels: list[Kernel], outputs: Iterable[Port]) -> None:
        self.kernels = kernels
        self.outputs = frozenset(outputs)
        self.rows_in: Counter[str] = Counter()
        self.rows_out: Counter[str] = Counter()
        self.wires: dict[Port, list[Wire]] = {}
        for at, kernel in enumerate(kernels):
            for place, port in enumerate(kernel.node.inputs):
                self.wires.setdefault(port, []).append(Wire(at, place))

        for kernel in kernels:
            kernel.leaving = not any(Port(kernel.node.name, o.name) in self.wires for o in kernel.node.outputs)

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
            kernel = self.kernels[wire.to]
            self.rows_in[kernel.node.name] += len(chunk)
            yield from self._on(kernel, kernel.take(chunk, wire.place))

    def _on(self, kernel: Kernel, given: Iterable[tuple[str, Chunk]]) -> Iterator[tuple[Port, Chunk]]:
        for name, chunk in given:
            if not len(chunk):
                continue
            self.rows_out[kernel.node.name] += len(chunk)
            port = Port(kernel.node.name, name)
            if port in self.outputs:
                yield port, chunk
            yield from self.take(port, chunk)

    def barrier(self) -> Iterator[tuple[Port, Chunk]]:
        """Ends a batch: every kernel gives what it held back, the first ones first."""
        for kernel in self.kernels:
            yield from self._on(kernel, kernel.barrier())

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Rows in and out of each step, and those that the native half of an aggregate took in."""
        before = {f"{k.node.name}.parts": k.rows for k in self.kernels if k.rows}
        late = {f"{k.node.name}.late": k.late for k in self.kernels if k.late}
        return self.rows_in + Counter(before | late), self.rows_out

    def close(self) -> None:
        """Closes every kernel."""
        for kernel in self.kernels:
            kernel.close()
