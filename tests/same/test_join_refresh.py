"""Static tables that are read again while a flow runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Driver

SCHEMA = "user string, city string"


def write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps({"user": u, "city": c}) + "\n" for u, c in rows))


def flow_of(table: Any, refresh: Any, sink: Any = None, rows: Any = (), batches: Any = 1) -> ps.Flow:
    flow = ps.Flow("refresh")
    events = flow.source("events", ps.items(list(rows), "user string, n bigint", batches=batches))
    events.join("who", table, "user", how="left", refresh=refresh).sink("out", sink or ps.console())
    return flow


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table" / "people.json"
    path.parent.mkdir()
    write(path, [("ada", "London")])
    return path


def test_a_changed_file_is_read_by_the_next_batch(flow_driver: Any, table: Path) -> None:
    driver: Driver = flow_driver(flow_of(ps.files(table.parent, "json", SCHEMA), "changed"))
    driver.push("events", ("ada", 1))
    driver.barrier()
    write(table, [("ada", "Paris")])
    driver.push("events", ("ada", 2))
    driver.barrier()
    write(table.with_name("more.json"), [("bob", "Rome")])
    driver.push("events", ("bob", 3), ("ada", 4))
    rows = driver.barrier()["out"]
    assert [tuple(r) for r in rows] == [
        ("ada", 1, "London"),
        ("ada", 2, "Paris"),
        ("bob", 3, "Rome"),
        ("ada", 4, "Paris"),
    ]


def test_a_table_without_refresh_stays_as_it_was(flow_driver: Any, table: Path) -> None:
    driver: Driver = flow_driver(flow_of(ps.files(table.parent, "json", SCHEMA), None))
    driver.push("events", ("ada", 1))
    driver.barrier()
    write(table, [("ada", "Paris")])
    driver.push("events", ("ada", 2))
    assert [r.city for r in driver.barrier()["out"]] == ["London", "London"]


def test_an_interval_goes_by_the_clock(flow_driver: Any, table: Path) -> None:
    driver: Driver = flow_driver(flow_of(ps.files(table.parent, "json", SCHEMA), "5m"))
    driver.push("events", ("ada", 1))
    driver.barrier()
    write(table, [("ada", "Paris")])
    driver.clock.advance(299)
    driver.barrier()
    driver.push("events", ("ada", 2))
    driver.barrier()
    driver.clock.advance(2)
    driver.barrier()
    driver.push("events", ("ada", 3))
    assert [r.city for r in driver.barrier()["out"]] == ["London", "London", "Paris"]


def test_a_function_says_which_version_is_there(flow_driver: Any) -> None:
    versions, rows = [1], [("ada", "London")]
    driver = Driver(flow_of(ps.items([], SCHEMA), lambda: versions[-1]), tables={"who": rows})
    driver.push("events", ("ada", 1))
    driver.barrier()
    rows[0] = ("ada", "Paris")
    driver.push("events", ("ada", 2))
    driver.barrier()
    versions.append(2)
    driver.push("events", ("ada", 3))
    assert [r.city for r in driver.barrier()["out"]] == ["London", "London", "Paris"]


def test_a_row_that_goes_takes_back_what_it_found_when_it_came() -> None:
    versions, rows = [1], [("ada", "London"), ("ada", "York")]
    flow = ps.Flow("remembered")
    changes = flow.source("changes", ps.items([], "op string, id int, user string"))
    people = changes.as_table("people", "id")
    found = people.join("who", ps.items([], SCHEMA), "user", how="left", refresh=lambda: versions[-1])
    found.key_by("city").aggregate("cities", n="count(*)").sink("out", ps.console())
    driver = Driver(flow, tables={"who": rows})
    driver.push("changes", ("insert", 1, "ada"), ("insert", 2, "ada"), ("insert", 3, "bob"))
    assert driver.barrier().table("out") == {"London": ("London", 2), "York": ("York", 2), None: (None, 1)}
    rows[:] = [("ada", "Paris"), ("bob", "Rome")]
    versions.append(2)
    driver.push("changes", ("delete", 1, "ada"), ("update_after", 3, "bob"), ("insert", 4, "ada"))
    driver.crash()
    expected = {"London": ("London", 1), "York": ("York", 1), "Paris": ("Paris", 1), None: (None, 1)}
    assert driver.barrier().table("out") == expected
    driver.push("changes", ("update_after", 3, "ada"), ("delete", 2, "ada"))
    assert driver.barrier().table("out") == {"Paris": ("Paris", 2)}


@pytest.mark.spark
@pytest.mark.parametrize("refresh", ["changed", "1ms", "version", None])
def test_a_live_run_sees_the_table_change_between_two_batches(
    penstock_spark: Any, table: Path, tmp_path: Path, refresh: Any
) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    got: dict[int, list[Any]] = {}

    def keep(rows: list[Any], batch: Any) -> None:
        got[batch.id] = [r.city for r in rows]
        write(table, [("ada", f"city {batch.id + 1}")])
        if batch.id == 1:
            write(table.with_name("more.json"), [("ada", "another")])

    asked = (lambda: len(got)) if refresh == "version" else refresh
    people = ps.files(table.parent, "json", SCHEMA)
    flow = flow_of(people, asked, ps.callback(keep), [("ada", n) for n in range(3)], batches=3)
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "run", mode="once")).wait(pause=0.02)
    changed = {0: ["London"], 1: ["city 1"], 2: ["another", "city 2"]}
    assert {b: sorted(c) for b, c in got.items()} == (changed if refresh else {b: ["London"] for b in range(3)})
