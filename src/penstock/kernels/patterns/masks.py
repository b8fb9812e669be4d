"""Which conditions events satisfy, as a bit for each: once for a batch, by columns where Arrow can."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.expr import Expr
from penstock.graph.nodes.patterns.match import Match
from penstock.graph.patterns.conditions import navigated
from penstock.graph.patterns.tree import Predicate
from penstock.graph.schema import Schema
from penstock.kernels.base import RecordFailed
from penstock.kernels.expr.arrays import ArrayMaker, compile_arrays
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.patterns.looks import Looks, Rows
from penstock.kernels.patterns.queue import Last
from penstock.kernels.patterns.walk import events_of
from penstock.kernels.records.chunk import Chunk

Failures: TypeAlias = dict[int, RecordFailed]
"""The events on which a condition fails, by number."""

Called: TypeAlias = "Callable[..., object]"
"""Calls a function of the user's with what it is given: as often as the policy of the step says."""


class Masks:
    """The tests of a pattern, as far as they look at the event alone.

    A test that looks at other events too has a bit as well: where it is not set, there is no need to look further.
    """

    def __init__(self, node: Match, event: Schema) -> None:
        self.node, self.event = node, event
        self.arrays: dict[int, ArrayMaker] = {}
        self.rows: dict[int, Callable[[Any], Any]] = {}
        self.functions: dict[int, Callable[[Any], Any]] = {}
        self.always = 0
        """The mask of the tests for which an event alone decides nothing."""
        if node.masked is None:
            self.plain = self._compiled()
        else:
            self.plain = sum(1 << at for at in node.masked)

    def _compiled(self) -> int:
        """Compiles all tests; the mask of those that look at the event alone."""
        plain = 0
        for at, test in enumerate(self.node.automaton.tests):
            made, condition = self.node.tested(at, self.event), self.node.filter_of(at, self.event)
            if isinstance(test.condition, Predicate) and not test.condition.sees_taken:
                self.functions[at] = test.condition.function
                plain |= 1 << at
            elif condition is None:
                self.always |= 1 << at
            else:
                self._compile(at, condition)
                plain |= 1 << at if made is not None and made.is_plain else 0
        return plain

    def _compile(self, at: int, condition: Expr) -> None:
        array = compile_arrays(condition, self.event)
        if array is not None:
            self.arrays[at] = array
        self.rows[at] = compile_expr(condition, self.event)

    def of(self, batch: pa.RecordBatch, failures: Failures | None = None, called: Called | None = None) -> IntArray:
        """The mask of each event of a batch, which has the fields of events.

        Args:
            batch: the events.
            failures: gets the events on which a condition fails, by number; without it the first one is raised.
            called: how Python functions are called, where that is not just once.

        Raises:
            RecordFailed: a condition fails on an event.
        """
        made = np.full(batch.num_rows, self.always)
        chunk = Chunk(self.event, batch=batch)
        for at in sorted((*self.rows, *self.functions)):
            made |= self._bits(at, batch, chunk, failures, called).astype(np.int64) << at
        return made

    def _bits(
        self, at: int, batch: pa.RecordBatch, chunk: Chunk, failures: Failures | None, called: Called | None
    ) -> Any:
        if at in self.functions:
            function = self.functions[at]
            return self._by_rows(function if called is None else partial(called, function), chunk.rows(), failures)
        try:
            if at in self.arrays:
                return self.arrays[at](batch).fill_null(False).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            pass
        return self._by_rows(self.rows[at], list(chunk.values()), failures)

    def _by_rows(self, holds: Callable[[Any], Any], rows: list[Any], failures: Failures | None) -> Any:
        found: list[bool] = []
        begin = 0
        while begin < len(rows):
            try:
                for row in rows[begin:]:
                    found.append(bool(holds(row)))  # noqa: PERF401 - the length tells which one failed
            except Exception as error:
                failed = RecordFailed(self.node, rows[len(found)], len(found), error)
                if failures is None:
                    raise failed from error
                failures.setdefault(len(found), failed)
                found.append(False)
            begin = len(found)
        return np.array(found, bool)


class TakenEvents(dict[str, list[Any]]):
    """What a run has taken, as a Python condition sees it: the events of each stage by its name, none for a stage without any."""

    def __missing__(self, stage: str) -> list[Any]:
        return []


class RunTests:
    """The tests of a pattern that look at what was taken before."""

    def __init__(self, node: Match, event: Schema, plain: int) -> None:
        self.node, self.stages = node, node.automaton.stages
        self.looks: dict[int, Looks] = {}
        self.functions: dict[int, Callable[..., object]] = {}
        for at, test in enumerate(node.automaton.tests):
            if plain >> at & 1:
                continue
            if isinstance(test.condition, Predicate):
                self.functions[at] = test.condition.function
            elif isinstance(test.condition, Expr):
                made = navigated(test.condition, event, self.stages, test.own)
                self.looks[at] = Looks(made, event, self.stages, ahead=True)

    def __bool__(self) -> bool:
        return bool(self.looks or self.functions)

    def over(
        self, values: Rows, rows: Callable[[], list[Any]], called: Called | None = None
    ) -> Callable[[int, int, Last], bool]:
        """The question whether an event satisfies a test, over the events of a pass: as plain values, and as rows for functions."""
        made = rows() if self.functions else []
        call: Called = called or (lambda function, *given: function(*given))

        def asked(test: int, at: int, taken: Last) -> bool:
            events = events_of(taken)
            try:
                if test in self.looks:
                    return bool(self.looks[test].value(values[at], events, values))
                seen = TakenEvents()
                for stage, number in events:
                    seen.setdefault(self.stages[stage], []).append(made[number])
                return bool(call(self.functions[test], made[at], seen))
            except Exception as error:
                raise RecordFailed(self.node, values[at], None, error) from error

        return asked
