"""Traces a run that is to be traced; of others nothing of OpenTelemetry is even loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import SetupError
from penstock.graph.run import RunSpec
from penstock.live.report import Observer


def check_traced(spec: RunSpec) -> None:
    """Refuses, before Spark is started, to trace a run without the packages that it takes."""
    if spec.otel:
        try:
            import penstock.jobs.tracing.spans  # noqa: F401 - whether it can be loaded
        except ModuleNotFoundError as error:
            raise SetupError(f"--otel needs {error.name}: pip install 'penstock[otel]'") from None


@contextmanager
def traced(flow: str, spec: RunSpec) -> Iterator[tuple[Observer, ...]]:
    """The observers of a run that make its traces: none, unless the run is to be traced."""
    if not spec.otel:
        yield ()
        return
    from penstock.jobs.tracing.spans import Traces  # it needs the packages of OpenTelemetry

    traces = Traces(flow, spec.mode, spec.otel)
    try:
        yield (traces,)
    except BaseException as error:
        traces.close(error)
        raise
    traces.close()
