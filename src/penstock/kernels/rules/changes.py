"""The kernel that keeps the changes of rules, and the engine of the rules after changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from penstock.errors import FlowError
from penstock.graph.nodes.patterns.rules import RuleTable
from penstock.graph.rules import bind_rules
from penstock.graph.rules.changes import CHANGES, KEPT, ChangedRule, RuleSource
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import Times
from penstock.kernels.base import Out, RecordFailed
from penstock.kernels.keyed.keyed import KeyedKernel
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.rules.engine import RuleEngine, engine_of

MOST = 8
"""As many sets of changed rules as a process remembers."""
_made: OrderedDict[tuple[object, ...], RuleEngine] = OrderedDict()


class RuleTableKernel(KeyedKernel):
    """Keeps the last change of each rule, and emits all of them at each barrier, changed or not."""

    node: RuleTable

    def layout(self) -> Layout:
        """A column for each part of a changed rule."""
        fields = arrow_schema(KEPT)
        return Layout(self.key_columns, tuple(Column(f.name, f.type) for f in fields if f.name != "rule"))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Takes changes in; one that does not fit fails."""
        for at, (row, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self._change(key, dict(zip(CHANGES.names, row, strict=True)))
            except Exception as error:
                failed = RecordFailed(self.node, chunk.rows()[at], at, error)
                failed.made = []
                raise failed from error
        return ()

    def _change(self, key: Any, change: dict[str, object]) -> None:
        if not key[0]:
            raise FlowError(f"a change names what it changes in its field 'rule', got {key[0]!r}")
        kept = self.state.get(key)
        made = self.node.source.changed(str(key[0]), None if kept is None else ChangedRule(*kept), change)
        if made is not None:
            self.state.put(key, (made.text, made.enabled, made.removed, made.version, made.by, made.at))

    def advance(self, times: Times) -> Out:
        """All rules that changed."""
        self.move(times)
        yield "out", Chunk(KEPT, rows=[(key[0], *kept) for key, kept in self.state.items()])


def changed_engine(source: RuleSource, changes: tuple[tuple[str, ChangedRule], ...], rounds: int) -> RuleEngine:
    """The engine of rules after changes, made once in a process for the same changes."""
    meaning = tuple((name, each.text, each.enabled, each.removed, each.version) for name, each in changes)
    key = (source.rules.digest, source.events, meaning, rounds)
    if key not in _made:
        _made[key] = engine_of(bind_rules(source.after(changes), source.events), rounds)
        while len(_made) > MOST:
            _made.popitem(last=False)
    return _made[key]
