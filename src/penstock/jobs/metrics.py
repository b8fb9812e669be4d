"""Metrics of a run, for Prometheus to fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from penstock.errors import SetupError
from penstock.graph.times import FOREVER, NEVER
from penstock.live.report import BatchReport

if TYPE_CHECKING:
    from types import ModuleType

    from prometheus_client import Gauge

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The figures of one flow; call it with each report, as an observer."""

    def __init__(self, flow: str, sources: Iterable[str] = ()) -> None:
        client = _client()
        self.flow = flow
        self.registry = client.CollectorRegistry()
        for make in (self._make, self._make_aside, self._make_patterns, self._make_components, self._make_load):
            make(client)
        self.shown: set[tuple[Gauge, tuple[str, ...]]] = set()
        self.up.labels(flow).set(1)
        self.batches.labels(flow)
        for source in sources:
            self.rows_in.labels(flow, source)

    def _make(self, client: ModuleType) -> None:
        """Rows, batches and lag."""
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
        self.last = client.Gauge(
            "penstock_last_batch_timestamp_seconds", "When the last batch ended (Unix)", ["flow"], **own
        )
        self.lag = client.Gauge("penstock_lag", "What a source has waiting", ["flow", "source", "unit"], **own)

    def _make_aside(self, client: ModuleType) -> None:
        """Records that went another way than through the steps."""
        own = {"registry": self.registry}
        self.late = client.Counter("penstock_late", "Late records that no step reads", ["flow", "step"], **own)
        self.bad = client.Counter("penstock_bad_time", "Records without a usable event time", ["flow", "step"], **own)
        self.skipped = client.Counter(
            "penstock_skipped", "Records left out because a step failed on them", ["flow", "step"], **own
        )
        self.shed = client.Counter(
            "penstock_shed", "Records never read because the source was too far behind", ["flow", "step"], **own
        )
        self.dead = client.Counter("penstock_dead_letters", "Records that a step put aside", ["flow", "step"], **own)

    def _make_patterns(self, client: ModuleType) -> None:
        """Runs of patterns."""
        own = {"registry": self.registry}
        self.runs = client.Counter("penstock_runs", "Runs of a pattern that ended", ["flow", "step", "how"], **own)
        of_pattern = ["flow", "step", "pattern"]
        self.active = client.Gauge(
            "penstock_active_runs", "Runs of a pattern under way", [*of_pattern, "waits_for"], **own
        )
        self.held = client.Gauge("penstock_held_events", "Events that runs under way hold", of_pattern, **own)
        self.run_bytes = client.Gauge("penstock_run_bytes", "Bytes of state with runs of a pattern", of_pattern, **own)
        self.oldest = client.Gauge(
            "penstock_oldest_run_timestamp_seconds", "When the oldest run under way began (Unix)", of_pattern, **own
        )

    def _make_components(self, client: ModuleType) -> None:
        """What spouts and bolts report."""
        own = {"registry": self.registry}
        self.measured = client.Gauge(
            "penstock_component_metric",
            "The last value of a metric of a spout or bolt",
            ["flow", "component", "task", "metric"],
            **own,
        )
        self.errors = client.Counter(
            "penstock_reported_errors", "Errors that a spout or bolt reported", ["flow", "component"], **own
        )

    def _make_load(self, client: ModuleType) -> None:
        """How much steps work and keep, and where their time stands."""
        own = {"registry": self.registry}
        of_step = ["flow", "step"]
        self.busy = client.Counter("penstock_busy_seconds", "Seconds that tasks of a step worked", of_step, **own)
        self.native = client.Counter(
            "penstock_native_seconds", "Seconds that tasks worked inside Spark, beside Python steps", ["flow"], **own
        )
        self.skew = client.Gauge("penstock_skew", "Records of the fullest task of a step over the mean", of_step, **own)
        self.state_rows = client.Gauge("penstock_state_rows", "Entries that a step keeps", of_step, **own)
        self.state_bytes = client.Gauge("penstock_state_bytes", "Bytes of state that a step keeps", of_step, **own)
        self.timers = client.Gauge("penstock_timers", "Timers of a step that wait", of_step, **own)
        self.watermark = client.Gauge(
            "penstock_watermark_timestamp_seconds", "Event time reached (Unix)", ["flow", "step"], **own
        )

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
        self._load(report)
        self._components(report)

    def _load(self, report: BatchReport) -> None:
        for step, load in report.load.items():
            self.busy.labels(self.flow, step).inc(load["seconds"])
            self.skew.labels(self.flow, step).set(load["skew"])
        self.native.labels(self.flow).inc(report.native)
        for step, size in report.state.items():
            self.state_rows.labels(self.flow, step).set(size["rows"])
            self.state_bytes.labels(self.flow, step).set(size["bytes"])
        for step, many in report.timers.items():
            self.timers.labels(self.flow, step).set(many)

    def _components(self, report: BatchReport) -> None:
        for component, task, name, value in measured(report):
            self.measured.labels(self.flow, component, str(task), name).set(value)
        for component, errors in report.errors.items():
            self.errors.labels(self.flow, component).inc(sum(map(len, errors.values())))

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
        self._active(report)
        for step, time in report.watermarks.items():
            if NEVER < time < FOREVER:
                self.watermark.labels(self.flow, step).set(time / 1_000_000)

    def _active(self, report: BatchReport) -> None:
        """Runs under way are what they are now: what is not there any more goes from the metrics too."""
        before, self.shown = self.shown, set()
        for step, patterns in report.active_runs.items():
            for pattern, found in patterns.items():
                of = (self.flow, step, pattern)
                for label, many in found["waiting"].items():
                    self._show(self.active, (*of, label), many)
                self._show(self.held, of, found["events"])
                self._show(self.run_bytes, of, found["bytes"])
                if found["oldest"] is not None:
                    self._show(self.oldest, of, found["oldest"] / 1_000_000)
        for gauge, labels in before - self.shown:
            gauge.remove(*labels)

    def _show(self, gauge: Gauge, labels: tuple[str, ...], value: float) -> None:
        gauge.labels(*labels).set(value)
        self.shown.add((gauge, labels))

    def serve(self, port: int, host: str = "127.0.0.1") -> int:
        """Answers at `http://host:port/metrics`, and returns the port (a free one when 0 is asked for)."""
        app = _client().make_asgi_app(self.registry)
        try:
            from penstock.bridge.asgi.server import ThreadServer
        except ModuleNotFoundError as error:
            raise SetupError(f"metrics are served with {error.name}: pip install 'penstock[metrics]'") from None
        self.server = ThreadServer(app, host, port, "--metrics-port")
        return self.server.port

    def close(self) -> None:
        """Stops answering."""
        self.up.labels(self.flow).set(0)
        self.server.close()


