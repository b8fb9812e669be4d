"""Row patterns in Python: the clauses of SQL's MATCH_RECOGNIZE as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from penstock.errors import FlowError, nearest
from penstock.frontends.patterns.row_text import read_rows
from penstock.graph.duration import Span, checked_span
from penstock.graph.expr import Expr, as_expr
from penstock.graph.order import terms_of
from penstock.graph.patterns.pattern import AfterMatch, Skip
from penstock.graph.patterns.row_pattern import Definitions, MatchClause, RowPattern, RowsPerMatch
from penstock.graph.spelling import spelled

Written: TypeAlias = Mapping[str, str | Expr]
_ROWS = {each.value: each for each in RowsPerMatch} | {"all show empty": RowsPerMatch.ALL}
_SKIPS = {
    "past last row": Skip.PAST_LAST,
    "to next row": Skip.TO_NEXT,
    "to first": Skip.TO_FIRST,
    "to last": Skip.TO_LAST,
    "to": Skip.TO_LAST,
}


@spelled
def row_pattern(  # noqa: PLR0913 - each is a clause of MATCH_RECOGNIZE
    pattern: str,
    *,
    define: Written | None = None,
    measures: Written | None = None,
    subsets: Mapping[str, Iterable[str]] | None = None,
    rows: str = "one",
    after_match: str | tuple[str, str] = "past last row",
    within: Span | None = None,
    order_by: str = "",
    most_rows: int | None = None,
) -> MatchClause:
    """A row pattern: what SQL writes as MATCH_RECOGNIZE, for `match_rows`.

    Each row starts at most one match, the preferred one: the first of alternatives, as many rows as possible of `+`, as few as possible of
    `+?`. Then the search goes on where `after_match` says.

    Args:
        pattern: variables with `|`, `( )`, `* + ? {n,m}` (with `?` after it: as few as possible), `permute(A, B)`, `()`, `^`, `$`, and
            `{- -}` around rows that are not emitted.
        define: the condition of each variable; one without a condition takes every row. Conditions see the rows matched before:
            `A.price`, `first(A.price)`, `last(A.price, 1)`, `prev(price)`, `next(price, 2)`, `avg(A.price)`, `classifier()`.
        measures: the fields of the output, by name: expressions as in `define`, also `match_number()`, and `final ...` for the match as a
            whole where each row is emitted.
        subsets: variables that stand for several: `{"U": ("A", "B")}`.
        rows: "one" row for each match; "all" rows of it, and the row of an empty match; "all omit empty"; "all with unmatched" rows too.
        after_match: "past last row", "to next row", ("to first", "B") or ("to last", "B").
        within: the last row of a match is less than so much after its first. Partial matches whose time ran out are in the output `timed_out`.
        order_by: decides among rows of one event time, such as "id desc".
        most_rows: as many rows as a match may have; an open match without `within` keeps no more of a key.

    Returns:
        The pattern, for `match_rows`.

    Raises:
        FlowError: the pattern is not written as one (the message says where), or two of the arguments do not go together.
        UnknownName: a variable is not in the pattern.
        ExpressionError: a condition or a measure cannot be read.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> ticks = [("a", n, f"2026-01-01 10:00:0{at}") for at, n in enumerate([9, 7, 5, 6, 8, 4])]
    >>> prices = ps.Flow("demo").source("prices", ps.items(ticks, "s string, price int, at string"), event_time="at")
    >>> dip = ps.row_pattern(
    ...     "START DOWN+ UP+",
    ...     define={"DOWN": "price < prev(price)", "UP": "price > prev(price)"},
    ...     measures={"high": "START.price", "low": "last(DOWN.price)", "back": "last(UP.price)", "n": "count(*)"},
    ... )
    >>> prices.key_by("s").match_rows("dips", dip).sink("out", ps.console())
    >>> run_local(prices.flow)["out"]
    [Row(s='a', high=9, low=5, back=8, n=5)]
    """
    made = RowPattern(
        read_rows(pattern),
        tuple((name, tuple(members)) for name, members in (subsets or {}).items()),
        _rows(rows),
        _after(after_match),
        None if within is None else checked_span(within, "within", least=1),
        terms_of(order_by),
        most_rows,
    )
    return MatchClause(made, _read(define), _read(measures))


def _read(written: Written | None) -> Definitions:
    return tuple((name, as_expr(each)) for name, each in (written or {}).items())


def _rows(rows: str) -> RowsPerMatch:
    words = " ".join(str(rows).lower().split())
    if words not in _ROWS:
        raise FlowError(f"rows is one of {', '.join(map(repr, _ROWS))}, got {rows!r}; {nearest(words, _ROWS)}")
    return _ROWS[words]


def _after(given: str | tuple[str, str]) -> AfterMatch:
    """What happens after a match, as it is written.

    >>> _after("to next row").skip.name, _after(("to first", "B")).stage, _after("to last B").stage
    ('TO_NEXT', 'B', 'B')
    """
    if isinstance(given, str):
        words = given.split()
        text = " ".join(words).lower()
        if text in ("past last row", "to next row"):
            return AfterMatch(_SKIPS[text])
        given = (" ".join(words[:-1]), words[-1]) if len(words) > 1 else (given, "")
    if (
        isinstance(given, tuple)
        and len(given) == 2
        and str(given[0]).lower() in ("to", "to first", "to last")
        and given[1]
    ):
        return AfterMatch(_SKIPS[given[0].lower()], given[1], must_exist=True)
    raise FlowError(
        f"after_match is 'past last row', 'to next row', ('to first', 'B') or ('to last', 'B'), got {given!r}"
    )
