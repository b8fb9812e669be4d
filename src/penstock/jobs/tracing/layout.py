"""How a report becomes spans: the times of the phases of a batch, and what each span says."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from penstock.live.report import BatchReport
from penstock.live.totals import PHASES

REST, WHOLE = "spark", "trigger"
Attributes = dict[str, str | int | float]


def traces_url(endpoint: str) -> str:
    """Where a collector takes traces: the path of OTLP, unless the endpoint has one of its own.

    >>> traces_url("http://127.0.0.1:4318"), traces_url("https://otel.example.org/a/v1/traces")
    ('http://127.0.0.1:4318/v1/traces', 'https://otel.example.org/a/v1/traces')
    """
    return endpoint if urlsplit(endpoint).path.strip("/") else f"{endpoint.rstrip('/')}/v1/traces"


def phase_times(seconds: Mapping[str, float], begin: float, end: float) -> list[tuple[str, float, float]]:
    """The phases of a batch one after the other, from its beginning, and what is left of it.

    >>> phase_times({"trigger": 1.0, "plan": 0.25, "compute": 0.5}, 10.0, 11.0)
    [('plan', 10.0, 10.25), ('compute', 10.25, 10.75), ('spark', 10.75, 11.0)]
    """
    made, at = [], begin
    for phase in (*PHASES, *(name for name in seconds if name not in (*PHASES, WHOLE))):
        until = min(at + seconds.get(phase, 0.0), end)
        if until > at:
            made.append((phase, at, until))
        at = until
    return [*made, (REST, at, end)] if end > at else made


def batch_attributes(flow: str, report: BatchReport) -> Attributes:
    """What a batch read, and what waits.

    >>> batch_attributes("count", BatchReport(3, {"lines": 10}))["penstock.source.lines.rows"]
    10
    """
    rows: Attributes = {f"penstock.source.{source}.rows": many for source, many in report.sources.items()}
    lags: Attributes = {
        f"penstock.source.{source}.lag.{unit}": many for source, lag in report.lag.items() for unit, many in lag.items()
    }
    return {"penstock.flow": flow, "penstock.batch": report.batch, "penstock.rows": report.rows_in, **rows, **lags}


def step_attributes(report: BatchReport) -> dict[str, Attributes]:
    """What went in and out of each step, and what it did not take, by step.

    >>> step_attributes(BatchReport(0, steps={"count": (10, 4)}, late={"count": 2}))
    {'count': {'penstock.rows.in': 10, 'penstock.rows.out': 4, 'penstock.late': 2}}
    """
    made: dict[str, Attributes] = {
        step: {"penstock.rows.in": taken, "penstock.rows.out": given} for step, (taken, given) in report.steps.items()
    }
    counted = {
        "late": report.late,
        "bad": report.bad,
        "dead": report.dead,
        "skipped": report.skipped,
        "shed": report.shed,
    }
    for name, by_step in counted.items():
        for step, many in by_step.items():
            made.setdefault(step, {})[f"penstock.{name}"] = many
    return made
