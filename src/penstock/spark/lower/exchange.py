"""Moves between tasks, as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.graph.nodes import Port, Repartition
from penstock.graph.state.layout import KEY_GROUPS
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering

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


def key_hash_sql(keys: tuple[str, ...]) -> str:
    """The hash of a record's key, as SQL: a hash whose last seven bits are the key group.

    Spark sends a record to task `hash(keys) mod tasks`. The group is the same hash modulo 128, so with a power of two of
    tasks all keys of a group go to task `group mod tasks`.
    """
    if not keys:
        return "0L as __key_hash"
    columns = ", ".join(map(quote, keys))
    return f"(xxhash64({columns}) & {-KEY_GROUPS}L) | pmod(hash({columns}), {KEY_GROUPS}) as __key_hash"


def by_key(frame: DataFrame, names: tuple[str, ...], keys: tuple[str, ...], tasks: int, *, ordered: bool) -> DataFrame:
    """The records at the task that owns their key, with the hash of their key; in the order of arrival, if asked."""
    columns = list(map(quote, names))
    if ordered:
        frame = frame.selectExpr(*columns, "monotonically_increasing_id() as __order")
    moved = frame.repartition(tasks, *map(quote, keys))
    if ordered:
        moved = moved.sortWithinPartitions("__order")
    return moved.selectExpr(*columns, key_hash_sql(keys))


def several_by_key(inputs: list[KeyedInput], tasks: int, *, ordered: bool) -> DataFrame:
    """The records of several inputs at the task that owns their key: `__input` says which, a struct holds each."""
    packed = [_packed(inputs, at, ordered) for at in range(len(inputs))]
    keys = [f"__k{i}" for i in range(len(inputs[0].keys))]
    moved = reduce(lambda one, other: one.unionByName(other), packed).repartition(tasks, *keys)
    if ordered:
        moved = moved.sortWithinPartitions("__input", "__order")
    structs = [f"__i{i}" for i in range(len(inputs))]
    return moved.selectExpr("__input", *structs, key_hash_sql(tuple(keys)))


def _packed(inputs: list[KeyedInput], at: int, ordered: bool) -> DataFrame:
    mine = inputs[at]
    record = f"struct({', '.join(map(quote, mine.names))})"
    structs = [
        f"cast({record if i == at else 'null'} as struct<{each.struct}>) as __i{i}" for i, each in enumerate(inputs)
    ]
    keys = [f"{quote(k)} as __k{i}" for i, k in enumerate(mine.keys)]
    order = ["monotonically_increasing_id() as __order"] if ordered else []
    return mine.frame.selectExpr(f"{at} as __input", *structs, *keys, *order)
