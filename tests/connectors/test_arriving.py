"""Rows on their way to the driver: used as they come, in the order they have."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.arriving import Arriving, InOrder


def put(*parts: int) -> tuple[InOrder, list[int]]:
    """Batches that come in the order of these parts, and how many were ready after each."""
    order, ready = InOrder(), []
    for number, part in enumerate(parts):
        order.take(part, (part, number))
        ready.append(len(order.ready))
    return order, ready


@pytest.mark.parametrize("parts", [(0, 0, 1, 2), (2, 2, 0, 1, 1), (1, 0, 0, 2), (4, 2, 7), (3,), ()])
def test_batches_are_put_in_the_order_of_their_parts(parts: tuple[int, ...]) -> None:
    order, _ = put(*parts)
    order.end()
    assert order.ready == sorted((part, number) for number, part in enumerate(parts))


def test_a_batch_is_ready_as_soon_as_all_before_it_are_there() -> None:
    assert put(0, 0, 1, 2)[1] == [1, 2, 3, 4]
    assert put(1, 0, 0, 2)[1] == [0, 1, 2, 4], "part 1 waits until part 0 is known to be whole"
    assert put(2, 1, 3)[1] == [0, 0, 0], "part 0 may still come"


@pytest.mark.spark
def test_rows_arrive_in_the_order_of_the_frame(penstock_spark: Any) -> None:
    frame = penstock_spark.range(0, 30_000, 1, 7).where("id < 9000 or id > 21000")
    arriving = Arriving(frame)
    once = [n for batch in arriving for n in batch.column("id").to_pylist()]
    again = [n for batch in arriving for n in batch.column("id").to_pylist()]
    assert once == again == [n for n in range(30_000) if n < 9000 or n > 21000]
    assert arriving_names(frame) == ["id"]


def arriving_names(frame: Any) -> list[str]:
    return list(next(iter(Arriving(frame))).schema.names)


@pytest.mark.spark
def test_a_frame_without_rows_gives_nothing(penstock_spark: Any) -> None:
    assert list(Arriving(penstock_spark.range(0))) == []


@pytest.mark.spark
def test_what_fails_in_a_task_is_raised_at_the_end(penstock_spark: Any) -> None:
    frame = penstock_spark.range(0, 100, 1, 2).selectExpr("if(id = 99, raise_error('no 99'), id) as id")
    with pytest.raises(Exception, match="no 99"):
        list(Arriving(frame))