def lags(report: BatchReport) -> Iterator[tuple[str, str, float]]:
    """The lag of each source as (source, unit, value).

    >>> list(lags(BatchReport(0, lag={"lines": {"files": 2, "bytes": 70}})))
    [('lines', 'files', 2.0), ('lines', 'bytes', 70.0)]
    """
    for source, waiting in report.lag.items():
        yield from ((source, unit, float(value)) for unit, value in waiting.items())


def measured(report: BatchReport) -> Iterator[tuple[str, int, str, float]]:
    """The numbers among the metrics of spouts and bolts, as (component, task, metric, value); of a dict one for each of its keys.

    >>> list(measured(BatchReport(0, metrics={"split": {0: {"lines": 3, "sizes": {"long": 1}, "note": "x"}}})))
    [('split', 0, 'lines', 3.0), ('split', 0, 'sizes.long', 1.0)]
    """
    for component, tasks in report.metrics.items():
        for task, metrics in tasks.items():
            for name, value in metrics.items():
                parts = (
                    {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
                )
                yield from ((component, task, n, float(v)) for n, v in parts.items() if isinstance(v, int | float))


def _client() -> ModuleType:
    try:
        import prometheus_client
    except ImportError:
        raise SetupError("metrics need the prometheus-client package: pip install 'penstock[metrics]'") from None
    return prometheus_client
