"""Traces of batches, as a collector gets them: a real HTTP server that reads the protobuf of OTLP."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.jobs.tracing.observe import check_traced, traced
from penstock.live.report import BatchReport

Spans = list[Any]


class Collector:
    """What was sent: the spans, and the attributes of who sent them."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: Spans = []
        self.resources: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def named(self, name: str) -> Spans:
        return [span for span in self.spans if span.name == name]

    def take(self, path: str, content: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(content)
        self.paths.append(path)
        for each in request.resource_spans:
            self.resources.append(attributes(each.resource))
            self.spans += [span for scope in each.scope_spans for span in scope.spans]


def attributes(of: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, str(a.value.WhichOneof("value"))) for a in of.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            found.take(self.path, gzip.decompress(content) if packed else content)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


REPORT = BatchReport(
    7,
    {"lines": 10},
    {"split": (10, 30), "count": (30, 4)},
    {"trigger": 2.0, "plan": 0.25, "compute": 1.0, "state": 0.25},
    {"lines": {"records": 40}},
    finished=1_000_000.0,
    late={"count": 2},
    dead={"parse": 1},
)


def test_a_batch_is_a_trace_with_its_phases_and_steps_and_a_link_to_the_run() -> None:
    with collecting() as found, traced("words", RunSpec(otel=found.url)) as observers:
        for observe in observers:
            observe(REPORT)
            observe(BatchReport(8, {"lines": 5}, finished=1_000_001.0))
    assert set(found.paths) == {"/v1/traces"}
    assert all(r["service.name"] == "words" for r in found.resources)
    (run,) = found.named("run")
    assert attributes(run) == {
        "penstock.flow": "words",
        "penstock.mode": "live",
        "penstock.batches": 2,
        "penstock.rows": 15,
    }
    first, second = sorted(found.named("batch"), key=lambda span: attributes(span)["penstock.batch"])
    assert len({run.trace_id, first.trace_id, second.trace_id}) == 3
    assert [link.span_id for link in first.links] == [run.span_id]
    assert first.end_time_unix_nano - first.start_time_unix_nano == 2_000_000_000
    assert first.end_time_unix_nano == 1_000_000_000_000_000
    said = attributes(first)
    assert (said["penstock.rows"], said["penstock.source.lines.lag.records"]) == (10, 40)
    phases = [s for s in found.spans if s.parent_span_id == first.span_id]
    phases.sort(key=lambda span: span.start_time_unix_nano)
    assert [s.name for s in phases] == ["plan", "compute", "state", "spark"]
    assert phases[0].start_time_unix_nano == first.start_time_unix_nano
    assert phases[-1].end_time_unix_nano == first.end_time_unix_nano
    steps = {s.name: attributes(s) for s in found.spans if s.parent_span_id == phases[1].span_id}
    assert steps["count"] == {
        "penstock.step": "count",
        "penstock.rows.in": 30,
        "penstock.rows.out": 4,
        "penstock.late": 2,
    }
    assert steps["parse"]["penstock.dead"] == 1
    assert {s.trace_id for s in phases} == {first.trace_id}


def test_a_run_that_fails_says_the_kind_of_error_and_not_its_text() -> None:
    def failing(url: str) -> None:
        with traced("words", RunSpec(otel=url)):
            raise ValueError("canary-record")

    with collecting() as found, pytest.raises(ValueError, match="canary"):
        failing(found.url)
    (run,) = found.named("run")
    assert (attributes(run)["error.type"], run.status.code) == ("ValueError", 2)
    assert b"canary" not in run.SerializeToString()


def test_a_collector_that_is_away_holds_nothing_up() -> None:
    with traced("words", RunSpec(otel="http://127.0.0.1:9")) as observers:
        for _ in range(1_000):
            for observe in observers:
                observe(REPORT)


def test_a_run_without_it_loads_nothing_of_it() -> None:
    check_traced(RunSpec())
    code = (
        "import sys, penstock.jobs.launch, penstock.jobs.tracing.observe as o; from penstock.graph.run import RunSpec\n"
        "o.check_traced(RunSpec())\n"
        "with o.traced('x', RunSpec()) as found: assert found == ()\n"
        "print([m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://x", "http://", "http://x y", "file:///etc/passwd", 7])
def test_what_is_no_address_is_refused(url: object) -> None:
    with pytest.raises(OptionError, match="--otel: expected a URL such as"):
        RunSpec.of(otel=url)
