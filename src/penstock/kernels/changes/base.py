"""What the kernels over changes share: signed rows in, signed rows out."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import Failure, StepError
from penstock.graph.nodes import Keyed
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import visible
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out
from penstock.kernels.changes.rows import Bag, NegativeCount, Row, identity_of
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

Signed = tuple[Row, int]
"""A row and how many of it are added, or taken back."""


def signed_rows(chunk: Chunk) -> Iterable[Signed]:
    """The rows of a chunk with their counts; rows of a stream without counts are added once each."""
    names = chunk.shape.schema.names
    if COUNT not in names:
        return ((values, 1) for values in chunk.values())
    columns, at = chunk.columns(), names.index(COUNT)
    rest = [c for i, c in enumerate(columns) if i != at]
    return zip(zip(*rest, strict=True), columns[at], strict=True)


def negative(kernel: Kernel, key: object, error: NegativeCount) -> StepError:
    """The error that names the step which would hold less than none of a row."""
    node = kernel.node
    said = f"step {node.name!r}: a table cannot hold less than none of a row: {error}"
    return StepError(Failure(node.name, said, f"key {key!r}", "", "", node.line))


class ChangesKernel(KeyedKernel):
    """The base of keyed steps over signed rows."""

    def __init__(self, node: Keyed, schema: Schema) -> None:
        super().__init__(node, schema)
        self.visible = visible(schema)
        self.identity = identity_of(self.visible)
        self.is_signed = COUNT in node.output().schema

    def emit(self, made: list[Signed]) -> Out:
        """Signed rows as the step's output; its last field is the count, where it has one."""
        if made:
            rows = [(*row, count) for row, count in made] if self.is_signed else repeated(made)
            yield "out", shaped(self, "out", rows)


class GatheredChangesKernel(ChangesKernel):
    """The base of steps that take the changes of a key together, when time moves."""

    def __init__(self, node: Keyed, schema: Schema) -> None:
        super().__init__(node, schema)
        self.new: dict[Key, Bag] = {}
        self.width = len(self.visible.fields)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the changes of each key."""
        for key, (row, count) in zip(self.keys(chunk), signed_rows(chunk), strict=True):
            bag = self.new.get(key)
            if bag is None:
                bag = self.new[key] = Bag(self.identity)
            bag.add(row, count)
        return ()


def repeated(made: list[Signed]) -> list[Row]:
    """Rows of a step that only ever adds, each as often as it is added."""
    return [row for row, count in made for _ in range(count)]
