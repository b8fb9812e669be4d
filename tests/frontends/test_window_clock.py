"""Windows by processing time: each tuple in the windows of its time, however late they are looked at."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import penstock as ps
from penstock.graph.logic.topology.tuples import tuple_class
from penstock.kernels.topology.windows import TupleWindows
from penstock.testing import TrackedTopology


class Seen(ps.WindowedBolt):
    outputs = "start int, end int, tuples array<bigint>, new array<bigint>, expired array<bigint>"
    window: ClassVar[int | str] = "10s"

    def process_window(self, window: Any) -> Any:
        start = None if window.start is None else round(window.start) % 1000
        yield start, round(window.end) % 1000, *([t.n for t in each] for each in (window, window.new, window.expired))


def seen(window: int | str, slide: int | str | None = None) -> TrackedTopology:
    top = ps.Topology("clock")
    top.spout("numbers", ps.items([], "n bigint"))
    top.bolt("seen", type("Some", (Seen,), {"window": window, "slide": slide})()).global_("numbers")
    top.sink("out", ps.console(), from_="seen")
    return TrackedTopology(top)


def rows(tracked: TrackedTopology) -> list[tuple[Any, ...]]:
    """What was new and what was there, by the end of the window since the first one began."""
    found = tracked.driver.results()["out"]
    return [(row.tuples, row.new, row.expired) for row in found]


@pytest.mark.parametrize("steps", [1, 9], ids=["in-time", "behind"])
def test_a_tumbling_window_has_each_tuple_once(steps: int) -> None:
    """A window that is looked at late has what came before its end, and not what came after it."""
    tracked = seen("10s")
    tracked.push("numbers", 1, 2)
    tracked.advance(3)
    tracked.push("numbers", 3)
    if steps == 1:
        tracked.advance(9)
    else:
        tracked.driver.clock.advance(9)  # no batch comes in these nine seconds
    tracked.push("numbers", 4)
    tracked.advance(40)
    assert rows(tracked) == [([1, 2, 3], [1, 2, 3], []), ([4], [4], [1, 2, 3])]


@pytest.mark.parametrize("steps", [1, 9], ids=["in-time", "behind"])
def test_a_sliding_window_has_what_came_within_its_length(steps: int) -> None:
    tracked = seen("10s", "5s")
    tracked.push("numbers", 1)
    tracked.advance(3)
    tracked.push("numbers", 2)
    if steps == 1:
        tracked.advance(9)
    else:
        tracked.driver.clock.advance(9)
    tracked.push("numbers", 3)
    tracked.advance(40)
    expected = [([1, 2], [1, 2], []), ([1, 2], [], []), ([3], [3], [1, 2]), ([3], [], [])]
    assert rows(tracked) == expected


def test_a_tuple_after_a_long_silence_begins_a_window_in_the_same_rhythm() -> None:
    tracked = seen("10s")
    tracked.push("numbers", 1)
    tracked.advance(10_004)
    tracked.push("numbers", 2)
    tracked.advance(6)
    found = tracked.driver.results()["out"]
    assert [(row.new, row.end - row.start) for row in found] == [([1], 10), ([2], 10)]
    assert (found[1].end - found[0].end) % 10 == 0


def test_windows_by_count_that_slide_by_time() -> None:
    tracked = seen(2, "10s")
    tracked.push("numbers", 1, 2, 3)
    tracked.advance(10)
    tracked.push("numbers", 4)
    tracked.advance(10)
    assert rows(tracked) == [([2, 3], [2, 3], [1]), ([3, 4], [4], [2])]
    tracked.driver.clock.advance(1_000_000)
    tracked.advance(1)
    assert rows(tracked)[2:] == [([3, 4], [], [])], "those that are due come as one"


def test_the_clock_of_a_worker_may_go_back() -> None:
    made = tuple_class(("n",), "numbers", "default", False, 0)
    windows = TupleWindows(type("Some", (Seen,), {"window": "10s"})(), 1)
    for now, n in ((100_000_000, 1), (99_000_000, 2), (109_000_000, 3)):
        assert windows.add(made((n,)), now)
    assert [[t.n for t in w] for w in windows.advance(110_000_000, ended=False)] == [[1, 2, 3]]
