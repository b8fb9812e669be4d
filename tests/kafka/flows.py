"""Short ways to run a flow from or to Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock as ps
from penstock.graph.nodes import Endpoint
from penstock.graph.run import RunSpec
from penstock.spark.run import run_bounded, run_live


def collected(endpoint: Endpoint, spark: Any, folder: Path | None = None, name: str = "read") -> list[Any]:
    """The rows of a source: bounded, or live up to what is there when there is a folder."""
    rows: list[Any] = []
    flow = ps.Flow(name)
    flow.source("in", endpoint).sink("out", ps.callback(lambda more, batch: rows.extend(more)))
    if folder is None:
        run_bounded(flow.graph, spark)
    else:
        run_live(flow.graph, spark, RunSpec(checkpoint=folder, mode="once")).wait(0.02)
    return rows


def written(rows: list[Any], schema: str, sink: Endpoint, spark: Any, folder: Path, **more: Any) -> None:
    """Writes rows to a sink, in `batches` batches."""
    flow = ps.Flow("write")
    source = flow.source("rows", ps.items(rows, schema, batches=more.pop("batches", 1)))
    source.sink("out", sink, **more)
    run_live(flow.graph, spark, RunSpec(checkpoint=folder, mode="once")).wait(0.02)
