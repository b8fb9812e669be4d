"""Why rows did or did not match a row pattern: what becomes of each start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.frontends.streams.flow import Flow
from penstock.graph.endpoints.basic import items, nothing
from penstock.graph.nodes import Endpoint, MatchRows
from penstock.graph.patterns.row_pattern import MatchClause
from penstock.graph.schema import Form, Schema
from penstock.graph.times import FOREVER
from penstock.kernels.ordering.sort import with_key_hashes
from penstock.kernels.patterns.rows.grouped import KeyedRows, grouped
from penstock.kernels.patterns.rows.history import History, Search, Thread
from penstock.kernels.patterns.rows.measures import Measures, Output
from penstock.kernels.patterns.rows.outcome import Outcome, RowLabel
from penstock.kernels.patterns.rows.search import Now, Progress, Rows, RowSearch
from penstock.kernels.patterns.rows.values import RowValues
from penstock.kernels.records.chunk import Chunk
from penstock.testing.driver import run_local

_EDGES = "the pattern wants the first or the last row of the key (^ or $) where it is not"
RowNumbers: TypeAlias = dict[str, list[int]]
"""The numbers of the rows of each variable, from 1."""


@dataclass(frozen=True)
class RowExplanation:
    """What became of a list of rows; as text, line by line.

    Args:
        matches: the rows of each match, by variable, numbered from 1 in the order of event time.
        lines: what each row began.

    >>> import penstock as ps
    >>> from penstock.testing import explain_rows
    >>> rise = ps.row_pattern("A B", define={"B": "n > A.n"}, measures={"n": "B.n"})
    >>> explain_rows(rise, [(1, "2026-01-01 10:00:00"), (3, "2026-01-01 10:00:01")], "n int, at string", event_time="at").matches
    [{'A': [1], 'B': [2]}]
    """

    matches: list[RowNumbers] = field(default_factory=list)
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines)


def explain_rows(pattern: MatchClause, rows: Iterable[Any], schema: Form, *, event_time: str) -> RowExplanation:
    """Says why rows of one key did or did not match a row pattern: for each row at which the search starts, what it came to.

    Args:
        pattern: the pattern, as `ps.row_pattern` makes it.
        rows: the rows of a key, as `ps.items` takes them.
        schema: their fields.
        event_time: the field with the time of a row, by which they are put in order.

    Returns:
        The matches, and a line for each row; print it.

    Raises:
        FlowError: the pattern does not fit the fields.
        ExpressionError: a condition cannot be read or typed.

    >>> import penstock as ps
    >>> from penstock.testing import explain_rows
    >>> rise = ps.row_pattern("A B+ C", define={"B": "n > A.n", "C": "n < A.n"}, measures={"n": "count(*)"})
    >>> rows = [(n, f"2026-01-01 10:00:0{second}") for second, n in enumerate([5, 5, 7, 9, 2, 3])]
    >>> print(explain_rows(rise, rows, "n int, at string", event_time="at"))
    1 begins no match: after A=1, row 2 is not B
    2 begins match 1: A=2, B=3 4, C=5
    6 begins no match: after A=6, the rows end where B should come
    """
    flow = Flow("explain")
    source = flow.source("rows", items([], schema), event_time=event_time)
    source.match_rows("explained", pattern).sink("out", nothing())
    node = flow.graph.node("explained")
    assert isinstance(node, MatchRows)
    fields = flow.graph.output(node.inputs[0]).schema
    return _Explainer(node, fields).explain(_in_order(node, fields, items([], schema), list(rows)))


def _in_order(node: MatchRows, fields: Schema, source: Endpoint, rows: list[Any]) -> KeyedRows | None:
    """The rows in the order of event time, read as a source reads them."""
    if not rows:
        return None
    flow = Flow("read")
    flow.source("rows", source, event_time=node.timed_by.column).sink("out", nothing())
    chunk = Chunk.of(fields, [tuple(row) for row in run_local(flow, {"rows": rows})["out"]])
    return grouped(pa.Table.from_batches([with_key_hashes(chunk, (), node.timed_by)]), node, fields)


class _Explainer(RowSearch):
    """A search that tries every row, and says what it found."""

    def __init__(self, node: MatchRows, schema: Schema) -> None:
        expressions = node.expressions(schema)
        super().__init__(node, expressions, schema)
        self.first_bits, self.reach = None, None
        self.measures = Measures(node, expressions, schema)
        self.threads = History(node, self.program, self.masks.bits, expressions, schema)
        self.matches: list[RowNumbers] = []
        self.lines: list[str] = []

    def explain(self, rows: KeyedRows | None) -> RowExplanation:
        """What becomes of the rows."""
        if rows is None:
            return RowExplanation([], ("no rows",))
        values = RowValues(rows.batch)
        self.rows = Rows(values, self.masks.of(rows.batch, rows.first, rows.after), rows.times, None)
        self.key = range(rows.batch.num_rows)
        self.run(self.rows, self.key, Progress(), Now(FOREVER), self.measures.output(rows.batch, values), None)
        return RowExplanation(self.matches, tuple(self.lines))

    def _settle(
        self, outcome: Outcome, at: int, key: range, progress: Progress, found: Output, timed_out: Output | None
    ) -> None:
        self.lines.append(f"{at + 1} {self._said(outcome, at, progress)}")
        if outcome.labels is not None:
            self.matches.append(_numbers(outcome.labels, at))
        super()._settle(outcome, at, key, progress, found, timed_out)

    def _said(self, outcome: Outcome, at: int, progress: Progress) -> str:
        if outcome.labels is None:
            return f"begins no match: {self._why(at, progress)}"
        number = progress.matches + 1
        return (
            f"begins match {number}: {_shown(_numbers(outcome.labels, at))}"
            if outcome.labels
            else f"begins match {number}, which is empty"
        )

    def _why(self, at: int, progress: Progress) -> str:
        """How far the preferred thread got that lasted longest, and what it lacked."""
        span = self._span(self.rows, self.key, at, self.key.stop, progress, Now(FOREVER))
        search = Search(self.rows.values, 0, self.key.stop, progress.matches + 1)
        threads, _ = self.threads.begin(at_start=span.at_start)
        row = at
        while row < span.end:
            mask, at_end = self.rows.masks[row], span.at_end and row == span.end - 1
            left, _ = self.threads.step(threads, mask, row, search, at_end=at_end)
            if not left:
                took = [thread for thread in threads if self.threads.taken(thread, mask, row, search) is not None]
                return self._after(threads, at) + (self._lacked(threads, row) if not took else _EDGES)
            threads, row = left, row + 1
        end = "the rows end" if span.end == self.key.stop else "the time is up"
        return f"{self._after(threads, at)}{end} where {self._wanted(threads)} should come"

    def _lacked(self, threads: list[Thread], row: int) -> str:
        return f"row {row + 1} is not {self._wanted(threads)}" if threads else _EDGES

    def _after(self, threads: list[Thread], at: int) -> str:
        chain = threads[0].chain if threads else None
        return "" if chain is None else f"after {_shown(_numbers(chain.labels(), at))}, "

    def _wanted(self, threads: list[Thread]) -> str:
        return " or ".join(dict.fromkeys(self.threads.takes[thread.at].variable for thread in threads))


def _numbers(labels: tuple[RowLabel, ...], at: int) -> RowNumbers:
    made: RowNumbers = {}
    for number, (label, _) in enumerate(labels, at + 1):
        made.setdefault(label, []).append(number)
    return made


def _shown(rows: RowNumbers) -> str:
    return ", ".join(f"{name}={' '.join(map(str, numbers))}" for name, numbers in rows.items())
