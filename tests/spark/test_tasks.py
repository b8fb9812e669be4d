"""Any number of tasks on Spark: each record goes to the task that owns its key, by one shuffle, and state follows another number."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
import penstock.state as ps_state
from penstock.errors import CheckpointError, Impossible
from penstock.graph.run import RunSpec
from penstock.graph.state.key_groups import owned_slots
from penstock.spark.checkpoint.savepoint import directory_of, take
from penstock.spark.lower.exchange import move_to_owner
from penstock.spark.lower.ownership import KEY_HASH, STEERING, key_hash_sql, steering_sql
from penstock.spark.run import run_live
from penstock.testing.spark import run_spark
from tests.state.owners import slot_of

pytestmark = pytest.mark.spark
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
KEYS = ("k", "n", "d")


def records(spark: Any) -> Any:
    columns = (
        "if(id % 11 = 0, null, concat('key ', id % 500)) as k",
        "id % 7 as n",
        "cast(id % 3 as decimal(20, 2)) as d",
    )
    return spark.range(0, 4000, 1, 3).selectExpr(*columns)


def shuffles(frame: Any) -> int:
    return str(frame._jdf.queryExecution().executedPlan()).count("Exchange ")


def strays(frame: Any, tasks: int, groups: int) -> list[Any]:
    """The rows that are at another task than their owner."""
    rows = frame.selectExpr("spark_partition_id() as at", key_hash_sql(KEYS)).collect()
    spans = [owned_slots(task, tasks, groups) for task in range(tasks)]
    assert len({row.at for row in rows}) > min(tasks, 500) // 2, "many tasks have something"
    return [row for row in rows if not spans[row["at"]][0] <= slot_of(row[KEY_HASH]) < spans[row["at"]][1]]


@pytest.mark.parametrize(
    ("tasks", "groups"),
    [(3, 128), (8, 128), (7, 32_768), (129, 256), pytest.param(1000, 1024, marks=pytest.mark.slow)],
)
def test_a_record_goes_to_the_task_that_owns_its_key(penstock_spark: Any, tasks: int, groups: int) -> None:
    moved = move_to_owner(records(penstock_spark), KEYS, tasks, groups)
    assert not strays(moved, tasks, groups)
    assert shuffles(moved) == 1


@pytest.mark.parametrize(("tasks", "groups"), [(3, 128), (7, 32_768), (129, 256)])
def test_a_groupby_is_steered_to_the_owner_by_its_one_shuffle(penstock_spark: Any, tasks: int, groups: int) -> None:
    before = penstock_spark.conf.get("spark.sql.shuffle.partitions")
    penstock_spark.conf.set("spark.sql.shuffle.partitions", tasks)
    try:
        steered = records(penstock_spark).selectExpr("*", steering_sql(KEYS, tasks, groups))
        made = steered.groupBy(*KEYS, STEERING).count().repartition(tasks, *KEYS, STEERING)
        assert not strays(made, tasks, groups)
        assert shuffles(made) == 1
        assert sum(r["count"] for r in made.collect()) == 4000
    finally:
        penstock_spark.conf.set("spark.sql.shuffle.partitions", before)


ROWS = [(f"k{n % 100}", n, BEGIN + datetime.timedelta(seconds=n)) for n in range(600)]


class Numbered(ps.Process):
    """Numbers the records of a key."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Any:
        self.n += 1
        yield self.key, self.n


def moving(got: dict[str, Any]) -> ps.Flow:
    """Native totals, a Python step, and sessions, by a hundred keys."""
    flow = ps.Flow("moving")
    given = ps.items(ROWS, "k string, n int, ts timestamp", batches=6)
    keyed = flow.source("rows", given, event_time="ts").key_by("k")
    keyed.aggregate("totals", total="sum(n)").sink("native", ps.callback(lambda new, _: got["native"].update(new)))
    numbered = keyed.process("numbered", Numbered, schema="k string, c int")
    numbered.sink("python", ps.callback(lambda new, _: got["python"].update(new)))
    sessions = keyed.window(ps.session("30s")).count("sessions", into="c")
    sessions.sink("out", ps.callback(lambda new, _: got["sessions"].extend(r.k for r in new)))
    return flow


def test_state_moves_from_3_to_7_to_4_tasks_and_to_other_key_groups(penstock_spark: Any, tmp_path: Path) -> None:
    """No key is lost or doubled: in one checkpoint, and in one from a savepoint with more key groups."""
    got: dict[str, Any] = {"native": {}, "python": {}, "sessions": []}
    flow, folder = moving(got), tmp_path / "moving"

    def run(where: Path, **options: Any) -> None:
        run_live(flow.graph, penstock_spark, RunSpec(checkpoint=where, duration=200, **options)).wait()

    for tasks in (3, 7, 4):
        run(folder, parallelism=tasks, batches=1)
    with pytest.raises(CheckpointError, match=r"128 key groups, which are chosen once.*take a savepoint"):
        run(folder, parallelism=7, key_groups=256)
    with pytest.raises(Impossible, match="at most 128 tasks, as the flow has 128 key groups, got 129"):
        run(folder, parallelism=129)
    saved = take(folder, directory_of("saved", folder)).folder
    other = tmp_path / "other"
    run(other, parallelism=5, batches=1, key_groups=32_768, savepoint=str(saved))
    run(other, parallelism=3, mode="once", drain=True)
    totals = {f"k{k}": sum(range(k, 600, 100)) for k in range(100)}
    assert got["native"] == totals
    assert got["python"] == {f"k{k}": 6 for k in range(100)}
    assert sorted(got["sessions"]) == sorted(f"k{k}" for k in range(100) for _ in range(6))
    kept = ps_state.read(other, "totals").to_pylist()
    assert {row["k"]: row["total"] for row in kept} == totals


def test_sessions_are_the_same_with_any_number_of_tasks(penstock_spark: Any) -> None:
    flow = ps.Flow("sessions")
    stream = flow.source("rows", ps.items([], "k string, n int, ts timestamp"), event_time="ts", lateness="10m")
    stream.key_by("k").window(ps.session("150s")).aggregate("w", n="count(*)", total="sum(n)").sink("out", ps.console())
    answers = [
        sorted(map(tuple, run_spark(flow, penstock_spark, {"rows": ROWS}, cuts=3, parallelism=tasks)["out"]))
        for tasks in (2, 3, 7)
    ]
    assert len(answers[0]) == 100
    assert answers[0] == answers[1] == answers[2]
