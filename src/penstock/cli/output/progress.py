"""What a person sees of a run: pure functions from the reports of batches to text and tables."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.duration import clock
from penstock.graph.graph import Graph
from penstock.graph.times import FOREVER, NEVER, to_moment
from penstock.jobs.metrics import lags, measured
from penstock.live.report import BatchReport

PHASES = {"plan": "cyan", "compute": "green", "state": "magenta", "sinks": "yellow", "log": "blue"}
"""Where the time of a batch goes, and the colour of each part."""
WINDOW = 10.0
"""Rates are those of so many seconds."""
MOST_STEPS = 16
MOST_PATTERNS = 3


@dataclass
class Tally:
    """All reports of a run, added up."""

    graph: Graph
    mode: str = "live"
    began: float = field(default_factory=time.time)
    batches: int = 0
    rows_in: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    given: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    shed: Counter[str] = field(default_factory=Counter)
    last: BatchReport | None = None
    first_began: float | None = None
    recent: deque[BatchReport] = field(default_factory=deque)

    def add(self, report: BatchReport) -> None:
        """Takes in one batch."""
        if self.first_began is None:
            self.first_began = report.finished - report.total
        self.last, self.batches, self.rows_in = report, self.batches + 1, self.rows_in + report.rows_in
        self.given.update(report.sources)
        self.late.update(report.late)
        self.bad.update(report.bad)
        self.dead.update(report.dead)
        self.skipped.update(report.skipped)
        self.shed.update(report.shed)
        for step, (taken, given) in report.steps.items():
            self.taken[step] += taken
            self.given[step] += 0 if step in report.sources else given
        self.recent.append(report)
        while len(self.recent) > 2 and self.recent[0].finished < report.finished - WINDOW:
            self.recent.popleft()

    @property
    def sinks(self) -> list[str]:
        """The names of the flow's sinks."""
        return [s.name for s in self.graph.sinks]

    def rate(self, sink: str = "") -> float:
        """Rows a second lately: of all sources, or into a sink."""
        reports = list(self.recent)
        if not reports:
            return 0.0
        if len(reports) == 1:
            return _rows(reports[0], sink) / max(reports[0].total, 0.001)
        span = reports[-1].finished - reports[0].finished
        return sum(_rows(r, sink) for r in reports[1:]) / max(span, 0.001)

    def mean_rate(self) -> float:
        """Rows a second from the first batch's begin to the last one's end."""
        if self.last is None or self.first_began is None:
            return 0.0
        return self.rows_in / max(self.last.finished - self.first_began, 0.001)


def _rows(report: BatchReport, sink: str) -> int:
    return report.steps.get(sink, (0, 0))[0] if sink else report.rows_in


def number(value: float) -> str:
    """A number as people read it.

    >>> number(1234567), number(0.5), number(12.3)
    ('1,234,567', '0.5', '12')
    """
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def batches(many: int) -> str:
    """So many batches, in words.

    >>> batches(1), batches(2000)
    ('1 batch', '2,000 batches')
    """
    return f"{number(many)} batch{'' if many == 1 else 'es'}"


def rows_text(many: int) -> str:
    """So many rows, in words.

    >>> rows_text(1), rows_text(2000)
    ('1 row', '2,000 rows')
    """
    return f"{number(many)} row{'' if many == 1 else 's'}"


def phases(report: BatchReport) -> dict[str, float]:
    """Where the time of a batch went; what no phase accounts for is `spark`."""
    known = {name: report.seconds[name] for name in PHASES if name in report.seconds}
    rest = report.total - sum(known.values())
    return {**known, "spark": rest} if rest >= 0.005 else known


def phases_text(report: BatchReport) -> str:
    """The phases in words.

    >>> phases_text(BatchReport(0, seconds={"plan": 0.05, "compute": 0.5, "trigger": 0.6}))
    'plan 0.05, compute 0.50, spark 0.05'
    """
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in phases(report).items() if seconds >= 0.005)


