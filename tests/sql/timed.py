"""Queries over time, made at random: windows, OVER, joins in time, first rows, row patterns. Each knows its answer from elsewhere: DuckDB, or Python's regular expressions.

Rows have times of their own to the second, and come in any order, never later than the watermark allows: every way to run a query has the same answer at the end.
"""

from __future__ import annotations

import datetime
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from tests.sql.oracle import answered, multiset, oracle

START = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
SECONDS = 240
LATENESS = "10m"
"""More than all times together: nothing is late."""
SCHEMAS = {
    "events": "id bigint, k bigint, kind string, v bigint, w bigint, ts timestamp",
    "rates": "rk bigint, rate bigint, rts timestamp",
}
TIMES = {"events": "ts", "rates": "rts"}
KINDS = "abcd"
Rows = dict[str, list[tuple[Any, ...]]]


def at(second: int) -> datetime.datetime:
    """A moment."""
    return START + datetime.timedelta(seconds=second)


def rows(chance: random.Random, many: int) -> Rows:
    """Rows of both tables, in any order."""
    events = [
        (n, _maybe(chance, 3), chance.choice(KINDS), chance.randrange(9), _maybe(chance, 9), at(second))
        for n, second in enumerate(chance.sample(range(SECONDS), many))
    ]
    rates = [(_maybe(chance, 3), n, at(second)) for n, second in enumerate(chance.sample(range(SECONDS), many // 2))]
    return {"events": events, "rates": rates}


def _maybe(chance: random.Random, most: int) -> int | None:
    return None if chance.random() < 0.1 else chance.randrange(most)


Answer = Callable[["Oracle"], "Counter[Any]"]


@dataclass(frozen=True)
class TimedQuery:
    """A query, and who knows its answer."""

    text: str
    answer: Answer


class Oracle:
    """The tables, as DuckDB and Python see them."""

    def __init__(self, data: Rows) -> None:
        self.data = data
        types = {"bigint": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
        columns = {t: [(c.split()[0], types[c.split()[1]]) for c in s.split(", ")] for t, s in SCHEMAS.items()}
        self.base: duckdb.DuckDBPyConnection = oracle({t: (columns[t], data[t]) for t in SCHEMAS})

    def ask(self, text: str) -> Counter[Any]:
        """What DuckDB answers."""
        return answered(self.base, text)


def generated(chance: random.Random, shape: str) -> TimedQuery:
    """A query of a shape."""
    return SHAPES[shape](chance)


def _same(text: str, duck: str = "") -> TimedQuery:
    return TimedQuery(text, lambda known: known.ask(duck or text))


def _span(seconds: int) -> str:
    return f"INTERVAL '{seconds}' SECOND"


def _calls(chance: random.Random, prefix: str = "") -> str:
    made = []
    for n in range(chance.randint(1, 3)):
        name = chance.choice((f"{prefix}v", f"{prefix}w"))
        known = [
            "count(*)",
            *(f"{f}({name})" for f in ("sum", "min", "max", "avg", "count")),
            f"count(DISTINCT {prefix}kind)",
        ]
        call = chance.choice(known)
        if chance.random() < 0.25:
            call += f" FILTER (WHERE {prefix}v > {chance.randrange(8)})"
        made.append(f"{call} AS a{n}")
    return ", ".join(made)


def _where(chance: random.Random) -> str:
    return chance.choice(("", " WHERE v > 2", " WHERE kind <> 'a'", " WHERE w IS NOT NULL"))


# ---- windows


@dataclass(frozen=True)
class WindowKind:
    """Windows of a fixed size: as a function of SQL, and as the pairs of bounds that there are."""

    call: str
    bounds: tuple[tuple[int, int], ...]

    @property
    def table(self) -> str:
        """The bounds as a table of DuckDB."""
        pairs = ", ".join(f"(timestamptz '{at(a)}', timestamptz '{at(b)}')" for a, b in self.bounds)
        return f"(VALUES {pairs}) AS w(window_start, window_end)"


def _windows(chance: random.Random, table: str = "events") -> WindowKind:
    step = chance.choice((5, 10, 30))
    size = step * chance.randint(1, 4)
    first, time = -120, TIMES[table]
    if chance.random() < 0.4:
        starts = range(first - first % size, SECONDS, size)
        return WindowKind(
            f"TUMBLE(TABLE {table}, DESCRIPTOR({time}), {_span(size)})",
            tuple((s, s + size) for s in starts),
        )
    if chance.random() < 0.5:
        starts = range(first - first % step, SECONDS, step)
        return WindowKind(
            f"HOP(TABLE {table}, DESCRIPTOR({time}), {_span(step)}, {_span(size)})",
            tuple((s, s + size) for s in starts),
        )
    starts = range(first - first % size, SECONDS, size)
    ends = tuple((s, e) for s in starts for e in range(s + step, s + size + 1, step))
    return WindowKind(f"CUMULATE(TABLE {table}, DESCRIPTOR({time}), {_span(step)}, {_span(size)})", ends)


def _window_totals(chance: random.Random) -> TimedQuery:
    windows, calls, where = _windows(chance), _calls(chance), _where(chance)
    keys = chance.choice(("", "k, ", "kind, "))
    having = chance.choice(("", " HAVING count(*) > 1"))
    text = f"SELECT {keys}window_start, window_end, {calls} FROM {{}}{where} GROUP BY {keys}window_start, window_end{having}"
    inside = f"(SELECT * FROM events JOIN {windows.table} ON ts >= window_start AND ts < window_end)"
    return _same(text.format(f"TABLE({windows.call})"), text.format(inside))


def _window_top(chance: random.Random) -> TimedQuery:
    windows, many = _windows(chance), chance.randint(1, 3)
    inside = f"(SELECT * FROM events JOIN {windows.table} ON ts >= window_start AND ts < window_end)"
    inner = "SELECT id, v, window_end, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC, id) AS rn FROM {}"
    text = f"SELECT id, v, window_end, rn FROM ({inner}) AS t WHERE rn <= {many}"
    return _same(text.format(f"TABLE({windows.call})"), text.format(inside))


def _window_join(chance: random.Random) -> TimedQuery:
    windows = _windows(chance)
    other = windows.call.replace("TABLE events", "TABLE rates").replace("DESCRIPTOR(ts)", "DESCRIPTOR(rts)")
    text = (
        "SELECT l.id, r.rate, l.window_end FROM (SELECT * FROM {}) AS l {} JOIN (SELECT * FROM {}) AS r "
        "ON l.k = r.rk AND l.window_start = r.window_start AND l.window_end = r.window_end"
    )
    how = chance.choice(("", "LEFT"))
    inside = [f"{t} JOIN {windows.table} ON {TIMES[t]} >= window_start AND {TIMES[t]} < window_end" for t in SCHEMAS]
    return _same(text.format(f"TABLE({windows.call})", how, f"TABLE({other})"), text.format(inside[0], how, inside[1]))


def _sessions(chance: random.Random) -> TimedQuery:
    gap, calls = chance.choice((5, 15, 40)), _calls(chance)
    text = f"""SELECT k, window_start, window_end, {calls} FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(ts), {_span(gap)}))
        GROUP BY k, window_start, window_end"""
    fresh = f"CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) < {_span(gap)} THEN 0 ELSE 1 END AS fresh"
    numbered = f"SELECT *, sum(fresh) OVER (PARTITION BY k ORDER BY ts) AS nth FROM (SELECT *, {fresh} FROM events)"
    return _same(text, f"SELECT k, min(ts), max(ts) + {_span(gap)}, {calls} FROM ({numbered}) GROUP BY k, nth")


# ---- rows beside rows


def _over(chance: random.Random) -> TimedQuery:
    name = chance.choice(("v", "w"))
    call = chance.choice(
        [f"{f}({name})" for f in ("sum", "count", "min", "max", "avg", "first_value", "last_value", "lag")]
        + ["count(*)"]
    )
    frame = ""
    if not call.startswith("lag"):
        back = chance.choice((1, 3, 20))
        ranged = f" RANGE BETWEEN {_span(back)} PRECEDING AND CURRENT ROW"
        frame = chance.choice(("", f" ROWS BETWEEN {back} PRECEDING AND CURRENT ROW", ranged))
    key = chance.choice(("", "PARTITION BY k ", "PARTITION BY kind "))
    return _same(f"SELECT id, {call} OVER ({key}ORDER BY ts{frame}) AS o FROM events{_where(chance)}")


def _over_table(chance: random.Random) -> TimedQuery:
    call = chance.choice(("rank()", "dense_rank()", "sum(w)", "max(w)", "count(*)"))
    return _same(f"SELECT id, {call} OVER (PARTITION BY kind ORDER BY v) AS o FROM events{_where(chance)}")


def _first(chance: random.Random) -> TimedQuery:
    down, key = chance.choice(("", " DESC")), chance.choice(("k", "kind"))
    inner = f"SELECT id, v, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY ts{down}) AS rn FROM events{_where(chance)}"
    return _same(f"SELECT id, v FROM ({inner}) AS t WHERE rn = 1")


# ---- joins in time


def _interval_join(chance: random.Random) -> TimedQuery:
    low, high = (chance.choice((0, 3, 20)) for _ in range(2))
    how = chance.choice(("", "LEFT ", "RIGHT ", "FULL "))
    bounds = f"r.rts BETWEEN e.ts - {_span(low)} AND e.ts + {_span(high)}"
    return _same(f"SELECT e.id, r.rate FROM events AS e {how}JOIN rates AS r ON e.k = r.rk AND {bounds}")


def _temporal_join(chance: random.Random) -> TimedQuery:
    how = chance.choice(("", "LEFT "))
    text = f"SELECT e.id, r.rate FROM events AS e {how}JOIN rates FOR SYSTEM_TIME AS OF e.ts AS r ON e.k = r.rk"
    return _same(
        text, f"SELECT e.id, r.rate FROM events AS e ASOF {how}JOIN rates AS r ON e.k = r.rk AND e.ts >= r.rts"
    )


# ---- row patterns


def _pattern(chance: random.Random, depth: int = 2) -> str:
    """A pattern that matches no empty rows, as a regular expression over kinds; it reads the same in SQL but for blanks."""
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(KINDS[:3])
    parts = [_pattern(chance, depth - 1) for _ in range(2)]
    if chance.random() < 0.3:
        return f"(?:{parts[0]}|{parts[1]})"
    quantified = chance.choice(("", "+", "+?", "{2}", "{1,2}"))
    optional = chance.choice(("", "*", "?", "*?"))
    other = chance.choice(KINDS)
    return f"(?:{parts[0]}){quantified}{other}{optional}{parts[1]}"


def _in_sql(pattern: str) -> str:
    return re.sub(r"([abcd])", lambda m: f" {m[1].upper()}", pattern.replace("?:", ""))


def _matches(chance: random.Random) -> TimedQuery:
    pattern, past = _pattern(chance), chance.random() < 0.5
    define = ", ".join(f"{kind.upper()} AS {kind.upper()}.kind = '{kind}'" for kind in KINDS if kind in pattern)
    skip = "PAST LAST ROW" if past else "TO NEXT ROW"
    text = f"""SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(id) AS s, LAST(id) AS e, COUNT(*) AS n
        ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({_in_sql(pattern)}) DEFINE {define})"""
    return TimedQuery(text, lambda known: multiset(_found(known.data["events"], pattern, past)))


def _found(events: list[tuple[Any, ...]], pattern: str, past: bool) -> Iterator[tuple[Any, ...]]:
    """The matches, by a regular expression over the kinds of each partition: both prefer what the pattern names first."""
    for key in {event[1] for event in events}:
        mine = sorted((e for e in events if e[1] == key), key=lambda e: e[-1])
        kinds = "".join(e[2] for e in mine)
        known = re.compile(pattern)
        found = known.finditer(kinds) if past else filter(None, (known.match(kinds, n) for n in range(len(kinds))))
        for match in found:
            yield key, mine[match.start()][0], mine[match.end() - 1][0], match.end() - match.start()


SHAPES: dict[str, Callable[[random.Random], TimedQuery]] = {
    "window totals": _window_totals,
    "window top": _window_top,
    "window join": _window_join,
    "sessions": _sessions,
    "over": _over,
    "over a table": _over_table,
    "first rows": _first,
    "interval join": _interval_join,
    "temporal join": _temporal_join,
    "row patterns": _matches,
}
"""The shapes of queries."""
