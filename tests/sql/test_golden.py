"""Golden answers: what each batch of changes makes of a query, through SQL and through the fluent API; and the same for every cut, added up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Driver

BATCHES: list[tuple[list[Any], list[Any]]] = [
    ([("insert", "a", 10), ("insert", "b", 5)], []),
    ([("insert", "a", 30)], []),
    ([("insert", "b", 30)], [("insert", "b", "Bo")]),
    ([], []),
    ([("delete", "a", 30)], [("delete", "b", "Bo")]),
]
"""The changes of `bids(auction, price)` and of `names(auction, name)`, batch by batch."""
Change = Counter[tuple[Any, ...]]


def plus_minus(plus: list[Any] = [], minus: list[Any] = []) -> Change:  # noqa: B006 - never changed
    made: Change = Counter(plus)
    made.subtract(minus)
    return made


GOLDEN: dict[str, list[Change]] = {
    "maximum": [
        plus_minus([("a", 10), ("b", 5)]),
        plus_minus([("a", 30)], [("a", 10)]),
        plus_minus([("b", 30)], [("b", 5)]),
        plus_minus(),
        plus_minus([("a", 10)], [("a", 30)]),
    ],
    "counts": [
        plus_minus([(10, 1), (5, 1)]),
        plus_minus([(30, 1)], [(10, 1)]),
        plus_minus([(30, 2)], [(5, 1), (30, 1)]),
        plus_minus(),
        plus_minus([(30, 1), (10, 1)], [(30, 2)]),
    ],
    "best": [
        plus_minus([("a", 10)]),
        plus_minus([("a", 30)], [("a", 10)]),
        plus_minus(),
        plus_minus(),
        plus_minus([("b", 30)], [("a", 30)]),
    ],
    "named": [
        plus_minus([("a", 10, None), ("b", 5, None)]),
        plus_minus([("a", 30, None)], [("a", 10, None)]),
        plus_minus([("b", 30, "Bo")], [("b", 5, None)]),
        plus_minus(),
        plus_minus([("a", 10, None), ("b", 30, None)], [("a", 30, None), ("b", 30, "Bo")]),
    ],
}
SQL = {
    "maximum": "SELECT * FROM maximum",
    "counts": "SELECT m, COUNT(*) AS n FROM maximum GROUP BY m",
    "best": """SELECT auction, m FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY m DESC, auction ASC) AS r FROM maximum) WHERE r <= 1""",
    "named": "SELECT maximum.auction, m, name FROM maximum LEFT JOIN names ON maximum.auction = names.auction",
}
VIEW = "CREATE VIEW maximum AS SELECT auction, MAX(price) AS m FROM bids GROUP BY auction;"


def tables(flow: ps.Flow) -> tuple[ps.Stream, ps.Stream]:
    bids = flow.source("bids", ps.items([], "op string, auction string, price int"))
    names = flow.source("names", ps.items([], "op string, auction string, name string"))
    return bids.as_table("bids-now", ("auction", "price")), names.as_table("names-now", "auction")


def by_sql(query: str) -> ps.Flow:
    flow = ps.Flow("golden")
    bids, names = tables(flow)
    ps.sql_query(VIEW + SQL[query], {"bids": bids, "names": names}).changelog("changes").sink("out", ps.console())
    return flow


def by_python(query: str) -> ps.Flow:
    flow = ps.Flow("golden")
    bids, names = tables(flow)
    maximum = bids.key_by("auction").aggregate("maximum", m="max(price)")
    made: dict[str, Callable[[], ps.Stream]] = {
        "maximum": lambda: maximum,
        "counts": lambda: maximum.key_by("m").count("counts", into="n"),
        "best": lambda: maximum.key_by(all="1").top("best", 1, by="m desc, auction").select("short", "auction", "m"),
        "named": lambda: maximum.join("named", names, "auction", how="left"),
    }
    made[query]().changelog("changes").sink("out", ps.console())
    return flow


def changes_of(flow: ps.Flow, batches: list[tuple[list[Any], list[Any]]]) -> list[Change]:
    """What each batch changes."""
    driver = Driver(flow)
    made, seen = [], 0
    for bids, names in batches:
        driver.push("bids", *bids)
        driver.push("names", *names)
        rows = driver.barrier()["out"]
        change: Change = Counter()
        for op, *row in rows[seen:]:
            change[tuple(row)] += 1 if op in ("insert", "update_after") else -1
        made.append(change)
        seen = len(rows)
    driver.close()
    return made


def same(one: Change, other: Change) -> bool:
    return {k: n for k, n in one.items() if n} == {k: n for k, n in other.items() if n}


@pytest.mark.parametrize("written", [by_sql, by_python], ids=["sql", "python"])
@pytest.mark.parametrize("query", GOLDEN)
def test_what_each_batch_changes(query: str, written: Callable[[str], ps.Flow]) -> None:
    for got, wanted in zip(changes_of(written(query), BATCHES), GOLDEN[query], strict=True):
        assert same(got, wanted)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("query", GOLDEN)
def test_every_cut_adds_up_to_the_same(query: str, seed: int) -> None:
    """The same changes in other batches: what comes of them is the same wherever two batches end together, and no row is there less than never."""
    rng = random.Random(f"{query}-{seed}")
    steps = [(side, change) for batch in BATCHES for side in (0, 1) for change in batch[side]]
    ends = sorted({*rng.sample(range(1, len(steps)), rng.randint(0, 3)), len(steps)})
    cuts = [steps[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    batches = [([c for s, c in cut if s == 0], [c for s, c in cut if s == 1]) for cut in cuts]
    total: Change = Counter()
    for change in changes_of(by_sql(query), batches):
        total.update(change)
        assert all(n >= 0 for n in total.values())
    wanted: Change = Counter()
    for change in GOLDEN[query]:
        wanted.update(change)
    assert same(total, wanted)


def test_a_replayed_batch_makes_the_same_change() -> None:
    flow = by_sql("counts")
    driver = Driver(flow)
    driver.push("bids", *BATCHES[0][0])
    first = list(driver.barrier()["out"])
    driver.push("bids", *BATCHES[1][0])
    driver.crash()
    driver.push("bids", *BATCHES[1][0])
    rows = list(driver.barrier()["out"])
    driver.close()
    change: Change = Counter()
    for op, *row in rows[len(first) :]:
        change[tuple(row)] += 1 if op in ("insert", "update_after") else -1
    assert same(change, GOLDEN["counts"][1])
