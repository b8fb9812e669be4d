"""Signed rows that are added up before they move: the same change, in fewer rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from penstock.graph.nodes import Port
from penstock.graph.nodes.base import Output, counted
from penstock.graph.nodes.changes import ConsolidateEarly
from penstock.graph.schema import schema_of
from penstock.kernels.changes.early import FEW, early_kernel
from penstock.kernels.records.chunk import Chunk

Rows = list[tuple[object, int]]
MAKE: dict[str, Callable[[int], object]] = {
    "bigint": int,
    "string": str,
    "double": float,
    "array<int>": lambda n: [n],
}


def taken(kind: str, rows: Rows, size: int) -> list[Rows]:
    """What the kernel makes of signed rows of one field, in chunks of a size."""
    schema = counted(schema_of(f"x {kind}"))
    kernel = early_kernel(ConsolidateEarly("early", (Port("rows"),)).bound((Output(schema),)), schema)
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    chunks = [Chunk(schema, columns=[[x for x, _ in part], [n for _, n in part]]) for part in parts]
    made = [out for chunk in chunks for _, out in kernel.take(chunk)]
    return [list(zip(*out.columns(), strict=True)) for out in made]


def change(rows: Rows) -> Counter[str]:
    made: Counter[str] = Counter()
    for value, count in rows:
        made[repr(value)] += count
    return Counter({value: count for value, count in made.items() if count})


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("different", [7, 100_000])
def test_the_change_is_the_same(kind: str, different: int) -> None:
    random.seed(1)
    make = MAKE[kind]
    drawn = (random.randrange(different) for _ in range(8 * FEW))
    rows: Rows = [(None if n == 3 else make(n), random.choice((-1, 1, 2))) for n in drawn]
    made = taken(kind, rows, 2 * FEW)
    assert change([row for part in made for row in part]) == change(rows)


def test_equal_rows_move_once_and_those_that_cancel_do_not_move() -> None:
    rows: Rows = [(n % 4, 1 if n % 4 or n % 8 else -1) for n in range(FEW)]
    ((*made,),) = taken("bigint", rows, FEW)
    assert sorted(made) == [(1, FEW // 4), (2, FEW // 4), (3, FEW // 4)]


def test_a_pass_whose_rows_are_all_different_stops_trying() -> None:
    different: Rows = [(n, 1) for n in range(FEW)]
    equal: Rows = [(1, 1)] * FEW
    assert [len(part) for part in taken("bigint", [*equal, *different, *equal], FEW)] == [1, FEW, FEW]
