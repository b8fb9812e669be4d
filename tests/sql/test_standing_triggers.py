"""Standing queries with triggers, snapshots and ends. No JVM."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from typing import Any

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.graph.endpoints.log import RULE_CHANGES
from penstock.local.bounded import read_source
from penstock.testing import BARRIER, Driver, run_local

NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
ORDERS = "who string, amount bigint, ts timestamp"
TOPIC = "SET 'standing.queries.topic' = 'changes';"
TOTALS = "CREATE STANDING QUERY {} AS SELECT who, sum(amount) AS total FROM orders WHERE who = '{}' GROUP BY who {} INTO totals"
ROWS = "CREATE STANDING QUERY {} AS SELECT who, amount FROM orders WHERE amount > {} {} INTO alerts"


def flow(text: str, *, timed: bool = False) -> ps.Flow:
    orders: Any = ps.items([], ORDERS)
    if timed:
        orders = ps.Flow("f").source("orders", orders, event_time="ts")
    return ps.sql_flow(text, {"orders": orders, "totals": ps.console(), "alerts": ps.console()})


def started(text: str, *, timed: bool = False) -> Driver:
    made = flow(text, timed=timed)
    driver = Driver(made)
    (own,) = [source for source in made.graph.sources if source.name == "queries"]
    driver.push("queries", *read_source(own))
    driver.barrier()
    return driver


def at(seconds: int) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


def order(who: str, amount: int, seconds: int = 0) -> tuple[Any, ...]:
    return (who, amount, at(seconds))


def change(query: str, text: str | None = None, op: str = "add") -> dict[str, Any]:
    return dict.fromkeys(RULE_CHANGES.names) | {"rule": query, "op": op, "text": text, "by": "me"}


class Seen:
    """What a sink gets, batch by batch."""

    def __init__(self, driver: Driver, sink: str) -> None:
        self.driver, self.sink = driver, sink
        self.before: Counter[tuple[Any, ...]] = Counter()

    def next(
        self, *orders: tuple[Any, ...], seconds: float = 0, changes: tuple[dict[str, Any], ...] = ()
    ) -> list[tuple[Any, ...]]:
        self.driver.clock.advance(seconds)
        if changes:
            self.driver.push("queries.topic", *changes)
        self.driver.push("orders", *orders)
        found = Counter(tuple(row) for row in self.driver.barrier()[self.sink])
        before, self.before = self.before, found
        return sorted((found - before).elements())


def kept(driver: Driver, part: str) -> dict[Any, Any]:
    """What steps keep whose names hold a part."""
    states = {name: state for name, state in driver.run.states.items() if part in name}
    return {(name, key): value for name, state in states.items() for key, value in state.items()}


def test_every_emits_what_has_changed_at_multiples_of_processing_time() -> None:
    driver = started(TOTALS.format("anns", "ann", "EVERY 5 MINUTES"))
    driver.clock.advance(-driver.clock() % 300)
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 1), order("ann", 2), seconds=60) == []
    assert seen.next(order("ann", 3), seconds=60) == []
    assert seen.next(seconds=300) == [("anns", "ann", 6)]
    assert seen.next(seconds=300) == []
    assert seen.next(order("ann", 4), seconds=1) == []
    assert seen.next(seconds=300) == [("anns", "ann", 10)]


def test_rows_in_each_batch_put_no_firing_off() -> None:
    seen = Seen(started(TOTALS.format("anns", "ann", "EVERY 1 MINUTE")), "totals")
    fired = [seen.next(order("ann", 1), seconds=25) for _ in range(8)]
    assert [row for rows in fired for row in rows] == [("anns", "ann", n) for n in (3, 5, 8)]


def test_every_goes_by_event_time_where_the_table_has_it() -> None:
    driver = started(TOTALS.format("anns", "ann", "EVERY 1 MINUTE"), timed=True)
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 1, 5)) == []
    assert seen.next(order("ann", 2, 50)) == []
    assert seen.next(order("bob", 2, 61)) == [("anns", "ann", 3)]
    assert seen.next(order("ann", 4, 70)) == []
    assert seen.next(order("bob", 2, 121)) == [("anns", "ann", 7)]
    assert seen.next(order("ann", 1, 130)) == []
    assert seen.next(seconds=3600) == [("anns", "ann", 8)]


def test_every_may_go_by_processing_time_although_there_is_event_time() -> None:
    driver = started(TOTALS.format("anns", "ann", "EVERY INTERVAL '1' MINUTE BY PROCTIME()"), timed=True)
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 1, 5), order("ann", 1, 500)) == []
    assert seen.next(seconds=60) == [("anns", "ann", 2)]


def test_queries_with_other_spans_share_a_plan() -> None:
    both = f"{TOTALS.format('a', 'ann', 'EVERY 1 MINUTE')};{TOTALS.format('b', 'bob', 'EVERY 2 MINUTES')}"
    assert len(flow(both).graph.nodes) == len(flow(TOTALS.format("a", "ann", "EVERY 1 MINUTE")).graph.nodes)
    seen = Seen(started(both), "totals")
    assert seen.next(order("ann", 1), order("bob", 2)) == []
    first, second = seen.next(seconds=60), seen.next(seconds=60)
    assert ("a", "ann", 1) in first
    assert [*first, *second] == [("a", "ann", 1), ("b", "bob", 2)]


def test_every_with_snapshot_emits_the_whole_each_time_also_when_nothing_comes() -> None:
    driver = started(TOTALS.format("anns", "ann", "EVERY 1 MINUTE WITH SNAPSHOT"))
    seen = Seen(driver, "totals")
    seen.next(order("ann", 1))
    assert seen.next(seconds=60) == [("anns", "ann", 1)]
    assert seen.next(seconds=60) == [("anns", "ann", 1)]
    seen.next(order("ann", 4))
    assert seen.next(seconds=60) == [("anns", "ann", 5)]


def test_when_fires_once_each_time_it_turns_true() -> None:
    driver = started(TOTALS.format("anns", "ann", "WHEN total > 10 WITH SNAPSHOT"))
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 9)) == []
    assert seen.next(order("ann", 3)) == [("anns", "ann", 12)]
    assert seen.next(order("ann", 3)) == []
    assert seen.next(order("ann", -10)) == []
    assert seen.next(order("ann", 20)) == [("anns", "ann", 25)]


def test_when_emits_what_has_changed_since_it_last_fired() -> None:
    driver = started(ROWS.format("large", 1, "WHEN amount > 10"))
    seen = Seen(driver, "alerts")
    assert seen.next(order("ann", 2), order("bob", 3)) == []
    assert sorted(seen.next(order("cid", 11))) == [("large", "ann", 2), ("large", "bob", 3), ("large", "cid", 11)]
    assert seen.next(order("dan", 12)) == []


def test_the_constants_of_when_and_having_differ_from_query_to_query() -> None:
    text = "CREATE STANDING QUERY q{0} AS SELECT who, sum(amount) AS total FROM orders WHERE who = 'ann' GROUP BY who HAVING sum(amount) > {0} WHEN total > {1} INTO totals"
    driver = started(f"{text.format(1, 5)};{text.format(4, 8)}")
    assert len(driver.graph.sinks) == 1
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 6)) == [("q1", "ann", 6)]
    assert seen.next(order("ann", 3)) == [("q4", "ann", 9)]


def test_a_condition_in_until_ends_a_query_for_good() -> None:
    driver = started(
        TOTALS.format("anns", "ann", "UNTIL total > 10") + ";" + TOTALS.format("bobs", "bob", "UNTIL total > 100")
    )
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 9), order("bob", 1)) == [("anns", "ann", 9), ("bobs", "bob", 1)]
    assert seen.next(order("ann", 3)) == [("anns", "ann", 12)]
    assert seen.next(order("ann", -8), order("bob", 1)) == [("bobs", "bob", 2)]
    assert not any("anns" in key for _, key in kept(driver, "aggregate") | kept(driver, "totals"))
    driver.crash()
    assert seen.next(order("ann", 20)) == []


def test_a_moment_in_until_ends_a_query_and_its_totals_go() -> None:
    both = [
        TOTALS.format(f"{who}s", who, f"UNTIL '2026-05-01 12:0{minute}:00'") for who, minute in (("ann", 1), ("bob", 9))
    ]
    driver = started(";".join(both), timed=True)
    assert sum("match" in node.name for node in driver.graph.nodes) == 1
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 1, 5), order("bob", 1, 5)) == [("anns", "ann", 1), ("bobs", "bob", 1)]
    assert seen.next(order("ann", 5, 60), order("bob", 1, 61)) == [("bobs", "bob", 2)]
    seen.next(order("bob", 1, 62))
    held = {key for name, key in kept(driver, ".group")}
    assert held == {("bobs", "bob")}
    ended = {
        key[0]: value[1] is not None for _, key, value in ((n, k, v) for (n, k), v in kept(driver, ".trigger").items())
    }
    assert ended == {"anns": True, "bobs": False}


def test_the_totals_of_a_query_that_is_dropped_go_and_it_begins_anew_when_it_is_added_again() -> None:
    driver = started(TOPIC + TOTALS.format("anns", "ann", "") + ";" + TOTALS.format("bobs", "bob", ""))
    seen = Seen(driver, "totals")
    seen.next(order("ann", 9), order("bob", 1))
    before = len(driver.run.states)
    held = {key for _, key in kept(driver, "queries.")}
    assert ("anns", "ann") in held
    seen.next(changes=(change("anns", op="remove"),))
    held = {key for _, key in kept(driver, "queries.")}
    assert ("anns", "ann") not in held
    assert ("bobs", "bob") in held
    assert seen.next(order("ann", 1), order("bob", 1)) == [("bobs", "bob", 2)]
    assert seen.next(order("ann", 5), changes=(change("anns", TOTALS.format("anns", "ann", "")),)) == [
        ("anns", "ann", 5)
    ]
    dropped = (change("anns", op="remove"), change("anns", TOTALS.format("anns", "ann", "")))
    assert seen.next(order("ann", 2), changes=dropped) == [("anns", "ann", 2)]
    assert len(driver.run.states) == before


def test_a_snapshot_answers_for_the_rows_before_the_query() -> None:
    driver = started(
        TOPIC + TOTALS.format("anns", "ann", "WITH SNAPSHOT") + ";" + ROWS.format("any", 100, "WITH SNAPSHOT")
    )
    totals, alerts = Seen(driver, "totals"), Seen(driver, "alerts")
    assert totals.next(order("ann", 9), order("bob", 1), order("bob", 2)) == [("anns", "ann", 9)]
    assert totals.next(changes=(change("bobs", TOTALS.format("bobs", "bob", "WITH SNAPSHOT")),)) == [("bobs", "bob", 3)]
    assert totals.next(order("bob", 4)) == [("bobs", "bob", 7)]
    assert totals.next(changes=(change("bobs", op="remove"),)) == []
    assert totals.next(order("bob", 4)) == []
    added = change("some", ROWS.format("some", 3, "WITH SNAPSHOT"))
    assert sorted(alerts.next(changes=(added,))) == [("some", "ann", 9), ("some", "bob", 4), ("some", "bob", 4)]
    assert alerts.next(order("cid", 5)) == [("some", "cid", 5)]


@pytest.mark.parametrize("dropped", [False, True], ids=["replaced", "dropped-and-added"])
def test_a_snapshot_of_a_query_that_begins_again_in_one_batch_is_the_whole(dropped: bool) -> None:
    every = TOTALS.format("anns", "ann", "EVERY 1 MINUTE WITH SNAPSHOT")
    large = ROWS.format("large", "{}", "WHEN amount > 10 WITH SNAPSHOT")
    driver = started(f"{TOPIC}{every};{large.format(1)}")
    totals, alerts = Seen(driver, "totals"), Seen(driver, "alerts")
    driver.push("orders", order("ann", 5), order("bob", 20))
    assert alerts.next() == [("large", "ann", 5), ("large", "bob", 20)]
    assert totals.next(seconds=60) == [("anns", "ann", 5)]
    drops = (change("anns", op="remove"), change("large", op="remove")) if dropped else ()
    driver.push("queries.topic", *drops, change("anns", every), change("large", large.format(2)))
    assert alerts.next() == [("large", "ann", 5), ("large", "bob", 20)]
    driver.crash()
    assert totals.next(seconds=60) == [("anns", "ann", 5)]
    assert totals.next(order("ann", 2), seconds=60) == [("anns", "ann", 7)]
    assert alerts.next() == []


TOTALS_ABOVE = "CREATE STANDING QUERY q AS SELECT who, total FROM sums WHERE total > {} WITH SNAPSHOT INTO totals"


@pytest.mark.parametrize("how", ["replaced", "dropped-and-added", "dropped-before"])
def test_a_snapshot_that_begins_again_is_the_whole_and_takes_nothing_back_wherever_batches_end(how: str) -> None:
    view = "CREATE VIEW sums AS SELECT who, sum(amount) AS total FROM orders GROUP BY who;"
    large = ROWS.format("large", "{}", "WITH SNAPSHOT")
    driver = started(f"{TOPIC}{view}{TOTALS_ABOVE.format(5)};{large.format(1)}")
    totals, alerts = Seen(driver, "totals"), Seen(driver, "alerts")
    driver.push("orders", order("ann", 20), order("bob", 30))
    assert totals.next() == [("q", "ann", 20), ("q", "bob", 30)]
    assert alerts.next() == [("large", "ann", 20), ("large", "bob", 30)]
    if how != "replaced":
        driver.push("queries.topic", change("q", op="remove"), change("large", op="remove"))
    if how == "dropped-before":
        assert totals.next() == []
    driver.push("queries.topic", change("q", TOTALS_ABOVE.format(25)), change("large", large.format(1)))
    driver.barrier()
    driver.crash()
    found = driver.barrier()
    assert sorted(found["totals"]) == [("q", "ann", 20), ("q", "bob", 30), ("q", "bob", 30)]
    assert alerts.next() == [("large", "ann", 20), ("large", "bob", 30)]
    totals.next()
    assert totals.next(order("ann", 10)) == [("q", "ann", 30)]


def test_totals_of_a_snapshot_are_written_again_when_their_query_is_replaced() -> None:
    totals = TOTALS.format("anns", "ann", "WITH SNAPSHOT")
    driver = started(TOPIC + totals)
    seen = Seen(driver, "totals")
    assert seen.next(order("ann", 3)) == [("anns", "ann", 3)]
    driver.push("queries.topic", change("anns", op="remove"), change("anns", totals))
    assert dict(driver.barrier().table("totals")) == {("anns", "ann"): ("anns", "ann", 3)}
    assert seen.next(order("ann", 4)) == [("anns", "ann", 7)]


def test_a_query_with_a_trigger_comes_and_goes_while_the_flow_runs() -> None:
    driver = started(TOPIC + TOTALS.format("anns", "ann", "EVERY 1 MINUTE"))
    seen = Seen(driver, "totals")
    seen.next(order("bob", 1), changes=(change("bobs", TOTALS.format("bobs", "bob", "EVERY 1 MINUTE")),))
    seen.next(changes=(change("anns", op="remove"),))
    seen.next(order("ann", 1), order("bob", 1))
    assert seen.next(seconds=60) == [("bobs", "bob", 2)]
    seen.next(order("bob", 1))
    seen.next(changes=(change("bobs", op="remove"),))
    assert seen.next(seconds=60) == []


def test_a_star_means_the_columns_of_the_table() -> None:
    text = "CREATE STANDING QUERY big AS SELECT * FROM orders WHERE amount > 5 INTO alerts"
    found = run_local(flow(text), {"orders": [order("ann", 6), BARRIER, order("bob", 1)]})
    assert found["alerts"] == [("big", "ann", 6, NOON)]


def test_a_table_that_changes_needs_a_snapshot() -> None:
    view = "CREATE VIEW sums AS SELECT who, sum(amount) AS total FROM orders GROUP BY who;"
    query = "CREATE STANDING QUERY q AS SELECT who, total FROM sums WHERE who = 'ann' {} INTO totals"
    with pytest.raises(SqlError, match="WITH SNAPSHOT"):
        flow(view + query.format(""))
    seen = Seen(started(view + query.format("WITH SNAPSHOT WHEN total > 5")), "totals")
    assert seen.next(order("ann", 4)) == []
    assert seen.next(order("ann", 4)) == [("q", "ann", 8)]


def test_thousands_of_statements_of_a_shape_are_parsed_once() -> None:
    text = ";\n".join(TOTALS.format(f"q{n}", f"u{n}", f"WHEN total > {n}") for n in range(3000))
    began = time.process_time()
    made = flow(text)
    assert time.process_time() - began < 10
    (own,) = [source for source in made.graph.sources if source.name == "queries"]
    rows: list[Any] = list(read_source(own))
    assert len({row[2] for row in rows}) == 1
    assert rows[7][3] == ["su7", "i7"]


def test_statements_that_look_alike_are_told_apart_by_constants_outside_of_conditions() -> None:
    text = "CREATE STANDING QUERY q{0} AS SELECT who, amount * {0} AS more FROM orders WHERE amount > {0} INTO alerts"
    found = run_local(flow(";".join(text.format(n) for n in (1, 2, 3))), {"orders": [order("ann", 3)]})
    assert sorted(found["alerts"]) == [("q1", "ann", 3), ("q2", "ann", 6)]
