"""Python stages as `mapInArrow`: one pass for all the steps of a stage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.compiler.plan import Stage
from penstock.graph.nodes import AggregateBy, Bolt, Keyed, Node, Port, WithBroadcast
from penstock.graph.nodes.changes import AggregateChanges
from penstock.graph.nodes.match_patterns import MatchPatterns
from penstock.graph.nodes.rules import ApplyRules
from penstock.graph.types import Struct, quote
from penstock.spark.lower.apart import apart
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.exchange import KeyedInput, added_up, by_key, several_by_key
from penstock.spark.lower.join import rules_of
from penstock.spark.lower.ownership import key_hash_sql
from penstock.spark.lower.topology import routed
from penstock.spark.lower.window import is_moved
from penstock.spark.tasks import worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Replays = dict[str, list[Any]]


def python_stage(at: Lowering, stage: Stage) -> None:
    """Brings the records where the stage needs them, runs it, and parts its outputs."""
    first = stage.nodes[0]
    bolt = isinstance(first, Bolt)
    frame = routed(at, first) if isinstance(first, Bolt) else _moved(at, stage)
    digest, packed = at.packer.pack(at.plan, stage)
    states = {store: at.states[store] for n in stage.nodes for store in n.stores if store in at.states}
    times = {n.name: at.times[n.name] for n in stage.nodes if n.name in at.times and (n.timed or n.keyed)}
    inside = {n.name: at.replays.pop((n.name, 0)) for n in stage.nodes[1:] if (n.name, 0) in at.replays}
    whole = (
        rules_of(at, first)
        if isinstance(first, WithBroadcast | ApplyRules | MatchPatterns) and len(first.inputs) > 1
        else ()
    )
    function = worker.Stage(
        digest,
        packed,
        at.counts,
        isinstance(first, Keyed) and not first.stays,
        bolt,
        states,
        times,
        whole=whole,
        batch=at.batch,
    )
    made = mapped(at, frame, function, inside, at.packer.schemas.get(stage.name) or _schema(at, stage))
    at.packer.schemas.setdefault(stage.name, made.schema)
    _give(at, stage, apart(at, stage, made))


def mapped(
    at: Lowering, frame: DataFrame, function: worker.Stage, inside: Replays, schema: StructType | str
) -> DataFrame:
    """Runs a stage over its input, and over the dead letters that go to steps inside it.

    Where tasks have numbers the first takes the dead letters, and is sure to run. Other stages may have no task, and inside a union none is the
    first; there the dead letters get a task of their own.
    """
    if not inside or function.numbered:
        return frame.mapInArrow(replace(function, replays=inside), schema)
    nothing = at.spark.createDataFrame(at.spark.sparkContext.parallelize([], 1), frame.schema)
    return frame.mapInArrow(function, schema).unionByName(nothing.mapInArrow(replace(function, replays=inside), schema))


def _moved(at: Lowering, stage: Stage) -> DataFrame:
    """The records of a stage where it needs them: those of its first step, or those of all its steps that read other stages."""
    first = stage.nodes[0]
    read = [
        (node, index) for node, index in stage.reads if not (index and isinstance(node, ApplyRules | MatchPatterns))
    ]
    if not isinstance(first, Keyed) or first.stays:
        return at.input(first)
    if len(read) == 1:
        return _moved_alone(at, first)
    ordered = any(node.ordered for node, _ in read)
    return several_by_key(at, first, [_keyed_input(at, node, index) for node, index in read], ordered=ordered)


def _moved_alone(at: Lowering, first: Keyed) -> DataFrame:
    frame = at.input(first)
    if isinstance(first, AggregateBy) and first.combined == "columns":
        return frame.selectExpr("*", key_hash_sql(first.keys))
    names = at.plan.graph.output(first.inputs[0]).schema.names
    frame = _shortened(at, first, frame)
    if is_moved(at, first, frame):
        return frame.selectExpr(*map(quote, names), key_hash_sql(first.keys))
    return by_key(at, first, frame, names)


def _shortened(at: Lowering, node: Node, frame: DataFrame) -> DataFrame:
    """The input of a step, with rows that are added up anyway added up before they move."""
    if not isinstance(node, AggregateChanges):
        return frame
    return added_up(frame, at.plan.graph.output(node.inputs[0]).schema, node.keys)


def _keyed_input(at: Lowering, node: Node, input_index: int) -> KeyedInput:
    port = node.inputs[input_index]
    return KeyedInput(
        _shortened(at, node, at.input(node, input_index)),
        _struct(at, port),
        at.plan.graph.output(port).schema.names,
        node.keys_of(input_index),
    )


def _schema(at: Lowering, stage: Stage) -> str:
    if len(stage.outputs) == 1:
        return at.schema(stage.outputs[0])
    structs = [f"__o{i} struct<{_struct(at, p)}>" for i, p in enumerate(stage.outputs)]
    return ", ".join(["__out int", *structs])


def _struct(at: Lowering, port: Port) -> str:
    return str(Struct(at.plan.graph.output(port).schema.fields)).removeprefix("struct<").removesuffix(">")


def _give(at: Lowering, stage: Stage, made: DataFrame) -> None:
    if len(stage.outputs) == 1:
        at.give(stage.outputs[0], made)
        return
    kept = at.keep(made)
    for i, port in enumerate(stage.outputs):
        at.frames[port] = kept.where(f"__out = {i}").selectExpr(f"__o{i}.*")
