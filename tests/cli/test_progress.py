"""What a person sees of a run, made from reports alone."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import penstock as ps
from penstock.cli.duration import seconds
from penstock.cli.output.display import Display, LiveDisplay, PlainDisplay, display_for
from penstock.cli.output.progress import Tally, phases, plain_line, shown_steps, summary, view
from penstock.graph.graph import Graph
from penstock.live.report import BatchReport


def graph() -> Graph:
    flow = ps.Flow("words")
    lines = flow.source("lines", ps.items([], "text string"))
    lines.flat_map("split", lambda r: r.text.split(), "word string").sink("out", ps.console())
    return flow.graph


def report(batch: int, rows: int = 100, at: float = 1000.0) -> BatchReport:
    phased = {"plan": 0.1, "compute": 0.5, "state": 0.0, "sinks": 0.1, "log": 0.1, "trigger": 1.0}
    steps = {"split": (rows, 3 * rows), "out": (3 * rows, 3 * rows)}
    lag = {"lines": {"files": 2}} if rows else {}
    return BatchReport(batch, {"lines": rows}, steps, phased, lag, finished=at + batch)


def tally(*batches: int) -> Tally:
    made = Tally(graph(), began=999.0)
    for at, rows in enumerate(batches):
        made.add(report(at, rows))
    return made


def drawn(made: Tally, note: str = "") -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(view(made, 1010.0, note))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    return str(text)


def test_a_plain_line_has_the_batch_its_rows_rate_time_and_lag() -> None:
    line = plain_line(tally(100, 300))
    assert line.startswith("words batch 1  300 rows in (300/s)  out 900  1.00 s (")
    assert "plan 0.10, compute 0.50, sinks 0.10, log 0.10, spark 0.20" in line
    assert line.endswith("lag lines 2 files")


def test_the_rate_is_that_of_the_last_seconds() -> None:
    made = tally(*([1000] * 20), *([10] * 20))
    assert made.rate() == pytest.approx(10, rel=0.01)
    assert made.rate("out") == pytest.approx(30, rel=0.01)
    assert made.mean_rate() == pytest.approx(20 * 1010 / 40, rel=0.01)


def test_what_no_phase_accounts_for_is_sparks() -> None:
    assert phases(report(0))["spark"] == pytest.approx(0.2)
    assert "spark" not in phases(BatchReport(0, seconds={"compute": 1.0}))


def test_the_summary_counts_batches_and_rows() -> None:
    assert summary(tally(100, 300)) == "words: 2 batches in 2.0 s, 400 rows in, 200 rows/s on average, out 1,200 rows"
    assert summary(tally()) == "words: 0 batches"


def test_the_picture_shows_each_step_with_its_rows() -> None:
    text = drawn(tally(100, 300), "stopping")
    assert "words  live  00:11  2 batches  400 rows in  300 rows/s  stopping" in text
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert lines["lines"] == ["400", "300", "300"]
    assert lines["split"] == ["400", "1,200", "300", "900"]
    assert lines["out"] == ["1,200", "900", "900"]
    assert "compute 0.50" in text
    assert "lag lines 2 files" in text


def test_a_flow_of_many_steps_shows_its_beginning_and_end() -> None:
    flow = ps.Flow("long")
    stream = flow.source("s", ps.items([], "n int"))
    for at in range(50):
        stream = stream.map(f"m{at}", lambda r: r)
    stream.sink("o", ps.console())
    made = Tally(flow.graph)
    made.add(BatchReport(0, {"s": 1}, {n.name: (1, 1) for n in flow.graph.nodes}))
    names = shown_steps(made)
    assert (names[0], names[-1], len(names)) == ("s", "o", 16)


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_at_most_once_a_second_and_the_last_always() -> None:
    out, clock = io.StringIO(), Clock()
    with PlainDisplay(Tally(graph()), out, clock=clock) as display:
        for at in range(25):
            clock.now = at * 0.1
            display(report(at))
    lines = out.getvalue().splitlines()
    assert [line.split()[2] for line in lines[:-1]] == ["0", "10", "20", "24"]
    assert lines[-1].startswith("words: 25 batches")


def test_a_run_that_fails_before_its_first_batch_is_not_summed_up() -> None:
    out = io.StringIO()
    display = PlainDisplay(Tally(graph()), out)
    display.tell("starting Spark")
    display.__exit__(RuntimeError, RuntimeError(), None)
    assert out.getvalue() == "words: starting Spark\n"


def test_no_terminal_means_plain_lines_and_none_means_none() -> None:
    assert isinstance(display_for(Tally(graph())), PlainDisplay)
    assert type(display_for(Tally(graph()), "none")) is Display


def test_the_live_display_goes_from_spinner_to_table_to_summary() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    with LiveDisplay(Tally(graph()), console) as display:
        display.tell("starting Spark")
        display.live.refresh()
        display.tell("running with Spark")
        display(report(0))
        display.live.refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    assert text.index("starting Spark") < text.index("rows out") < text.index("words: 1 batch in 1.0 s")


@pytest.mark.parametrize(
    "text, expected", [("500ms", 0.5), ("20s", 20), ("5m", 300), ("1h", 3600), ("1m30s", 90), ("3", 3)]
)
def test_spans_of_time(text: str, expected: float) -> None:
    assert seconds(text) == expected
