"""Samples of streams: a pass that keeps a few records of those streams that somebody looks at, and a few messages of spouts with all their tuples.

A pass that nobody looks at is a plain `Pipeline`. Whatever goes wrong with a sample, the pass goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from penstock.graph.expr import parse
from penstock.graph.graph import Graph
from penstock.graph.nodes import Bolt, Port
from penstock.kernels.base import Kernel
from penstock.kernels.counts import MOST_SAMPLED, PassCounts
from penstock.kernels.expr.evaluate import Run, compile_expr
from penstock.kernels.looks import Looks, SampledStream
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.tracing import Tracer

MOST_SCANNED = 2_000
"""How many records of a chunk a filter looks at."""
LONGEST = 500
"""Of a longer text the beginning is kept."""


class StreamSample:
    """The first records of a stream that meet a condition."""

    def __init__(self, stream: SampledStream, graph: Graph) -> None:
        self.stream = stream
        schema = graph.output(stream[0]).schema
        self.names = schema.names
        self.wants: Run | None = compile_expr(parse(stream[1]), schema) if stream[1] else None
        self.rows: list[dict[str, Any]] = []

    def take(self, chunk: Chunk) -> None:
        """Looks at a chunk that passes."""
        for values in chunk.first(MOST_SCANNED if self.wants else MOST_SAMPLED):
            if len(self.rows) >= MOST_SAMPLED:
                return
            if self._is_wanted(values):
                self.rows.append(dict(zip(self.names, map(plain, values), strict=False)))

    def _is_wanted(self, values: tuple[Any, ...]) -> bool:
        try:
            return self.wants is None or self.wants(values) is True
        except Exception:  # a division by zero in a filter concerns nobody but who looks
            return False


class SampledPipeline(Pipeline):
    """A pipeline that is looked at. `tracer` follows messages of spouts, where that is asked for."""

    def __init__(
        self,
        kernels: list[Kernel],
        outputs: Iterable[Port],
        graph: Graph,
        looks: Looks,
        tracer: Tracer | None = None,
    ) -> None:
        super().__init__(kernels, outputs)
        self.samples = [made for stream in looks.streams if (made := _made(stream, graph)) is not None]
        self.tracer = tracer if looks.traces else None

    def take(self, port: Port, chunk: Chunk) -> Iterator[tuple[Port, Chunk]]:
        """Pushes a chunk in at a port; all that steps emit goes this way, too."""
        for sample in self.samples:
            if sample.stream[0] == port:
                with suppress(Exception):
                    sample.take(chunk)
        yield from super().take(port, chunk)

    def _take(self, kernel: Kernel, chunk: Chunk, input_index: int) -> Iterator[tuple[Port, Chunk]]:
        if self.tracer is not None and isinstance(kernel.node, Bolt):
            with suppress(Exception):
                self.tracer.take(kernel.node.name, kernel.node.inputs[input_index], chunk)
        yield from super()._take(kernel, chunk, input_index)

    def counts(self) -> PassCounts:
        """What each step has counted so far, and the samples."""
        made = super().counts()
        made.samples = {(s.stream[0].step, s.stream[0].name, s.stream[1]): s.rows for s in self.samples}
        made.traces = self.tracer.found if self.tracer is not None else {}
        return made


def _made(stream: SampledStream, graph: Graph) -> StreamSample | None:
    try:
        return StreamSample(stream, graph)
    except Exception:  # a condition that does not fit the stream
        return None


def plain(value: Any) -> Any:
    """A value as JSON can hold it; long texts are cut.

    >>> plain(3), plain("a"), plain(b"x"), plain("y" * 600)[-1]
    (3, 'a', "b'x'", '…')
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
