"""The rows of the last span of event time, as a table, and what comes and goes between instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError
from tests.same.conftest import Case

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCHEMA = "k string, n bigint, ts timestamp"
ROWS = [
    (k, n, NOON + timedelta(seconds=s))
    for k, n, s in [("a", 1, 0), ("b", 2, 20), ("a", 3, 40), ("a", 4, 100), ("b", 5, 170)]
]


def source() -> Any:
    return ps.Flow("f").source("rows", ps.items([], SCHEMA), event_time="ts")


@pytest.mark.live
def test_what_comes_goes_again(same: Case) -> None:
    """In one batch all comes and goes; in several, what is told of the table adds up to nothing when all time has passed."""
    stream = source()
    log = stream.recent("minute", "1m").key_by("k").aggregate("t", n="count(*)").changelog("log")
    net = log.select("sign", "k", "n", "case when op in ('insert', 'update_after') then 1 else -1 end as sign")
    net.key_by("k").aggregate("net", left="sum(sign)").where("some", "left <> 0").sink("out", ps.console())
    same.check(stream.flow, {"rows": ROWS}, {"out": []})


@pytest.mark.live
def test_what_comes_and_goes_from_instant_to_instant(same: Case) -> None:
    stream = source()
    for name in ("ISTREAM", "DSTREAM"):
        query = f"SELECT * FROM {name}(SELECT k, COUNT(*) AS c FROM S [RANGE 60 SECONDS SLIDE 30 SECONDS] GROUP BY k)"
        ps.sql_query(query, {"S": stream}, name=name).sink(f"out-{name}", ps.console())
    seconds = [(k, (ts - NOON).seconds) for k, _, ts in ROWS]
    before: dict[str, int] = {}
    comes: list[Any] = []
    goes: list[Any] = []
    for now in range(0, 300, 30):
        there = [k for k, s in seconds if now - 60 < s <= now]
        counts = {k: there.count(k) for k in there}
        comes += [pair for pair in counts.items() if before.get(pair[0]) != pair[1]]
        goes += [pair for pair in before.items() if counts.get(pair[0]) != pair[1]]
        before = counts
    same.check(stream.flow, {"rows": ROWS}, {"out-ISTREAM": comes, "out-DSTREAM": goes})


def test_a_span_and_an_event_time_are_needed() -> None:
    with pytest.raises(FlowError, match="span"):
        source().recent("r", "0s")
    with pytest.raises(FlowError, match="happened"):
        ps.Flow("f").source("rows", ps.items([], SCHEMA)).recent("r", "1m")
