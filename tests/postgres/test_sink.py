"""What the PostgreSQL sink does beyond the contract: keys, changes, faults of the server and of the network."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import penstock as ps
from penstock.connectors.base import SinkContext
from penstock.connectors.postgres.ledger import Ledger
from penstock.connectors.postgres.sink import PostgresSink
from penstock.errors import FlowError, PenstockError, RunError
from penstock.graph.endpoints.servers import write_postgres
from penstock.graph.nodes import Endpoint
from penstock.graph.picture.describe import describe_graph
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.spark.run import run_bounded, run_live
from penstock.testing.connectors import OpenSink, SinkContract
from penstock.testing.servers import Server, postgres_server
from tests.postgres.proxy import Proxy

if TYPE_CHECKING:
    from tests.postgres.conftest import Database

spark = pytest.mark.spark


def opened(endpoint: Endpoint, session: Any, schema: str = "id bigint, word string") -> OpenSink:
    return OpenSink(SinkContract(), endpoint, session, schema)


def rows(db: Database, query: str = "select * from rows order by 1") -> list[tuple[Any, ...]]:
    return db.execute(query.encode()).fetchall()


def open_error(endpoint: Endpoint, schema: str = "id bigint, word string") -> str:
    sink = PostgresSink()
    with pytest.raises(PenstockError) as failed:
        sink.open(SinkContext("out", "flow", dict(endpoint.options), schema_of(schema), "life", "exactly_once"))
    sink.close()
    return str(failed.value)


def test_what_does_not_fit_is_said_before_the_first_batch(url: str, db: Database) -> None:
    assert 'create table if not exists "rows" ("id" bigint, "word" text)' in open_error(write_postgres(url, "rows"))
    db.execute("create table rows (id bigint, wrod text, made timestamptz not null)")
    assert "no column 'word'; did you mean 'wrod'" in open_error(write_postgres(url, "rows"))
    db.execute("alter table rows rename wrod to word")
    assert "column 'made' of 'rows' must not be null" in open_error(write_postgres(url, "rows"))
    db.execute("alter table rows drop made")
    error = open_error(write_postgres(url, "rows", key="id"))
    assert 'create unique index on "rows" ("id")' in error
    assert "no field 'idd'" in open_error(write_postgres(url, "rows", key="idd"))
    assert "bears the name of the database user" in open_error(write_postgres(url, "rows", workspace="penstock"))


def test_a_workspace_that_is_there_needs_no_right_to_make_one(url: str, db: Database) -> None:
    role = f"r{uuid.uuid4().hex[:8]}"
    db.execute(f"create role {role}; create schema aside; grant usage, create on schema aside to {role}")
    try:
        db.execute(f"set role {role}")
        Ledger("aside").make(db)
    finally:
        db.execute(f"reset role; drop schema aside cascade; drop role {role}")


def test_what_cannot_be_is_said_when_the_flow_is_built() -> None:
    with pytest.raises(FlowError, match="no mode 'upsrt'; did you mean 'upsert'"):
        write_postgres("postgresql://h/d", "rows", mode="upsrt")
    with pytest.raises(FlowError, match="needs key="):
        write_postgres("postgresql://h/d", "rows", mode="changelog")
    with pytest.raises(FlowError, match="takes no key"):
        write_postgres("postgresql://h/d", "rows", mode="append", key="id")


def test_the_password_is_never_shown(url: str) -> None:
    wrong = url.replace("geheim", "geheim-falsch")
    endpoint = write_postgres(wrong, "rows", create=True)
    error = open_error(endpoint)
    assert "password authentication failed" in error
    flow = ps.Flow("secret")
    flow.source("in", ps.items([], "id bigint, word string")).sink("out", endpoint)
    for text in (error, repr(endpoint), str(describe_graph(flow.graph)), str(flow)):
        assert "geheim" not in text


def test_a_server_that_may_forget_is_refused() -> None:
    with postgres_server(fsync="off") as server:
        assert "fsync = off" in open_error(write_postgres(server.url, "rows", create=True))


@spark
def test_upsert_keeps_the_last_row_of_a_key(url: str, db: Database, penstock_spark: Any) -> None:
    made = opened(write_postgres(url, "rows", key="id", create=True), penstock_spark)
    made.write(0, [(1, "a"), (2, "b"), (1, "c")], parts=1)
    made.write(1, [(2, None), (3, "d")])
    assert rows(db) == [(1, "c"), (2, None), (3, "d")]
    made.connector.close()


@spark
def test_order_says_which_row_is_later(url: str, db: Database, penstock_spark: Any) -> None:
    endpoint = write_postgres(url, "rows", key="id", order="at")
    db.execute("create table rows (id bigint primary key, word text)")
    made = opened(endpoint, penstock_spark, "id bigint, word string, at int")
    made.write(0, [(1, "late", 9), (1, "early", 2), (2, "only", 0), (1, "middle", 5)], parts=3)
    assert rows(db) == [(1, "late"), (2, "only")]
    made.connector.close()


@spark
def test_a_changelog_does_what_it_says(url: str, db: Database, penstock_spark: Any) -> None:
    endpoint = write_postgres(url, "rows", mode="changelog", key="id", create=True)
    made = opened(endpoint, penstock_spark, "op string, id bigint, word string")
    made.write(0, [("insert", 1, "a"), ("insert", 2, "b"), ("insert", 3, "c"), ("delete", 3, None)], parts=1)
    assert rows(db) == [(1, "a"), (2, "b")]
    made.write(1, [("delete", 1, None), ("update_before", 2, "b"), ("update", 2, "B"), ("+I", 4, "d")], parts=1)
    made.write(2, [("delete", 9, None), ("delete", 4, None), ("insert", 4, "again")], parts=1)
    assert rows(db) == [(2, "B"), (4, "again")]
    with pytest.raises(RunError, match="op says 'upsertt'"):
        made.write(3, [("insert", 5, "e"), ("upsertt", 6, "f")])
    assert rows(db) == [(2, "B"), (4, "again")]
    made.connector.close()


@spark
def test_a_row_that_does_not_fit_stops_the_batch_before_anything_is_shown(
    url: str, db: Database, penstock_spark: Any
) -> None:
    db.execute("create table rows (id smallint, word varchar(5))")
    made = opened(write_postgres(url, "rows"), penstock_spark)
    made.write(0, [(1, "a")])
    with pytest.raises(Exception, match="value too long for type character varying"):
        made.write(1, [(2, "b"), (3, "far too long")])
    with pytest.raises(Exception, match="out of range"):
        made.write(1, [(2, "b"), (70_000, "c")])
    made.write(1, [(2, "b")])
    assert rows(db) == [(1, "a"), (2, "b")]
    assert rows(db, "select relname from pg_class where relname like 'stage%'") == []
    made.connector.close()


@spark
@pytest.mark.parametrize("delivered", [True, False])
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_commit_whose_answer_is_lost_is_done_once(
    url: str, db: Database, postgres: Server, penstock_spark: Any, delivered: bool, delivery: str
) -> None:
    """The connection breaks just before the server gets the COMMIT, and just after."""
    with Proxy(postgres.port, b"COMMIT", delivered=delivered) as proxy:
        through = url.replace(f":{postgres.port}/", f":{proxy.address[1]}/")
        made = opened(write_postgres(url, "rows", create=True), penstock_spark)
        made.delivery = delivery
        made.connector.open(made.context)
        staged = made.stage(0, [(1, "a"), (2, "b")])
        sink = made.connector
        assert isinstance(sink, PostgresSink)
        assert sink.link is not None
        sink.link.close()
        sink.link.address = type(sink.link.address)(
            write_postgres(through, "rows").options["url"], sink.link.address.password
        )
        staged.commit()
        assert proxy.cuts == 1
        assert rows(db) == [(1, "a"), (2, "b")]
        made.write(1, [(3, "c")])
        assert rows(db) == [(1, "a"), (2, "b"), (3, "c")]
        sink.close()


@spark
def test_a_server_that_crashes_between_staging_and_commit_loses_nothing(penstock_spark: Any) -> None:
    """What is staged does not survive the crash; that is noticed, and the batch runs again."""
    with postgres_server() as server:
        made = opened(write_postgres(server.url, "rows", create=True), penstock_spark)
        made.write(0, [(1, "a")])
        staged = made.stage(1, [(2, "b"), (3, "c")])
        server.kill()
        server.start()
        with pytest.raises(RunError, match="2 rows of batch 1 were staged, and 0 are there"):
            staged.commit()
        staged.abort()
        made.write(1, [(2, "b"), (3, "c")])
        with psycopg.connect(server.url) as db:
            assert rows(db) == [(1, "a"), (2, "b"), (3, "c")]
        made.connector.close()


@spark
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "at_most_once"])
def test_a_live_flow_writes_running_totals_by_their_key(
    url: str, db: Database, penstock_spark: Any, tmp_path: Path, delivery: str
) -> None:
    words = ["a", "b", "a", "c", "a", "b"]
    flow = ps.Flow("totals")
    counted = flow.source("words", ps.items(words, "word string", batches=3)).key_by("word").count("n")
    counted.sink("out", write_postgres(url, "totals", create=True), delivery=delivery)
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait()
    assert rows(db, "select word, n from totals order by 1") == [("a", 3), ("b", 2), ("c", 1)]


@spark
def test_a_row_that_leaves_a_table_is_deleted(url: str, db: Database, penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("leaving")
    given = [
        ("insert", 1, 9),
        ("insert", 2, 8),
        ("insert", 3, 7),
        ("update_after", 1, 1),
        ("delete", 2, 8),
        ("update_after", 3, 6),
    ]
    source = flow.source("given", ps.items(given, "op string, id bigint, n bigint", batches=2))
    table = source.as_table("table", "id")
    table.where("large", "n > 5").sink("out", write_postgres(url, "large", create=True))
    table.sink("all", write_postgres(url, "everything", create=True))
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, mode="once")).wait(pause=0.02)
    assert rows(db, "select id, n from large order by 1") == [(3, 6)]
    assert rows(db, "select id, n from everything order by 1") == [(1, 1), (3, 6)]


@spark
def test_bounded_runs_add_up(url: str, db: Database, penstock_spark: Any) -> None:
    flow = ps.Flow("bounded")
    flow.source("in", ps.items([(1, "a"), (2, "b")], "id bigint, word string")).sink(
        "out", write_postgres(url, "rows", create=True)
    )
    run_bounded(flow.graph, penstock_spark)
    run_bounded(flow.graph, penstock_spark)
    assert len(rows(db)) == 4
