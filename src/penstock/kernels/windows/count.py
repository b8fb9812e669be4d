"""Windows by count: so many records of a key, in the order of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from penstock.graph.graph import Graph
from penstock.graph.nodes import Window
from penstock.graph.windows import CountWindow
from penstock.kernels.base import Out, RecordFailed
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped
from penstock.kernels.windows.window import Parts, WindowFold, WindowReduce


@dataclass(slots=True)
class CountState:
    """What a key keeps: the panes of its open windows, and how many records it has had."""

    records: int = 0
    panes: list[Parts | None] = field(default_factory=list)


class CountWindowKernel(KeyedKernel):
    """Gives a window as soon as it is full."""

    node: Window

    def __init__(self, node: Window, graph: Graph) -> None:
        schema = graph.output(node.inputs[0]).schema
        super().__init__(node, schema)
        assert isinstance(node.spec, CountWindow), "window_kernel chooses by the kind of window"
        self.spec = node.spec
        self.folding = (WindowReduce if node.function is not None else WindowFold)(node, schema)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The windows that these records fill."""
        rows, made, cache = chunk.rows(), list[Any](), dict[Key, CountState]()
        for at, (values, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                filling = cache.get(key) or cache.setdefault(key, self._filling(key))
                made += self._one(key, filling, self.folding.begin(values, rows[at]))
            except Exception as error:
                raise RecordFailed(self.node, rows[at], at, error) from error
        for key, filling in cache.items():
            self.state.put(key, filling)
        yield "out", shaped(self, "out", made)

    def _filling(self, key: Key) -> CountState:
        found: CountState = self.state.get(key) or CountState()
        return found

    def _one(self, key: Key, filling: CountState, parts: Parts) -> Iterator[Any]:
        spec, merge = self.spec, self.folding.merge
        if filling.records % spec.pane == 0:
            filling.panes.append(None)
        filling.records += 1
        filling.panes[-1] = merge(filling.panes[-1], parts)
        beyond = filling.records - (spec.every if spec.is_partial else spec.size)
        if beyond >= 0 and beyond % spec.every == 0:
            whole = reduce(merge, filling.panes)
            assert whole is not None
            yield (*key, beyond // spec.every + 1, *self.folding.results(whole))
            stay = (spec.size - spec.every) // spec.pane
            del filling.panes[: max(len(filling.panes) - stay, 0)]
