"""SQL on every runtime: what a statement means is what its steps mean."""

from __future__ import annotations

import datetime

import pytest

import penstock as ps
from tests.same.conftest import Case

NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
BIDS = "auction string, bidder int, price int, ts timestamp"
AUCTIONS = "id string, category int, ts timestamp"


def at(seconds: int) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


GIVEN: dict[str, list[object]] = {
    "bids": [("a", 1, 10, at(1)), ("b", 2, 5, at(2)), ("a", 3, 30, at(12)), ("b", 1, 30, at(14)), ("c", 1, 1, at(31))],
    "auctions": [("a", 10, at(0)), ("b", 11, at(1)), ("d", 10, at(5))],
}


def flow_of(text: str) -> ps.Flow:
    """A flow whose sink is `result`."""
    flow = ps.Flow("sql")
    bids = flow.source("bids", ps.items([], BIDS), event_time="ts", lateness="1m")
    tables: dict[str, ps.Stream] = {"bids": bids}
    if "auctions" in text:
        tables["auctions"] = flow.source("auctions", ps.items([], AUCTIONS), event_time="ts", lateness="1m")
    return ps.sql_flow(text, tables)


def given(text: str) -> dict[str, list[object]]:
    return {name: rows for name, rows in GIVEN.items() if name in text}


@pytest.mark.live
def test_a_query_over_a_join_over_a_filter(same: Case) -> None:
    text = """
        SELECT category, max(top) AS best, count(*) AS n
        FROM (SELECT a.category, b.auction, max(b.price) AS top FROM bids b JOIN auctions a ON a.id = b.auction
              WHERE b.price > 1 GROUP BY a.category, b.auction)
        GROUP BY category"""
    same.check(flow_of(text), given(text), {"result": [(10, 30, 1), (11, 30, 1)]})


def test_a_total_over_no_rows_is_a_row_once_the_input_is_over(same: Case) -> None:
    text = """
        SELECT 'rows' AS what, count(*) AS n, sum(price) AS total, count(DISTINCT auction) AS auctions FROM bids WHERE price > 1000
        UNION ALL
        SELECT 'groups', count(*), sum(top), count(DISTINCT auction)
        FROM (SELECT auction, max(price) AS top FROM bids GROUP BY auction HAVING max(price) > 1000)"""
    wanted = [] if same.runtime == "live" else [("rows", 0, None, 0), ("groups", 0, None, 0)]
    same.check(flow_of(text), given(text), {"result": wanted})


@pytest.mark.live
def test_a_window_and_the_best_of_each(same: Case) -> None:
    text = """
        SELECT auction, n, window_start FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, auction) AS rn
            FROM (SELECT auction, count(*) AS n, window_start, window_end
                  FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
                  GROUP BY auction, window_start, window_end))
        WHERE rn = 1"""
    expected = [("a", 1, at(-10)), ("a", 2, at(0)), ("a", 1, at(10)), ("c", 1, at(20)), ("c", 1, at(30))]
    same.check(flow_of(text), given(text), {"result": expected})


def test_an_outer_join_within_a_time(same: Case) -> None:
    text = """
        SELECT a.id, b.price FROM auctions a LEFT JOIN bids b
        ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"""
    same.check(flow_of(text), given(text), {"result": [("a", 10), ("b", 5), ("d", None)]})


def test_subqueries(same: Case) -> None:
    text = """
        SELECT auction, price FROM bids b
        WHERE price >= (SELECT avg(price) FROM bids) AND EXISTS (SELECT 1 FROM auctions a WHERE a.id = b.auction)
        AND auction NOT IN (SELECT id FROM auctions WHERE category = 11)"""
    same.check(flow_of(text), given(text), {"result": [("a", 30)]})


def test_the_first_row_of_each(same: Case) -> None:
    text = """
        SELECT auction, bidder FROM bids
        QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, bidder) = 1"""
    same.check(flow_of(text), given(text), {"result": [("a", 3), ("b", 1), ("c", 1)]})


def test_sets(same: Case) -> None:
    text = (
        "SELECT auction FROM bids EXCEPT SELECT id FROM auctions UNION ALL SELECT id FROM auctions WHERE category = 10"
    )
    same.check(flow_of(text), given(text), {"result": ["c", "a", "d"]})


@pytest.mark.live
def test_a_row_pattern_in_sql(same: Case) -> None:
    text = """
        SELECT * FROM bids MATCH_RECOGNIZE (
            PARTITION BY auction ORDER BY ts
            MEASURES FIRST(low.price) AS first_price, LAST(high.price) AS last_price
            PATTERN (low high) DEFINE low AS price <= 10, high AS price > PREV(price)
        ) AS m"""
    same.check(flow_of(text), given(text), {"result": [("a", 10, 30), ("b", 5, 30)]})


