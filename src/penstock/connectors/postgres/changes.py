"""PostgreSQL as a source of changes, by logical decoding.

Offsets are positions in the server's log (LSN). A batch holds the transactions that committed after its first position, up to its last; the slot
is moved only when the batch is safe in the sinks, so the server keeps what may be asked for again. A bounded read takes what waits in the slot
when it is asked, moves nothing and makes nothing.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.malformed import raw_rows, with_malformed
from penstock.connectors.postgres.pgoutput import Change, ChangeDecoder, Values
from penstock.connectors.postgres.wire import Address, Link, qualified
from penstock.connectors.ranges import Offset, Ranges, Stretch, bounded_of, stream_of
from penstock.connectors.text_rows import TextRows, read_texts
from penstock.errors import RunError
from penstock.graph.endpoints.servers import publication_of
from penstock.graph.endpoints.sniff_postgres import driver
from penstock.graph.schema import Schema
from penstock.kernels.records.unreadable import ESCAPES

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame, SparkSession

    from penstock.connectors.postgres.wire import Connection

    Cursor = psycopg.ServerCursor[tuple[Any, ...]]

Found = TypeVar("Found")

ABOUT = ("op", "old", "lsn", "committed_at")
ROWS = 10_000
_NUMBER = itertools.count()
IDLE = 16 << 20
"""So many bytes of the server's log without a change of the table are skipped in an empty batch, to let the server clear them."""
_PEEK = "pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s)"
_LOOK = f"""select count(*), count(*) filter (where new), coalesce(min(lsn) filter (where new and ends and so_far >= %s), max(lsn)) - '0/0'::pg_lsn
    from (select *, count(*) filter (where new and not ends) over (rows unbounded preceding) as so_far
    from (select lsn, lsn > %s::pg_lsn as new, get_byte(data, 0) = 67 as ends from {_PEEK}) m) n"""  # noqa: S608 - a name of ours
"""How many messages there are, how many of them new, and where the transaction ends with which there are enough."""


class PostgresChanges(SourceConnector):
    """A table's inserts, updates and deletes."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The changes after the position of the slot, then those that come."""
        changes = _changes(context)
        changes.prepare()
        return stream_of(spark, changes, context, with_malformed(context))

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The changes that wait in the slot; none where there is no slot yet."""
        changes, columns = _changes(context), with_malformed(context)
        if not changes.find():
            return spark.createDataFrame([], columns or str(context.schema))
        return bounded_of(spark, changes, context, columns)

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the changes of dead letters."""
        found = [read_change(bytes(value)) for (value,) in raw_rows(dead_letters, ("value",))]
        table = pa.Table.from_batches([_changes(context).batch(found)])
        return spark.createDataFrame(table, with_malformed(context) or str(context.schema))


def _changes(context: SourceContext) -> Changes:
    return Changes(context.options, context.schema, context.step, keeps_malformed=context.keeps_malformed)


