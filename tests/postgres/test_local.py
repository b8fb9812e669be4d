"""PostgreSQL read and written without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import penstock as ps
from penstock.errors import RunError
from penstock.testing import run_local

if TYPE_CHECKING:
    from tests.postgres.conftest import Database


def test_a_local_run_reads_a_table_and_writes_one(url: str, db: Database) -> None:
    db.execute("create table clicks (id bigserial primary key, word text, at timestamptz default now())")
    db.execute("insert into clicks (word) select (array['a', 'b', 'c'])[1 + i % 3] from generate_series(1, 300) i")
    flow = ps.Flow("local")
    clicks = flow.source("clicks", ps.postgres(url, "clicks", by="id", schema="id bigint, word string"))
    clicks.key_by("word").count("n").sink("counts", ps.write_postgres(url, "counts", create=True))
    clicks.select("words", "id", "word").sink("copies", ps.write_postgres(url, "copies", create=True))
    for _ in range(2):
        run_local(flow, write=True)
    assert db.execute("select word, n from counts order by word").fetchall() == [("a", 100), ("b", 100), ("c", 100)]
    assert db.execute("select count(*), count(distinct id) from copies").fetchone() == (600, 300)


def test_a_row_that_the_server_refuses_leaves_nothing(url: str, db: Database) -> None:
    db.execute("create table small (n bigint check (n < 10))")
    flow = ps.Flow("refused")
    flow.source("rows", ps.items([(1,), (50,)], "n bigint")).sink("out", ps.write_postgres(url, "small"))
    with pytest.raises(RunError, match="small"):
        run_local(flow, write=True)
    assert db.execute("select count(*) from small").fetchone() == (0,)
