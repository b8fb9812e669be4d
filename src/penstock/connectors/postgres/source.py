"""PostgreSQL as a source by incremental query: the rows whose growing column is greater than that of the last batch.

A value that is greater may be committed before a lesser one: of two transactions that insert at once, the later may end first. So a
batch ends only at a value below which nothing can appear any more, which is known once every transaction that was under way when the value was
seen has ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.postgres.types import Decoder, column_type, selected
from penstock.connectors.postgres.wire import Address, qualified
from penstock.connectors.ranges import Offset, Ranges, Stretch, bounded_of, stream_of
from penstock.errors import FlowError, RunError
from penstock.graph import types as t
from penstock.graph.endpoints.sniff_postgres import driver
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE = 10.0
ROWS = 50_000
"""Rows of a record batch."""
_WRITERS = """select coalesce(virtualtransaction, '') from pg_locks where locktype = 'relation' and mode in
    ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') and granted
    and database = (select oid from pg_database where datname = current_database())
    and pid is distinct from pg_backend_pid() and relation {}"""
_EVERYONE = """select l.virtualtransaction from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'virtualxid' and l.pid is distinct from pg_backend_pid()
    and coalesce(a.datname, current_database()) = current_database() and coalesce(a.backend_type, 'client backend') = 'client backend'"""


class PostgresSource(SourceConnector):
    """A table or a query, read by a column that only grows."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The rows that are there, then those that come."""
        return stream_of(spark, Incremental(context.options, context.schema, context.step), context)

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The rows that are there."""
        return bounded_of(spark, rows_of(context.options, context.schema, context.step), context)


class Incremental(Ranges):
    """Offsets are the last value seen, as text; an empty one stands before the first."""

    def __init__(self, options: dict[str, Any], fields: Schema, step: str) -> None:
        self.address = Address.of(options)
        self.table, self.query = options.get("table") or "", options.get("query") or ""
        self.by: tuple[str, ...] = tuple(options["by"])
        self.lag, self.parts = options.get("lag") or 0, options.get("partitions") or 1
        self.most = options.get("rows_per_batch")
        self.fields, self.who = fields, f"source {step!r}"
        self.waiting: tuple[list[str], set[str]] | None = None
        self.settled: list[str] | None = None
        if self.lag and not self._dated:
            raise FlowError(f"{self.who}: lag holds back what is newer than so long ago, so by= must be a timestamp")

    @property
    def _dated(self) -> bool:
        return self.fields.field(self.by[0]).type in (t.TIMESTAMP, t.TIMESTAMP_NTZ)

    def first(self) -> Offset:
        """Before the first row."""
        return _offset([])

    def target(self) -> Offset:
        """The highest value there is; those who may still add lower ones are given a while to end."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self._safe([])
            if found is not None or self.waiting is None:
                return _offset(found or [])
            if time.monotonic() > deadline:
                raise RunError(
                    f"{self.who}: for {PATIENCE:g} s transactions have been open that may still add rows ({', '.join(sorted(self.waiting[1]))} in "
                    f"pg_locks.virtualtransaction), so nobody knows where what is there ends. End them, then start again"
                )
            time.sleep(0.05)

    def everything(self) -> Offset:
        """The highest value that can be seen now."""
        return _offset(self._highest([]) or [])

    def latest(self, start: Offset, most: int | None) -> Offset:
        """The highest value below which nothing can appear any more, or nearer if that were too many rows."""
        low = _values(start)
        high = self._safe(low)
        if high is None:
            return start
        if most is None:
            return _offset(high)
        sql = driver().sql
        words = sql.SQL("select {} from {} where {} order by {} offset %s limit 1")
        found = self._ask(words.format(self._texts(), self._from, self._between(low, high), self._keys()), [most - 1])
        return _offset(list(found[0]) if found else high)

    def within(self, offset: Offset, target: Offset) -> Offset:
        """The lesser: the server compares, it knows the type."""
        low, high = _values(offset), _values(target)
        if not low or not high:
            return offset if not low else target
        return target if self._is_after(low, high) else offset

    def _safe(self, low: list[str]) -> list[str] | None:
        """The highest value that is settled, if it is greater than `low`."""
        if self.waiting is None:
            found = self._highest(low)
            self.waiting = (found, self._under_way()) if found is not None else None
        if self.waiting is not None:
            high, others = self.waiting
            others = others & self._under_way() if others else others
            self.waiting = (high, others) if others else None
            self.settled = self.settled if others else high
        if self.settled is None or self.settled == low:
            return None
        return self.settled if not low or self._is_after(self.settled, low) else None

    def _is_after(self, value: list[str], low: list[str]) -> bool:
        test = driver().sql.SQL("select {} > {}").format(self._row(value, cast=True), self._row(low, cast=True))
        return bool(self._ask(test)[0][0])

    def _highest(self, low: list[str]) -> list[str] | None:
        sql = driver().sql
        old = sql.SQL("true")
        if self.lag:
            ago = sql.Literal(f"{self.lag} microseconds")
            old = sql.SQL("{} <= now() - {}::interval").format(sql.Identifier(self.by[0]), ago)
        words = sql.SQL("select {} from {} where {} and {} order by {} limit 1")
        found = self._ask(words.format(self._texts(), self._from, self._above(low), old, self._keys(" desc")))
        return list(found[0]) if found else None

    def _under_way(self) -> set[str]:
        """The transactions that may still add rows: all of them where the value is the time at which one began, else those that write."""
        sql = driver().sql
        if self._dated:
            return {row[0] for row in self._ask(sql.SQL(_EVERYONE))}
        if self.table:
            own = sql.SQL(
                "in (select i.relid from pg_partition_tree(to_regclass({0})) i union select to_regclass({0})::oid "
                "union select inhrelid from pg_inherits where inhparent = to_regclass({0}))"
            ).format(sql.Literal(qualified(self.table).as_string()))
            is_table = sql.SQL("select relkind in ('r', 'p') from pg_class where oid = to_regclass({})")
            found = self._ask(is_table.format(sql.Literal(qualified(self.table).as_string())))
            if found and found[0][0]:
                return {row[0] for row in self._ask(sql.SQL(_WRITERS).format(own))}
        return {row[0] for row in self._ask(sql.SQL(_WRITERS).format(sql.SQL(">= 16384")))}

    def stretches(self, start: Offset, end: Offset) -> Sequence[Stretch]:
        """One stretch, or several of equal length where the column is an integer."""
        if start == end:
            return []
        low, high = _values(start), _values(end)
        if self.parts == 1 or len(self.by) > 1 or self.fields.field(self.by[0]).type not in t.INTEGERS:
            return [Stretch(low, high)]
        bottom = int(low[0]) if low else self._bottom()
        top = int(high[0])
        cuts = [bottom + (top - bottom) * i // self.parts for i in range(self.parts + 1)]
        made = [Stretch([str(a)], [str(b)]) for a, b in pairwise(cuts) if a < b]
        return [Stretch(low, made[0].high), *made[1:]]

    def _bottom(self) -> int:
        sql = driver().sql
        found = self._ask(sql.SQL("select min({}) from {}").format(sql.Identifier(self.by[0]), self._from))
        return int(found[0][0]) - 1

    def read(self, part: Stretch) -> Iterator[Any]:
        """The rows of a stretch, in order."""
        sql = driver().sql
        columns = [selected(sql.Identifier(f.name), f.type, sql) for f in self.fields.fields]
        words = sql.SQL("copy (select {} from {} where {} order by {}) to stdout (format csv)")
        statement = words.format(_renamed(columns), self._from, self._between(part.low, part.high), self._keys())
        decoder = Decoder(arrow_schema(self.fields))
        with self.address.connect(self.who) as connection, connection.cursor().copy(statement) as copy:
            lines = (bytes(line) for line in copy)
            while some := list(islice(lines, ROWS)):
                yield from decoder.decode(some).combine_chunks().to_batches()

    @property
    def _from(self) -> Any:
        sql = driver().sql
        if self.table:
            return qualified(self.table)
        return sql.SQL("({}) q").format(sql.SQL(self.query.rstrip().rstrip(";")))

    def _keys(self, way: str = "") -> Any:
        sql = driver().sql
        return sql.SQL(", ").join(sql.SQL("{}" + way).format(sql.Identifier(n)) for n in self.by)

    def _texts(self) -> Any:
        sql = driver().sql
        return _renamed([sql.SQL("{}::text").format(sql.Identifier(n)) for n in self.by])

    def _row(self, values: list[str], *, cast: bool = False) -> Any:
        """Values to compare the growing columns with; cast, where nothing else tells the types."""
        sql = driver().sql
        kinds = [f"::{column_type(self.fields.field(n).type)}" if cast else "" for n in self.by]
        made = [sql.SQL("{}" + k).format(sql.Literal(v)) for v, k in zip(values, kinds, strict=True)]
        return sql.SQL("({})").format(sql.SQL(", ").join(made))

    def _above(self, low: list[str]) -> Any:
        sql = driver().sql
        if low:
            return sql.SQL("({}) > {}").format(self._keys(), self._row(low))
        return sql.SQL(" and ").join(sql.SQL("{} is not null").format(sql.Identifier(n)) for n in self.by)

    def _between(self, low: list[str], high: list[str]) -> Any:
        sql = driver().sql
        return sql.SQL("{} and ({}) <= {}").format(self._above(low), self._keys(), self._row(high))

    def _ask(self, statement: Any, values: list[Any] | None = None) -> list[Any]:
        return self.address.kept(self.who).execute(statement, values or None).fetchall()


class Whole(Incremental):
    """All rows, as they are when they are read; there is no growing column to go by."""

    def everything(self) -> Offset:
        """The one place after the first."""
        return {"by": "all"}

    def stretches(self, start: Offset, end: Offset) -> Sequence[Stretch]:
        """One statement reads it, so that all rows are of one moment."""
        return [Stretch([], [])] if start != end else []

    def _between(self, low: list[str], high: list[str]) -> Any:
        return driver().sql.SQL("true")

    def _keys(self, way: str = "") -> Any:
        return driver().sql.SQL("1")


def rows_of(options: dict[str, Any], fields: Schema, step: str) -> Incremental:
    """What reads the rows that are there: by the growing column, or all at once where there is none."""
    return (Incremental if options["by"] else Whole)(options, fields, step)


def _renamed(columns: list[Any]) -> Any:
    """Columns under names of no meaning, so that an ORDER BY means the column of the table, not its text."""
    sql = driver().sql
    return sql.SQL(", ").join(sql.SQL(f"{{}} as penstock_{i}").format(c) for i, c in enumerate(columns))


def _offset(values: list[str]) -> Offset:
    return {"by": json.dumps(values) if values else ""}


def _values(offset: Offset) -> list[str]:
    made: list[str] = json.loads(offset["by"]) if offset["by"] else []
    return made
