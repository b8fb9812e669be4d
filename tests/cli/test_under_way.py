"""A batch that lasts is shown while it lasts: which, how many rows, how many of its tasks."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

import penstock as ps
from penstock.cli.output.display import LiveDisplay, PlainDisplay
from penstock.cli.output.progress import Tally
from penstock.jobs.launch import Launch
from penstock.live.report import BatchReport

TEXT = "batch 3: 4,000 rows, 1 of 2 tasks, 61 s"


def flow() -> ps.Flow:
    made = ps.Flow("slow")
    made.source("in", ps.items([1], "n int")).sink("out", ps.console())
    return made


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_say_it_every_ten_seconds_and_not_between_batches() -> None:
    out, clock = io.StringIO(), Clock()
    display = PlainDisplay(Tally(flow().graph), out, clock=clock)
    for clock.now in range(35):
        display.show_batch(TEXT)
    assert out.getvalue().splitlines() == [f"slow {TEXT}"] * 3
    for clock.now in range(35, 70):
        display.show_batch("")
    assert len(out.getvalue().splitlines()) == 3


def test_a_line_of_a_batch_that_is_done_counts_as_said() -> None:
    out, clock = io.StringIO(), Clock()
    display = PlainDisplay(Tally(flow().graph), out, clock=clock)
    for clock.now in range(30):
        display(BatchReport(int(clock.now), {"in": 1}))
        display.show_batch(TEXT)
    assert TEXT not in out.getvalue()


def test_in_a_terminal_it_stands_below_the_headline_while_it_lasts() -> None:
    console = Console(file=io.StringIO(), width=120)
    display = LiveDisplay(Tally(flow().graph), console)
    display.tell("running with Spark")
    display.show_batch(TEXT)
    console.print(display._picture())
    display.show_batch("")
    console.print(display._picture())
    assert console.file.getvalue().count(f"under way: {TEXT}") == 1  # type: ignore[attr-defined]


class Live:
    """A live run that says how it is, or cannot any more."""

    text = TEXT

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def status(self) -> Any:
        if self.fails:
            raise ConnectionRefusedError
        return self


def test_a_launch_says_what_is_under_way_and_nothing_when_it_cannot() -> None:
    launch: Any = Launch(flow().graph)
    assert launch.under_way() == ""
    launch.live = Live()
    assert launch.under_way() == TEXT
    launch.live = Live(fails=True)
    assert launch.under_way() == ""
