"""Metrics of a run, for Prometheus to fetch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from penstock.errors import SetupError
from penstock.graph.times import FOREVER, NEVER
from penstock.live.report import BatchReport

if TYPE_CHECKING:
    from types import ModuleType

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The figures of one flow; call it with each report, as an observer."""

    def __init__(self, flow: str, sources: Iterable[str] = ()) -> None:
        client = _client()
        self.flow = flow
        self.registry = client.CollectorRegistry()
        self._make(client)
        self.up.labels(flow).set(1)
        self.batches.labels(flow)
        for source in sources:
            self.rows_in.labels(flow, source)

    def _make(self, client: ModuleType) -> None:
        own = {"registry": self.registry}
        self.up = client.Gauge("penstock_up", "1 while the flow runs", ["flow"], **own)
        self.rows_in = client.Counter("penstock_rows_in", "Rows read from a source", ["flow", "source"], **own)
        self.rows = client.Counter("penstock_rows", "Rows in and out of a step", ["flow", "step", "direction"], **own)
        self.batches = client.Counter("penstock_batches", "Batches committed", ["flow"], **own)
        self.seconds = client.Histogram(
            "penstock_batch_seconds", "Time of a complete batch", ["flow"], buckets=BUCKETS, **own
        )
        self.phases = client.Gauge(
            "penstock_batch_phase_seconds", "Time of the last batch, by phase", ["flow", "phase"], **own
        )
        self.last = client.Gauge("penstock_last_batch_timestamp", "When the last batch ended (Unix)", ["flow"], **own)
        self.lag = client.Gauge("penstock_lag", "What a source has waiting", ["flow", "source", "unit"], **own)
        self.late = client.Counter("penstock_late", "Late records that no step reads", ["flow", "step"], **own)
        self.bad = client.Counter("penstock_bad_time", "Records without a usable event time", ["flow", "step"], **own)
        self.skipped = client.Counter(
            "penstock_skipped", "Records left out because a step failed on them", ["flow", "step"], **own
        )
        self.shed = client.Counter(
            "penstock_shed", "Records never read because the source was too far behind", ["flow", "step"], **own
        )
        self.dead = client.Counter("penstock_dead_letters", "Records that a step put aside", ["flow", "step"], **own)
        self.runs = client.Counter("penstock_runs", "Runs of a pattern that ended", ["flow", "step", "how"], **own)
        self.watermark = client.Gauge("penstock_watermark", "Event time reached (Unix)", ["flow", "step"], **own)

    def __call__(self, report: BatchReport) -> None:
        """Takes in one batch."""
        self.batches.labels(self.flow).inc()
        self.seconds.labels(self.flow).observe(report.total)
        self.last.labels(self.flow).set(report.finished)
        for source, rows in report.sources.items():
            self.rows_in.labels(self.flow, source).inc(rows)
        for step, (taken, given) in report.steps.items():
            self.rows.labels(self.flow, step, "in").inc(taken)
            self.rows.labels(self.flow, step, "out").inc(given)
        for phase, seconds in report.seconds.items():
            self.phases.labels(self.flow, phase).set(seconds)
        for source, unit, value in lags(report):
            self.lag.labels(self.flow, source, unit).set(value)
        self._time(report)

    def _time(self, report: BatchReport) -> None:
        counted = (
            (self.late, report.late),
            (self.bad, report.bad),
            (self.dead, report.dead),
            (self.skipped, report.skipped),
            (self.shed, report.shed),
        )
        for counter, counts in counted:
            for step, many in counts.items():
                counter.labels(self.flow, step).inc(many)
        for step, ends in report.runs.items():
            for how, many in ends.items():
                self.runs.labels(self.flow, step, how).inc(many)
        for step, time in report.watermarks.items():
            if NEVER < time < FOREVER:
                self.watermark.labels(self.flow, step).set(time / 1_000_000)

    def serve(self, port: int, host: str = "127.0.0.1") -> int:
        """Answers at `http://host:port/metrics`, and returns the port (a free one when 0 is asked for)."""
        try:
            self.server, self.thread = _client().start_http_server(port, host, self.registry)
        except OSError as error:
            raise SetupError(
                f"metrics cannot be served at {host}:{port}: {error.strerror}; --metrics-port 0 takes a free port"
            ) from None
        return int(self.server.server_port)

    def close(self) -> None:
        """Stops answering."""
        self.up.labels(self.flow).set(0)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(timeout=2)


def lags(report: BatchReport) -> Iterator[tuple[str, str, float]]:
    """The lag of each source as (source, unit, value).

    >>> list(lags(BatchReport(0, lag={"lines": "numFilesOutstanding=2, numBytesOutstanding=70"})))
    [('lines', 'files', 2.0), ('lines', 'bytes', 70.0)]
    """
    units = {"numFilesOutstanding": "files", "numBytesOutstanding": "bytes", "maxOffsetsBehindLatest": "records"}
    for source, text in report.lag.items():
        for name, value in re.findall(r"(\w+)=(\d+(?:\.\d+)?)", text):
            yield source, units.get(name, name), float(value)


def _client() -> ModuleType:
    try:
        import prometheus_client
    except ImportError:
        raise SetupError("metrics need the prometheus-client package: pip install 'penstock[metrics]'") from None
    return prometheus_client
