"""Answers of queries over bounded data, made in this process within limits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from penstock.connectors.preflight import check_outside
from penstock.connectors.registry import connector_of
from penstock.errors import Impossible
from penstock.graph.graph import Graph
from penstock.local.bounded import run_bounded
from penstock.local.net_table import NetTable


@dataclass(frozen=True)
class AskLimits:
    """How much a query may take: records that are read, and seconds."""

    records: int = 5_000_000
    seconds: float = 60.0


@dataclass(frozen=True)
class Answer:
    """The rows of a query under the names of their columns."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Any]
    seconds: float = 0.0


@dataclass
class _Watch:
    limits: AskLimits
    began: float = field(default_factory=time.monotonic)

    def __call__(self, records: int) -> None:
        """Ends the run when it takes too much."""
        if records > self.limits.records:
            raise Impossible(
                f"the query has read more than {self.limits.records:,} records; narrow it, or allow more (--max-records)"
            )
        if self.seconds > self.limits.seconds:
            raise Impossible(
                f"the query has taken more than {self.limits.seconds:g} s; narrow it, or allow more (--timeout)"
            )

    @property
    def seconds(self) -> float:
        """The time so far."""
        return time.monotonic() - self.began


def runs_here(graph: Graph) -> bool:
    """Whether a graph can be answered in this process: all its sources have an end, and need no Spark."""
    return all(s.endpoint.bounded and connector_of(s.endpoint, "local_reader") is not None for s in graph.sources)


def answer(graph: Graph, sink: str = "result", limits: AskLimits | None = None) -> Answer:
    """The rows of a sink of a graph over bounded data, within limits.

    Raises:
        Impossible: a source has no end or needs Spark, or the query takes more than the limits allow.
        StepError: a step failed on a record.
        SetupError: a file, a topic or a server is missing, with what mends it.
    """
    check_outside(graph)
    watch = _Watch(limits or AskLimits())
    rows = run_bounded(graph, watch)[sink]
    schema = NetTable.of(graph, sink).stream.schema
    return Answer(schema.names, tuple(str(f.type) for f in schema.fields), rows, watch.seconds)
