"""Groupings: which task gets which tuple, exactly."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph import types as t
from penstock.graph.nodes import Grouping
from penstock.graph.schema import schema_of
from penstock.kernels.hashing.murmur import spark_hash
from penstock.kernels.topology.routing import Custom, PartialKey, RouteContext, Router, router_of

WORDS = schema_of("word string, n bigint")


def router(kind: str, tasks: int, *fields: str, chooser: Any = None) -> Router:
    return router_of(Grouping(kind, fields, chooser), tasks, WORDS, RouteContext(("words", "default")))


def chosen(made: Router, count: int, emitter: int = 0) -> list[int]:
    return [task for i in range(count) for task in made.targets((f"w{i}", i), emitter)]


def test_shuffle_deals_evenly() -> None:
    """Each of two tasks gets 49 to 51 % of 100,000 tuples."""
    shares = Counter(chosen(router("shuffle", 2), 100_000))
    assert all(49_000 <= shares[task] <= 51_000 for task in (0, 1))


def test_shuffle_is_a_strict_round_for_each_emitter() -> None:
    made = router("shuffle", 3)
    assert chosen(made, 6, emitter=0) == [0, 1, 2, 0, 1, 2]
    assert chosen(made, 4, emitter=1) == [1, 2, 0, 1]
    assert chosen(made, 2, emitter=0) == [0, 1]


def test_shuffle_of_a_spout_follows_its_count() -> None:
    made = router("shuffle", 4)
    assert [made.targets(("w", 1), 0, number)[0] for number in (5, 6, 7, 8)] == [1, 2, 3, 0]


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(-5, 5)), max_size=50), st.integers(1, 9))
def test_fields_brings_equal_values_to_equal_tasks(tuples: list[tuple[str, int]], tasks: int) -> None:
    made = router("fields", tasks, "word")
    homes: dict[str, int] = {}
    for tup in tuples:
        (task,) = made.targets(tup, random.randrange(3))
        assert 0 <= task < tasks
        assert homes.setdefault(tup[0], task) == task


def test_fields_spreads_keys() -> None:
    shares = Counter(chosen(router("fields", 4, "word"), 10_000))
    assert all(2_200 < shares[task] < 2_800 for task in range(4))


def test_partial_key_alternates_for_one_key() -> None:
    made = router("partial_key", 8, "word")
    tasks = [made.targets(("hot", i), 0)[0] for i in range(10)]
    first, second = tasks[:2]
    assert first != second
    assert tasks == [first, second] * 5


def test_partial_key_counts_for_each_emitter() -> None:
    made = router("partial_key", 8, "word")
    first = made.targets(("hot", 0), 0)
    assert made.targets(("hot", 1), 1) == first
    assert made.targets(("hot", 2), 0) != first


@given(st.text(max_size=8), st.integers(2, 20))
def test_partial_key_has_two_candidates_for_every_key(word: str, tasks: int) -> None:
    made = router("partial_key", tasks, "word")
    assert isinstance(made, PartialKey)
    first, second = made.candidates((word,))
    assert first != second
    assert {first, second} <= set(range(tasks))


def test_partial_key_takes_the_candidate_with_less_to_do() -> None:
    """One hot key among many: no task gets far more than its share, as it would with fields."""
    rolled = random.Random(7)
    words = ["hot" if rolled.random() < 0.4 else f"w{rolled.randrange(1000)}" for _ in range(20_000)]
    shares = {
        kind: max(Counter(made.targets((w, 0), 0)[0] for w in words).values())
        for kind, made in (("fields", router("fields", 5, "word")), ("partial_key", router("partial_key", 5, "word")))
    }
    assert shares["partial_key"] < 5_000 < 9_000 < shares["fields"]


def test_partial_key_with_one_task() -> None:
    assert chosen(router("partial_key", 1, "word"), 3) == [0, 0, 0]


def test_all_reaches_every_task() -> None:
    assert chosen(router("all", 3), 2) == [0, 1, 2, 0, 1, 2]


def test_global_means_the_lowest_task() -> None:
    assert set(chosen(router("global", 5), 100)) == {0}


def test_none_is_spread_not_in_turn_and_the_same_again() -> None:
    tasks = chosen(router("none", 4), 4_000)
    assert tasks == chosen(router("none", 4), 4_000)
    assert tasks[:8] != [0, 1, 2, 3, 0, 1, 2, 3]
    assert all(850 < share < 1_150 for share in Counter(tasks).values())
    assert chosen(router("none", 4), 20, emitter=1) != tasks[:20]


def test_custom_may_name_one_task_or_several() -> None:
    made = router("custom", 3, chooser=lambda values: [0, 2] if values.n % 2 else 1)
    assert [list(made.targets(("w", n), 0)) for n in (0, 1)] == [[1], [0, 2]]


class Wheel:
    """A chooser with a state of its own for each emitter."""

    def prepare(self, context: Any, stream: str, tasks: list[int]) -> None:
        self.reported = (context.component, context.task, stream)
        self.tasks = tasks
        self.turn = 0

    def choose(self, values: Any) -> int:
        self.turn += 1
        return self.tasks[-self.turn % len(self.tasks)]


def test_a_chooser_is_prepared_and_is_each_emitters_own() -> None:
    made = router("custom", 3, chooser=Wheel())
    assert isinstance(made, Custom)
    assert [made.targets(("w", 0), emitter)[0] for emitter in (0, 0, 1, 0)] == [2, 1, 2, 0]
    assert made.choosers[1].__self__.reported == ("words", 1, "default")  # type: ignore[attr-defined]  # a bound method


@pytest.mark.parametrize("wrong", [3, -1, "1", None, 1.0, True, [0, 7]])
def test_a_chooser_must_name_tasks_that_exist(wrong: Any) -> None:
    with pytest.raises(ValueError, match="tasks from 0 to 2"):
        router("custom", 3, chooser=lambda values: wrong).targets(("w", 0), 0)


MOMENT = datetime.datetime(2024, 5, 17, 12, 30, 0, 123456, tzinfo=datetime.UTC)
HASHED: list[tuple[str, Any]] = [
    ("string", ""),
    ("string", "abcd"),
    ("string", "naïve – 東京"),
    ("binary", b"\x00\xff\x80"),
    ("tinyint", -3),
    ("smallint", 300),
    ("int", -(2**31)),
    ("bigint", 2**40 + 7),
    ("bigint", -1),
    ("boolean", True),
    ("float", 1.5),
    ("double", -0.0),
    ("double", 3.14),
    ("date", datetime.date(1969, 12, 31)),
    ("timestamp", MOMENT),
    ("timestamp_ntz", MOMENT.replace(tzinfo=None)),
    ("decimal(10,2)", Decimal("-12.34")),
    ("decimal(30,3)", Decimal("-123456789012345678901.234")),
    ("decimal(30,3)", Decimal("0.128")),
    ("array<string>", ["a", None, "b"]),
    ("struct<a:int,b:string>", {"a": 1, "b": None}),
    ("string", None),
]


def test_null_leaves_the_hash_as_it_was() -> None:
    assert spark_hash([None, "x"], [t.INT, t.STRING]) == spark_hash(["x"], [t.STRING])


@pytest.mark.spark
def test_the_hash_is_sparks_own(penstock_spark: Any) -> None:
    """Local and Spark send a key to the same task."""
    schema = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(HASHED))
    frame = penstock_spark.createDataFrame([tuple(v for _, v in HASHED)], schema)
    names = [f"c{i}" for i in range(len(HASHED))]
    row = frame.selectExpr(*(f"hash({n})" for n in names), f"hash({', '.join(names)})").first()
    types = [t.parse_type(kind) for kind, _ in HASHED]
    values = [value for _, value in HASHED]
    ours = [spark_hash([v], [k]) for v, k in zip(values, types, strict=True)]
    assert [*ours, spark_hash(values, types)] == list(row)
