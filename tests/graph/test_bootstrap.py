"""Bootstraps: what a step has seen before the first record."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError
from penstock.graph.bootstrap import bootstrap_graph
from penstock.testing import BARRIER, CRASH, run_local


def counting() -> ps.Flow:
    flow = ps.Flow("visits")
    clicks = flow.source("clicks", ps.items([], "user string"))
    clicks.key_by("user").count("visits").sink("out", ps.console())
    clicks.map("same", lambda r: r).sink("plain", ps.console())
    return flow


def test_a_step_goes_on_from_its_bootstrap() -> None:
    flow = counting()
    flow.bootstrap("visits", ps.items([("ada",), ("ada",), ("bob",)], "user string"))
    out = run_local(flow, {"clicks": ["ada", BARRIER, "cyd", CRASH]})
    assert {k: row[1] for k, row in out.table("out").items()} == {"ada": 3, "cyd": 1}
    assert len(out["plain"]) == 2, "what the step gives for its past is dropped, and other steps never see it"


def test_a_process_class_keeps_what_it_would_have_kept() -> None:
    class Since(ps.Process):
        first = ps.value(str, default="")

        def on_event(self, row: Any) -> Iterator[Any]:
            self.first = self.first or row.when
            yield row.user, self.first

    flow, past = ps.Flow("since"), ps.Flow("past")
    rows = flow.source("rows", ps.items([], "user string, when string"))
    rows.key_by("user").process("since", Since, "user string, since string").sink("out", ps.console())
    old = past.source("lines", ps.items(["ada 2001"], "line string"))
    flow.bootstrap("since", old.map("parse", lambda r: tuple(r.line.split()), "user string, when string"))
    out = run_local(flow, {"rows": [("ada", "2024"), ("bob", "2024")]})
    assert sorted(map(tuple, out["out"])) == [("ada", "2001"), ("bob", "2024")]


def moment(second: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, 0, 0, second, tzinfo=datetime.UTC)


def test_a_class_may_set_timers_of_event_time_in_its_past() -> None:
    class Quiet(ps.Process):
        def on_event(self, row: Any) -> Iterator[Any]:
            self.set_timer(row.ts + datetime.timedelta(seconds=10))
            yield from ()

        def on_timer(self, timer: Any) -> Iterator[Any]:
            yield str(timer.at.second)

    flow = ps.Flow("quiet")
    rows = flow.source("rows", ps.items([], "user string, ts timestamp"), event_time="ts")
    rows.key_by("user").process("watch", Quiet, "second string").sink("out", ps.console())
    flow.bootstrap("watch", ps.items([("ada", moment(0))], "user string, ts timestamp"))
    out = run_local(flow, {"rows": [("bob", moment(30)), BARRIER]})
    assert [row.second for row in out["out"]] == ["10", "40"]


def test_the_past_ends_no_window() -> None:
    """What it opened is for the flow to end, so that both count."""
    flow, past = ps.Flow("windows"), ps.Flow("past")
    rows = flow.source("rows", ps.items([], "user string, ts timestamp"), event_time="ts")
    rows.key_by("user").window(ps.tumbling("10s")).count("n").sink("out", ps.console())
    given = [("ada", moment(1)), ("ada", moment(25))]
    flow.bootstrap("n", past.source("old", ps.items(given, "user string, ts timestamp"), event_time="ts"))
    out = run_local(flow, {"rows": [("ada", moment(2)), ("ada", moment(26))]})
    assert [(row.window_start.second, row.n) for row in out["out"]] == [(0, 2), (20, 2)]


def test_the_flow_that_fills_has_names_of_its_own() -> None:
    flow = counting()
    flow.bootstrap("visits", ps.items([("ada",)], "user string"))
    names = [n.name for n in bootstrap_graph(flow.graph).nodes]
    assert names == ["visits@bootstrap@records", "visits", "visits@drop"]


@pytest.mark.parametrize(
    "step, records, says",
    [
        ("visit", ps.items([("a",)], "user string"), "that step is not there; .*did you mean 'visits'"),
        ("same", ps.items([("a",)], "user string"), "that step keeps nothing"),
        ("visits", ps.items([(1,)], "user int"), r"must give what the step reads, \(user string\), got \(user int\)"),
        ("visits", [("ada",)], "needs an endpoint or a stream"),
    ],
)
def test_what_cannot_fill_a_step_is_refused(step: str, records: Any, says: str) -> None:
    flow = counting()

    def fill() -> None:
        flow.bootstrap(step, records)
        flow.graph  # noqa: B018 - it is checked as a whole

    with pytest.raises((FlowError, SchemaError), match=says):
        fill()


def test_a_step_has_one_bootstrap() -> None:
    flow = counting()
    flow.bootstrap("visits", ps.items([("ada",)], "user string"))
    with pytest.raises(FlowError, match="has a bootstrap already"):
        flow.bootstrap("visits", ps.items([("ada",)], "user string"))


def test_records_that_need_state_are_refused() -> None:
    flow, past = counting(), ps.Flow("past")
    rows = past.source("rows", ps.items([], "user string"))
    flow.bootstrap("visits", rows.key_by("user").reduce("last", lambda a, b: b).as_records("again"))
    with pytest.raises(FlowError, match="'last', which keeps something itself"):
        flow.graph  # noqa: B018 - it is checked as a whole
