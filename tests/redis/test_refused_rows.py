"""Rows that Redis refuses: dead letters with the cause, and the batch arrives without them, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock as ps
from penstock.errors import RunError
from penstock.graph.endpoints.servers import write_redis
from penstock.graph.run import RunSpec
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark
SCHEMA = "id bigint, word string"
SMALLEST = 1024 * 1024
GOOD = [(n, f"w{n}") for n in range(10)]
GIVEN = [*GOOD[:5], (None, "no key"), (3_000, "in the way"), (77, "x" * 2 * SMALLEST), *GOOD[5:]]


@pytest.fixture
def small(client: redis.Redis) -> Iterator[redis.Redis]:
    """A server that takes values of up to 1 MiB."""
    client.config_set("proto-max-bulk-len", SMALLEST)
    yield client
    client.config_set("proto-max-bulk-len", 512 * SMALLEST)


def flow_of(url: str, given: list[Any], kind: str = "hash", **more: Any) -> ps.Flow:
    flow = ps.Flow("refusing")
    rows = flow.source("rows", ps.items(given, SCHEMA))
    rows.sink("out", write_redis(url, kind, key="id", name="row"), **{"on_error": "dead_letter", **more})
    return flow


def run(flow: ps.Flow, spark: Any, folder: Path) -> list[Any]:
    reports: list[Any] = []
    run_live(flow.graph, spark, RunSpec(checkpoint=folder, mode="once"), observers=(reports.append,)).wait(0.02)
    return reports


def causes_in(folder: Path) -> list[str]:
    return sorted(letter["cause"] for letter in DeadLetterStore(folder / "dead-letters").dead_letters())


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_refused_rows_become_dead_letters_and_the_rest_arrives(
    url: str, small: redis.Redis, penstock_spark: Any, tmp_path: Path, delivery: str
) -> None:
    small.set("row:3000", "in the way")
    flow = flow_of(url, GIVEN, "list", delivery=delivery)
    (report,) = run(flow, penstock_spark, tmp_path)
    arrived = {f"row:{n}": [f'{{"word": "w{n}"}}'.encode()] for n, _ in GOOD}
    assert {key: small.lrange(key, 0, -1) for key in arrived} == arrived
    causes = causes_in(tmp_path)
    assert causes[0].startswith("a row has no key: id is null")
    assert causes[1] == "the key 'row:3000' holds a string, not a list"
    assert f"the server takes {SMALLEST} (its setting proto-max-bulk-len)" in causes[2]
    assert (len(causes), small.exists("row:77"), small.get("row:3000")) == (3, 0, b"in the way")
    assert report.balance == {"read": 13, "written": 10, "dead": 3}
    if delivery == "exactly_once":
        for lost in [*(tmp_path / "spark" / "commits").iterdir(), *(tmp_path / "dead-letters").iterdir()]:
            if lost.is_file() and "metadata" not in lost.name:
                lost.unlink()
        small.delete("row:3000")
        run(flow, penstock_spark, tmp_path)
        assert causes_in(tmp_path) == causes, "a batch that is there already has the dead letters that were noted then"
        assert {key: small.lrange(key, 0, -1) for key in arrived} == arrived
        assert not small.exists("row:3000")


def test_refused_rows_can_be_skipped_and_are_counted(url: str, client: redis.Redis, penstock_spark: Any) -> None:
    client.rpush("row:1", "in the way")
    (report,) = run_bounded(flow_of(url, GOOD, on_error="skip").graph, penstock_spark)
    assert (report.skipped, report.dead) == ({"out": 1}, {})
    assert len(client.keys("row:*")) == 10


def test_without_a_policy_a_row_that_is_too_large_is_named(url: str, small: redis.Redis, penstock_spark: Any) -> None:
    with pytest.raises(RunError, match=f"the server takes {SMALLEST}"):
        run_bounded(flow_of(url, [(1, "x" * 2 * SMALLEST)], on_error="fail").graph, penstock_spark)
    assert small.keys("row:*") == []


def test_rows_together_may_be_larger_than_a_value_of_the_server(
    url: str, small: redis.Redis, penstock_spark: Any
) -> None:
    """Commands wait aside as values, each with as many as the server takes."""
    run_bounded(flow_of(url, [(n, "x" * 500_000) for n in range(5)], on_error="fail").graph, penstock_spark)
    assert len(small.keys("row:*")) == 5
