"""Moves between tasks, as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph import types as t
from penstock.graph.nodes import Keyed, Node, Port, Repartition
from penstock.graph.nodes.base import COUNT
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.ownership import key_hash_sql, needs_steering, task_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class KeyedInput:
    """One of several inputs of a keyed step: its frame, its fields as the text of a struct, their names, and the key."""

    frame: DataFrame
    struct: str
    names: tuple[str, ...]
    keys: tuple[str, ...]


def repartition(at: Lowering, node: Repartition) -> None:
    """`repartition`, evenly or by fields."""
    at.give(Port(node.name), at.input(node).repartition(at.tasks_of(node), *map(quote, node.fields)))


def move_to_owner(frame: DataFrame, keys: tuple[str, ...], tasks: int, groups: int) -> DataFrame:
    """The records at the task that owns their key: one shuffle, by Spark's own hash where that is the owner."""
    if needs_steering(tasks):
        return frame.repartitionById(tasks, f.expr(task_sql(keys, tasks, groups)))
    return frame.repartition(tasks, *map(quote, keys))


def by_key(at: Lowering, node: Keyed, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """The records of a step at the task that owns their key, with their key hash; in the order of arrival, if the step asks for it."""
    columns = list(map(quote, names))
    if node.ordered:
        frame = frame.selectExpr(*columns, "monotonically_increasing_id() as __order")
    moved = move_to_owner(frame, node.keys, at.tasks_of(node), at.groups)
    if node.ordered:
        moved = moved.sortWithinPartitions("__order")
    return moved.selectExpr(*columns, key_hash_sql(node.keys))


def added_up(frame: DataFrame, schema: Schema, keys: tuple[str, ...]) -> DataFrame:
    """Signed rows with those of a key added up before they move, where they are nothing but their key and a count.

    Keys that Spark would change to compare them, as it does -0.0, stay as they are.
    """
    fields = {field.name: field.type for field in schema.fields if field.name != COUNT}
    if COUNT not in schema or not keys or set(fields) != set(keys) or not all(map(_is_exact, fields.values())):
        return frame
    added = frame.groupBy(*map(quote, keys)).agg(f.sum(COUNT).alias(COUNT))
    return added.where(f"{COUNT} <> 0").select(*map(quote, schema.names))


def _is_exact(kind: t.DataType) -> bool:
    return isinstance(kind, t.Simple) and kind not in (t.FLOAT, t.DOUBLE)


def several_by_key(at: Lowering, node: Node, inputs: list[KeyedInput], *, ordered: bool) -> DataFrame:
    """The records of several inputs at the task that owns their key: `__input` says which, a struct holds each.

    Spark leaves the shuffle out where all inputs are there already, as the parts of aggregates by the same key are.
    """
    packed = [_packed(inputs, number, ordered) for number in range(len(inputs))]
    keys = tuple(f"__k{i}" for i in range(len(inputs[0].keys)))
    every = reduce(lambda one, other: one.unionByName(other), packed)
    moved = move_to_owner(every, keys, at.tasks_of(node), at.groups)
    if ordered:
        moved = moved.sortWithinPartitions("__input", "__order")
    structs = [f"__i{i}" for i in range(len(inputs))]
    return moved.selectExpr("__input", *structs, key_hash_sql(keys))


def _packed(inputs: list[KeyedInput], at: int, ordered: bool) -> DataFrame:
    mine = inputs[at]
    record = f"struct({', '.join(map(quote, mine.names))})"
    structs = [
        f"cast({record if i == at else 'null'} as struct<{each.struct}>) as __i{i}" for i, each in enumerate(inputs)
    ]
    keys = [f"{quote(k)} as __k{i}" for i, k in enumerate(mine.keys)]
    order = ["monotonically_increasing_id() as __order"] if ordered else []
    return mine.frame.selectExpr(f"{at} as __input", *structs, *keys, *order)