def lag_text(report: BatchReport) -> str:
    """What sources have waiting, in words; empty when nothing waits or nobody knows.

    >>> lag_text(BatchReport(0, lag={"lines": {"files": 2, "bytes": 0}}))
    'lines 2 files'
    """
    return ", ".join(f"{source} {number(value)} {unit}" for source, unit, value in lags(report) if value)


def time_text(report: BatchReport) -> str:
    """How far event time has come, and the records that were late or bad and that nobody reads; empty without event time.

    >>> time_text(BatchReport(0, late={"per_minute": 2}, watermarks={"clicks@time": 1_700_000_000_000_000}))
    'watermark 2023-11-14 22:13:20, late 2 (per_minute)'
    """
    reached = [w for w in report.watermarks.values() if NEVER < w < FOREVER]
    shown = [f"watermark {to_moment(min(reached)):%Y-%m-%d %H:%M:%S}"] if reached else []
    counted = {"late": report.late, "bad time": report.bad, "dead letters": report.dead, "skipped": report.skipped}
    said = {component: sum(map(len, tasks.values())) for component, tasks in report.errors.items()}
    for word, counts in {**counted, "shed": report.shed, "errors": said}.items():
        shown += [f"{word} {number(many)} ({step})" for step, many in counts.items()]
    return ", ".join(shown)


def runs_text(report: BatchReport) -> str:
    """The runs of patterns under way, and since when the oldest; empty where there are none.

    >>> runs = {"runs": 2000, "keys": 3, "events": 5, "bytes": 9, "waiting": {"paid": 2000}, "oldest": 1_700_000_000_000_000}
    >>> runs_text(BatchReport(0, active_runs={"orders": {"unpaid": runs}}))
    'unpaid 2,000 runs since 2023-11-14 22:13:20'
    """
    shown = []
    for patterns in report.active_runs.values():
        for pattern, found in patterns.items():
            since = "" if found["oldest"] is None else f" since {to_moment(found['oldest']):%Y-%m-%d %H:%M:%S}"
            shown.append(f"{pattern} {number(found['runs'])} run{'' if found['runs'] == 1 else 's'}{since}")
    return ", ".join(shown[:MOST_PATTERNS]) + (
        f", {len(shown) - MOST_PATTERNS} more" if len(shown) > MOST_PATTERNS else ""
    )


def metrics_text(report: BatchReport) -> str:
    """What spouts and bolts have measured, all tasks of each together, in words.

    >>> metrics_text(BatchReport(0, metrics={"split": {0: {"lines": 3}, 1: {"lines": 4}}}))
    'split lines 3 + 4'
    """
    found: dict[str, list[str]] = {}
    for component, _, name, value in measured(report):
        found.setdefault(f"{component} {name}", []).append(number(value))
    return ", ".join(f"{name} {' + '.join(values)}" for name, values in found.items())


def plain_line(tally: Tally) -> str:
    """The last batch on one line."""
    report = tally.last
    if report is None:
        return f"{tally.graph.name}: no batch yet"
    parts = [f"{tally.graph.name} batch {report.batch}"]
    if report.sources:
        parts.append(f"{rows_text(report.rows_in)} in ({number(tally.rate())}/s)")
    parts += [f"{sink} {number(_rows(report, sink))}" for sink in tally.sinks if sink in report.steps]
    parts.append(f"{report.total:.2f} s ({phases_text(report)})")
    texts = (time_text(report), runs_text(report), metrics_text(report))
    extra = [f"lag {lag_text(report)}" if lag_text(report) else "", *texts]
    return "  ".join([*parts, *filter(None, extra)])


