"""The kernels of broadcast state: one keeps the rules by key, the other has all of them at hand for every event."""

from __future__ import annotations

import io
import pickle
from typing import Any

from penstock.graph.nodes import Rules, WithBroadcast
from penstock.graph.row import Row, row_class
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.keyed.keyed import KeyedKernel
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.several import several
from penstock.kernels.stateless import shaped


class _Packer(pickle.Pickler):
    """Rows are packed as their names and values: their classes are made at run time."""

    def reducer_override(self, given: object) -> Any:
        """How a row is made again."""
        return (_row, (given.names, tuple(given))) if isinstance(given, Row) else NotImplemented


def _row(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return tuple.__new__(row_class(names), values)


def packed(kept: object) -> bytes:
    """What is kept of a rule, as bytes.

    >>> pickle.loads(packed(_row(("limit",), (3,)))).limit
    3
    """
    into = io.BytesIO()
    _Packer(into, 5).dump(kept)
    return into.getvalue()


class RulesKernel(KeyedKernel):
    """Keeps the newest rule of each key, and emits all of them at each barrier, changed or not."""

    node: Rules

    def open(self, context: Context) -> None:
        """Finds the rules that are kept."""
        super().open(context)
        self.forget = context.forget
        self.gone: set[object] = set()

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Takes rules in."""
        for at, (row, key) in enumerate(zip(chunk.rows(), self.keys(chunk), strict=True)):
            try:
                kept = self.node.logic.on_rule(row)
                if self.state.get(key) is not None:
                    self.gone.add(key[0] if len(key) == 1 else key)
                if kept is None:
                    self.state.delete(key)
                else:
                    self.state.put(key, packed(kept))
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        return ()

    def advance(self, times: Times) -> Out:
        """All rules."""
        self.move(times)
        gone, self.gone = frozenset(self.gone), set()
        if gone:
            self.forget(self.node.name, gone)
        made = [(pickle.dumps(key, 5), kept) for key, kept in self.state.items()]
        yield "out", Chunk(self.node.output().schema, rows=made)


class BroadcastKernel(Kernel):
    """Judges events by all rules.

    A host that has the rules of a batch before its events hands them in first. Another emits them when the batch ends; events wait
    for them until then.
    """

    node: WithBroadcast

    def __init__(self, node: WithBroadcast, schema: Schema) -> None:
        super().__init__(node)
        self.waiting: list[Chunk] = []
        self.rules: dict[Any, Any] | None = None

    def begin(self, times: Times) -> None:
        """A batch begins; its rules are not known yet."""
        super().begin(times)
        self.rules = None

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Rules, or events to be judged by them."""
        if source == 1:
            self.rules = (self.rules or {}) | _unpacked(chunk)
        elif self.rules is None:
            self.waiting.append(chunk)
        else:
            yield "out", self._judged(chunk)

    def advance(self, times: Times) -> Out:
        """What the events that waited give."""
        self.times = times
        waiting, self.waiting = self.waiting, []
        for chunk in waiting:
            yield "out", self._judged(chunk)

    def _judged(self, chunk: Chunk) -> Chunk:
        made: list[Any] = []
        rules = self.rules or {}
        for at, row in enumerate(chunk.rows()):
            try:
                made += several(self.node.logic.on_event(row, rules))
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        return shaped(self, "out", made)


def _unpacked(chunk: Chunk) -> dict[Any, Any]:
    """Rules by key, in an order that does not depend on where they were kept."""
    found = {pickle.loads(key): pickle.loads(kept) for key, kept in chunk.values()}
    return {key[0] if len(key) == 1 else key: found[key] for key in sorted(found, key=repr)}
