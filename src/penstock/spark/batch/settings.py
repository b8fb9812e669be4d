"""The settings of Spark that batches run under: set for a run, and set back when it has started or ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.compiler.plan import Plan
from penstock.graph.nodes import Parts
from penstock.graph.run.master import is_on_one_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADAPTIVE = "spark.sql.adaptive.enabled"
EXCLUDED = "spark.sql.adaptive.optimizer.excludedRules"
EMPTY = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
"""Takes what was observed out of a plan whose answer turns out to be empty, and with it the times and the bad records that were counted."""
LEFT_OUT = "spark.sql.optimizer.excludedRules"
NEVER_TRUE = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("PruneFilters", "PropagateEmptyRelation")
)
"""Take out of a plan what a condition follows that is never true, such as `1 = 0`, and with it steps that are to keep state and times that are to be noted."""
SHUFFLE = "spark.sql.shuffle.partitions"
IDLE = "spark.sql.execution.pyspark.udf.idleTimeoutSeconds"
KILL_IDLE = "spark.sql.execution.pyspark.udf.killOnIdleTimeout"


def batch_settings(plan: Plan, tasks: int, *, is_adaptive: bool) -> dict[str, str]:
    """The settings for a plan.

    A plan that is not adaptive keeps state, and runs whole. The `groupBy` of an aggregate brings each key to the task that owns it, if Spark shuffles into as many parts as the step has tasks.
    Where steps differ in that, Spark shuffles once more for those that do not have the number of most.
    """
    wanted = {node.of.parallelism or tasks for node in plan.graph.nodes if isinstance(node, Parts)}
    shuffle = {SHUFFLE: str(wanted.pop() if len(wanted) == 1 else tasks)} if wanted else {}
    return {
        ADAPTIVE: str(is_adaptive).lower(),
        **({EXCLUDED: EMPTY} if is_adaptive else {LEFT_OUT: NEVER_TRUE}),
        **shuffle,
    }


def stall_settings(master: str, kill_after: float | None) -> dict[str, str]:
    """The settings by which Spark itself ends workers that stand still, where they are on other machines.

    >>> stall_settings("local[2]", 60.0), stall_settings("spark://host:7077", None)
    ({}, {})
    >>> sorted(stall_settings("spark://host:7077", 60.5).values())
    ['61', 'true']
    """
    if kill_after is None or is_on_one_machine(master):
        return {}
    return {IDLE: str(math.ceil(kill_after)), KILL_IDLE: "true"}


@contextmanager
def set_for(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets a session up for what is done inside, and sets it back. A streaming query keeps what it was started with."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, found in before.items():
            spark.conf.unset(name) if found is None else spark.conf.set(name, found)
