"""A live run ends of itself when it was reported to, after a whole batch, and goes on from there."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.graph.times import to_micros
from penstock.live.report import BatchReport
from penstock.live.until import check_stop_test
from penstock.spark.run import run_live

pytestmark = pytest.mark.spark
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    return BEGIN + datetime.timedelta(seconds=seconds)


@pytest.fixture
def ran(penstock_spark: Any, tmp_path: Path) -> Callable[..., tuple[list[int], list[BatchReport]]]:
    """Runs numbers 0 to 9 in batches of two, sorted by their time; gives what came out and the reports."""

    def run(until: Any = None, **options: Any) -> tuple[list[int], list[BatchReport]]:
        got: dict[int, list[int]] = {}
        reports: list[BatchReport] = []
        flow = ps.Flow("numbers")
        given = ps.items([(n, at(n)) for n in range(10)], "n int, ts timestamp", batches=5)
        numbers = flow.source("numbers", given, event_time="ts")
        numbers.sink("all", ps.callback(lambda rows, batch: got.setdefault(batch.id, [r.n for r in rows])))
        sorted_ = numbers.sort("order")
        sorted_.sink("sorted", ps.callback(lambda rows, batch: got.setdefault(100 + batch.id, [r.n for r in rows])))
        made = RunSpec(checkpoint=tmp_path, duration=600, **options)
        run_live(flow.graph, penstock_spark, made, observers=(reports.append,), until=until).wait(pause=0.01)
        return [n for batch in sorted(got) for n in got[batch]], reports

    return run


def test_after_so_many_batches_and_on_from_there(ran: Any) -> None:
    first, reports = ran(batches=2)
    assert first[:4] == [0, 1, 2, 3]
    assert len(reports) == 2
    second, _ = ran(batches=1)
    assert second[:2] == [4, 5]


def test_after_so_many_records(ran: Any) -> None:
    _, reports = ran(records=3)
    assert 3 <= sum(r.rows_in for r in reports) < 10


def test_when_no_record_has_come_for_a_while(ran: Any) -> None:
    got, reports = ran(until_idle=1.5)
    assert sum(r.rows_in for r in reports) == 10
    assert set(range(9)) <= set(got)


def test_at_an_event_time_what_it_passed_has_come_out(ran: Any) -> None:
    got, _ = ran(until_time=to_micros(at(4)))
    in_order = got[got.index(0, 1) :]
    assert in_order[:4] == [0, 1, 2, 3]


def test_when_a_function_of_the_report_says_so(ran: Any) -> None:
    _, reports = ran(lambda report: report.batch >= 1)
    assert 2 <= len(reports) <= 4


def test_drained_at_the_end_all_that_waited_comes_out(ran: Any) -> None:
    waiting, _ = ran(until_idle=1.5)
    assert waiting.count(9) == 1
    again, _ = ran(until_idle=1.5, drain=True)
    assert again == [9]


def test_drained_after_the_last_batch(ran: Any) -> None:
    got, reports = ran(records=10, drain=True)
    assert sorted(got) == sorted([*range(10)] * 2)
    assert reports[-1].rows_in == 0


def test_a_condition_that_is_no_function_is_refused() -> None:
    with pytest.raises(OptionError, match="function of a batch's report"):
        check_stop_test("soon")  # type: ignore[arg-type]
