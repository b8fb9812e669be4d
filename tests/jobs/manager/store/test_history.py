"""The history of jobs: what was counted is never lost, what is kept stays bounded, a driver that starts again counts from nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import OptionError
from penstock.jobs.manager.store.database import OpenSqlite
from penstock.jobs.manager.store.history import LEVELS, MOST_FINE, MOST_POINTS, SPANS, History, Point


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(OpenSqlite(tmp_path / "history.db"))
    made.make()
    yield made
    made.close()


def progress(time: float, rows: float, *, pid: int = 1, began: float = 1000.0, lag: float = 0.0) -> dict[str, object]:
    figures = {"rows": rows, "batches": rows / 10, "in:split": rows, "dead:split": rows / 100}
    totals = {"figures": figures, "watermarks": {"timed": time - 5}}
    return {
        "pid": pid,
        "generation": 1,
        "began": began,
        "time": time,
        "totals": totals,
        "lags": [["lines", "records", lag]],
    }


def observed(history: History, seconds: int, start: float = 1000.0) -> float:
    for at in range(1, seconds + 1):
        now = start + at
        history.observe("count", progress(now, at * 100.0, lag=at), now)
        history.flush(now)
    return start + seconds


def sums(points: list[Point], name: str = "rows") -> float:
    return sum(point.figures.get(name, 0.0) for point in points)


def test_a_point_is_what_happened_since_the_last_look(history: History) -> None:
    first = history.observe("count", progress(1001.0, 100), 1001.0)
    second = history.observe("count", progress(1003.0, 250, lag=7), 1003.0)
    assert first is not None
    assert first.figures["span"] == 1.0
    assert second is not None
    assert second.figures == {
        "span": 2.0, "rows": 150, "batches": 15, "in:split": 150, "dead:split": 1.5, "lag:records:lines": 7, "behind:timed": 5,
    }  # fmt: skip
    assert history.observe("count", progress(1003.0, 250), 1004.0) is None


def test_a_new_driver_counts_from_nothing_and_one_that_ran_before_is_not_of_this_moment(history: History) -> None:
    assert history.observe("old", progress(5000.0, 1_000_000), 5000.0) is None
    observed(history, 5)
    again = history.observe("count", progress(1010.0, 30, pid=2, began=1008.0), 1010.0)
    assert again is not None
    assert (again.figures["rows"], again.figures["span"]) == (30, 2.0)


def test_every_span_has_all_that_was_counted_in_it_and_no_more_points_than_it_may(history: History) -> None:
    now = observed(history, 9_000)
    assert sums(history.points("count", "5m", now)[1]) == pytest.approx(300 * 100, rel=0.02)
    for span, seconds in (("1h", 3_600), ("1d", 9_000), ("all", 9_000)):
        width, points = history.points("count", span, now)
        assert sums(points) == pytest.approx(seconds * 100, rel=0.01), span
        assert len(points) <= MOST_POINTS
        assert len({point.time for point in points}) == len(points)
        assert width in (10.0, 60.0, 150.0)
    assert len(history.jobs["count"].recent.kept) == MOST_FINE
    assert not history.jobs["count"].waiting[:-10]


def test_what_was_measured_keeps_its_largest_value(history: History) -> None:
    now = observed(history, 400)
    _, points = history.points("count", "1h", now)
    assert points[0].figures["lag:records:lines"] == 9
    assert max(point.figures["lag:records:lines"] for point in points) == 400


def test_another_manager_finds_what_was_written(history: History) -> None:
    now = observed(history, 1_000)
    width, points = History(history.database).points("count", "5m", now)
    assert width == 10.0
    assert sums(points) == pytest.approx(30_000, rel=0.05)


def test_old_points_go_and_a_job_can_be_forgotten(history: History) -> None:
    observed(history, 60)
    later = 1_000.0 + LEVELS[0][1] + 3_600
    history.observe("count", progress(later, 10.0, pid=2, began=later - 1), later)
    history.flush(later)
    assert history._stored("count", 0, 0.0) != []
    assert all(point.time > 1_100 for point in history._stored("count", 0, 0.0))
    history.forget("count")
    assert history.points("count", "all", later)[1] == []


def test_a_span_that_is_none_is_refused(history: History) -> None:
    with pytest.raises(OptionError, match=f"expected a span, {', '.join(SPANS)}, got '2y'"):
        history.points("count", "2y", 0.0)


@pytest.mark.parametrize("told", [{}, {"totals": 3}, {"totals": {"figures": {}, "watermarks": {}}, "time": 5}])
def test_what_a_driver_says_that_is_no_figure_is_no_point(history: History, told: dict[str, object]) -> None:
    assert history.observe("count", told, 10.0) is None
