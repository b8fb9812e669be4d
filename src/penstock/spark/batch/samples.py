"""Samples of streams that no Python stage sees: a small query of their own, made only while somebody looks."""

from __future__ import annotations

import logging

from penstock.compiler.plan import PYTHON, Plan
from penstock.graph.nodes import Port
from penstock.kernels.counts import MOST_SAMPLED
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.sampling import MOST_SCANNED, StreamSample
from penstock.live.sampling import Sampled
from penstock.spark.lower.context import Lowering

log = logging.getLogger("penstock")


def native_samples(at: Lowering) -> Sampled:
    """The samples of streams that Spark alone makes, and that no Python stage reads.

    A stream after a Python stage is not sampled: the query would run the stage a second time.
    """
    made = {}
    for port, where in at.looks.streams:
        if port in at.frames and _is_native(at.plan, port):
            try:
                made[port.step, port.name, where] = _sample(at, port, where)
            except Exception as error:  # who looks on does not end a run
                log.warning("no sample of %s: %s", port.step, str(error)[:200])
    return made


def _sample(at: Lowering, port: Port, where: str) -> list[dict[str, object]]:
    sample = StreamSample((port, where), at.plan.graph)
    schema = at.plan.graph.output(port).schema
    found = at.frames[port].select(*schema.names).limit(MOST_SCANNED if where else MOST_SAMPLED).collect()
    if found:
        sample.take(Chunk(schema, columns=[list(column) for column in zip(*found, strict=True)]))
    return sample.rows


def _is_native(plan: Plan, port: Port) -> bool:
    """Whether no Python stage makes, reads or comes before a stream."""
    if any(stage.host == PYTHON for stage in plan.readers(port)):
        return False
    before, waiting = set(), [port.step]
    while waiting:
        step = waiting.pop()
        if step not in before:
            before.add(step)
            waiting += [p.step for p in plan.graph.node(step).inputs]
    return all(stage.host != PYTHON for stage in plan.stages if stage.steps & before)
