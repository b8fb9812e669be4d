"""The ledger in PostgreSQL: a row for each sink and lineage, read and written inside the transaction that shows a batch."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Batch, SinkContext
from penstock.connectors.delivery import SKIP, Entry, verdict
from penstock.errors import DeliveryError, RunError
from penstock.graph.endpoints.sniff_postgres import driver

if TYPE_CHECKING:
    from penstock.connectors.postgres.wire import Connection

_TABLE = """create table if not exists {} (
    sink text, lineage text, fence bigint not null, batch bigint, fingerprint text, rows bigint, crc bigint, offsets text,
    refused text, flow text, written timestamp with time zone not null default now(), primary key (sink, lineage))"""
_PREFIX = "stage_"
WORKSPACE = "penstock_sinks"


@dataclass(frozen=True)
class Ledger:
    """The ledger in a schema of the server."""

    schema: str = WORKSPACE

    @property
    def table(self) -> Any:
        """Its table."""
        return driver().sql.Identifier(self.schema, "ledger")

    def make(self, connection: Connection) -> None:
        """Makes the schema and the table if they are not there; two drivers may try at once."""
        sql, errors = driver().sql, driver().errors
        user = connection.execute("select current_user").fetchone()
        if user and user[0] == self.schema:
            raise RunError(
                f"the workspace {self.schema!r} bears the name of the database user, so names without a schema would mean tables in it; "
                f"give another with workspace="
            )
        there = connection.execute("select 1 from pg_namespace where nspname = %s", (self.schema,)).fetchone()
        schema = sql.SQL("create schema if not exists {}").format(sql.Identifier(self.schema))
        statements = [*([] if there else [schema]), sql.SQL(_TABLE).format(self.table)]
        for statement in statements:
            try:
                connection.execute(statement)
            except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateSchema):
                connection.execute(statement)
        self._add_refused(connection)

    def _add_refused(self, connection: Connection) -> None:
        """Adds the column that ledgers of older versions do not have."""
        found = connection.execute(
            "select 1 from information_schema.columns where table_schema = %s and table_name = 'ledger' and column_name = 'refused'",
            [self.schema],
        ).fetchone()
        if found is None:
            add = driver().sql.SQL("alter table {} add column if not exists refused text")
            connection.execute(add.format(self.table))

    def take_over(self, context: SinkContext, connection: Connection) -> tuple[int, Entry | None]:
        """Raises the fence by one, which fences all older drivers; gives it and the last entry.

        It waits for a driver that is committing just now, so the entry is the last there will be of that one.
        """
        raise_fence = driver().sql.SQL(
            "insert into {0} as l (sink, lineage, fence, flow) values (%s, %s, 1, %s) on conflict (sink, lineage) do update set "
            "fence = l.fence + 1 returning fence, batch, fingerprint, rows, crc, offsets, refused"
        )
        row = connection.execute(
            raise_fence.format(self.table), [context.sink, context.lineage, context.flow]
        ).fetchone()
        assert row is not None
        return int(row[0]), _entry(row)

    def through(self, batch: Batch, fence: int, connection: Connection) -> Entry | None:
        """The entry of a batch that is in the table already; None of one that is to be written. Holds the ledger's row until the transaction ends."""
        read = driver().sql.SQL(
            "select fence, batch, fingerprint, rows, crc, offsets, refused from {} where sink = %s and lineage = %s for update"
        )
        row = connection.execute(read.format(self.table), [batch.sink, batch.lineage]).fetchone()
        if row is None:
            raise DeliveryError(
                f"sink {batch.sink!r}: its row in the ledger {self.schema}.ledger is gone, so nobody knows what was written. Restore "
                f"it, or start afresh with --fresh and an empty table"
            )
        if row[0] > fence:
            verdict(Entry(batch.id - 1, "", row[0]), batch, fence)
        entry = _entry(row)
        return entry if verdict(entry, batch, fence) == SKIP else None

    def write(self, entry: Entry, batch: Batch, connection: Connection) -> None:
        """Notes a batch."""
        update = driver().sql.SQL(
            "update {} set fence = %s, batch = %s, fingerprint = %s, rows = %s, crc = %s, offsets = %s, refused = %s, "
            "written = now() "
            "where sink = %s and lineage = %s"
        )
        values = [entry.fence, entry.batch, entry.fingerprint, entry.rows, entry.crc, entry.offsets, entry.refused]
        done = connection.execute(update.format(self.table), [*values, batch.sink, batch.lineage])
        if done.rowcount != 1:
            raise DeliveryError(f"sink {batch.sink!r}: the ledger took {done.rowcount} rows for one batch")

    def stage_name(self, context: SinkContext, fence: int, attempt: str) -> str:
        """The name of a staging table. It tells the janitor whose it was."""
        return f"{_PREFIX}{context.lineage[:12]}_{fence}_{attempt}"

    def stage(self, name: str) -> Any:
        """A staging table as SQL."""
        return driver().sql.Identifier(self.schema, name)

    def clean(self, context: SinkContext, fence: int, connection: Connection) -> int:
        """Removes what drivers before this one have staged and never shown, and what anyone left a day ago."""
        drop, dropped = driver().sql.SQL("drop table if exists {}"), 0
        found = connection.execute(
            "select c.relname, obj_description(c.oid, 'pg_class') from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname = %s and c.relname like %s and c.relkind = 'r'",
            [self.schema, f"{_PREFIX.replace('_', chr(92) + '_')}%"],
        ).fetchall()
        for name, note in found:
            if self._is_left(name, note, context, fence, connection):
                dropped += _dropped(drop.format(self.stage(name)), connection)
        return dropped

    def _is_left(self, name: str, note: str | None, context: SinkContext, fence: int, connection: Connection) -> bool:
        whose, _, since = (note or "").partition("|")
        own = f"{_PREFIX}{context.lineage[:12]}_"
        if whose == context.sink and name.startswith(own) and 0 < int(name.removeprefix(own).split("_")[0]) < fence:
            return True
        old = connection.execute("select %s::timestamptz < now() - interval '1 day'", [since or "-infinity"]).fetchone()
        return bool(old and old[0])

    def note(self, name: str, context: SinkContext) -> Any:
        """The statement that writes on a staging table whose it is and since when."""
        sql = driver().sql
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return sql.SQL("comment on table {} is {}").format(self.stage(name), sql.Literal(f"{context.sink}|{now}"))


def _entry(row: Any) -> Entry | None:
    fence, batch, fingerprint, rows, crc, offsets, refused = row
    return None if batch is None else Entry(batch, fingerprint, fence, rows, crc, offsets, refused=refused or "")


def _dropped(statement: Any, connection: Connection) -> int:
    """Drops a table unless someone is at work in it."""
    try:
        with connection.transaction():
            connection.execute("set local lock_timeout = '500ms'")
            connection.execute(statement)
    except driver().errors.LockNotAvailable:
        return 0
    return 1
