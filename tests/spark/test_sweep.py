"""What sources of the flow's own process have put on disk goes when no batch can need it, and not before."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import SourceContext
from penstock.connectors.process.feed import Feed, FeedSource
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.spark.checkpoint import sweep
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.savepoint import take
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.spark.checkpoint.sweep import EVERY, Sweeper
from penstock.spark.run import run_live
from penstock.state.store import StateStore
from penstock.storage import LocalStorage
from tests.spark.checkpoints import WANTED, batch, begin

KEEP = 4
STATELESS = FlowLayout("shop", WANTED.sources, {})


def feeds(folder: Path) -> dict[int, Path]:
    return {index: folder / "sources" / name / "feed" for index, (name, _) in enumerate(WANTED.sources)}


def sweeper(folder: Path, *, state: bool = True) -> Sweeper:
    return Sweeper(SparkLog(folder / "spark"), StateStore(LocalStorage(folder / "state")) if state else None)


def left(folder: Path, source: str = "one") -> list[int]:
    """The numbers of the files that a source still has."""
    return sorted(int(p.stem.split("-")[1]) for p in (folder / "sources" / source / "feed").glob("feed-*"))


def compacted(folder: Path, every: int = 10) -> None:
    """Puts the log of each source together as Spark does, and removes what was put together."""
    for log in (folder / "spark" / "sources").iterdir():
        last = max(int(p.name) for p in log.iterdir() if p.name.isdigit())
        whole = last // every * every - 1
        lines = [(log / str(n)).read_text().split("\n")[1] for n in range(whole + 1)]
        (log / f"{whole}.compact").write_text("\n".join(["v1", *lines]))
        for n in range(whole + 1):
            (log / str(n)).unlink()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flow that has run 26 batches and keeps four versions of its state."""
    folder = begin(tmp_path_factory.mktemp("sweep") / "shop")
    for number in range(26):
        batch(folder, number, {"a": 1}, keep=KEEP)
    return folder


@pytest.fixture
def ran(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "shop"))


def test_the_number_of_files_stays_bounded(tmp_path: Path) -> None:
    folder = begin(tmp_path / "shop")
    sweeps = sweeper(folder)
    for number in range(40):
        batch(folder, number, {"a": 1}, keep=KEEP)
        sweeps.sweep(feeds(folder))
        assert len(left(folder)) <= KEEP + EVERY
        assert set(left(folder, "two")) >= set(range(max(0, number - KEEP + 2), number + 1))


def test_what_a_kept_version_needs_stays(ran: Path) -> None:
    """From the oldest version on everything behind it is still there, also for a savepoint."""
    sweeper(ran).sweep(feeds(ran))
    oldest = StateStore(LocalStorage(ran / "state")).versions()[0]
    assert left(ran) == left(ran, "two") == list(range(oldest + 1, 26))
    saved = take(ran, ran.parent / "saved", oldest)
    assert left(Path(str(saved.folder))) == list(range(oldest + 1, 26))


def test_without_state_the_offsets_that_spark_keeps_decide(tmp_path: Path) -> None:
    folder = begin(tmp_path / "shop", STATELESS)
    for number in range(26):
        batch(folder, number, {})
    sweeper(folder, state=False).sweep(feeds(folder))
    assert left(folder) == list(range(1, 26))
    for number, part in itertools.product(range(15), ("offsets", "commits")):
        (folder / "spark" / part / str(number)).unlink()
    sweeper(folder, state=False).sweep(feeds(folder))
    assert left(folder) == list(range(16, 26))


def test_offsets_that_are_gone_before_their_commits_do_no_harm(ran: Path) -> None:
    """Spark removes the offsets of old batches first; it may be killed in between."""
    for number in range(24):
        (ran / "spark" / "offsets" / str(number)).unlink()
    sweeper(ran).sweep(feeds(ran))
    assert left(ran) == [25]


def test_a_log_that_spark_has_put_together_is_understood(ran: Path) -> None:
    compacted(ran)
    sweeper(ran).sweep(feeds(ran))
    assert left(ran) == list(range(23, 26))


