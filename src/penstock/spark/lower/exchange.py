"""Moves between tasks, as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graph.nodes import Port, Repartition
from penstock.graph.types import quote
from penstock.kernels.state import GROUPS
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def repartition(at: Lowering, node: Repartition) -> None:
    """`repartition`, evenly or by fields."""
    at.give(Port(node.name), at.input(node).repartition(at.tasks_of(node), *map(quote, node.fields)))


def place_of(keys: tuple[str, ...]) -> str:
    """The place of a record's key, as SQL: a hash whose last seven bits are the key group.

    Spark sends a record to task `hash(keys) mod tasks`. The group is the same hash modulo 128, so with a power of two of
    tasks all keys of a group go to task `group mod tasks`.
    """
    columns = ", ".join(map(quote, keys))
    return f"(xxhash64({columns}) & {-GROUPS}L) | pmod(hash({columns}), {GROUPS}) as __place"


def by_key(frame: DataFrame, names: tuple[str, ...], keys: tuple[str, ...], tasks: int, *, ordered: bool) -> DataFrame:
    """The records at the task that owns their key, with the place of their key; in the order they came, if asked."""
    columns = list(map(quote, names))
    if ordered:
        frame = frame.selectExpr(*columns, "monotonically_increasing_id() as __order")
    moved = frame.repartition(tasks, *map(quote, keys))
    if ordered:
        moved = moved.sortWithinPartitions("__order")
    return moved.selectExpr(*columns, place_of(keys))
