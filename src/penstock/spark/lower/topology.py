"""Bolts: tuples on their way to tasks.

Each tuple gets the number of its task, and `repartitionById` brings it there: partition and task are the same. The
groupings that a column can express never leave the JVM; for the others the producer wrote the task beside the tuple.
Sorting by the order of arrival keeps the tuples of one emitter in order, and makes a rerun the same.

What one Python pass emits for another moves in blocks (`penstock.kernels.topology.blocks`): a row for many tuples, which the pass has dealt out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.compiler.plan import PYTHON, Plan
from penstock.graph import types as t
from penstock.graph.endpoints.parsing import keeps_malformed
from penstock.graph.ids import child
from penstock.graph.logic.topology.components import Spout
from penstock.graph.nodes import Bolt, Grouping, Node, Port, Route, Sink
from penstock.graph.nodes.topology import SEQUENCE, SOURCE, TASK
from penstock.graph.schema import Schema
from penstock.graph.types import Struct, quote
from penstock.kernels.topology.blocks import BLOCK, TupleRoute, kept_fields
from penstock.live.dead_letters.replay import Replayed
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = (1 << 33) - 1
"""The part of `monotonically_increasing_id` that counts rows; the rest is the partition."""


def routed(at: Lowering, node: Bolt) -> DataFrame:
    """The inputs of a bolt, each tuple at its task: plain columns of one input, a struct for each of several, or blocks of tuples."""
    if reads_blocks(at, node):
        return _in_blocks(at, node)
    routed = [_routed(at, node, input_index) for input_index in range(len(node.inputs))]
    if len(routed) == 1:
        return _moved(routed[0], node.tasks, "__order").drop("__to", "__order")
    packed = [_packed(at, node, input_index, frame) for input_index, frame in enumerate(routed)]
    both = reduce(lambda one, other: one.unionByName(other), packed)
    return _moved(both, node.tasks, "__order", "__input").drop("__to", "__order")


def reads_blocks(at: Lowering, node: Bolt) -> bool:
    """Whether the inputs of a bolt come in blocks."""
    return node.inputs[0] in at.routes


def _in_blocks(at: Lowering, node: Bolt) -> DataFrame:
    """The blocks of all inputs, each with the number of its input."""
    made = [
        at.frames[port]
        .where(f"__reader = {at.readers(port).index((node, index))}")
        .selectExpr(f"{index} as __input", "__to", "__from", "__at", "__data")
        for index, port in enumerate(node.inputs)
    ]
    both = reduce(lambda one, other: one.unionByName(other), made)
    return _moved(both, node.tasks, "__from", "__at", "__input").select("__input", "__from", "__data")


def tuple_routes(at: Lowering) -> dict[Port, tuple[TupleRoute, ...]]:
    """The streams that go to bolts in blocks, with the way to each bolt.

    These are streams that Python emits and only bolts read, whose inputs are all of this kind, and to which no dead letters come again.
    """
    fed = {port for port, frame in at.frames.items() if frame.columns == BLOCK.names}
    return _routes(at.plan, fed, at.replays)


def spout_routes(plan: Plan) -> dict[Port, tuple[TupleRoute, ...]]:
    """The spouts of the user's own whose tuples can go to bolts in blocks, with the way to each bolt."""
    sources = (n for n in plan.graph.sources if not keeps_malformed(n))
    spouts = {Port(n.name) for n in sources if isinstance(n.endpoint.options.get("spout"), Spout)}
    return {port: routes for port, routes in _routes(plan, spouts, {}).items() if port in spouts}


def _routes(plan: Plan, fed: Collection[Port], replays: Replayed) -> dict[Port, tuple[TupleRoute, ...]]:
    emitted = {port for stage in plan.stages if stage.host == PYTHON for port in stage.outputs}
    found = {port for port in emitted.union(fed) if _is_for_bolts(plan, port, replays)}
    while alone := {p for p in found for bolt, _ in plan.reading_steps(p) if not found.issuperset(bolt.inputs)}:
        found -= alone
    return {port: tuple(_route(plan, port, *reader) for reader in plan.reading_steps(port)) for port in found}


def is_unread(at: Lowering, port: Port) -> bool:
    """Whether a stream of a bolt has no reader but the end that it was given so that it runs all the same."""
    readers = at.readers(port)
    return bool(readers) and all(isinstance(n, Sink) and n.name == child(port.step, "end") for n, _ in readers)


def _route(plan: Plan, port: Port, bolt: Node, input_index: int) -> TupleRoute:
    assert isinstance(bolt, Bolt), "only bolts read blocks"
    grouping = replace(bolt.groupings[input_index], chooser=None)
    return TupleRoute(grouping, bolt.tasks, plan.graph.output(port).schema, first_task_id(bolt))