def summary(tally: Tally) -> str:
    """The whole run on one line.

    >>> from penstock.frontends.streams.flow import Flow
    >>> from penstock.graph.endpoints.basic import console, items
    >>> flow = Flow("hello")
    >>> flow.source("names", items(["ada"], "name string")).sink("out", console())
    >>> summary(Tally(flow.graph))
    'hello: 0 batches'
    """
    parts = [f"{tally.graph.name}: {batches(tally.batches)}"]
    if tally.last is not None and tally.first_began is not None:
        parts[0] += f" in {tally.last.finished - tally.first_began:.1f} s"
    if tally.rows_in:
        parts.append(f"{rows_text(tally.rows_in)} in, {number(tally.mean_rate())} rows/s on average")
    parts += [f"{sink} {rows_text(tally.given[sink])}" for sink in tally.sinks if sink in tally.given]
    parts += [f"{number(many)} late in {step}" for step, many in tally.late.items()]
    parts += [f"{number(many)} without a usable event time in {step}" for step, many in tally.bad.items()]
    parts += [f"{number(many)} dead letter{'' if many == 1 else 's'} of {step}" for step, many in tally.dead.items()]
    parts += [f"{number(many)} skipped by {step}" for step, many in tally.skipped.items()]
    parts += [f"{number(many)} shed by {source}" for source, many in tally.shed.items()]
    return ", ".join(parts)


def view(tally: Tally, now: float, note: str = "", under_way: str = "") -> RenderableType:
    """The run as a terminal shows it: a headline, the batch under way, the last batch, a table of the steps."""
    parts: list[RenderableType] = [_headline(tally, now, note)]
    if under_way:
        parts.append(Text(f"under way: {under_way}", "cyan"))
    if tally.last is not None:
        parts += [_batch_line(tally.last), steps_table(tally)]
    return Group(*parts)


def _headline(tally: Tally, now: float, note: str) -> Text:
    line = Text.assemble((tally.graph.name, "bold"), f"  {tally.mode}  {clock(now - tally.began)}")
    line.append(f"  {batches(tally.batches)}")
    if tally.rows_in or tally.mode != "batch":
        line.append(f"  {rows_text(tally.rows_in)} in  ")
        line.append(f"{number(tally.rate())} rows/s", "bold green")
    if note:
        line.append(f"  {note}", "yellow")
    return line


def _batch_line(report: BatchReport) -> Text:
    line = Text(f"batch {report.batch}: {report.total:.2f} s  ")
    for name, seconds in phases(report).items():
        share = round(24 * seconds / max(report.total, 0.001))
        if share:
            line.append("█" * share, PHASES.get(name, "white"))
    for name, seconds in phases(report).items():
        if seconds >= 0.005:
            line.append(f"  {name} {seconds:.2f}", PHASES.get(name, "white"))
    if lag_text(report):
        line.append(f"\nlag {lag_text(report)}", "red")
    if time_text(report):
        line.append(
            f"\n{time_text(report)}",
            "red" if report.late or report.bad or report.dead or report.shed or report.errors else "dim",
        )
    if runs_text(report):
        line.append(f"\n{runs_text(report)}", "dim")
    if metrics_text(report):
        line.append(f"\n{metrics_text(report)}", "dim")
    return line


def steps_table(tally: Tally) -> Table:
    """Rows in and out of each step that counts them, and what each sink takes a second."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("step")
    for column in ("rows in", "rows out", "last in", "last out", "rows/s"):
        table.add_column(column, justify="right")
    for name in shown_steps(tally):
        table.add_row(name, *_step_cells(tally, name))
    return table


def shown_steps(tally: Tally) -> list[str]:
    """The steps with counts, in the order of the flow; the first and the last ones when they are many."""
    names = [n.name for n in tally.graph.nodes if n.name in tally.given or n.name in tally.taken]
    half = MOST_STEPS // 2
    return names if len(names) <= MOST_STEPS else [*names[:half], *names[-half:]]


def _step_cells(tally: Tally, name: str) -> list[str]:
    report = tally.last
    assert report is not None
    source, sink = name in report.sources, name in tally.sinks
    taken, given = report.steps.get(name, (0, 0))
    if source:
        return ["", number(tally.given[name]), "", number(report.sources[name]), number(tally.rate())]
    if sink:
        return [number(tally.taken[name]), "", number(taken), "", number(tally.rate(name))]
    return [number(tally.taken[name]), number(tally.given[name]), number(taken), number(given), ""]
