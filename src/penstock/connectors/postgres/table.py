"""The table a sink writes to: what it must look like, and the statements that move a staged batch into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import SinkContext
from penstock.connectors.postgres.types import column_type
from penstock.connectors.postgres.wire import qualified
from penstock.errors import RunError, nearest
from penstock.graph.endpoints.sniff_postgres import driver

if TYPE_CHECKING:
    from penstock.connectors.postgres.wire import Connection

DELETES = ("delete", "d", "-d")
FORMER = ("update_before", "-u")
WRITES = ("insert", "update", "upsert", "update_after", "i", "u", "c", "r", "+i", "+u")
"""What the op of a changelog may say; FORMER are the rows before an update, which a table does not need."""


@dataclass(frozen=True)
class Column:
    """A column of the table, with its type as PostgreSQL writes it."""

    name: str
    type: str
    needed: bool = False
    made_by_server: bool = False


@dataclass(frozen=True)
class Layout:
    """How the fields of a stream become rows of a table: which are written, and which only tell what to do."""

    table: str
    mode: str
    written: tuple[Column, ...]
    key: tuple[str, ...] = ()
    op: str = ""
    order: str = ""
    guides: tuple[Column, ...] = ()

    @property
    def staged(self) -> tuple[Column, ...]:
        """The columns that tasks send."""
        return self.written + self.guides


def mode_of(context: SinkContext) -> tuple[str, tuple[str, ...]]:
    """The mode and the key; a stream of running totals replaces the row of its own key unless the options say otherwise."""
    given = context.options.get("mode")
    key = tuple(context.options.get("key") or ()) or (context.updates if given != "append" else ()) or ()
    return given or ("upsert" if key else "append"), key


def layout_of(context: SinkContext, connection: Connection) -> Layout:
    """The layout for a stream; makes the table if asked, and says what does not fit before anything has run."""
    mode, key = mode_of(context)
    where = f"sink {context.sink!r}"
    op = context.options.get("op") or "" if mode == "changelog" else ""
    order = context.options.get("order") or ""
    for name in (*key, *([op] if op else []), *([order] if order else [])):
        context.schema.field(name)
    if context.options.get("create"):
        create_table(context, key, (op,), connection)
    table = _columns(context.options["table"], connection)
    if not table:
        raise RunError(
            f"{where}: there is no table {context.options['table']!r}; make it, or say create=True:\n{ddl(context, key, (op,))}"
        )
    guides = tuple(
        Column(n, column_type(context.schema.field(n).type))
        for n in dict.fromkeys((op, order))
        if n and (n == op or n not in table)
    )
    names = [n for n in context.schema.names if n not in {g.name for g in guides}]
    _check(where, context.options["table"], names, table)
    if mode != "append":
        _check_key(where, context.options["table"], key, connection)
    return Layout(context.options["table"], mode, tuple(table[n] for n in names), key, op, order, guides)


def _columns(table: str, connection: Connection) -> dict[str, Column]:
    found = connection.execute(
        "select attname, format_type(atttypid, atttypmod), attnotnull and not atthasdef and attidentity = '', "
        "attgenerated <> '' or attidentity = 'a' from pg_attribute "
        "where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped order by attnum",
        [qualified(table).as_string(connection)],
    ).fetchall()
    return {row[0]: Column(*row) for row in found}


def _check(where: str, table: str, names: list[str], columns: dict[str, Column]) -> None:
    for name in names:
        if name not in columns:
            raise RunError(f"{where}: the table {table!r} has no column {name!r}; {nearest(name, columns)}")
        if columns[name].made_by_server:
            raise RunError(f"{where}: the server makes the column {name!r} of {table!r} itself; leave the field out")
    missing = [c.name for c in columns.values() if c.needed and c.name not in names]
    if missing:
        raise RunError(
            f"{where}: the column {missing[0]!r} of {table!r} must not be null, and the stream has no such field"
        )


def _check_key(where: str, table: str, key: tuple[str, ...], connection: Connection) -> None:
    found = connection.execute(
        "select array_agg(a.attname::text order by a.attname) from pg_index i join pg_attribute a on a.attrelid = i.indrelid "
        "and a.attnum = any(i.indkey) where i.indrelid = to_regclass(%s) and i.indisunique and i.indpred is null "
        "and i.indexprs is null and i.indisvalid group by i.indexrelid",
        [qualified(table).as_string(connection)],
    ).fetchall()
    if sorted(key) not in [row[0] for row in found]:
        sql = driver().sql
        wanted = sql.SQL("create unique index on {} ({})").format(qualified(table), listed(key)).as_string(connection)
        raise RunError(f"{where}: {table!r} has no unique index on its key, so rows cannot be replaced by it: {wanted}")


def ddl(context: SinkContext, key: tuple[str, ...], leave_out: tuple[str, ...]) -> str:
    """The statement that makes a table for a stream."""
    sql = driver().sql
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(column_type(f.type)))
        for f in context.schema.fields
        if f.name not in leave_out
    ]
    primary = [sql.SQL("primary key ({})").format(listed(key))] if key else []
    body = sql.SQL(", ").join([*columns, *primary])
    made: str = (
        sql.SQL("create table if not exists {} ({})").format(qualified(context.options["table"]), body).as_string()
    )
    return made


def create_table(
    context: SinkContext, key: tuple[str, ...], leave_out: tuple[str, ...], connection: Connection
) -> None:
    """Makes the table if it is not there."""
    connection.execute(ddl(context, key, leave_out).encode())


def listed(names: tuple[str, ...] | list[str]) -> Any:
    """Names with commas between them."""
    sql = driver().sql
    return sql.SQL(", ").join(map(sql.Identifier, names))


@dataclass(frozen=True)
class Moves:
    """The statements of a layout and a staging table. Each takes the list of attempts that count as its parameter."""

    layout: Layout
    stage: Any

    def create(self) -> Any:
        """Makes the staging table: the types are those of the target, so whatever does not fit fails while nothing is shown."""
        sql = driver().sql
        columns = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(c.type)) for c in self.layout.staged]
        columns.append(sql.SQL("penstock_row bigint not null"))
        return sql.SQL("create unlogged table {} ({}) with (autovacuum_enabled = false)").format(
            self.stage, sql.SQL(", ").join(columns)
        )

    def copy(self) -> Any:
        """Takes rows from a task."""
        names = (*(c.name for c in self.layout.staged), "penstock_row")
        return driver().sql.SQL("copy {} ({}) from stdin (format csv)").format(self.stage, listed(names))

    def count(self) -> Any:
        """How many rows are staged."""
        return driver().sql.SQL("select count(*) from {} where penstock_row >> 32 = any(%s)").format(self.stage)

    def unknown(self) -> Any:
        """An op that is none, if there is one."""
        sql = driver().sql
        known = sql.SQL(", ").join(map(sql.Literal, (*DELETES, *FORMER, *WRITES)))
        return sql.SQL(
            "select coalesce({0}::text, 'null') from {1} where penstock_row >> 32 = any(%s) "
            "and (lower({0}) in ({2})) is not true limit 1"
        ).format(sql.Identifier(self.layout.op), self.stage, known)

    def moves(self) -> list[Any]:
        """What brings the rows into the table, in order."""
        if self.layout.mode == "append":
            return [self._insert(self._rows(), driver().sql.SQL(""))]
        upsert = self._insert(self._last(deletes=False), self._on_conflict())
        return [self._delete(), upsert] if self.layout.mode == "changelog" else [upsert]

    def drop(self) -> Any:
        """Removes the staging table."""
        return driver().sql.SQL("drop table if exists {}").format(self.stage)

    def _insert(self, rows: Any, rest: Any) -> Any:
        columns = listed([c.name for c in self.layout.written])
        insert = driver().sql.SQL("insert into {} ({}) select {} from ({}) s {}")
        return insert.format(qualified(self.layout.table), columns, columns, rows, rest)

    def _rows(self) -> Any:
        return driver().sql.SQL("select * from {} where penstock_row >> 32 = any(%s)").format(self.stage)

    def _last(self, *, deletes: bool) -> Any:
        """The last row of each key, if it is (or is not) a delete; a key comes once, or the upsert could not be done."""
        sql = driver().sql
        key, layout = listed(self.layout.key), self.layout
        later = sql.SQL("{} desc nulls last, ").format(sql.Identifier(layout.order)) if layout.order else sql.SQL("")
        words = sql.SQL("select distinct on ({}) * from ({}) r {} order by {}, {}penstock_row desc")
        last = words.format(key, self._rows(), self._counting(), key, later)
        if not layout.op:
            return last
        among = sql.SQL(", ").join(map(sql.Literal, DELETES))
        test = sql.SQL("lower({}) {} ({})").format(
            sql.Identifier(layout.op), sql.SQL("in" if deletes else "not in"), among
        )
        return sql.SQL("select * from ({}) l where {}").format(last, test)

    def _counting(self) -> Any:
        sql = driver().sql
        if not self.layout.op:
            return sql.SQL("")
        former = sql.SQL(", ").join(map(sql.Literal, FORMER))
        return sql.SQL("where lower({}) not in ({})").format(sql.Identifier(self.layout.op), former)

    def _on_conflict(self) -> Any:
        sql = driver().sql
        others = [c.name for c in self.layout.written if c.name not in self.layout.key]
        if not others:
            return sql.SQL("on conflict ({}) do nothing").format(listed(self.layout.key))
        sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(n)) for n in others)
        return sql.SQL("on conflict ({}) do update set {}").format(listed(self.layout.key), sets)

    def _delete(self) -> Any:
        sql = driver().sql
        same = sql.SQL(" and ").join(sql.SQL("t.{0} = s.{0}").format(sql.Identifier(k)) for k in self.layout.key)
        return sql.SQL("delete from {} t using ({}) s where {}").format(
            qualified(self.layout.table), self._last(deletes=True), same
        )
