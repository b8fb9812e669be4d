"""select("*"), drop and rename: fields come, go and change their names, and event time and keys go along."""

from __future__ import annotations

import datetime

import pytest

import penstock as ps
from tests.same.conftest import Case

ROWS = [("ada", 1, 2.5), ("bob", 2, 0.5), ("ada", 3, 1.0)]
SCHEMA = "user string, n bigint, x double"


def at(second: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, 0, 0, second, tzinfo=datetime.UTC)


def test_a_star_stands_for_all_fields(same: Case) -> None:
    flow = ps.Flow("star")
    rows = flow.source("rows", ps.items([], SCHEMA))
    rows.select("more", "*", twice="n * 2").sink("more-out", ps.console())
    rows.select("changed", "*", n="n + 1").sink("changed-out", ps.console())
    rows.select("last", "n * 10 as ten", "*").sink("last-out", ps.console())
    same.check(
        flow,
        {"rows": ROWS},
        {
            "more-out": [(u, n, x, n * 2) for u, n, x in ROWS],
            "changed-out": [(u, n + 1, x) for u, n, x in ROWS],
            "last-out": [(n * 10, u, n, x) for u, n, x in ROWS],
        },
    )


def test_fields_are_dropped_and_renamed(same: Case) -> None:
    flow = ps.Flow("fields")
    rows = flow.source("rows", ps.items([], SCHEMA))
    rows.drop("less", "x", "n").sink("less-out", ps.console())
    rows.rename("swapped", user="n", n="user").sink("swapped-out", ps.console())
    same.check(
        flow,
        {"rows": ROWS},
        {"less-out": [u for u, _, _ in ROWS], "swapped-out": ROWS},
    )
    assert flow.graph.node("swapped").output().schema.names == ("n", "user", "x")


@pytest.mark.live
def test_event_time_goes_along_under_another_name(same: Case) -> None:
    flow = ps.Flow("time")
    rows = flow.source("rows", ps.items([], "user string, ts timestamp"), event_time="ts")
    plain = rows.rename("plain", ts="happened").select("picked", "happened as at", "user").drop("same")
    plain.key_by("user").window(ps.tumbling("2s")).count("n").sink("out", ps.console())
    given = [("ada", at(0)), ("bob", at(1)), ("ada", at(1)), ("ada", at(4))]
    got = same.run(flow, {"rows": given})
    found = sorted((r.user, r.window_start.second, r.n) for r in got["out"])
    assert found == [("ada", 0, 2), ("ada", 4, 1), ("bob", 0, 1)]


@pytest.mark.live
def test_the_key_of_running_totals_goes_along_under_another_name(same: Case) -> None:
    flow = ps.Flow("totals")
    rows = flow.source("rows", ps.items([], SCHEMA))
    totals = rows.key_by("user").count("n").rename("named", user="customer", n="visits")
    assert totals.updates == ("customer",)
    totals.select("turned", "visits", "customer").sink("out", ps.console())
    same.check(flow, {"rows": ROWS}, {"out": [(2, "ada"), (1, "bob")]})
