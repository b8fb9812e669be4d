"""A partitioned spout live on Spark: ranges are acked, what fails is read again, and a second run goes on where the first stood."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from tests.waiting import wait_until

pytestmark = pytest.mark.spark


class Shards(ps.PartitionedSpout):
    """As many records of each shard as a file says; other files say which ranges were read and acked."""

    outputs = "shard string, n bigint, task int"
    most = 3

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ends(self) -> dict[str, int]:
        return json.loads((self.folder / "ends").read_text())  # type: ignore[no-any-return]

    def open(self, context: Any) -> None:
        self._task = context.task

    def read(self, partition: str, first: int, end: int) -> Any:
        tried = self._note("read", partition, first, end)
        for n in range(first, end):
            yield partition, n, self._task
            if (partition, n, tried) == ("b", 0, 1):
                raise ps.FailedException("the shard is busy")

    def acked(self, partition: str, first: int, end: int) -> None:
        self._note("acked", partition, first, end)

    def _note(self, what: str, *about: object) -> int:
        line = " ".join(map(str, about))
        with (self.folder / what).open("a") as file:
            file.write(f"{line}\n")
        return noted(self.folder, what)[line]


class Fussy(ps.Bolt):
    """Fails a record when it is first seen, and keeps another until the one after it is there; the next run finds what it has seen."""

    outputs = "shard string, n bigint, task int"
    auto_ack = False

    def prepare(self, context: Any) -> None:
        self.seen: set[Any] = set()
        self.held: dict[Any, Any] = {}

    def process(self, tup: Any) -> None:
        key = tup.shard, tup.n
        is_new = key not in self.seen
        self.seen.add(key)
        if key == ("a", 4) and is_new:
            self.fail(tup)
        elif key == ("c", 0):
            self.held[key] = tup
        else:
            for each in [*([self.held.pop(("c", 0))] if key == ("c", 1) else []), tup]:
                self.emit(each.values, anchors=each)
                self.ack(each)


def noted(folder: Path, what: str) -> Counter[str]:
    return Counter((folder / what).read_text().splitlines() if (folder / what).exists() else ())


def rows(folder: Path) -> Counter[tuple[str, int]]:
    found = [json.loads(line) for path in (folder / "out").glob("*.json") for line in path.read_text().splitlines()]
    tasks = {row["shard"]: row["task"] for row in found}
    assert [row["task"] for row in found] == [tasks[row["shard"]] for row in found], "one task reads a shard"
    return Counter((row["shard"], row["n"]) for row in found)


def run_until_acked(spark: Any, folder: Path, ends: dict[str, int], tasks: int, *wanted: str) -> None:
    """Runs the topology over shards of these lengths until some ranges are acked."""
    (folder / "ends").write_text(json.dumps(ends))
    top = ps.Topology("shards", config={"topology.message.timeout.secs": 600})
    top.spout("shards", Shards(folder), parallelism=tasks)
    top.bolt("fussy", Fussy()).global_("shards")
    top.sink("out", ps.write_files(folder / "out", "json"), from_="fussy")
    run = run_live(top.graph, spark, RunSpec(checkpoint=folder / "checkpoint", duration=600))

    def stop() -> None:
        try:
            wait_until(lambda: noted(folder, "acked").keys() >= {*wanted})
        finally:
            run.ask_to_stop()

    beside = threading.Thread(target=stop)
    beside.start()
    run.wait()
    beside.join()


def test_ranges_are_acked_or_read_again_and_a_second_run_goes_on(penstock_spark: Any, tmp_path: Path) -> None:
    run_until_acked(penstock_spark, tmp_path, {"a": 7, "b": 2, "c": 1}, 2, "a 0 3", "a 3 6", "a 6 7", "b 0 2")
    assert noted(tmp_path, "read") == Counter({"a 0 3": 1, "a 3 6": 2, "a 6 7": 1, "b 0 2": 2, "c 0 1": 1})
    assert "c 0 1" not in noted(tmp_path, "acked"), "a bolt holds its record"
    first = Counter({**{("a", n): 1 for n in range(7)}, ("a", 3): 2, ("a", 5): 2, ("b", 0): 1, ("b", 1): 1})
    assert rows(tmp_path) == first
    run_until_acked(penstock_spark, tmp_path, {"a": 8, "c": 2, "d": 1}, 1, "a 7 8", "c 0 1", "c 1 2", "d 0 1")
    assert set(noted(tmp_path, "acked").values()) == {1}
    assert rows(tmp_path) == first + Counter([("a", 7), ("c", 0), ("c", 1), ("d", 0)])
    assert noted(tmp_path, "read")["a 0 3"] == 1
