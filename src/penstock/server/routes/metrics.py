"""The metrics of all jobs and of the server, for Prometheus to fetch with a token of the role viewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.responses import PlainTextResponse

from penstock.jobs.manager.alerts.center import AlertCenter
from penstock.jobs.manager.insight.pool_use import pool_uses
from penstock.jobs.manager.manager import PHASES, JobState, Manager
from penstock.server.depends import Jobs
from penstock.server.guard import Viewer
from penstock.server.routes.alerts import Alerts

router = APIRouter()


@router.get(
    "/metrics", summary="Metrics of the jobs and of the server, for Prometheus", response_class=PlainTextResponse
)
def metrics(manager: Jobs, alerts: Alerts, asker: Viewer) -> Response:
    """In the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(JobCollector(manager))
    registry.register(ServerCollector(manager, alerts))
    ProcessCollector(registry=registry)
    return Response(generate_latest(registry), media_type="text/plain; version=0.0.4; charset=utf-8")


class JobCollector:
    """The figures of all jobs as they are when somebody asks."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager

    def collect(self) -> Iterator[Any]:
        """The families of metrics."""
        states = self.manager.last_states()
        yield self._phases(states)
        for name, about, value in GAUGES:
            rows = [(_labels(state), found) for state in states if (found := value(state)) is not None]
            yield _family(GaugeMetricFamily, name, about, rows)
        for name, about, value in COUNTERS:
            yield _family(CounterMetricFamily, name, about, [(_labels(state), value(state)) for state in states])
        yield _lags(states)

    def _phases(self, states: list[JobState]) -> GaugeMetricFamily:
        counts = Counter(state.phase for state in states)
        made = GaugeMetricFamily("penstock_jobs", "Jobs by phase", labels=["phase"])
        for phase in PHASES:
            made.add_metric([phase], counts[phase])
        return made


class ServerCollector:
    """The server itself: whether it leads, what fires, how full pools are."""

    def __init__(self, manager: Manager, alerts: AlertCenter) -> None:
        self.manager, self.alerts = manager, alerts

    def collect(self) -> Iterator[Any]:
        """The families of metrics."""
        leads = float(self.manager.leads)
        yield GaugeMetricFamily("penstock_server_leads", "1 while this server sees to the jobs", value=leads)
        fires = GaugeMetricFamily(
            "penstock_alert_firing", "1 while an alert fires", labels=["alert", "job", "severity"]
        )
        for notice in self.alerts.firing():
            fires.add_metric([notice.rule, notice.job, notice.severity], 1.0)
        yield fires
        taken = GaugeMetricFamily("penstock_pool_cores", "Cores that the jobs of a pool take", labels=["pool"])
        waits = GaugeMetricFamily("penstock_pool_waiting", "Jobs that wait for their pool", labels=["pool"])
        for use in pool_uses(self.manager.last_states(), self.manager.records.pools()):
            taken.add_metric([use["name"]], use["used"]["cores"])
            waits.add_metric([use["name"]], len(use["queue"]))
        yield from (taken, waits)


def _labels(state: JobState) -> list[str]:
    return [state.job.name, state.job.owner]


def _family(kind: Any, name: str, about: str, rows: list[tuple[list[str], float]]) -> Any:
    made = kind(name, about, labels=["job", "owner"])
    for labels, value in rows:
        made.add_metric(labels, value)
    return made


def _lags(states: list[JobState]) -> GaugeMetricFamily:
    made = GaugeMetricFamily("penstock_job_lag", "What a source has waiting", labels=["job", "source", "unit"])
    for state in states:
        lags = state.progress.get("lags")
        for source, unit, value in lags if isinstance(lags, list) else ():
            made.add_metric([state.job.name, str(source), str(unit)], float(value))
    return made


def _last(state: JobState) -> dict[str, Any]:
    found = state.progress.get("last")
    return found if isinstance(found, dict) else {}


def _finished(state: JobState) -> float | None:
    """When its last batch ended; None before the first."""
    found = _last(state).get("finished")
    return found if isinstance(found, float) else None


def _said(state: JobState, name: str) -> float:
    found = state.progress.get(name)
    return float(found) if isinstance(found, int) else 0.0


def _total(state: JobState, part: str, kind: str) -> float:
    """What all steps of a job have of something together: what they counted, or what they keep."""
    totals = state.progress.get("totals")
    found = totals.get(part) if isinstance(totals, dict) else None
    figures = found.items() if isinstance(found, dict) else ()
    return float(sum(value for name, value in figures if name.startswith(f"{kind}:")))


Value = Callable[[JobState], float]
GAUGES: tuple[tuple[str, str, Callable[[JobState], float | None]], ...] = (
    ("penstock_job_up", "1 while the job has a driver that runs", lambda s: float(s.phase == "running")),
    ("penstock_job_failures", "Failures in a row", lambda s: s.course.failures),
    ("penstock_job_last_batch_timestamp_seconds", "When the last batch ended (Unix)", _finished),
    ("penstock_job_batch_seconds", "Time of the last batch", lambda s: _last(s).get("seconds", 0.0)),
    ("penstock_job_state_entries", "Entries of state that its steps keep", lambda s: _total(s, "measured", "kept")),
    ("penstock_job_state_bytes", "Bytes of state that its steps keep", lambda s: _total(s, "measured", "bytes")),
)
COUNTERS: tuple[tuple[str, str, Value], ...] = (
    ("penstock_job_rows", "Rows that the driver has read", lambda s: _said(s, "rows")),
    ("penstock_job_batches", "Batches that the driver has committed", lambda s: _said(s, "batches")),
    ("penstock_job_dead_letters", "Records that the driver's steps put aside", lambda s: _total(s, "figures", "dead")),
    ("penstock_job_late", "Late records that the driver has seen", lambda s: _total(s, "figures", "late")),
    ("penstock_job_restarts", "Drivers started after a failure", lambda s: s.course.restarts),
)
