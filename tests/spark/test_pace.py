"""Input that adapts to what the flow gets through. No JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.log.source import TASKS, Slice, bundled, paced
from penstock.connectors.sharing import shares
from penstock.live.pace import FIRST, FIRST_NATIVE, LEAST, Pace
from penstock.live.report import BatchReport


def batch(rows: int, seconds: float) -> BatchReport:
    return BatchReport(0, {"a": rows}, seconds={"trigger": seconds})


def run(pace: Pace, waiting: int, cost: Callable[[int], float], warm: float = 7.0) -> list[tuple[int, float]]:
    """The rows and seconds of the batches that take a backlog, if a batch of so many rows takes so long."""
    done: list[tuple[int, float]] = []
    while waiting > 0 and len(done) < 1000:
        rows = min(waiting, pace.rows["a"])
        seconds = cost(rows) + (0.0 if done else warm)
        pace.learn(batch(rows, seconds))
        done.append((rows, seconds))
        waiting -= rows
    return done


def begun(folder: Path, seconds: float = 2.0, most: int | None = None) -> Pace:
    pace = Pace(folder, ("a",), seconds, most)
    pace.begin()
    return pace


def test_a_slow_step_shows_its_first_records_soon(tmp_path: Path) -> None:
    """120,000 records wait, each takes 5 ms, and one task has nine tenths of them."""
    pace = begun(tmp_path)
    done = run(pace, 120_000, lambda rows: 0.5 + rows * 0.9 * 0.005)
    assert (tmp_path / "a" / "pace").read_text() == str(pace.rows["a"])
    assert done[0][0] == FIRST
    assert max(seconds for _, seconds in done) < 14
    assert all(seconds < 3.5 for _, seconds in done[5:])


def test_a_native_flow_is_at_full_speed_at_once(tmp_path: Path) -> None:
    pace = Pace(tmp_path, ("a",), first=FIRST_NATIVE)
    pace.begin()
    done = run(pace, 2_000_000, lambda rows: 0.5 + rows / 1_000_000, warm=1.0)
    assert done[0][0] == FIRST_NATIVE
    assert all(rows >= 2 * FIRST_NATIVE for rows, _ in done[1:-1])


def test_a_quick_flow_is_at_full_speed_after_three_batches(tmp_path: Path) -> None:
    done = run(begun(tmp_path), 5_000_000, lambda rows: 0.5 + rows / 1_000_000)
    assert sum(rows for rows, _ in done[:3]) < 100_000
    assert all(rows > 400_000 for rows, _ in done[3:-1])
    assert len(done) < 12


@pytest.mark.parametrize("cost", [0.00001, 0.0001, 0.001])
def test_batches_come_to_last_as_long_as_they_should(tmp_path: Path, cost: float) -> None:
    done = run(begun(tmp_path, seconds=4.0), 100_000_000, lambda rows: 0.5 + rows * cost)
    for _, seconds in done[10:50]:
        assert 2.0 <= seconds <= 6.0


def test_a_batch_that_was_not_full_says_nothing(tmp_path: Path) -> None:
    pace = begun(tmp_path)
    for _ in range(3):
        pace.learn(batch(10, 0.3))
    assert pace.rows["a"] == FIRST


def test_it_never_goes_below_the_least_nor_over_its_bound(tmp_path: Path) -> None:
    pace = begun(tmp_path, most=5000)
    for _ in range(20):
        pace.learn(batch(pace.rows["a"], 100.0))
    assert pace.rows["a"] == LEAST
    for _ in range(20):
        pace.learn(batch(pace.rows["a"], 0.1))
    assert pace.rows["a"] == 5000
    assert begun(tmp_path, most=100).rows["a"] == 100


def test_partitions_share_the_pace_by_what_they_have_waiting() -> None:
    assert paced({"0": 5, "1": 0}, {"0": 5, "1": 7}, 100) == {"0": 5, "1": 7}
    made = paced({"0": 0, "1": 0, "2": 3}, {"0": 1000, "1": 1, "2": 3}, 10)
    assert made == {"0": 9, "1": 1, "2": 3}


@given(st.dictionaries(st.integers(0, 50), st.integers(0, 5000)), st.none() | st.integers(1, 8000))
def test_a_batch_never_takes_more_than_it_may_and_leaves_no_partition_out(
    waiting: dict[int, int], most: int | None
) -> None:
    made = shares(waiting, most)
    total, busy = sum(waiting.values()), [p for p, many in waiting.items() if many]
    assert sum(made.values()) == (total if most is None else min(total, most))
    assert all(0 <= made[p] <= waiting[p] for p in waiting)
    assert most is None or most < len(busy) or all(made[p] for p in busy)


@given(st.lists(st.integers(1, 4000), max_size=400))
def test_a_topic_of_many_partitions_is_read_by_few_tasks(lengths: list[int]) -> None:
    slices = [Slice(p, 7, 7 + many) for p, many in enumerate(lengths)]
    made = bundled(slices)
    assert [part for bundle in made for part in bundle.slices] == slices
    assert len(made) <= TASKS
    assert all(bundle.slices for bundle in made)
