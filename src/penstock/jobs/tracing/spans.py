"""The spans of a run, by the SDK of OpenTelemetry, which sends them beside the run.

A run that lasts for months is no trace: its batches are traces of their own, each with a link to the span of the run, which is sent when it ends.
"""

from __future__ import annotations

import threading
import time

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, Status, StatusCode, set_span_in_context

from penstock.jobs.tracing.layout import Attributes, batch_attributes, phase_times, step_attributes, traces_url
from penstock.live.report import BatchReport
from penstock.version import __version__

TIMEOUT = 5.0
"""How many seconds a collector may take for what it is sent at the end; it is never waited for between batches."""


class Traces:
    """The traces of one run; call it with each report, as an observer."""

    def __init__(self, flow: str, mode: str, endpoint: str) -> None:
        self.flow, self.provider = flow, _provider(flow, endpoint)
        self.tracer = self.provider.get_tracer("penstock", __version__)
        self.run = self.tracer.start_span("run", Context(), attributes={"penstock.flow": flow, "penstock.mode": mode})
        self.batches = self.rows = 0

    def __call__(self, report: BatchReport) -> None:
        """Makes the trace of one batch, which has ended."""
        self.batches, self.rows = self.batches + 1, self.rows + report.rows_in
        end = report.finished or time.time()
        begin = end - report.total
        batch = self.tracer.start_span(
            "batch",
            Context(),
            links=[Link(self.run.get_span_context())],
            start_time=_nanos(begin),
            attributes=dict(batch_attributes(self.flow, report)),
        )
        for phase, at, until in phase_times(report.seconds, begin, end):
            span = self._child(batch, phase, at, until, {})
            if phase == "compute":
                self._steps(span, report, at, until)
        batch.end(_nanos(end))

    def _steps(self, phase: Span, report: BatchReport, at: float, until: float) -> None:
        """Steps run together in the tasks of Spark: each has the time of all, and its own rows."""
        for step, attributes in step_attributes(report).items():
            self._child(phase, step, at, until, {"penstock.step": step, **attributes})

    def _child(self, parent: Span, name: str, at: float, until: float, attributes: Attributes) -> Span:
        made = self.tracer.start_span(
            name, set_span_in_context(parent, Context()), start_time=_nanos(at), attributes=dict(attributes)
        )
        made.end(_nanos(until))
        return made

    def close(self, error: BaseException | None = None) -> None:
        """Ends the span of the run, and sends what was not sent yet. Of an error it sends the kind alone: its text may have a record in it."""
        self.run.set_attributes({"penstock.batches": self.batches, "penstock.rows": self.rows})
        if error is not None:
            self.run.set_attribute("error.type", type(error).__name__)
            self.run.set_status(Status(StatusCode.ERROR))
        self.run.end()
        sending = threading.Thread(target=self.provider.shutdown, name="penstock-traces", daemon=True)
        sending.start()
        sending.join(TIMEOUT)


def _provider(flow: str, endpoint: str) -> TracerProvider:
    about = Resource.create({"service.name": flow, "service.namespace": "penstock", "service.version": __version__})
    made = TracerProvider(resource=about, shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(traces_url(endpoint), timeout=TIMEOUT)))
    return made


def _nanos(moment: float) -> int:
    return int(moment * 1_000_000_000)