def _is_for_bolts(plan: Plan, port: Port, replays: Replayed) -> bool:
    readers, fed = plan.reading_steps(port), {loop.fed_by for loop in plan.graph.loops}
    are_bolts = bool(readers) and all(isinstance(n, Bolt) and (n.name, i) not in replays for n, i in readers)
    return are_bolts and port not in fed


def _moved(frame: DataFrame, tasks: int, *order: str) -> DataFrame:
    return frame.repartitionById(tasks, "__to").sortWithinPartitions(*order)


def _routed(at: Lowering, node: Bolt, input_index: int) -> DataFrame:
    """An input with `__order` and `__to`."""
    grouping, frame = node.groupings[input_index], at.input(node, input_index)
    schema = at.plan.graph.output(node.inputs[input_index]).schema
    kept = [_picked(f, schema) for f in _kept(at, node, input_index)]
    order = f"{_order(schema)} as __order"
    if grouping.kind == "all":
        return frame.selectExpr(*kept, order).selectExpr("*", f"explode(sequence(0, {node.tasks - 1})) as __to")
    if grouping.kind == "direct":
        return frame.selectExpr(*kept, order, f"{_named(node)} as __to").where("__to is not null")
    return frame.selectExpr(*kept, order, f"cast({_task(grouping, schema, node.tasks)} as int) as __to")


def _kept(at: Lowering, node: Bolt, input_index: int) -> tuple[t.Field, ...]:
    """The fields a bolt gets: the user's, the roots, the task where the user named it, and the task that a tuple comes from."""
    graph, port = at.plan.graph, node.inputs[input_index]
    schema = graph.output(port).schema
    kept = tuple(schema.field(name) for name in kept_fields(schema, node.groupings[input_index]))
    producer = graph.node(port.step)
    if isinstance(producer, Route):
        producer = graph.node(producer.inputs[0].step)
    unknown = isinstance(producer, Bolt) and producer.tasks > 1 and SOURCE.name not in schema
    return (*kept, SOURCE) if unknown else kept


def _picked(field: t.Field, schema: Schema) -> str:
    """A field of a bolt. The tuples of one task of a bolt are one partition, so that need not travel before."""
    return quote(field.name) if field.name in schema else f"spark_partition_id() as {field.name}"


def first_task_id(node: Bolt) -> int:
    """The lowest id of the tasks of a bolt."""
    known = node.name in [c.name for c in node.layout.components]
    return node.layout.task_ids(node.name)[0] if known else 1


def _named(node: Bolt) -> str:
    """The task that a tuple names: below zero the id of a task, which may be that of another bolt."""
    first = first_task_id(node)
    mine = f"-{TASK.name} between {first} and {first + node.tasks - 1}"
    return f"case when {TASK.name} >= 0 then {TASK.name} when {mine} then -{TASK.name} - {first} end"


def _order(schema: Schema) -> str:
    return SEQUENCE.name if SEQUENCE.name in schema else "monotonically_increasing_id()"


def _task(grouping: Grouping, schema: Schema, tasks: int) -> str:
    """The task of each tuple; `penstock.kernels.topology.routing` chooses the same."""
    if grouping.by_column:
        return TASK.name
    if grouping.kind == "global":
        return "0"
    if grouping.kind == "fields":
        return f"pmod(hash({', '.join(map(quote, grouping.fields))}), {tasks})"
    if grouping.kind == "modulo":
        return f"pmod({quote(grouping.fields[0])}, {tasks})"
    if grouping.kind == "none":
        return f"pmod(hash({_order(schema)}), {tasks})"
    return f"pmod({_turn(schema)}, {tasks})"


def _turn(schema: Schema) -> str:
    """Round robin: a spout's own count, or each partition's, which begin at different tasks."""
    if SEQUENCE.name in schema:
        return SEQUENCE.name
    return f"(monotonically_increasing_id() & {_ROWS}) + spark_partition_id()"


def _packed(at: Lowering, node: Bolt, input_index: int, frame: DataFrame) -> DataFrame:
    """One input among several: `__input` says which, and only its own struct is filled."""
    columns = [f"{input_index} as __input"]
    for i in range(len(node.inputs)):
        fields = _kept(at, node, i)
        made = f"struct({', '.join(quote(x.name) for x in fields)})" if i == input_index else "null"
        columns.append(f"cast({made} as {Struct(fields)}) as __i{i}")
    return frame.selectExpr(*columns, "__order", "__to")
