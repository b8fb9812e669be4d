"""The endpoints of servers a user can name: PostgreSQL, Redis, HTTP. Descriptions only, as in `graph/endpoints/basic.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from penstock.errors import FlowError, SchemaError, nearest
from penstock.graph.capabilities import AT_LEAST_ONCE, LEDGER_SINK, SOURCE, Capabilities, TableRows
from penstock.graph.duration import Span, micros
from penstock.graph.endpoints import sniff_postgres
from penstock.graph.endpoints.secrets import Secret, without_password
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.schema import Form, Schema, schema_of
from penstock.graph.spelling import spelled
from penstock.graph.types import BIGINT, STRING, TIMESTAMP, Field, Struct

POSTGRES = ("postgresql", "postgres")
REDIS = ("redis", "rediss")
_SLOT = re.compile(r"[a-z0-9_]+")
MODES = ("append", "upsert", "changelog")
KINDS = ("hash", "string", "list", "stream")
_POSTGRES_SOURCE = replace(SOURCE, package="psycopg", extra="postgres")


@spelled
def postgres(
    url: str,
    table: str = "",
    *,
    by: str | tuple[str, ...],
    query: str = "",
    schema: Form | None = None,
    rows_per_batch: int | None = 100_000,
    partitions: int = 1,
    lag: Span | None = None,
) -> Endpoint:
    """Rows of a PostgreSQL table or a query, those with a greater `by` than the last ones seen. A source.

    Bounded, it is what is there; live, it is what is there and whatever is added. A batch waits for the transactions that may
    still add rows in its range.

    Args:
        url: the address: "postgresql://user@host/database". The password may be in it, or in `PGPASSWORD` or ~/.pgpass.
        table: the table, with its schema in front where it needs one.
        by: a column that only grows, or several.
        query: a select, instead of a table.
        schema: the fields; `ps.postgres_schema(url, table)` asks the server for them.
        rows_per_batch: how many rows a live batch takes at most; None takes all that wait.
        partitions: over how many tasks a batch is read.
        lag: holds newer rows back for so long, where values of `by` are made outside the database.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        FlowError: there is neither or both of a table and a query, no `by`, or a name that PostgreSQL cannot hold.
        SchemaError: there is no schema, or `by` is not in it.

    >>> import penstock as ps
    >>> orders = ps.postgres("postgresql://reader@db/shop", "orders", by="id", schema="id bigint, user string")
    >>> ps.Flow("demo").source("orders", orders)
    Stream('orders': id bigint, user string)
    """
    if bool(table) == bool(query):
        raise FlowError("postgres(): give either a table or query='select ...'")
    keys = _names("postgres()", "by", by)
    check_postgres_names("postgres()", table, *keys)
    if not keys:
        raise FlowError("postgres(): by= names the column (or columns) that only grows, such as by='id'")
    clean, password = without_password(url, POSTGRES, "postgres()")
    options = {
        "url": clean,
        "password": password,
        "table": table or None,
        "query": query or None,
        "by": list(keys),
        "rows_per_batch": rows_per_batch,
        "partitions": partitions,
        "lag": micros(lag, "postgres(): lag") if lag is not None else None,
    }
    made = _given("postgres()", schema, "query=..." if query else repr(table))
    for key in keys:
        made.field(key)
    return Endpoint("postgres", options, made, capabilities=replace(_POSTGRES_SOURCE, runs_locally=True))


def postgres_table(url: str, table: str, schema: Schema) -> Endpoint:
    """A table of PostgreSQL as it is when it is read, whole: the table of a look-up. It has no order, so no flow can follow it."""
    made = postgres(url, table, by=schema.names[0], schema=schema)
    return replace(made, options={**made.options, "by": []})


@spelled
def postgres_changes(
    url: str,
    table: str,
    *,
    slot: str,
    publication: str = "",
    schema: Form | None = None,
    changes_per_batch: int | None = 100_000,
) -> Endpoint:
    """Every insert, update and delete of a PostgreSQL table, in the order of commits, by logical decoding. A source.

    A record has the fields of the table's row (of a delete: those of the row that went, as far as its replica identity tells),
    `op` (insert, update, delete), `old` (the row before, where the server tells), `lsn` (the position of the commit) and
    `committed_at`.

    A live run goes on from the slot, and moves it when a batch is safe. A bounded run, and one without Spark, reads what waits in the slot when it
    starts, and ends; it makes no slot and no publication, and moves none. Without a slot it reads nothing.

    With `on_error="dead_letter"` where it is read, a change with a value that no type of Spark holds, such as a time of the year 20000 or infinity,
    is a dead letter, with its row as the server wrote it.

    Args:
        url: the address: "postgresql://user@host/database".
        table: the table, with its schema in front where it needs one.
        slot: the replication slot, which is made at the first live start; no two flows may share one.
        publication: the publication; one is made at the first live start if none is named.
        schema: the fields of the table; `ps.postgres_schema(url, table)` asks the server for them.
        changes_per_batch: how many changes a live batch takes at most; None takes all that wait.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        FlowError: the name of the slot is not one.
        SchemaError: there is no schema, or the table has a column with the name of a field of a change.

    >>> import penstock as ps
    >>> changes = ps.postgres_changes("postgresql://repl@db/shop", "orders", slot="demo", schema="id bigint")
    >>> ps.Flow("demo").source("changes", changes).schema.names
    ('id', 'op', 'old', 'lsn', 'committed_at')
    """
    if not _SLOT.fullmatch(slot):
        raise FlowError(
            f"postgres_changes({table!r}): a slot's name has lower-case letters, digits and _, got {slot!r}"
        )
    check_postgres_names(f"postgres_changes({table!r})", slot, publication or publication_of(slot))
    clean, password = without_password(url, POSTGRES, "postgres_changes()")
    options = {
        "url": clean,
        "password": password,
        "table": table,
        "slot": slot,
        "publication": publication or None,
        "changes_per_batch": changes_per_batch,
    }
    row = _given(f"postgres_changes({table!r})", schema, repr(table))
    able = replace(_POSTGRES_SOURCE, runs_locally=True, parses=("",))
    return Endpoint("postgres_changes", options, change_schema(row), capabilities=able)


def publication_of(slot: str) -> str:
    """The publication that is made for a slot when none is named."""
    return f"penstock_{slot}"


def change_schema(row: Schema) -> Schema:
    """The schema of the changes of a table with rows of this schema."""
    own = ("op", "old", "lsn", "committed_at")
    taken = [n for n in row.names if n in own]
    if taken:
        raise SchemaError(
            f"postgres_changes(): {', '.join(own)} are the fields of a change, and the table has a column {taken[0]!r}; give the other "
            f"columns alone with schema=..."
        )
    plain = tuple(Field(f.name, f.type) for f in row.fields)
    about = (Field("op", STRING), Field("old", Struct(plain)), Field("lsn", BIGINT), Field("committed_at", TIMESTAMP))
    return Schema(plain + about)


def _given(what: str, schema: Form | None, of: str) -> Schema:
    if schema is None:
        raise SchemaError(
            f"{what} needs a schema: schema='name type, ...', or schema=ps.postgres_schema(url, {of}), which asks the server now"
        )
    return schema_of(schema)


def postgres_schema(url: str, table: str = "", *, query: str = "") -> Schema:
    """The schema of a PostgreSQL table or a query, asked of the server now.

    Args:
        url: the address, as `ps.postgres` takes it.
        table: the table, with its schema in front where it needs one.
        query: a select, instead of a table.

    Returns:
        The schema; types that Spark does not have come as text.

    Raises:
        SchemaError: the server cannot be reached, or has no such table.
        SetupError: the package psycopg is not there.
        FlowError: there is neither or both of a table and a query.

    >>> import penstock as ps
    >>> url = "postgresql://reader@db/shop"
    >>> ps.postgres(url, "orders", schema=ps.postgres_schema(url, "orders"), by="id")  # doctest: +SKIP
    """
    if bool(table) == bool(query):
        raise FlowError("postgres_schema(): give either a table or query='select ...'")
    clean, password = without_password(url, POSTGRES, "postgres_schema()")
    return sniff_postgres.row_schema(clean, password, table, query)


@spelled
def write_postgres(
    url: str,
    table: str,
    *,
    mode: str = "",
    key: str | tuple[str, ...] = (),
    op: str = "op",
    order: str = "",
    create: bool = False,
    workspace: str = "penstock_sinks",
) -> Endpoint:
    """Rows of a PostgreSQL table. A sink that holds exactly once: its ledger is a table in the same transaction.

    Args:
        url: the address: "postgresql://user@host/database". The password may be in it, or in `PGPASSWORD` or ~/.pgpass.
        table: the table, with its schema in front where it needs one.
        mode: "append" adds rows; "upsert" replaces the row of the same key; "changelog" does what `op` says. Else it is upsert when there is
            a key (also the key of a table), and append without.
        key: the field that tells rows apart, or several.
        op: the field that says insert, update_before, update_after or delete, for the mode changelog.
        order: a field that tells which of two rows of one key and batch is the later one.
        create: whether the table is made if it is not there.
        workspace: the schema of the ledger and of what is staged.

    Returns:
        The endpoint, for `Stream.sink`.

    Raises:
        FlowError: the mode is not one, it and the key do not go together, or a name is one that PostgreSQL cannot hold.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> totals = flow.source("words", ps.items(["a"], "word string")).key_by("word").count("n")
    >>> totals.sink("out", ps.write_postgres("postgresql://writer@db/shop", "words", key="word", create=True))
    """
    keys = _names("write_postgres()", "key", key)
    if not table:
        raise FlowError("write_postgres(): table= is the name of a table, got ''")
    check_postgres_names("write_postgres()", table, workspace, *keys, op, order)
    if mode and mode not in MODES:
        raise FlowError(f"write_postgres({table!r}): no mode {mode!r}; {nearest(mode, MODES)}")
    if mode == "changelog" and not keys:
        raise FlowError(f"write_postgres({table!r}): mode='changelog' needs key=, the field that tells rows apart")
    if mode == "append" and keys:
        raise FlowError(
            f"write_postgres({table!r}): mode='append' takes no key; for one row per key take mode='upsert'"
        )
    clean, password = without_password(url, POSTGRES, "write_postgres()")
    options = {
        "url": clean,
        "password": password,
        "table": table,
        "mode": mode or None,
        "key": list(keys),
        "op": op if mode == "changelog" else None,
        "order": order or None,
        "create": create,
        "workspace": workspace,
    }
    able = replace(LEDGER_SINK, row_errors="bisected", runs_locally=True, package="psycopg", extra="postgres")
    rows: TableRows = "added" if mode == "append" else "removed"
    return Endpoint("write_postgres", options, capabilities=replace(able, table_rows=rows))


@spelled
def redis_stream(
    url: str,
    stream: str,
    schema: Form | None,
    *,
    id_field: str = "",
    rows_per_batch: int | None = 100_000,
    accept_loss: bool = False,
) -> Endpoint:
    """The entries of a Redis stream, by their ids: fields are read as the types of the schema. A source.

    Args:
        url: the address: "redis://host:6379/0", or rediss:// with TLS.
        stream: the key of the stream.
        schema: the fields of the entries.
        id_field: the field of the schema that takes the id of the entry.
        rows_per_batch: how many entries a live batch takes at most; None takes all that wait.
        accept_loss: whether the flow goes on when entries were trimmed before it has read them.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        FlowError: the address is not one of Redis.
        SchemaError: the schema cannot be read, or has no field `id_field`.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("clicks", ps.redis_stream("redis://localhost", "clicks", "user string, n bigint"))
    Stream('clicks': user string, n bigint)
    """
    made = schema_of(schema)
    if id_field:
        made.field(id_field)
    clean, password = without_password(url, REDIS, "redis_stream()")
    options = {
        "url": clean,
        "password": password,
        "stream": stream,
        "id_field": id_field or None,
        "rows_per_batch": rows_per_batch,
        "accept_loss": accept_loss or None,
    }
    able = replace(SOURCE, runs_locally=True, parses=("",), package="redis", extra="redis")
    return Endpoint("redis_stream", options, made, capabilities=able)


@spelled
def write_redis(
    url: str,
    kind: str = "hash",
    *,
    key: str | tuple[str, ...] = (),
    name: str = "",
    value: str = "",
    max_length: int | None = None,
    accept_rollback: bool = False,
) -> Endpoint:
    """Rows as hashes or strings (one per key, replaced), or at the end of a list or a stream of Redis. A sink.

    The Redis key is `name`, and after it, with a colon between, the values of the `key` fields. A hash and a stream entry hold the other fields;
    a string and a list entry hold the field `value`, or the row as JSON. The hash or string of a row that goes from a table is deleted.

    Args:
        url: the address: "redis://host:6379/0", or rediss:// with TLS.
        kind: hash, string, list or stream.
        key: the field, or fields, that make the Redis key.
        name: what the Redis key begins with; of a list or a stream the Redis key itself, where there are no key fields.
        value: the field that a string or a list entry holds; else it is the row as JSON.
        max_length: how long a list or a stream may get; what is older is trimmed.
        accept_rollback: allows exactly_once on a server that may forget its last second in a crash.

    Returns:
        The endpoint, for `Stream.sink`.

    Raises:
        FlowError: the kind is not one, or needs a key or a name.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> totals = flow.source("words", ps.items(["a"], "word string")).key_by("word").count("n")
    >>> totals.sink("out", ps.write_redis("redis://localhost", key="word", name="count"))
    """
    if kind not in KINDS:
        raise FlowError(f"write_redis(): no kind {kind!r}; {nearest(kind, KINDS)}")
    keys = _names("write_redis()", "key", key)
    if kind in ("hash", "string") and not keys:
        raise FlowError(f"write_redis(kind={kind!r}): key= names the field (or fields) that make the Redis key")
    if kind in ("list", "stream") and not (keys or name):
        raise FlowError(f"write_redis(kind={kind!r}): name= is the Redis key of the {kind}")
    clean, password = without_password(url, REDIS, "write_redis()")
    options = {
        "url": clean,
        "password": password,
        "kind": kind,
        "key": list(keys),
        "name": name,
        "value": value or None,
        "max_length": max_length,
        "accept_rollback": accept_rollback,
    }
    rows: TableRows = "removed" if kind in ("hash", "string") else "added"
    able = replace(LEDGER_SINK, row_errors="staged", runs_locally=True, package="redis", extra="redis", table_rows=rows)
    return Endpoint("write_redis", options, capabilities=able)


@spelled
def write_http(
    url: str,
    *,
    per_request: int = 1,
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
    concurrency: int = 4,
    retries: int = 8,
    timeout: Span = "30s",
) -> Endpoint:
    """Sends JSON to an address: one record per request, or a list of them. A sink that holds at least once.

    Each request carries an Idempotency-Key that stays the same when it is sent again. Answers 408, 425, 429 and 5xx, and lost connections,
    are tried again with growing pauses. Of the address only the host is ever shown, of the headers nothing.

    Args:
        url: the address, http or https.
        per_request: how many records a request holds at most; with more than one its body is a list.
        headers: further headers, such as {"Authorization": "Bearer ..."}.
        method: the method of the requests.
        concurrency: how many requests a task has under way.
        retries: how often a request is tried again.
        timeout: how long an answer may take.

    Returns:
        The endpoint, for `Stream.sink`.

    Raises:
        FlowError: the address or a number is not one.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> words = flow.source("words", ps.items(["a"], "word string"))
    >>> words.sink("out", ps.write_http("https://example.org/words", per_request=100))
    """
    parts = urlsplit(without_password(url, ("http", "https"), "write_http()")[0])
    if per_request < 1 or concurrency < 1:
        raise FlowError("write_http(): per_request and concurrency are 1 or more")
    options = {
        "host": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        "secret_url": Secret(url),
        "secret_headers": {name: Secret(text) for name, text in (headers or {}).items()},
        "per_request": per_request,
        "method": method.upper(),
        "concurrency": concurrency,
        "retries": retries,
        "timeout": micros(timeout, "write_http(): timeout") / 1_000_000,
    }
    able = Capabilities(
        writes=True,
        deliveries=(AT_LEAST_ONCE,),
        weakness="a server may have acted on a request whose answer was lost; it gets an Idempotency-Key",
        row_errors="reported",
        runs_locally=True,
    )
    return Endpoint("write_http", options, capabilities=able)


def check_postgres_names(what: str, *names: str) -> None:
    """Refuses names that PostgreSQL cannot hold as they are: longer than 63 bytes it cuts them, NUL and what is no UTF-8 it refuses."""
    for name in names:
        for part in name.split(".") if "." in name else (name,):
            wrong = _wrong_name(part.strip('"'))
            if wrong:
                raise FlowError(f"{what}: the name {name!r} {wrong}")


def _wrong_name(name: str) -> str:
    if "\0" in name:
        return "has a NUL in it, which no PostgreSQL name has; leave it out"
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        return "has half of a character in it (a lone surrogate), which no PostgreSQL name has; leave it out"
    if "%" in name:
        return "has a % in it, which the client takes for a parameter; use another name, or a view over the table"
    size = len(name.encode(errors="surrogatepass"))
    return f"has {size} bytes, and PostgreSQL cuts names after 63; use a shorter one" if size > 63 else ""


def _names(what: str, option: str, given: str | Iterable[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(n, str) and n for n in names):
        raise FlowError(f"{what}: {option} is a field's name, or several, got {given!r}")
    return names