class Changes(TextRows[Change], Ranges):
    """Offsets are LSNs, as numbers."""

    def __init__(self, options: dict[str, Any], fields: Schema, step: str, *, keeps_malformed: bool = False) -> None:
        self.keeps_malformed = keeps_malformed
        self.address, self.who = Address.of(options), f"source {step!r}"
        self.table, self.slot = options["table"], options["slot"]
        self.publication = options.get("publication") or publication_of(self.slot)
        self.own_publication = not options.get("publication")
        self.most = options.get("changes_per_batch")
        self.fields = fields
        self.named: tuple[str, str] = ("", "")
        self.end: Offset | None = None

    def prepare(self) -> None:
        """Looks the table up, and makes the publication and the slot if they are not there."""
        link = Link(self.address, self.who)
        with closing(link), link.talking("preparing the replication slot") as connection:
            self._find_table(connection)
            _check_level(self.who, connection)
            if self.own_publication:
                self._publish(connection)
            if not self._has_slot(connection):
                connection.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [self.slot])

    def find(self) -> bool:
        """Looks up what a bounded read needs, makes nothing, and notes where the read ends: at the end of the server's log now.

        Returns:
            Whether there is a slot; a flow that never ran live has none, and nothing waits for it.

        Raises:
            RunError: the table or the publication is not there, the slot is another's, or the server does not decode its log.
        """
        link = Link(self.address, self.who)
        with closing(link), link.talking("looking up the replication slot") as connection:
            self._find_table(connection)
            _check_level(self.who, connection)
            if not self._has_slot(connection):
                return False
            if not self._is_published(connection):
                raise RunError(
                    f"{self.who}: there is a replication slot {self.slot!r}, but no publication {self.publication!r}; "
                    f"a live run makes one where none is named"
                )
        self.end = self.target()
        return True

    def _has_slot(self, connection: Connection) -> bool:
        slot = connection.execute(
            "select plugin, database = current_database() from pg_replication_slots where slot_name = %s", [self.slot]
        ).fetchone()
        if slot is not None and slot != ("pgoutput", True):
            raise RunError(
                f"{self.who}: the replication slot {self.slot!r} is another's (plugin {slot[0]}); choose another name"
            )
        return slot is not None

    def _find_table(self, connection: Connection) -> None:
        found = connection.execute(
            "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)",
            [qualified(self.table).as_string(connection)],
        ).fetchone()
        if found is None:
            raise RunError(f"{self.who}: there is no table {self.table!r}")
        self.named = (str(found[0]), str(found[1]))

    def _publish(self, connection: Connection) -> None:
        sql = driver().sql
        if not self._is_published(connection):
            make = sql.SQL("create publication {} for table {} with (publish_via_partition_root = true)")
            connection.execute(make.format(sql.Identifier(self.publication), qualified(self.table)))

    def _is_published(self, connection: Connection) -> bool:
        found = connection.execute("select 1 from pg_publication where pubname = %s", [self.publication]).fetchone()
        return found is not None

    def first(self) -> Offset:
        """Where the slot stands."""
        return {
            "lsn": self._ask(
                "select confirmed_flush_lsn - '0/0'::pg_lsn from pg_replication_slots where slot_name = %s", [self.slot]
            )
        }

    def target(self) -> Offset:
        """The end of the server's log now."""
        return {"lsn": self._end()}

    def everything(self) -> Offset:
        """Where the log ended when a bounded read was asked for."""
        return self.target() if self.end is None else self.end

    def _end(self) -> int:
        return self._ask("select pg_current_wal_flush_lsn() - '0/0'::pg_lsn", [])

    def within(self, offset: Offset, target: Offset) -> Offset:
        """The lesser."""
        return min(offset, target, key=lambda o: int(o["lsn"]))

    def latest(self, start: Offset, most: int | None) -> Offset:
        """The end of the log, or the end of the transaction with which there are changes enough; `start` while there are none.

        The slot may stand one batch behind `start`, and returns that batch first; so it is asked for more until something new comes.
        """
        end, low, many = self._end(), int(start["lsn"]), most or 1
        while True:
            found, new, last = self._rows(_LOOK, [most, _lsn(low), self.slot, _lsn(end), many, self.publication])[0]
            if new:
                return {"lsn": int(last) if most else end}
            if found < many:
                return {"lsn": end} if end - low > IDLE else start
            many *= 2

    def read(self, part: Stretch) -> Iterator[Any]:
        """The changes of the transactions whose commit lies in between, in order."""
        low, high = int(part.low["lsn"]), int(part.high["lsn"])
        self._check_position(low)
        changes = ChangeDecoder(self.named, low, high).changes(self._messages(high))
        while some := list(itertools.islice(changes, ROWS)):
            yield self.batch(some)

    def _messages(self, high: int) -> Iterator[bytes]:
        """The messages in the slot up to a position. The server holds them and this process takes some at a time: a slot may hold any number."""

        def declared(connection: Connection) -> Cursor:
            made = connection.cursor(f"{self.slot}_{next(_NUMBER)}", withhold=True)
            made.itersize = ROWS
            values = [self.slot, _lsn(high), None, self.publication]
            return made.execute(f"select data from {_PEEK}".encode(), values)  # noqa: S608 - a name of ours

        with closing(self._patiently(declared)) as cursor:
            yield from (row[0] for row in cursor)

    def _check_position(self, low: int) -> None:
        stands = int(self.first()["lsn"])
        if stands > low:
            raise RunError(
                f"{self.who}: the replication slot {self.slot!r} stands at {stands}, the checkpoint at {low}; what lies between is gone. "
                f"Someone else moved the slot; start afresh with --fresh"
            )

    def column(self, sent: list[Change], field: pa.Field) -> pa.Array:
        """A field of changes: of the row, of the row before, or what is said of the change."""
        match field.name:
            case "op":
                return pa.array([c.op for c in sent])
            case "lsn":
                return pa.array([c.lsn for c in sent], pa.int64())
            case "committed_at":
                return pa.array([c.committed_at for c in sent], field.type)
            case "old":
                return _old(sent, field.type)
            case name:
                return read_texts(pa.array([c.row.get(name) for c in sent], pa.string()), field)

    def blank(self, sent: Change) -> Change:
        """A change without its rows."""
        return replace(sent, row={}, old=None)

    def position(self, sent: Change) -> str:
        """The table, and the position of the commit in the server's log."""
        return f"{self.table}, {sent.op} at {_lsn(sent.lsn)}"

    def raw(self, sent: Change) -> bytes:
        """A change with its rows as the server wrote them."""
        return json.dumps(vars(sent), ensure_ascii=False).encode()

    def committed(self, end: Offset) -> None:
        """Moves the slot: what lies before it is not needed any more."""
        move = (
            "select pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s) from pg_replication_slots where slot_name = %s "
            "and confirmed_flush_lsn < '0/0'::pg_lsn + %s"
        )
        self._rows(move, [self.slot, int(end["lsn"]), self.slot, int(end["lsn"])])

    def _rows(self, statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
        return self._patiently(lambda connection: connection.execute(statement.encode(), values).fetchall())

    def _patiently(self, ask: Callable[[Connection], Found], patience: float = 20.0) -> Found:
        """Asks the slot; only one may at a time, and a task that was killed may hold it for a moment."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return ask(self.address.kept(self.who))
            except driver().errors.ObjectInUse:
                if time.monotonic() > deadline:
                    raise RunError(
                        f"{self.who}: the replication slot {self.slot!r} is in use by another; each flow needs its own"
                    ) from None
                time.sleep(0.1)

    def _ask(self, statement: str, values: list[Any]) -> int:
        row = self.address.kept(self.who).execute(statement.encode(), values).fetchone()
        if row is None:
            raise RunError(f"{self.who}: the replication slot {self.slot!r} is gone; start afresh with --fresh")
        return int(row[0])


def read_change(raw: bytes) -> Change:
    """The change of what `Changes.raw` has written, or what a person has made of it; what is no change has no row.

    >>> read_change(b'{"op": "insert", "row": {"id": "1", "n": 2}, "lsn": 5}')
    Change(op='insert', row={'id': '1', 'n': '2'}, old=None, lsn=5, committed_at=0)
    """
    try:
        found = json.loads(raw)
        old = None if found.get("old") is None else _texts(found["old"])
        at, committed = int(found.get("lsn", 0)), int(found.get("committed_at", 0))
        return Change(str(found.get("op", "")), _texts(found.get("row") or {}), old, at, committed)
    except (AttributeError, *ESCAPES):
        return Change("", {}, None, 0, 0)


def _texts(row: dict[str, Any]) -> Values:
    return {name: v if v is None or isinstance(v, str) else json.dumps(v) for name, v in row.items()}


def _lsn(position: int) -> str:
    """A position in the WAL as PostgreSQL writes it.

    >>> _lsn(0x1_0000_00FF)
    '1/FF'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def _old(changes: list[Change], kind: pa.DataType) -> pa.Array:
    """The rows before the changes, where they are known."""
    parts = [read_texts(pa.array([(c.old or {}).get(f.name) for c in changes], pa.string()), f) for f in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array([c.old is None for c in changes]))


def _check_level(who: str, connection: Connection) -> None:
    row = connection.execute("select current_setting('wal_level')").fetchone()
    if row and row[0] != "logical":
        raise RunError(f"{who}: the server runs with wal_level = {row[0]}; logical decoding needs wal_level = logical")
