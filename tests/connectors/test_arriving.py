"""Rows on their way to the driver: used as they come, in the order they have."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.arriving import PART, Arriving, InOrder


def put(*parts: int) -> tuple[InOrder, list[int]]:
    """Batches of ten rows that come in the order of these parts, and how many were ready after each."""
    order, ready = InOrder(), []
    seen: Counter[int] = Counter()
    for part in parts:
        first = (part << PART) + 10 * seen[part]
        order.take(first, first + 10, (part, seen[part]))
        seen[part] += 1
        ready.append(len(order.ready))
    return order, ready


@pytest.mark.parametrize("parts", [(0, 0, 1, 2), (2, 2, 0, 1, 1), (1, 0, 0, 2), (4, 2, 7), (3,), ()])
def test_batches_are_put_in_the_order_of_their_parts(parts: tuple[int, ...]) -> None:
    order, _ = put(*parts)
    order.end()
    assert order.ready == [(part, n) for part, many in sorted(Counter(parts).items()) for n in range(many)]


def test_a_batch_is_ready_as_soon_as_all_before_it_are_there() -> None:
    assert put(0, 0, 1, 2)[1] == [1, 2, 3, 4]
    assert put(1, 0, 0, 2)[1] == [0, 1, 2, 4], "part 1 waits until part 0 is known to be whole"
    assert put(2, 1, 3)[1] == [0, 0, 0], "part 0 may still come"


def test_a_table_that_was_numbered_in_one_go_is_put_in_order() -> None:
    order, ready = InOrder(), []
    for first in (20, 0, 30, 10):
        order.take(first, first + 10, first)
        ready.append(len(order.ready))
    assert (order.ready, ready) == ([0, 10, 20, 30], [0, 1, 1, 4])


@pytest.mark.spark
def test_rows_arrive_in_the_order_of_the_frame(penstock_spark: Any) -> None:
    frame = penstock_spark.range(0, 30_000, 1, 7).where("id < 9000 or id > 21000")
    arriving = Arriving(frame)
    once = [n for batch in arriving for n in batch.column("id").to_pylist()]
    again = [n for batch in arriving for n in batch.column("id").to_pylist()]
    assert once == again == [n for n in range(30_000) if n < 9000 or n > 21000]
    assert next(iter(arriving)).schema.names == ["id"]


@pytest.mark.spark
def test_rows_of_a_small_table_arrive_in_order(penstock_spark: Any) -> None:
    """Spark computes a projection of such a table beforehand, and sends it in several parts all the same."""
    frame = penstock_spark.createDataFrame(pa.table({"n": range(25_000)})).selectExpr("n + 1 as n")
    assert frame.rdd.getNumPartitions() > 1
    assert [n for batch in Arriving(frame) for n in batch.column("n").to_pylist()] == list(range(1, 25_001))


@pytest.mark.spark
def test_a_frame_without_rows_gives_nothing(penstock_spark: Any) -> None:
    assert list(Arriving(penstock_spark.range(0))) == []


@pytest.mark.spark
def test_what_fails_in_a_task_is_raised_at_the_end(penstock_spark: Any) -> None:
    frame = penstock_spark.range(0, 100, 1, 2).selectExpr("if(id = 99, raise_error('no 99'), id) as id")
    arriving = Arriving(frame)
    arriving.settle()
    with pytest.raises(Exception, match="no 99"):
        list(arriving)


@pytest.mark.spark
def test_the_job_belongs_to_whoever_asked_for_it(penstock_spark: Any) -> None:
    """A query that is stopped cancels its jobs by their group."""
    context = penstock_spark.sparkContext
    context.setJobGroup("arriving", "test", interruptOnCancel=True)
    try:
        frame = penstock_spark.range(0, 2, 1, 2).selectExpr(
            "if(id >= 0, reflect('java.lang.Thread', 'sleep', 60000L), id) as id"
        )
        arriving = Arriving(frame)
        threading.Timer(2.0, context.cancelJobGroup, ["arriving"]).start()
        with pytest.raises(Exception, match="cancelled"):
            list(arriving)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
