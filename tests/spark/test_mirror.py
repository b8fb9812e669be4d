"""Spark's directory is built of what the shared storage has; what Spark notes goes there before a batch is shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.spark.checkpoint.mirror import TICK, LogMirror
from penstock.spark.checkpoint.offsets import OffsetLog
from penstock.spark.checkpoint.sparklog import OWN, SparkLog, uri
from penstock.storage import Conflict, exists, make_directory, mounted, names_under, open_storage
from penstock.storage.lease import LeaseLost
from tests.storage.objects import ObjectStorage

FED, TICKED, OUTSIDE = 0, 1, 2


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "bucket", ObjectStorage()) as there:
        yield there


class Driver:
    """What Spark and the flow do in a working directory."""

    def __init__(self, shared: Path, work: Path, epoch: int = 1) -> None:
        self.mirror, self.work = LogMirror(shared, work, epoch), work
        self.mirror.build()

    def note(self, batch: int) -> None:
        """Spark notes a batch: a file of a feed, a tick, and a file of the user's."""
        files = {FED: uri(self.work) + f"sources/in/feed/feed-{batch:09d}.parquet"}
        files |= {TICKED: uri(self.work) + f"ticks/tick-{batch}", OUTSIDE: f"file:///data/{batch}.json"}
        for source, path in files.items():
            entry = json.dumps({"path": path, "timestamp": 1, "batchId": batch})
            self.write(f"spark/sources/{source}/{batch}", f"v1\n{entry}")
        self.write("spark/metadata", '{"id":"x"}')
        self.write(f"spark/offsets/{batch}", "\n".join(["v1", "{}", *[f'{{"logOffset":{batch}}}'] * 3]))

    def run(self, batch: int, *, through: bool = True) -> None:
        """A batch."""
        if not (self.work / "spark" / "offsets" / str(batch)).exists():
            self.note(batch)
        self.mirror.begin(batch)
        if through:
            self.mirror.finish(batch)
            self.write(f"spark/commits/{batch}", "v1\n{}")

    def write(self, name: str, text: str) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def log(self) -> OffsetLog:
        return OffsetLog(self.work / "spark", self.work)


def test_another_driver_finds_the_batch_that_had_begun_under_its_own_paths(shared: Path, tmp_path: Path) -> None:
    one = Driver(shared, tmp_path / "one")
    one.run(0)
    one.run(1, through=False)
    kept = open_storage(shared).read(f"spark/sources/{FED}/1").decode()
    assert f'"{OWN}sources/in/feed/feed-000000001.parquet"' in kept
    other = Driver(shared, tmp_path / "other", epoch=2)
    log = SparkLog(other.work / "spark")
    log.check(3)
    assert (log.last(), log.begun(), log.offsets(1)) == (0, 1, one.log.offsets(1))
    assert uri(other.work) in (other.work / f"spark/sources/{FED}/1").read_text()
    assert "file:///data/1.json" in (other.work / f"spark/sources/{OUTSIDE}/1").read_text()
    assert (other.work / "spark" / "metadata").read_text() == '{"id":"x"}'
    assert one.log.fingerprint(1) == other.log.fingerprint(1)


def test_ticks_of_the_batch_that_had_begun_are_made_anew(shared: Path, tmp_path: Path) -> None:
    one = Driver(shared, tmp_path / "one")
    one.run(0)
    one.run(1, through=False)
    other = Driver(shared, tmp_path / "other", epoch=2)
    assert [(p.name, p.read_bytes()) for p in (other.work / "ticks").iterdir()] == [("tick-1", TICK)]


def test_a_batch_that_another_has_begun_or_finished_is_refused(shared: Path, tmp_path: Path) -> None:
    one, other = Driver(shared, tmp_path / "one"), Driver(shared, tmp_path / "other", epoch=2)
    one.run(0)
    other.write("spark/offsets/0", "v1\n{}\n7")
    with pytest.raises(LeaseLost, match="another driver of this flow has written spark/offsets/0"):
        other.run(0)
    third = Driver(shared, tmp_path / "third", epoch=3)
    fourth = Driver(shared, tmp_path / "fourth", epoch=4)
    for driver in (third, fourth):
        driver.write("spark/offsets/1", "v1\n{}\n1")
        driver.mirror.begin(1)
    fourth.mirror.finish(1)
    with pytest.raises(LeaseLost, match="spark/commits/1"):
        third.mirror.finish(1)


def test_what_a_source_is_fed_is_durable_first_and_comes_back(shared: Path, tmp_path: Path) -> None:
    one = Driver(shared, tmp_path / "one")
    feed = one.mirror.mirrored("sources")
    feed.write("in/stand-000000000.pickle", b"stood")
    feed.write("in/feed/feed-000000000.parquet", b"tuples")
    feed.write("in/pace", b"500")
    feed.write("in/stand-000000001.pickle", b"never given")
    assert not exists(open_storage(shared), "sources/in/pace")
    other = Driver(shared, tmp_path / "other", epoch=2)
    again = other.mirror.mirrored("sources")
    assert names_under(again, "") == ["in/feed/feed-000000000.parquet", "in/stand-000000000.pickle"]
    again.write("in/stand-000000001.pickle", b"given")
    again.write("in/feed/feed-000000001.parquet", b"more")
    with pytest.raises(Conflict, match="written by another driver"):
        feed.write("in/feed/feed-000000001.parquet", b"other")
    again.delete("in/feed/feed-000000000.parquet")
    assert not exists(open_storage(shared), "sources/in/feed/feed-000000000.parquet")


