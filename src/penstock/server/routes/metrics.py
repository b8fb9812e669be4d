"""The metrics of all jobs, for Prometheus to fetch with a token of the role viewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.responses import PlainTextResponse

from penstock.jobs.manager.manager import JobState, Manager
from penstock.server.depends import Jobs
from penstock.server.guard import Viewer

router = APIRouter()
PHASES = ("queued", "starting", "running", "stopping", "waiting", "held", "finished", "paused", "stopped")


@router.get("/metrics", summary="Metrics of the jobs, for Prometheus", response_class=PlainTextResponse)
def metrics(manager: Jobs, asker: Viewer) -> Response:
    """In the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(JobCollector(manager))
    return Response(generate_latest(registry), media_type="text/plain; version=0.0.4; charset=utf-8")


class JobCollector:
    """The figures of all jobs as they are when somebody asks."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager

    def collect(self) -> Iterator[Any]:
        """The families of metrics."""
        states = self.manager.last_states()
        yield self._phases(states)
        for name, about, value in (
            ("penstock_job_up", "1 while the job has a driver that runs", lambda s: float(s.phase == "running")),
            ("penstock_job_failures", "Failures in a row", lambda s: s.course.failures),
            ("penstock_job_last_batch_timestamp", "When the last batch ended (Unix)", _finished),
            ("penstock_job_batch_seconds", "Time of the last batch", lambda s: _last(s).get("seconds", 0.0)),
        ):
            yield _family(GaugeMetricFamily, name, about, [((s.job.name, s.job.owner), value(s)) for s in states])
        for name, about, key in (
            ("penstock_job_rows", "Rows that the driver has read", "rows"),
            ("penstock_job_batches", "Batches that the driver has committed", "batches"),
        ):
            rows = [((s.job.name, s.job.owner), s.progress.get(key, 0)) for s in states]
            yield _family(CounterMetricFamily, name, about, rows)
        restarts = [((s.job.name, s.job.owner), s.course.restarts) for s in states]
        yield _family(CounterMetricFamily, "penstock_job_restarts", "Drivers started after a failure", restarts)
        yield _lags(states)

    def _phases(self, states: list[JobState]) -> GaugeMetricFamily:
        counts = Counter(state.phase for state in states)
        made = GaugeMetricFamily("penstock_jobs", "Jobs by phase", labels=["phase"])
        for phase in PHASES:
            made.add_metric([phase], counts[phase])
        return made


def _family(kind: Any, name: str, about: str, rows: list[tuple[tuple[str, str], Any]]) -> Any:
    made = kind(name, about, labels=["job", "owner"])
    for labels, value in rows:
        made.add_metric(list(labels), float(value))
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


def _finished(state: JobState) -> float:
    return float(_last(state).get("finished") or 0.0)