def test_a_log_that_was_put_together_later_tells_what_was_read_before(tmp_path: Path) -> None:
    folder = begin(tmp_path / "shop")
    for number in range(31):
        batch(folder, number, {"a": 1}, keep=12)
    compacted(folder)
    sweeper(folder).sweep(feeds(folder))
    assert left(folder) == list(range(20, 31))


def test_a_file_that_no_batch_has_read_stays(ran: Path) -> None:
    feed = ran / "sources" / "one" / "feed"
    shutil.copy(feed / f"feed-{3:09d}.parquet", feed / f"feed-{0:09d}5.parquet")
    shutil.copy(feed / f"feed-{3:09d}.parquet", feed / f"feed-{77:09d}.parquet")
    sweeper(ran).sweep(feeds(ran))
    assert left(ran) == [5, *range(23, 26), 77]


def test_the_newest_file_stays_so_that_no_name_is_used_twice(ran: Path) -> None:
    """Spark takes a name that it has seen for a file that it has read."""
    log = ran / "spark" / "sources" / "0"
    everything = [json.loads((log / str(n)).read_text().split("\n")[1]) | {"batchId": 1} for n in range(26)]
    (log / "29.compact").write_text("\n".join(["v1", *map(json.dumps, everything)]))
    sweeper(ran).sweep(feeds(ran))
    assert left(ran) == [25]
    assert Feed(feeds(ran)[0], schema_of("x int")).number == 26


def test_a_log_that_is_gone_removes_nothing(ran: Path) -> None:
    shutil.rmtree(ran / "spark" / "sources")
    sweeper(ran).sweep(feeds(ran))
    assert left(ran) == list(range(26))


class Killed(BaseException):
    """Stands for kill -9."""


@pytest.mark.parametrize("at", range(1, 60, 7))
def test_a_kill_between_any_two_removals_does_no_harm(ran: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, unlink = itertools.count(1), Path.unlink

    def dying(path: Path, missing_ok: bool = False) -> None:
        if next(calls) == at:
            raise Killed
        unlink(path, missing_ok)

    with monkeypatch.context() as planted:
        planted.setattr(Path, "unlink", dying)
        try:
            sweeper(ran).sweep(feeds(ran))
        except Killed:
            assert set(left(ran)) >= set(range(23, 26))
    sweeper(ran).sweep(feeds(ran))
    assert left(ran) == left(ran, "two") == list(range(23, 26))


class Numbers(FeedSource):
    """Counts up, a number for each file."""

    pause = 0.0

    def pull(self, context: SourceContext) -> Iterator[Any]:
        for n in itertools.count():
            yield (n,)
            time.sleep(0.1)


def around() -> ps.Flow:
    """Numbers that come in, and go round for ever, counted."""
    flow = ps.Flow("around")
    numbers = flow.source("numbers", ps.connector(Numbers(), schema="n bigint"))
    again = flow.feedback("again", "n bigint")
    both = numbers.where("few", "n < 5").union("both", again)
    flow.feed(again, both.map("same", lambda row: row))
    both.key_by("n").count("times").sink("out", ps.console())
    numbers.sink("all", ps.callback(lambda rows, batch: SEEN.extend(r.n for r in rows)))
    return flow


SEEN: list[int] = []


@pytest.mark.spark
def test_many_small_batches_leave_few_files_and_lose_nothing(
    penstock_spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SEEN.clear()
    monkeypatch.setattr(sweep, "EVERY", 2)
    penstock_spark.conf.set("spark.sql.streaming.minBatchesToRetain", "3")
    try:
        for _ in range(2):
            options = RunSpec(checkpoint=tmp_path, batches=7, keep_versions=3, parallelism=1, duration=300)
            run_live(around().graph, penstock_spark, options).wait(pause=0.02)
    finally:
        penstock_spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
    rounds = [int(p.name.split("-")[1]) for p in (tmp_path / "loops" / "again").glob("*.parquet")]
    assert min(rounds) >= 14 - 3 - 2 - 1
    assert left(tmp_path, "numbers")[0] > 0
    assert SEEN[: SEEN.index(0, 1)] == list(range(SEEN.index(0, 1))), "nothing is lost, nothing comes twice"
