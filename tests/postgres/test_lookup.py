"""A table of PostgreSQL that SQL looks up in: as it is in every batch, with Spark and without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.graph.run.spec import RunSpec
from penstock.spark.run import run_live
from penstock.testing import Driver
from tests.e2e.test_run import rows

if TYPE_CHECKING:
    from tests.postgres.conftest import Database

ORDERS = "id bigint, n bigint"
LOOK = """
CREATE TABLE names (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
    WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'names'{more});
CREATE VIEW timed AS SELECT *, PROCTIME() AS proctime FROM orders;
CREATE TABLE found (n BIGINT, name STRING) WITH ('connector' = {sink});
INSERT INTO found SELECT o.n, d.name FROM timed AS o LEFT JOIN names FOR SYSTEM_TIME AS OF o.proctime AS d ON o.id = d.id;
"""


def looking(url: str, more: str = "") -> Driver:
    flow = ps.Flow("looking")
    orders = flow.source("orders", ps.items([], ORDERS))
    return Driver(ps.sql_flow(LOOK.format(url=url, more=more, sink="'print'"), {"orders": orders}))


def names(db: Database) -> None:
    db.execute("create table names (id bigint primary key, name text)")
    db.execute("insert into names values (1, 'Ada'), (2, null)")


def after_a_change(db: Database, driver: Driver) -> list[tuple[Any, ...]]:
    """What is found before and after a row of the table changes and one comes."""
    driver.push("orders", (1, 10), (2, 20), (3, 30), (None, 40))
    driver.barrier()
    db.execute("update names set name = 'Lovelace' where id = 1")
    db.execute("insert into names values (3, 'Eve')")
    driver.push("orders", (1, 11), (3, 31))
    (found,) = driver.barrier().values()
    return [tuple(row) for row in found]


BEFORE = [(10, "Ada"), (20, None), (30, None), (40, None)]


def test_a_batch_finds_what_the_table_holds_when_it_begins(url: str, db: Database) -> None:
    names(db)
    assert after_a_change(db, looking(url)) == [*BEFORE, (11, "Lovelace"), (31, "Eve")]


def test_a_cache_holds_for_as_long_as_it_says(url: str, db: Database) -> None:
    names(db)
    driver = looking(url, ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.expire-after-write' = '1 h'")
    assert after_a_change(db, driver) == [*BEFORE, (11, "Ada"), (31, None)]
    driver.clock.advance(3600)
    driver.push("orders", (1, 12))
    (found,) = driver.barrier().values()
    assert tuple(found[-1]) == (12, "Lovelace")


@pytest.mark.spark
def test_a_live_run_finds_what_its_batches_before_have_written(
    url: str, db: Database, penstock_spark: Any, tmp_path: Path
) -> None:
    db.execute("create table names (id bigint primary key, name text)")
    sink = f"'filesystem', 'path' = '{tmp_path / 'found'}', 'format' = 'json'"
    text = LOOK.format(url=url, more="", sink=sink) + "INSERT INTO names SELECT id, concat('w', n) FROM orders;"
    flow = ps.sql_flow(text, {"orders": ps.items([(1, 1), (1, 2), (1, 3)], ORDERS, batches=3)})
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait(pause=0.02)
    found = rows(tmp_path / "found")
    assert sorted((row["n"], row.get("name")) for row in found) == [(1, None), (2, "w1"), (3, "w2")]
