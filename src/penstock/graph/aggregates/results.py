"""Expressions over aggregates, split into the aggregates that a step keeps and what is computed of them at last.

`sum(a) / count(*)` keeps a sum and a count. An aggregate that stands several times is kept once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.errors import ExpressionError, nearest
from penstock.graph.aggregates.calls import AggregateCall, aggregates_in, is_aggregate
from penstock.graph.expr import FUNCTIONS, Call, Column, Expr, columns_of, to_text
from penstock.graph.expr.rewrite import each_of, rewritten

Results: TypeAlias = tuple[tuple[str, Expr], ...]
"""What is computed of aggregates, by the name of the field."""


@dataclass(frozen=True)
class SplitCalls:
    """Aggregates as they are written, split: what is kept, and the results that are computed of it.

    `results` is empty where what is kept is the result.
    """

    kept: tuple[AggregateCall, ...]
    results: Results = ()


def split_calls(calls: Iterable[AggregateCall]) -> SplitCalls:
    """Splits expressions over aggregates.

    Raises:
        ExpressionError: one has no aggregate in it.

    >>> from penstock.graph.aggregates.calls import calls_of
    >>> made = split_calls(calls_of({"mean": "sum(a) / count(*)", "n": "count(*)"}))
    >>> [str(call) for call in made.kept], [to_text(e) for _, e in made.results]
    (['count(*)', 'sum(a)'], ['__sum_cc004b7f / n', 'n'])
    """
    calls = tuple(calls)
    if all(map(_is_kept, calls)):
        return SplitCalls(calls)
    made = _Splitting({call.name: call for call in calls if _is_kept(call)})
    results = tuple((call.name, made.result(call)) for call in calls)
    return SplitCalls(tuple(made.kept.values()), results)


def _is_kept(call: AggregateCall) -> bool:
    """Whether it is one aggregate and no more; a function that is not known may be meant as one."""
    written = call.call
    if not isinstance(written, Expr) or is_aggregate(written):
        return True
    return isinstance(written, Call) and written.name not in FUNCTIONS and not aggregates_in(written)


@dataclass
class _Splitting:
    """Aggregates under way, by the names under which they are kept."""

    kept: dict[str, AggregateCall] = field(default_factory=dict)

    def result(self, call: AggregateCall) -> Expr:
        """What a field is computed of: the columns of the aggregates that are kept."""
        if call.name in self.kept:
            return Column(call.name)
        assert isinstance(call.call, Expr)
        _check_filters(call.call)
        if not aggregates_in(call.call):
            raise ExpressionError(f"{call.name!r} must be an aggregate such as 'sum(amount)', got {str(call)!r}")
        return rewritten(call.call, self._column)

    def _column(self, node: Expr) -> Column | None:
        if not isinstance(node, Call) or not is_aggregate(node):
            return None
        known = (name for name, call in self.kept.items() if isinstance(call.call, Call) and node.same(call.call))
        name = next(known, None) or self._hidden(node)
        self.kept.setdefault(name, AggregateCall(name, node))
        return Column(name)

    def _hidden(self, call: Call) -> str:
        """A name that is the same as long as the aggregate is, so that what is kept under it can go on; no other aggregate has it."""
        text = to_text(call)
        while (name := f"__{call.name}_{zlib.crc32(text.encode()):08x}") in self.kept:
            text += " "
        return name


def _check_filters(expr: Expr) -> None:
    for each in each_of(expr):
        if isinstance(each, Call) and each.condition is not None and not is_aggregate(each):
            raise ExpressionError(f"{to_text(each)}: FILTER goes with an aggregate, and {each.name} is none")


def check_results(results: Results, kept: Iterable[str], group: Iterable[str]) -> None:
    """Refuses results that read a field which is neither kept nor the same in a group.

    Args:
        results: the results.
        kept: the names of the aggregates.
        group: the fields that are the same for all records of a group.

    Raises:
        ExpressionError: a field is outside of the aggregates.
    """
    known, group = {*kept}, tuple(group)
    for name, written in results:
        for column in sorted(columns_of(written) - known - {*group}):
            raise ExpressionError(
                f"{name!r}: {column!r} is outside of the aggregates, and records of a group differ in it; "
                f"write it inside of one, such as max({column}), or add it to the key: {nearest(column, group)}"
            )
