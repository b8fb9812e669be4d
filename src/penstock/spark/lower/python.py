"""Python stages as `mapInArrow`: one pass for all the steps of a stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.compiler.forgetting import owned_stores
from penstock.compiler.plan import PYTHON, Stage
from penstock.graph.nodes import AggregateBy, Bolt, Keyed, Node, Port, WithBroadcast
from penstock.graph.nodes.changes import AggregateChanges
from penstock.graph.nodes.patterns.match_patterns import MatchPatterns
from penstock.graph.nodes.patterns.rules import ApplyRules
from penstock.graph.types import Struct, quote
from penstock.kernels.looks import Looks
from penstock.kernels.topology.blocks import FIELDS
from penstock.spark.lower.apart import apart
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.exchange import KeyedInput, added_up, by_key, several_by_key
from penstock.spark.lower.join import rules_of
from penstock.spark.lower.ownership import key_hash_sql
from penstock.spark.lower.placing import own_workers, profile_of
from penstock.spark.lower.topology import is_unread, reads_blocks, routed
from penstock.spark.lower.window import is_moved
from penstock.spark.tasks import worker

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
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
        looks=_looked_at(at, stage),
        forgets=_forgotten(at, states),
        reads_blocks=isinstance(first, Bolt) and reads_blocks(at, first),
        unread=frozenset(port for port in stage.outputs if is_unread(at, port)),
        routes={port: at.routes[port] for port in stage.outputs if port in at.routes},
        blocks_in=at.blocks_in,
    )
    wanted = _schema(at, stage)
    with own_workers(at.spark, stage):
        made = mapped(at, frame, function, inside, at.packer.schemas.get(wanted) or wanted, profile_of(at.spark, stage))
    at.packer.schemas.setdefault(wanted, made.schema)
    _give(at, stage, apart(at, stage, made))


def _forgotten(at: Lowering, states: Iterable[str]) -> dict[str, tuple[int, frozenset[object]]]:
    """What tasks are to forget: entries of rules that are gone, as the rules of this batch have said."""
    gone = at.counts.value.gone
    if not gone:
        return {}
    owned = {store: owner for store, owner in owned_stores(at.plan.graph).items() if store in states}
    return {store: (each.part, gone[each.rules]) for store, each in owned.items() if each.rules in gone}


def _looked_at(at: Lowering, stage: Stage) -> Looks:
    """What somebody looks at in a stage; of its streams what it reads, where no other Python stage emits it, and what its steps emit."""
    if not at.looks:
        return at.looks
    reads = {port for port in stage.inputs if at.plan.stage_of(port.step).host != PYTHON}
    streams = tuple((port, where) for port, where in at.looks.streams if port.step in stage.steps or port in reads)
    return replace(at.looks, streams=streams)


def mapped(
    at: Lowering,
    frame: DataFrame,
    function: worker.Stage,
    inside: Replays,
    schema: StructType | str,
    profile: ResourceProfile | None = None,
) -> DataFrame:
    """Runs a stage over its input, and over the dead letters that go to steps inside it.

    Where tasks have numbers the first takes the dead letters, and is sure to run. Other stages may have no task, and inside a union none is the
    first; there the dead letters get a task of their own.
    """
    if not inside or function.numbered:
        return frame.mapInArrow(replace(function, replays=inside), schema, profile=profile)
    nothing = at.spark.createDataFrame(at.spark.sparkContext.parallelize([], 1), frame.schema)
    replayed = nothing.mapInArrow(replace(function, replays=inside), schema, profile=profile)
    return frame.mapInArrow(function, schema, profile=profile).unionByName(replayed)


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
        return FIELDS if stage.outputs[0] in at.routes else at.schema(stage.outputs[0])
    structs = [f"__o{i} struct<{_struct(at, p)}>" for i, p in enumerate(stage.outputs)]
    return ", ".join(["__out int", *structs])


def _struct(at: Lowering, port: Port) -> str:
    if port in at.routes:
        return FIELDS
    return str(Struct(at.plan.graph.output(port).schema.fields)).removeprefix("struct<").removesuffix(">")


def _give(at: Lowering, stage: Stage, made: DataFrame) -> None:
    if len(stage.outputs) == 1:
        at.give(stage.outputs[0], made)
        return
    kept = at.keep(made)
    for i, port in enumerate(stage.outputs):
        at.frames[port] = kept.where(f"__out = {i}").selectExpr(f"__o{i}.*")
