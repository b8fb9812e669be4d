"""Standing queries on all runtimes: one plan for many, with triggers, snapshots, changes and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import penstock as ps
from penstock.graph.endpoints.log import RULE_CHANGES
from penstock.local.bounded import read_source
from tests.same.conftest import Case

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ORDERS = "who string, amount bigint, ts timestamp"
TOTALS = "CREATE STANDING QUERY {0}s AS SELECT who, sum(amount) AS total FROM orders WHERE who = '{0}' GROUP BY who {1} INTO totals"
LARGE = "CREATE STANDING QUERY {} AS SELECT who, amount FROM orders WHERE amount > {} {} INTO alerts"


def flow(text: str) -> Any:
    orders = ps.Flow("f").source("orders", ps.items([], ORDERS), event_time="ts")
    return ps.sql_flow(text, {"orders": orders, "totals": ps.console(), "alerts": ps.console()})


def own(made: Any) -> list[Any]:
    return list(read_source(next(source for source in made.graph.sources if source.name == "queries")))


def order(who: str, amount: int, seconds: int = 0) -> tuple[Any, ...]:
    return (who, amount, NOON + timedelta(seconds=seconds))


ROWS = [order("ann", 7), order("bob", 2, 20), order("cid", 9, 70), order("ann", 5, 130), order("bob", 40, 200)]


@pytest.mark.live
def test_each_query_has_its_own_answer(same: Case) -> None:
    statements = [TOTALS.format(who, "") for who in ("ann", "bob")] + [
        LARGE.format("some", 6, ""),
        LARGE.format("few", 8, ""),
    ]
    made = flow(";".join(statements))
    alerts = [("some", "ann", 7), ("some", "cid", 9), ("few", "cid", 9), ("some", "bob", 40), ("few", "bob", 40)]
    wanted = {"totals": [("anns", "ann", 12), ("bobs", "bob", 42)], "alerts": alerts}
    same.check(made, {"queries": own(made), "orders": ROWS}, wanted, cuts={"queries": [4, 4], "orders": [0, 3]})


def test_every_comes_to_the_same_in_the_end(same: Case) -> None:
    made = flow(";".join([TOTALS.format("ann", "EVERY 1 MINUTE"), TOTALS.format("bob", "EVERY 10 SECONDS")]))
    wanted = {"totals": [("anns", "ann", 12), ("bobs", "bob", 42)]}
    same.check(made, {"queries": own(made), "orders": ROWS}, wanted, cuts={"queries": [2, 2], "orders": [0, 3]})


def test_a_snapshot_has_the_rows_before_the_query(same: Case) -> None:
    made = flow(";".join([TOTALS.format("ann", "WITH SNAPSHOT"), LARGE.format("some", 6, "WITH SNAPSHOT")]))
    wanted = {"totals": [("anns", "ann", 12)], "alerts": [("some", "ann", 7), ("some", "cid", 9), ("some", "bob", 40)]}
    same.check(made, {"queries": own(made), "orders": ROWS}, wanted, cuts={"queries": [0, 1], "orders": [2, 4]})


@pytest.mark.live
def test_queries_come_go_and_end_and_their_totals_go_with_them(same: Case) -> None:
    made = flow(f"SET 'standing.queries.topic' = 'changes'; {TOTALS.format('ann', 'UNTIL total > 10')}")

    def change(query: str, text: str | None, op: str = "add") -> dict[str, Any]:
        return dict.fromkeys(RULE_CHANGES.names) | {"rule": query, "op": op, "text": text}

    bobs = TOTALS.format("bob", "UNTIL total > 1000")
    changes = [change("bobs", bobs), change("bobs", None, "remove"), change("bobs", bobs)]
    given = {
        "queries": own(made),
        "queries.topic": changes,
        "orders": [*ROWS, order("ann", 100, 201), order("bob", 1, 202)],
    }
    cuts = {"queries": [1, 1, 1], "queries.topic": [1, 2, 3], "orders": [2, 4, 5]}
    if same.runtime in ("oracle", "bounded"):
        wanted = [("anns", "ann", 112), ("bobs", "bob", 43)]
    else:
        wanted = [("anns", "ann", 12), ("bobs", "bob", 41)]
    same.check(made, given, {"totals": wanted}, cuts=cuts)
