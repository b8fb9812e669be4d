"""What the lowering of a step may use."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.compiler.plan import Plan
from penstock.errors import Impossible
from penstock.graph.nodes import Endpoint, Node, Port
from penstock.graph.state.key_groups import KEY_GROUPS
from penstock.graph.times import Times
from penstock.kernels.errors.payload import columns_of
from penstock.kernels.looks import NOTHING, Looks
from penstock.kernels.topology.blocks import TupleRoute
from penstock.live.dead_letters.replay import Replayed
from penstock.state.chain import StepFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.tasks.pack import Packer


Union = Callable[[tuple[Port, ...]], "DataFrame | None"]


Reread = Callable[[str, list[dict[str, Any]]], "DataFrame"]
"""Reads records of a source again from the dead letters."""


def refuse_reread(step: str, dead_letters: list[dict[str, Any]]) -> DataFrame:
    """A bounded run replays nothing."""
    raise Impossible(f"source {step!r}: a bounded run replays no dead letters")


@dataclass(frozen=True, eq=False)
class Lowering:
    """A plan on its way to DataFrames, for one batch. What it is made for is fixed; `frames`, `kept`, `observed` and `malformed` fill as steps are lowered.

    `frames` has the frame of each stream made so far. `states` has the state files of the keyed steps; it is empty in a
    bounded run, where state lives for the run alone. `times` has the times of each step in this batch, `observed` what Spark
    notes of event times while the batch runs.
    """

    spark: SparkSession
    plan: Plan
    packer: Packer
    tasks: int
    live: bool
    counts: Any
    tables: Callable[[Node, Endpoint], DataFrame]
    union: Union = lambda ports: None
    replays: Replayed = field(default_factory=dict)
    states: dict[str, StepFiles] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    frames: dict[Port, DataFrame] = field(default_factory=dict)
    kept: list[DataFrame] = field(default_factory=list)
    malformed: dict[str, Any] = field(default_factory=dict)
    """What Spark notes of records that sources could not read."""
    reread: Reread = refuse_reread
    groups: int = KEY_GROUPS
    """The number of key groups, which the tasks of a keyed step share."""
    batch: int = 0
    """The id of the batch."""
    routes: dict[Port, tuple[TupleRoute, ...]] = field(default_factory=dict)
    """The streams that go to bolts in blocks, with the way to each of them."""
    looks: Looks = NOTHING
    """What somebody looks at."""

    blocks_in: str = ""
    """The folder of this machine in which blocks of tuples wait to be read, until the batch ends; empty where Spark moves them."""

    def input(self, node: Node, input_index: int = 0) -> DataFrame:
        """The frame a step reads, with the dead letters that are replayed to it."""
        port = node.inputs[input_index]
        return self.with_replays(node.name, input_index, port)

    def with_replays(self, step: str, input_index: int, port: Port) -> DataFrame:
        """A stream as a step reads it: its frame, and the records that go to this step again."""
        rows = self.replays.pop((step, input_index), None)
        if not rows:
            return self.frames[port]
        schema = self.frames[port].schema
        again = self.spark.createDataFrame([*zip(*columns_of(rows, schema.names), strict=True)], schema)
        return self.frames[port].unionByName(again)

    def readers(self, port: Port) -> list[tuple[Node, int]]:
        """The steps of other stages that read a stream, each with the number of that input."""
        return self.plan.reading_steps(port)

    def tasks_of(self, node: Node) -> int:
        """How many tasks a step runs as."""
        return node.parallelism or self.tasks

    def give(self, port: Port, frame: DataFrame) -> None:
        """Registers a stream's frame for the stages that read it; one that several stages read is kept, so that it is computed once."""
        if port in self.plan.shared:
            frame = self.keep(frame)
        self.frames[port] = frame

    def keep(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once in this batch."""
        kept = frame.persist()
        self.kept.append(kept)
        return kept

    def release(self) -> None:
        """Drops what was kept."""
        for frame in self.kept:
            frame.unpersist()
        if self.blocks_in:
            shutil.rmtree(self.blocks_in, ignore_errors=True)

    def schema(self, port: Port) -> str:
        """The DDL of a stream."""
        return str(self.plan.graph.output(port).schema)


Lower = Callable[[Lowering, Any], None]
