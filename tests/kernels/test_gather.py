"""Batches that are put together before they leave a worker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.records.gather import BYTES, ROWS, SECONDS, gathered

SIZES = st.lists(st.sampled_from([0, 1, 999, ROWS // 3, ROWS - 1, ROWS, 2 * ROWS]), max_size=8)


def batches(sizes: list[int]) -> Iterator[pa.RecordBatch]:
    numbers = count()
    for size in sizes:
        yield pa.record_batch({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())})


@given(SIZES)
def test_rows_and_their_order_stay(sizes: list[int]) -> None:
    made = list(gathered(batches(sizes), lambda: 0.0))
    assert [n for batch in made for n in batch.column("n").to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows >= ROWS for batch in made[:-1])


def test_texts_are_bound_by_their_bytes() -> None:
    large = pa.record_batch({"text": ["x" * (BYTES // 2)]})
    assert [batch.num_rows for batch in gathered([large] * 5, lambda: 0.0)] == [2, 2, 1]


@pytest.mark.parametrize("step, expected", [(0.0, [6]), (SECONDS / 3, [3, 3]), (SECONDS, [1] * 6)])
def test_rows_of_a_slow_step_do_not_wait_long(step: float, expected: list[int]) -> None:
    ticks = count()
    made = gathered(batches([1] * 6), lambda: step * next(ticks))
    assert [batch.num_rows for batch in made] == expected
