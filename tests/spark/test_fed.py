"""What a flow has put into its checkpoint for its own sources, where tasks do not see the directory of the driver. No JVM."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.base import Batch
from penstock.connectors.process.fed import FedReader
from penstock.connectors.process.feed import Feed
from penstock.errors import SetupError
from penstock.graph.schema import schema_of
from penstock.spark.batch.loops import StagedLoop
from penstock.spark.checkpoint.entries import FedFiles
from penstock.spark.checkpoint.mirror import LogMirror
from penstock.spark.checkpoint.sparklog import SparkLog, uri
from penstock.spark.jvm import reach
from penstock.storage import MemoryStorage, Storage, mounted, names_under, open_storage
from penstock.storage.lease import LeaseLost
from tests.storage.objects import ObjectStorage


@contextmanager
def driver(shared: Path, work: Path) -> Iterator[LogMirror]:
    """A driver whose tasks are on other machines."""
    made = LogMirror(shared, work, epoch=1, is_apart=True)
    made.build()
    with mounted(work / "sources", made.mirrored("sources")), mounted(work / "loops", made.mirrored("loops")):
        yield made


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "bucket", ObjectStorage()) as there:
        yield there


def loop(work: Path, rows: list[int], batch: int = 3) -> StagedLoop:
    about = Batch(batch, "again", {"path": str(work / "loops" / "again")}, "life")
    return StagedLoop(about, pa.table({"n": pa.array(rows, pa.int64())}))


def test_the_working_directory_has_only_the_names_of_what_tasks_read(shared: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    with driver(shared, work):
        Feed(work / "sources" / "in" / "feed", schema_of("n bigint")).append([(1,), (2,)])
        open_storage(work / "sources" / "in").write("stand-000000000.pickle", b"where it stood")
        loop(work, [5]).commit()
        assert open_storage(work / "sources" / "in").read("stand-000000000.pickle") == b"where it stood"
    feed, back = "sources/in/feed/feed-000000000.parquet", "loops/again/again-00000003-life-00000.parquet"
    assert names_under(open_storage(shared), "") == [back, feed, "sources/in/stand-000000000.pickle"]
    assert (work / feed).stat().st_size == (work / back).stat().st_size == 0
    assert pq.read_table(pa.BufferReader(open_storage(shared).read(feed)))["n"].to_pylist() == [1, 2]
    open_storage(shared).write("spark/offsets/3", b"v1\n{}\n-")
    open_storage(shared).write("spark/commits/3", b"v1\n{}")
    other = tmp_path / "other"
    with driver(shared, other):
        assert (other / feed).stat().st_size == (other / back).stat().st_size == 0
        assert (other / "sources/in/stand-000000000.pickle").read_bytes() == b"where it stood"


def test_a_loop_gets_the_records_of_one_driver(shared: Path, tmp_path: Path) -> None:
    with driver(shared, tmp_path / "one"), driver(shared, tmp_path / "two") as other:
        loop(tmp_path / "one", [1, 2]).commit()
        loop(tmp_path / "one", [1, 2]).commit()
        with pytest.raises(LeaseLost):
            loop(tmp_path / "two", [2, 1]).commit()
        loop(tmp_path / "two", []).commit()
        other.finish(3)
    assert names_under(open_storage(shared), "loops/") == ["loops/again/again-00000003-life-00000.parquet"]


def entry(work: Path, number: int) -> str:
    return json.dumps(
        {"path": uri(work) + f"sources/a%20b/feed/feed-{number}.parquet", "timestamp": 1, "batchId": number}
    )


def test_a_batch_takes_the_files_between_its_offsets_also_from_a_log_that_was_put_together(tmp_path: Path) -> None:
    """Spark puts ten entries together; batches may take several entries, or none."""
    log = SparkLog(tmp_path / "spark")
    for number in range(12):
        name, numbers = (f"{number}.compact", range(10)) if number == 9 else (str(number), range(number, number + 1))
        if number >= 9 or number < 8:
            log.storage.write(f"sources/0/{name}", "\n".join(["v1", *(entry(tmp_path, n) for n in numbers)]).encode())
    ends = [0, 2, 2, 9, 11]
    for batch, end in enumerate(ends):
        offsets = [f'{{"logOffset":{end}}}', '{"topic":{"0":1}}', "-"]
        log.storage.write(f"offsets/{batch}", "\n".join(["v1", "{}", *offsets]).encode())
    fed = FedFiles(log, tmp_path)
    found = [fed.names(batch) for batch in range(len(ends))]
    taken = [[int(n.rpartition("-")[2].split(".")[0]) for n in each.get(0, [])] for each in found]
    assert taken == [[0], [1, 2], [], [3, 4, 5, 6, 7, 8, 9], [10, 11]]
    assert found[0] == {0: ["sources/a b/feed/feed-0.parquet"]}
    assert all(set(each) <= {0} for each in found)


class Added:
    """An accumulator in one process."""

    def __init__(self) -> None:
        self.value: dict[str, int] = {}

    def add(self, rows: dict[str, int]) -> None:
        self.value |= rows


def test_tasks_read_the_times_that_spark_has_written_and_count_a_file_once() -> None:
    storage: Storage = MemoryStorage()
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"x": ["a"], "ts": pa.array([at], pa.timestamp("us", "UTC"))}),
        sink,
        use_deprecated_int96_timestamps=True,
    )
    storage.write("loop.parquet", bytes(memoryview(sink.getvalue())))
    counted: Any = Added()
    reader = FedReader(storage, ("loop.parquet",), schema_of("ts timestamp, x string"), counted)
    for _ in range(2):
        (batch,) = reader([pa.RecordBatch.from_pydict({"id": pa.array([0], pa.int64())})])
        assert batch.to_pylist() == [{"ts": at, "x": "a"}]
    assert counted.value == {"loop.parquet": 1}


def test_a_directory_that_workers_do_not_see_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task answers is asked here in this process, once with the file and once without."""
    session: Any = None
    monkeypatch.setattr(reach, "runs_here", lambda spark: False)
    monkeypatch.setattr(reach, "_asked", lambda spark, look: look(0))
    reach.check_reach(session, tmp_path / "seen", "the checkpoint")
    assert list((tmp_path / "seen").iterdir()) == []
    right = reach._looker
    monkeypatch.setattr(reach, "_looker", lambda path, token: right(f"{path}.elsewhere", token))
    with pytest.raises(SetupError, match=r"the checkpoint is kept in .* do not see.*--checkpoint s3://bucket/flow"):
        reach.check_reach(session, tmp_path / "unseen", "the checkpoint")
