"""The kernel that remembers what the rows of a table found in another, which may find something else by now."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph.graph import Graph
from penstock.graph.nodes.changes import Answers, visible
from penstock.graph.state.layout import Layout
from penstock.graph.times import Times
from penstock.kernels.base import Out
from penstock.kernels.changes.bags import bag_columns, bag_of, checkpoint_content_of
from penstock.kernels.changes.base import ChangesKernel, Signed, signed_rows
from penstock.kernels.changes.rows import Bag
from penstock.kernels.keyed.keyed import Key, key_getter, prefetch
from penstock.kernels.records.chunk import Chunk

FOUND, CHANGED = 0, 1


class AnswersKernel(ChangesKernel):
    """Of each key it keeps the rows that its row became when it was added; they are taken back when the row goes."""

    node: Answers

    def __init__(self, node: Answers, graph: Graph) -> None:
        found, changed = (graph.output(port).schema for port in node.inputs)
        super().__init__(node, found)
        self.width, self.own = len(self.visible.fields), len(visible(changed).fields)
        self.keys_in = [key_getter(visible(schema).names, node.keys) for schema in (found, changed)]
        self.new: tuple[dict[Key, Bag], dict[Key, Bag]] = ({}, {})

    def layout(self) -> Layout:
        """The rows of a key."""
        return Layout(self.key_columns, tuple(bag_columns("row.", self.visible)))

    def take(self, chunk: Chunk, source: int = FOUND) -> Out:
        """Gathers what rows have found, and which rows come and go."""
        rows = list(signed_rows(chunk))
        keys = [self.keys_in[source](row) for row, _ in rows]
        prefetch(self.state, keys, chunk.key_hashes, self.key_columns)
        for key, (row, count) in zip(keys, rows, strict=True):
            self.new[source].setdefault(key, Bag(self.identity)).add(row, count)
        return ()

    def advance(self, times: Times) -> Out:
        """What rows that went had found is taken back, what rows that are new have found is added."""
        self.move(times)
        made = [change for key in self.new[CHANGED] for change in self._changes(key)]
        self.new = ({}, {})
        yield from self.emit(made)

    def _changes(self, key: Key) -> Iterable[Signed]:
        changed = self.new[CHANGED][key]
        if not len(changed):
            return []
        found, after = self.new[FOUND].get(key, Bag(self.identity)), Bag(self.identity)
        after.update((row, n) for row, n in found if changed.count(row[: self.own]) > 0)
        change = after.copy()
        change.update(bag_of(self.state.get(key), self.identity), -1)
        if len(after):
            self.state.put(key, checkpoint_content_of(after, self.width))
        else:
            self.state.delete(key)
        return sorted(change, key=lambda signed: signed[1])
