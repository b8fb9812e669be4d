"""The reports of a run, added up as plain values: whoever reads them now and then gets what happened in between by subtraction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.graph.times import FOREVER, NEVER
from penstock.live.report import BatchReport

Figures = dict[str, float]
"""Figures by name: `rows`, or `KIND:STEP` such as `in:split`."""
PHASES = ("plan", "compute", "state", "sinks", "log")
"""The parts of a batch whose time is measured; what is left is Spark's own."""
_BY_STEP = ("late", "bad", "dead", "skipped", "shed")


@dataclass
class Totals:
    """What a run has done so far.

    >>> made = Totals()
    >>> made.add(BatchReport(0, {"lines": 10}, {"split": (10, 30)}, {"trigger": 0.5, "plan": 0.1}))
    >>> made.figures["rows"], made.figures["out:split"], round(made.figures["phase:spark"], 1)
    (10, 30, 0.4)
    """

    figures: Counter[str] = field(default_factory=Counter)
    """What only grows."""
    watermarks: dict[str, float] = field(default_factory=dict)
    """How far event time has come, in seconds, by step."""

    measured: Figures = field(default_factory=dict)
    """What was found at the last batch and may fall again: `skew:STEP`, `tasks:STEP`, `timers:STEP`, and of state its entries, `kept:STEP`, and `bytes:STEP`."""

    def add(self, report: BatchReport) -> None:
        """Takes in one batch."""
        self.figures.update(dict(_counted(report)))
        self.measured |= dict(_measured(report))
        reached = {step: at for step, at in report.watermarks.items() if NEVER < at < FOREVER}
        self.watermarks |= {step: at / 1_000_000 for step, at in reached.items()}

    def as_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        rounded = {name: round(value, 4) for name, value in self.figures.items()}
        return {"figures": rounded, "watermarks": self.watermarks, "measured": self.measured}


def _counted(report: BatchReport) -> Iterator[tuple[str, float]]:
    yield from (("batches", 1), ("rows", report.rows_in), ("seconds", report.total))
    yield from _phases(report)
    yield from ((f"out:{source}", rows) for source, rows in report.sources.items())
    for step, (taken, emitted) in report.steps.items():
        yield f"in:{step}", taken
        if step not in report.sources:
            yield f"out:{step}", emitted
    for kind in _BY_STEP:
        counts: Mapping[str, int] = getattr(report, kind)
        yield from ((f"{kind}:{step}", many) for step, many in counts.items())
    for step, ends in report.runs.items():
        yield from ((f"{how}:{step}", many) for how, many in ends.items())
    yield from ((f"busy:{step}", load["seconds"]) for step, load in report.load.items())
    if report.native:
        yield "native", report.native


def _measured(report: BatchReport) -> Iterator[tuple[str, float]]:
    for step, load in report.load.items():
        yield from ((f"skew:{step}", load["skew"]), (f"tasks:{step}", load["tasks"]))
    for step, size in report.state.items():
        yield from ((f"kept:{step}", size["rows"]), (f"bytes:{step}", size["bytes"]))
    yield from ((f"timers:{step}", many) for step, many in report.timers.items())
    if report.cores:
        yield "cores", report.cores


def _phases(report: BatchReport) -> Iterator[tuple[str, float]]:
    known = {name: report.seconds[name] for name in PHASES if name in report.seconds}
    yield from ((f"phase:{name}", seconds) for name, seconds in known.items())
    yield "phase:spark", max(report.total - sum(known.values()), 0.0)
