"""Names of the user's beside those of steps that are made for others: they never clash."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

WORDS = ["a", "b", "a", "c", "a"]


def same_row(row: Any) -> Any:
    return row


@pytest.mark.live
def test_steps_named_as_the_halves_of_others_were_once(same: Case) -> None:
    flow = ps.Flow("parts")
    words = flow.source("words", ps.items([], "w string"))
    words.key_by("w").count("n").sink("out", ps.console())
    words.map("n.parts", same_row).filter("n.combine", lambda r: r.w != "b").sink("n.late", ps.console())
    same.check(
        flow, {"words": WORDS}, {"out": [("a", 3), ("b", 1), ("c", 1)], "n.late": [w for w in WORDS if w != "b"]}
    )


def test_steps_named_as_those_of_computed_keys_and_totals_of_totals_were_once(same: Case) -> None:
    flow = ps.Flow("changes")
    words = flow.source("words", ps.items([], "w string"))
    each = words.key_by(first="substring(w, 1, 1)").count("each")
    each.key_by("each").count("many").sink("out", ps.console())
    for name in ("each.key", "each.changes", "many.changes", "many.key"):
        words.where(name, "w = 'c'").sink(f"{name}.out", ps.console())
    got = same.run(flow, {"words": WORDS})
    assert {k: row.many for k, row in got.table("out").items()} == {3: 1, 1: 2}
    assert [r.w for r in got["each.key.out"]] == ["c"]


def test_a_step_named_as_that_of_a_sources_time_was_once(same: Case) -> None:
    flow = ps.Flow("time")
    at = [datetime.datetime(2024, 1, 1, 0, 0, s, tzinfo=datetime.UTC) for s in range(3)]
    rows = flow.source("rows", ps.items([], "k string, ts timestamp"), event_time="ts")
    rows.key_by("k").window(ps.tumbling("2s")).count("n").sink("out", ps.console())
    rows.map("rows.time", same_row).filter("n.parts", lambda r: True).select("n.gap", "k").sink("n.time", ps.console())
    got = same.run(flow, {"rows": [("a", t) for t in at]})
    assert sorted((r.window_start.second, r.n) for r in got["out"]) == [(0, 2), (2, 1)]
    assert [r.k for r in got["n.time"]] == ["a"] * 3


def test_a_generated_source_beside_a_step_named_as_its_numbers_were_once(same: Case) -> None:
    flow = ps.Flow("numbers")
    made = flow.source("made", ps.generate(lambda n: n * 2, "n bigint", rows_per_second=1000, limit=5))
    made.map("made.numbers", same_row).sink("out", ps.console())
    same.check(flow, {"made": [0, 2, 4]}, {"out": [0, 2, 4]})
