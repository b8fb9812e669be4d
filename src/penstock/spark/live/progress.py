"""Completes the report of a batch with Spark's own figures: rows and lag of sources, and the time of its bookkeeping."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.compiler.balance import balance
from penstock.compiler.counts import complete
from penstock.connectors.log.shedding import SHED
from penstock.graph.graph import Graph
from penstock.graph.ids import owner_of
from penstock.live.report import BatchReport
from penstock.spark.batch.sources import Sources

Progress = Mapping[str, Any]  # Spark's JSON
log = logging.getLogger("penstock")
_UNITS = {"maxOffsetsBehindLatest": "records", "numFilesOutstanding": "files", "numBytesOutstanding": "bytes"}


def completed(
    report: BatchReport, progress: Progress, sources: Sources, graph: Graph, fed: Mapping[str, int] | None = None
) -> BatchReport:
    """The report with what Spark says of the batch, and the accounting that follows; a discrepancy is logged.

    `fed` has the rows of sources that tasks read from the storage of the checkpoint, of which Spark does not know.
    """
    figures = list(zip(sources.nodes, progress["sources"], strict=False))
    read = {n.name: int(s["numInputRows"]) + (fed or {}).get(n.name, 0) for n, s in figures}
    rows = {owner_of(name): many for name, many in read.items()}
    behind = {owner_of(n.name): found for n, s in figures if (found := behind_of(s))}
    lag = {owner_of(n.name): waiting for n, s in figures if (waiting := _lag(s))}
    aside = Counter(report.dead) + Counter(report.skipped)
    given = report.given | {name: many - aside[name] for name, many in read.items()}
    steps = complete(graph, report.taken, given)
    shed = sources.shed(progress["sources"])
    accounting = balance(graph, rows, steps, report.late, report.bad, report.dead, report.skipped, shed)
    for wrong in accounting.discrepancies:
        log.warning("batch %d does not add up: %s", report.batch, wrong)
    seconds = {**report.seconds, **_seconds(progress)}
    return replace(
        report, sources=rows, steps=steps, seconds=seconds, lag=lag, behind=behind, accounting=accounting, shed=shed
    )


def _seconds(progress: Progress) -> dict[str, float]:
    times = {k: v / 1000 for k, v in progress["durationMs"].items()}
    written = times.get("walCommit", 0.0) + times.get("commitOffsets", 0.0)
    return {"trigger": times.get("triggerExecution", 0.0), "log": written}


def _lag(source: Progress) -> dict[str, int]:
    """What a source has waiting, by unit; the records of all partitions where they are known, for the most of one says less.

    >>> _lag({"metrics": {"numFilesOutstanding": "2", "numBytesOutstanding": "70"}})
    {'files': 2, 'bytes': 70}
    >>> _lag({"metrics": {"maxOffsetsBehindLatest": "4"}, "endOffset": '{"t": {"0": 5, "1": 5}}', "latestOffset": '{"t": {"0": 9, "1": 7}}'})
    {'records': 6}
    """
    metrics = source["metrics"] or {}
    lag = {unit: int(float(metrics[name])) for name, unit in _UNITS.items() if name in metrics}
    behind = behind_of(source)
    return lag | {"records": sum(behind.values())} if behind else lag


def behind_of(source: Progress) -> dict[str, int]:
    """How many records each partition of a source has waiting, where its offsets count records.

    >>> behind_of({"endOffset": '{"posts": {"0": 5, "1": 7}}', "latestOffset": '{"posts": {"0": 9, "1": 7}}'})
    {'posts-0': 4, 'posts-1': 0}
    """
    end, latest = _partitions(source.get("endOffset")), _partitions(source.get("latestOffset"))
    return {name: max(latest[name] - end[name], 0) for name in latest if name in end}


def _partitions(offset: Any) -> dict[str, int]:
    """Offsets by partition; none where they are something else."""
    try:
        found = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return {}
    if not isinstance(found, Mapping) or "logOffset" in found:
        return {}
    made: dict[str, int] = {}
    for name, value in found.items():
        if isinstance(value, Mapping) and name != SHED:
            made |= {f"{name}-{inner}": at for inner, at in _partitions(value).items()}
        elif isinstance(value, int) and not isinstance(value, bool):
            made[str(name)] = value
    return made
