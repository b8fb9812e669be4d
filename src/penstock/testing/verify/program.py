"""The flow under test, in a process of its own that may be killed: a topic, a numbering per key, and the sink.

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
from penstock.graph.endpoints.delivery import EXACTLY_ONCE
from penstock.graph.endpoints.log import topic
from penstock.graph.logic.cells import value
from penstock.graph.logic.process import Process
from penstock.graph.nodes import Endpoint
from penstock.graph.run import RunSpec
from penstock.location import Address, Location
from penstock.testing.verify.targets import target_of

TOPIC = "numbers"
SCHEMA = "key string, nth bigint, id bigint"
STARTED = "started"
"""What the program says when its query runs."""


class RecordNumbers(Process):
    """Numbers the records of each key, so that the flow has a state to lose."""

    nth = value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        """The record with its number."""
        self.nth += 1
        yield row.key, self.nth, row.id


def flow_of(folder: Path, *sinks: Endpoint) -> Flow:
    """The flow into some sinks."""
    flow = Flow("verify")
    numbers = flow.source("numbers", topic(TOPIC, "key string, id bigint", path=folder / "log"))
    numbered = numbers.key_by("key").process("number", RecordNumbers, SCHEMA)
    for at, sink in enumerate(sinks):
        numbered.sink(f"out{at + 1}" if at else "out", sink, delivery=EXACTLY_ONCE)
    return flow


def checkpoint_of(folder: Path, addresses: Sequence[dict[str, Any]]) -> Address:
    """Where the flow keeps its checkpoint: in the folder, unless a sink has a location for it."""
    named = [address["checkpoint"] for address in addresses if "checkpoint" in address]
    return Location(named[0]) if named else folder / "checkpoint"


def main(folder: Path) -> None:
    """Runs the flow over all that the topic holds."""
    from penstock.spark.jvm.session import session
    from penstock.spark.run import run_live

    spec = json.loads((folder / "spec.json").read_text())
    sinks = [target_of(each["sink"]).endpoint(each["address"]) for each in spec["sinks"]]
    graph = flow_of(folder, *sinks).graph
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