def test_what_comes_back_has_the_date_that_spark_has_noted_or_one_of_today(shared: Path, tmp_path: Path) -> None:
    """Spark forgets what is a week older than the newest file, and would read it again if it were younger than noted."""
    for batch in (2, 0, 1):
        open_storage(shared).write(f"sources/in/feed/feed-{batch:09d}.parquet", b"1")
    open_storage(shared).write("sources/made/items/part-000001-a.parquet", b"1")
    Driver(shared, tmp_path / "one").run(0)
    other = Driver(shared, tmp_path / "other", epoch=2)
    read, *unread = [p.stat().st_mtime for p in sorted((other.work / "sources" / "in" / "feed").iterdir())]
    assert read == 0.001
    assert time.time() - 600 < unread[0] < unread[1] <= time.time()
    assert (other.work / "sources/made/items/part-000001-a.parquet").stat().st_mtime == 1_000_000_001


def test_directories_that_spark_reads_are_made_where_the_copy_is(shared: Path, tmp_path: Path) -> None:
    one = Driver(shared, tmp_path / "one")
    with mounted(one.work / "loops", one.mirror.mirrored("loops")):
        make_directory(one.work / "loops" / "back")
    make_directory(shared / "loops" / "back")
    assert (one.work / "loops" / "back").is_dir()
    assert not shared.exists()


def test_what_goes_round_a_loop_is_kept_with_its_batch_and_dropped_without(shared: Path, tmp_path: Path) -> None:
    one = Driver(shared, tmp_path / "one")
    one.write("loops/back/back-00000000-a.parquet", "0")
    one.run(0)
    one.run(1, through=False)
    open_storage(shared).write("loops/back/back-00000001-a.parquet", b"1")
    other = Driver(shared, tmp_path / "other", epoch=2)
    assert [p.name for p in (other.work / "loops" / "back").iterdir()] == ["back-00000000-a.parquet"]
    assert names_under(open_storage(shared), "loops/") == ["loops/back/back-00000000-a.parquet"]
    other.write("loops/back/back-00000001-b.parquet", "1")
    other.run(1)
    assert exists(open_storage(shared), "loops/back/back-00000001-b.parquet")


def test_what_spark_drops_from_its_log_is_dropped(shared: Path, tmp_path: Path) -> None:
    one = Driver(shared, tmp_path / "one")
    for batch in range(3):
        one.run(batch)
    for name in ("offsets/0", "commits/0", "commits/2"):  # Spark has not come to the newest commit yet
        (one.work / "spark" / name).unlink()
    one.mirror.sweep()
    left = names_under(open_storage(shared), "spark/offsets/") + names_under(open_storage(shared), "spark/commits/")
    assert left == [f"spark/{name}" for name in ("offsets/1", "offsets/2", "commits/1", "commits/2")]


def test_a_driver_that_may_not_write_puts_nothing(shared: Path, tmp_path: Path) -> None:
    def lost() -> None:
        raise LeaseLost("lost")

    one = Driver(shared, tmp_path / "one")
    one.mirror.check = lost
    one.note(0)
    with pytest.raises(LeaseLost):
        one.mirror.begin(0)
    with pytest.raises(LeaseLost):
        one.mirror.mirrored("sources").write("in/feed/feed-000000000.parquet", b"1")
    assert names_under(open_storage(shared), "") == []


def test_a_driver_that_was_replaced_deletes_nothing_of_one_that_has_started_over(shared: Path, tmp_path: Path) -> None:
    """The names of its first batches are those that the other has written anew."""

    def lost() -> None:
        raise LeaseLost("lost")

    one = Driver(shared, tmp_path / "one")
    one.run(0)
    one.mirror.mirrored("sources").write("in/feed/feed-000000000.parquet", b"1")
    (one.work / "spark" / "offsets" / "0").unlink()
    one.mirror.check = lost
    before = names_under(open_storage(shared), "")
    with pytest.raises(LeaseLost):
        one.mirror.sweep()
    with pytest.raises(LeaseLost):
        one.mirror.mirrored("sources").delete("in/feed/feed-000000000.parquet")
    assert names_under(open_storage(shared), "") == before


def test_what_a_spout_knows_of_its_messages_is_that_of_one_driver(shared: Path, tmp_path: Path) -> None:
    """A driver that was paused, and wakes after another took over, changes neither the ids of messages nor where the spout stands after acks."""
    one = Driver(shared, tmp_path / "one")
    feed = one.mirror.mirrored("sources")
    feed.write("in/feed/feed-000000000.parquet", b"tuples")
    feed.write("in/settled-000000000.pickle", b"none is acked")
    feed.write("in/settled-000000000.pickle", b"one is acked")
    feed.write("in/ids-000000001.pickle", b"of tuples that were never kept")
    again = Driver(shared, tmp_path / "other", epoch=2).mirror.mirrored("sources")
    again.write("in/settled-000000000.pickle", b"one is acked, one has failed")
    again.write("in/ids-000000001.pickle", b"messages")
    for name in ("in/settled-000000000.pickle", "in/ids-000000001.pickle"):
        kept = again.read(name)
        with pytest.raises(Conflict, match="written by another driver"):
            feed.write(name, b"two are acked")
        assert open_storage(shared).read(f"sources/{name}") == kept == again.read(name)
