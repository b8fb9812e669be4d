"""Input that adapts to what the flow gets through. No JVM."""

from __future__ import annotations

from pathlib import Path

from penstock.connectors.log.source import paced
from penstock.spark.live.pace import FIRST, LEAST, Pace
from penstock.spark.live.report import BatchReport


def batch(rows: int, seconds: float) -> BatchReport:
    return BatchReport(0, {"a": rows}, seconds={"trigger": seconds})


def test_a_slow_batch_makes_the_next_ones_smaller_and_a_quick_one_larger(tmp_path: Path) -> None:
    pace = Pace(tmp_path, ("a",), seconds=2.0)
    pace.begin()
    assert (tmp_path / "a" / "pace").read_text() == str(FIRST)
    pace.learn(batch(FIRST, 8.0))
    assert pace.told["a"] == FIRST // 2
    pace.learn(batch(FIRST // 2, 4.0))
    assert pace.told["a"] == FIRST // 4
    pace.learn(batch(FIRST // 4, 0.5))
    assert pace.told["a"] == FIRST // 2


def test_a_batch_that_was_not_full_says_nothing(tmp_path: Path) -> None:
    pace = Pace(tmp_path, ("a",))
    pace.begin()
    pace.learn(batch(10, 0.3))
    assert pace.told["a"] == FIRST


def test_it_never_goes_to_zero_nor_over_its_bound(tmp_path: Path) -> None:
    pace = Pace(tmp_path, ("a",), most=5000)
    pace.begin()
    assert pace.told["a"] == 5000
    for _ in range(20):
        pace.learn(batch(pace.told["a"], 100.0))
    assert pace.told["a"] == LEAST
    for _ in range(20):
        pace.learn(batch(pace.told["a"], 0.1))
    assert pace.told["a"] == 5000


def test_partitions_share_the_pace_by_what_they_have_waiting() -> None:
    assert paced({"0": 5, "1": 0}, {"0": 5, "1": 7}, 100) == {"0": 5, "1": 7}
    made = paced({"0": 0, "1": 0, "2": 3}, {"0": 1000, "1": 1, "2": 3}, 10)
    assert made == {"0": 10, "1": 1, "2": 3}
