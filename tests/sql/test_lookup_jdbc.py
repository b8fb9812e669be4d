"""A look-up in a table of PostgreSQL, in Flink's words: what is planned, without a server."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.graph.nodes import JoinStatic
from penstock.testing import Driver

DIM = (
    "CREATE TABLE dim (id INT, name STRING{key}) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'names', "
    "'username' = 'ada', 'password' = 'hush', 'driver' = 'org.postgresql.Driver'{more});"
)
LOOK = """CREATE VIEW timed AS SELECT *, PROCTIME() AS proctime FROM orders;
SELECT o.n, d.name FROM timed AS o LEFT JOIN dim FOR SYSTEM_TIME AS OF o.proctime AS d ON o.id = d.id;"""


def planned(key: str = "", more: str = "") -> ps.Flow:
    flow = ps.Flow("looking")
    orders = flow.source("orders", ps.items([], "id int, n int"))
    return ps.sql_flow(DIM.format(key=key, more=more) + LOOK, {"orders": orders})


def look_up(flow: ps.Flow) -> JoinStatic:
    (node,) = (n for n in flow.graph.nodes if isinstance(n, JoinStatic))
    return node


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id) NOT ENFORCED"])
def test_the_table_is_read_whole_in_every_batch_without_a_growing_column(key: str) -> None:
    flow = planned(key)
    node = look_up(flow)
    shown = node.settings()
    assert (node.how, node.on, shown["refresh"]) == ("left", ("id",), "every batch")
    assert (shown["with"], shown["table"], shown["by"]) == ("postgres", "names", "[]")
    assert [s.name for s in flow.graph.sources] == ["orders"]
    assert "hush" not in repr(shown)


@pytest.mark.parametrize(
    ("more", "refresh"),
    [
        (", 'lookup.cache' = 'NONE'", 0),
        (", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '100'", 0),
        (", 'lookup.cache' = 'partial', 'lookup.partial-cache.expire-after-write' = '10 min'", 600_000_000),
        (", 'lookup.cache.max-rows' = '5000', 'lookup.cache.ttl' = '30s', 'lookup.max-retries' = '3'", 30_000_000),
        (", 'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '1 h'", 3_600_000_000),
        (", 'lookup.cache' = 'FULL'", None),
        (", 'scan.by' = 'id'", 0),
    ],
)
def test_a_cache_says_when_it_is_read_again(more: str, refresh: int | None) -> None:
    assert look_up(planned(more=more)).refresh == refresh


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (", 'lookup.cache' = 'SOME'", "option 'lookup.cache': expected 'NONE', 'PARTIAL' or 'FULL', got 'SOME'"),
        (
            ", 'lookup.cache.ttl' = 'long'",
            "option 'lookup.cache.ttl': expected a span of time such as '10 min', got 'long'",
        ),
        (", 'lookup.cash' = 'FULL'", "no option 'lookup.cash'; did you mean 'lookup.cache'"),
    ],
)
def test_options_that_do_not_fit_are_named(more: str, said: str) -> None:
    with pytest.raises(SqlError) as raised:
        planned(more=more)
    assert said in str(raised.value)


def test_another_database_than_postgresql_is_refused() -> None:
    text = DIM.format(key="", more="").replace("postgresql://", "mysql://") + LOOK
    with pytest.raises(SqlError, match="postgresql"):
        ps.sql_flow(text, {"orders": ps.items([], "id int, n int")})


def test_a_scan_without_a_growing_column_says_how_a_look_up_is_written() -> None:
    with pytest.raises(SqlError, match="only a look-up, JOIN"):
        ps.sql_flow(DIM.format(key="", more="") + "SELECT name FROM dim")


def test_rows_of_a_test_stand_for_the_table() -> None:
    flow = planned()
    driver = Driver(flow, {look_up(flow).name: [(1, "Ada")]})
    driver.push("orders", (1, 10), (2, 20))
    (rows,) = driver.barrier().values()
    assert sorted(map(tuple, rows)) == [(10, "Ada"), (20, None)]
