"""map_async: the same answers on every runtime, in order or as calls finish, with dead letters for calls that fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

NUMBERS = list(range(60))


async def squared(row: Any) -> Any:
    """Later records answer sooner."""
    await asyncio.sleep(0.001 * (3 - row.n % 4))
    return row.n, row.n * row.n


class Doubling(ps.AsyncFunction):
    """Calls that share what was opened; some fail, at the first try or always."""

    async def on_open(self) -> None:
        self.factor, self.tried = 2, set[int]()

    async def on_event(self, row: Any) -> Any:
        if row.n % 10 == 3:
            raise ConnectionError("refused")
        if row.n % 10 == 7 and row.n not in self.tried:
            self.tried.add(row.n)
            raise ConnectionError("once")
        return row.n, row.n * self.factor


def blocking(row: Any) -> Any:
    """A plain function, which gets a thread."""
    return row.n, row.n + 1


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.live("live-True")
def test_calls_give_one_record_for_each(same: Case, ordered: bool) -> None:
    """Fused between other Python steps, with a second step of calls on the same stream."""
    flow = ps.Flow("calls")
    numbers = flow.source("n", ps.items([], "n bigint")).filter("all", lambda r: True)
    form = "n bigint, made bigint"
    called = numbers.map_async("square", squared, form, concurrency=8, ordered=ordered, timeout="20s")
    called.map("after", lambda r: (r.n, r.made + 1)).sink("squares", ps.console())
    numbers.map_async("add", blocking, form, concurrency=4, ordered=ordered).sink("sums", ps.console())
    doubled = numbers.map_async("double", Doubling, form, concurrency=4, ordered=ordered, retries=1, backoff="1ms")
    doubled.sink("doubled", ps.console())
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"n": NUMBERS})
    squares = [(r.n, r.made) for r in results["squares"]]
    assert sorted(squares) == [(n, n * n + 1) for n in NUMBERS]
    if ordered and same.in_process:
        assert squares == sorted(squares)
    assert sorted((r.n, r.made) for r in results["sums"]) == [(n, n + 1) for n in NUMBERS]
    assert sorted((r.n, r.made) for r in results["doubled"]) == [(n, n * 2) for n in NUMBERS if n % 10 != 3]
    causes = {r.cause for r in results["dead"]}
    assert causes == {f"CallFailed: {__name__}:Doubling failed after 2 attempts: ConnectionError: refused"}
    assert len(results["dead"]) == 6


def test_totals_of_calls_are_those_of_a_map(same: Case) -> None:
    flow = ps.Flow("totals")
    numbers = flow.source("n", ps.items([], "n bigint"))
    called = numbers.map_async("square", squared, "n bigint, made bigint", concurrency=5, ordered=False)
    called.key_by(k="n % 3").aggregate("sum", total="sum(made)").sink("out", ps.console())
    expected = [(k, sum(n * n for n in NUMBERS if n % 3 == k)) for k in range(3)]
    same.check(flow, {"n": NUMBERS}, {"out": expected})
