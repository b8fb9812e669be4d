"""The flow under test, in a process of its own that may be killed: a topic, a numbering per key or a pattern, and the sink.

Run as `python -m penstock.testing.verify.program FOLDER`; what it does is in `FOLDER/spec.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.connectors.kafka.jars import endpoints_of, jars_of
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.patterns import pattern
from penstock.frontends.streams.stream import Stream
from penstock.graph.endpoints.delivery import EXACTLY_ONCE
from penstock.graph.endpoints.log import topic
from penstock.graph.logic.cells import value
from penstock.graph.logic.process import Process
from penstock.graph.nodes import Endpoint
from penstock.graph.run import RunSpec
from penstock.location import Address, Location
from penstock.spark.jvm.session import session
from penstock.testing.verify.targets import target_of

TOPIC = "numbers"
SCHEMA = "key string, nth bigint, id bigint"
STARTED = "started"
"""What the program says when its query runs."""


NUMBERS, PATTERN = "numbers", "pattern"
"""The flows: one numbers the records of each key, one finds pairs of them."""
SPACING = 97
"""How far apart the ids of a key are."""


class RecordNumbers(Process):
    """Numbers the records of each key, so that the flow has a state to lose."""

    nth = value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        """The record with its number."""
        self.nth += 1
        yield row.key, self.nth, row.id


def flow_of(folder: Path, *sinks: Endpoint, kind: str = NUMBERS) -> Flow:
    """The flow into some sinks."""
    flow = Flow("verify")
    made = (_matched if kind == PATTERN else _numbered)(flow, folder)
    for at, sink in enumerate(sinks):
        made.sink(f"out{at + 1}" if at else "out", sink, delivery=EXACTLY_ONCE)
    return flow


def _numbered(flow: Flow, folder: Path) -> Stream:
    numbers = flow.source("numbers", topic(TOPIC, "key string, id bigint", path=folder / "log"))
    return numbers.key_by("key").process("number", RecordNumbers, SCHEMA)


def _matched(flow: Flow, folder: Path) -> Stream:
    """Every record begins a run, which one of the next records of its key completes, or which times out: it comes out once, as one or the other.

    Ids are seconds, and the records of a key lie `SPACING` of them apart; a run whose next record is of no use times out.
    """
    schema = "key string, id bigint, part int"
    records = flow.source("numbers", topic(TOPIC, schema, path=folder / "log"))
    timed = records.event_time("times", "timestamp_seconds(id)", into="at", idle=None, partition="part")
    steps = pattern("pairs").begin("one", "id >= 0").followed_by("two", "id % 3 <> 0").within(SPACING * 3 / 2)
    fields = {"key": "key", "nth": f"one.id div {SPACING} + 1", "id": "one.id"}
    pairs = timed.key_by("key").match("pairs", steps, select=fields)
    expired = pairs.side("timed_out").select("expired", "key", "nth", "id")
    return pairs.union("both", expired)


def checkpoint_of(folder: Path, addresses: Sequence[dict[str, Any]]) -> Address:
    """Where the flow keeps its checkpoint: in the folder, unless a sink has a location for it."""
    named = [address["checkpoint"] for address in addresses if "checkpoint" in address]
    return Location(named[0]) if named else folder / "checkpoint"


def main(folder: Path) -> None:
    """Runs the flow over all that the topic holds."""
    from penstock.spark.run import run_live  # a job without Spark runs a flow of this module

    spec = json.loads((folder / "spec.json").read_text())
    sinks = [target_of(each["sink"]).endpoint(each["address"]) for each in spec["sinks"]]
    graph = flow_of(folder, *sinks, kind=spec["flow"]).graph
    spark = session("verify", "local[2,4]", jars=jars_of(endpoints_of(graph)))
    most = spec["per_batch"]
    options = RunSpec(
        checkpoint=checkpoint_of(folder, [each["address"] for each in spec["sinks"]]),
        mode="once",
        max_rows=most,
        batch_seconds=600.0,
        keep_versions=2,
    )
    run = run_live(graph, spark, options)
    sys.stdout.write(f"{STARTED}\n")
    sys.stdout.flush()
    run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
