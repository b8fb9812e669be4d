"""The rows that a sink has got, added up: of a table those that are there now, of records all, or the last of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from penstock.graph.graph import Graph
from penstock.graph.nodes.base import COUNT, Output
from penstock.graph.nodes.changes import OPERATION, UPSERT
from penstock.graph.row import Row, row_class
from penstock.kernels.changes.rows import Bag, frozen


class NetTable:
    """Takes the rows of a sink batch by batch, and has those that stand.

    Args:
        sink: the name of the sink, for errors.
        stream: what the sink reads.
        most: how many records are kept, the newest; None is all. The rows of a table are all kept.
    """

    def __init__(self, sink: str, stream: Output, most: int | None = None) -> None:
        self.sink, self.stream = sink, stream
        self.records: deque[Any] = deque(maxlen=most)
        self.by_key: dict[Any, Any] = {}
        self.bag = Bag(frozen)
        self.taken = 0

    @classmethod
    def of(cls, graph: Graph, sink: str, most: int | None = None) -> NetTable:
        """The table of a sink of a graph."""
        return cls(sink, graph.output(graph.node(sink).inputs[0]), most)

    def take(self, rows: Iterable[Any]) -> None:
        """Takes the rows of a batch, or of a part of one."""
        for row in rows:
            self.taken += 1
            last = row.names[-1] if isinstance(row, Row) else ""
            if last not in (OPERATION, COUNT):
                self._put(row)
                continue
            plain = tuple.__new__(row_class(row.names[:-1]), row[:-1])
            self.bag.update([(plain, row[-1])]) if last == COUNT else self._change(plain, row[-1])

    def _put(self, row: Any) -> None:
        if self.stream.updates is None:
            self.records.append(row)
        else:
            self.by_key[self._key(row)] = row

    def _change(self, row: Any, operation: str) -> None:
        self.by_key.pop(self._key(row), None)
        if operation == UPSERT:
            self.by_key[self._key(row)] = row

    def _key(self, row: Any) -> Any:
        keys = self.stream.updates
        return frozen(row) if keys is None else tuple(row[k] for k in keys)

    def rows(self) -> list[Any]:
        """The rows that stand now.

        Raises:
            NegativeCount: more of a row has gone than had come.
        """
        self.bag.check(f"sink {self.sink!r}")
        counted = [row for row, count in self.bag for _ in range(count)]
        return [*self.records, *self.by_key.values(), *counted]