def test_keys_that_are_not_exact(same: Case) -> None:
    text = """
        SELECT x, n, s, count(*) AS m FROM (
            SELECT x, count(*) AS n, sum(DISTINCT bidder) AS s
            FROM (SELECT bidder, CASE WHEN price = 5 THEN CAST('nan' AS DOUBLE) WHEN price = 30 THEN price * -0.0 ELSE price * 0.1 END AS x FROM bids)
            GROUP BY x)
        GROUP BY x, n, s"""
    expected = [(1.0, 1, 1, 1), (float("nan"), 1, 2, 1), (0.0, 2, 4, 1), (0.1, 1, 1, 1)]
    same.check(flow_of(text), given(text), {"result": expected})


def test_not_like_and_months(same: Case) -> None:
    text = "SELECT bidder, ts + INTERVAL '1' MONTH AS later FROM bids WHERE auction NOT LIKE 'a%' AND price BETWEEN SYMMETRIC 40 AND 2"
    month = datetime.timedelta(days=31)
    same.check(flow_of(text), given(text), {"result": [(2, at(2) + month), (1, at(14) + month)]})


def test_lateral_queries_values_of_groups_and_what_is_made_in_python(same: Case) -> None:
    text = """
        SELECT z.auction, z.n, z.best, JSON_OBJECT('best' VALUE z.best, 'c' VALUE a.category) AS made, PRINTF('%s:%03d', a.id, z.best) AS shown,
               CURRENT_TIMESTAMP = NOW() AND CURRENT_DATE > DATE '2020-01-01' AS now
        FROM auctions a, LATERAL (SELECT auction, price AS best, bidder AS n FROM bids b WHERE b.auction = a.id AND b.price > 5) AS z"""
    rows = [("a", 1, 10), ("a", 3, 30), ("b", 1, 30)]
    wanted = [
        (name, n, best, f'{{"best":{best},"c":{10 if name == "a" else 11}}}', f"{name}:{best:03}", True)
        for name, n, best in rows
    ]
    same.check(flow_of(text), given(text), {"result": wanted})


def test_grouping_sets_of_a_window(same: Case) -> None:
    text = """
        SELECT window_start, auction, SUM(price) AS total
        FROM TABLE(TUMBLE((SELECT * FROM bids WHERE price > 1), DESCRIPTOR(ts), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end, ROLLUP (auction)"""
    first = [(at(0), "a", 10), (at(0), "b", 5), (at(0), None, 15)]
    same.check(
        flow_of(text), given(text), {"result": [*first, (at(10), "a", 30), (at(10), "b", 30), (at(10), None, 60)]}
    )


@pytest.mark.live
def test_a_subquery_in_a_condition_that_may_be_unknown(same: Case) -> None:
    text = """
        SELECT auction, top, auction IN (SELECT id FROM auctions) AS known,
            CASE WHEN EXISTS (SELECT 1 FROM auctions a WHERE a.category > t.top) THEN 'low'
                 WHEN top >= ALL (SELECT category FROM auctions) THEN 'high' END AS size
        FROM (SELECT auction, max(price) AS top FROM bids GROUP BY auction) t"""
    expected = [("a", 30, True, "high"), ("b", 30, True, "high"), ("c", 1, False, "low")]
    same.check(flow_of(text), given(text), {"result": expected})


def test_a_group_by_what_a_subquery_says(same: Case) -> None:
    text = """
        SELECT auction IN (SELECT id FROM auctions WHERE category = 10) AS ten, count(*) AS n, max(price) AS top
        FROM bids GROUP BY auction IN (SELECT id FROM auctions WHERE category = 10)"""
    same.check(flow_of(text), given(text), {"result": [(True, 2, 30), (False, 3, 30)]})


def test_outer_joins_of_what_subqueries_say_of_a_side_and_of_pairs(same: Case) -> None:
    text = """
        SELECT a.id, b.price, c.id AS other FROM auctions a
        LEFT JOIN bids b ON a.id = b.auction AND b.price >= (SELECT max(price) FROM bids)
        FULL JOIN auctions c ON a.id = c.id AND EXISTS (SELECT 1 FROM bids x WHERE x.price < a.category AND x.auction = c.id)"""
    expected = [("a", 30, None), ("b", 30, "b"), ("d", None, None), (None, None, "a"), (None, None, "d")]
    same.check(flow_of(text), given(text), {"result": expected})


def test_a_value_that_reads_the_query_around_it_by_more_than_equalities(same: Case) -> None:
    text = """
        SELECT id, category, (SELECT count(*) FROM bids b WHERE b.price > a.category - 6) AS dearer,
            (SELECT max(b.price + a.category) FROM bids b WHERE b.auction = a.id AND b.price <> 10) AS best
        FROM auctions a"""
    expected = [("a", 10, 4, 40), ("b", 11, 3, 41), ("d", 10, 4, None)]
    same.check(flow_of(text), given(text), {"result": expected})


@pytest.mark.live
def test_two_inserts_of_tables_into_one(same: Case) -> None:
    text = """
        CREATE TABLE result (name STRING, n BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector' = 'print');
        INSERT INTO result SELECT auction, count(*) FROM bids GROUP BY auction;
        INSERT INTO result SELECT id, max(category) FROM auctions WHERE id <> 'a' GROUP BY id;"""
    same.check(flow_of(text), given(text), {"result": [("a", 2), ("b", 11), ("c", 1), ("d", 10)]})
