"""Ledgers, fences, and a checkpoint that is brought in line with them. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import penstock as ps
from penstock.connectors.base import Batch, SinkConnector, StagedBatch
from penstock.connectors.delivery import SKIP, WRITE, Entry, verdict
from penstock.connectors.files.disk import LocalDisk
from penstock.connectors.files.manifests import BatchFile, Manifests, committed_by_folder, committed_files, entry_of
from penstock.errors import DeliveryError, FlowError
from penstock.spark.batch.sinks import Sinks, reconcile
from penstock.spark.checkpoint.offsets import OffsetLog

HEAD = 'v1\n{"batchTimestampMs":%d}\n'


def checkpoint(folder: Path, planned: int, done: int) -> OffsetLog:
    """A Spark checkpoint with batches planned and done up to those numbers."""
    for part, last in (("offsets", planned), ("commits", done)):
        (folder / part).mkdir(parents=True)
        for batch in range(last + 1):
            (folder / part / str(batch)).write_text(HEAD % batch + f'{{"a":{batch * 10}}}')
            (folder / part / f".{batch}.crc").write_bytes(b"crc")
    return OffsetLog(folder)


def test_a_batch_is_written_once_and_then_skipped() -> None:
    about = Batch(3, "out", fingerprint="f3")
    assert verdict(None, about, 1) == WRITE
    assert verdict(Entry(2, "f2", 1), about, 1) == WRITE
    assert verdict(Entry(3, "f3", 1), about, 2) == SKIP


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (Entry(3, "other", 1), "made of other offsets"),
        (Entry(4, "f4", 1), "older than the sink"),
        (Entry(2, "f2", 9), "another driver of this flow has taken over"),
        (Entry(1, "f1", 1), "older than the checkpoint"),
    ],
)
def test_what_does_not_fit_is_refused(entry: Entry, text: str) -> None:
    with pytest.raises(DeliveryError, match=text):
        verdict(entry, Batch(3, "out", fingerprint="f3"), 1)


def test_the_fingerprint_is_of_the_offsets_alone(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 3, 3)
    before = log.fingerprint(2)
    path = tmp_path / "offsets" / "2"
    path.write_text(path.read_text().replace('"batchTimestampMs":2', '"batchTimestampMs":99'))
    assert log.fingerprint(2) == before
    path.write_text(path.read_text().replace('{"a":20}', '{"a":21}'))
    assert log.fingerprint(2) != before
    assert log.fingerprint(3) != OffsetLog(tmp_path).fingerprint(2)


def test_the_fingerprint_knows_the_files_of_a_file_source(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 0, -1)
    (tmp_path / "offsets" / "0").write_text(HEAD % 0 + '{"logOffset":0}')
    (tmp_path / "sources" / "0").mkdir(parents=True)
    listed = tmp_path / "sources" / "0" / "0"
    listed.write_text('v1\n{"path":"a.txt"}')
    before = log.fingerprint(0)
    listed.write_text('v1\n{"path":"b.txt"}')
    assert log.fingerprint(0) != before


def test_a_ledger_ahead_gives_back_lost_offsets(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 4, 4)
    lost = HEAD % 5 + '{"a":50}'
    assert any("written again" in done for done in reconcile({"out": Entry(5, "f", 1, offsets=lost)}, log, []))
    assert log.text(5) == lost
    assert log.last() == 4


def test_a_ledger_far_ahead_is_refused(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 4, 4)
    with pytest.raises(DeliveryError, match="older than the sink"):
        list(reconcile({"out": Entry(9, "f", 1, offsets="x")}, log, []))


def test_a_sink_from_a_backup_rewinds_the_checkpoint(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 6, 6)
    assert any("goes back to batch 3" in done for done in reconcile({"out": Entry(3, "f", 1)}, log, [2, 3, 4, 5, 6]))
    assert log.last() == 3
    assert log.begun() == 4
    assert not (tmp_path / "offsets" / ".5.crc").exists()


def test_a_sink_older_than_the_kept_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match="state of batch 1 is not kept"):
        list(reconcile({"out": Entry(1, "f", 1)}, checkpoint(tmp_path, 6, 6), [4, 5, 6]))


def test_sinks_at_different_places_are_refused(tmp_path: Path) -> None:
    entries = {"one": Entry(3, "f", 1), "two": Entry(6, "f", 1)}
    with pytest.raises(DeliveryError, match="'two' is further on"):
        list(reconcile(entries, checkpoint(tmp_path, 6, 6), []))


def test_a_checkpoint_that_agrees_is_left_alone(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 6, 5)
    assert list(reconcile({"one": Entry(6, "f", 1), "two": Entry(5, "f", 1)}, log, [5, 6])) == []
    assert log.begun() == 6
    assert log.last() == 5


def test_a_manifest_appears_once_and_its_files_are_moved_later(tmp_path: Path) -> None:
    manifests = Manifests(LocalDisk(), str(tmp_path), "out", "life")
    (tmp_path / "_penstock" / "try").mkdir(parents=True)
    (tmp_path / "_penstock" / "try" / "part-0").write_text("rows")
    file = BatchFile("out-0.txt", "_penstock/try/part-0", 4, "")
    tail = manifests.tail()
    assert manifests.put(tail, Entry(0, "f", 1, 2), [file])
    assert not manifests.put(tail, Entry(0, "g", 1, 2), [])
    assert committed_files(str(tmp_path)) == [str(tmp_path / "_penstock/try/part-0")]
    last = manifests.tail().manifest
    assert last is not None
    assert entry_of(last) == Entry(0, "f", 1, 2)
    manifests.settle(last)
    assert committed_files(str(tmp_path)) == [str(tmp_path / "out-0.txt")]
    assert (tmp_path / "out-0.txt").read_text() == "rows"


def test_files_by_value_are_moved_into_their_folders(tmp_path: Path) -> None:
    manifests = Manifests(LocalDisk(), str(tmp_path), "out", "life")
    aside = tmp_path / "_penstock" / "try" / "k=1" / "part-0"
    aside.parent.mkdir(parents=True)
    aside.write_text("rows")
    named = BatchFile("k=1/out-0.txt", "_penstock/try/k=1/part-0", 4, "")
    assert manifests.put(manifests.tail(), Entry(0, "f", 1, 2), [named])
    assert committed_by_folder(str(tmp_path)) == {str(tmp_path / "_penstock/try"): [str(aside)]}
    manifests.settle(manifests.tail().manifest or {})
    assert committed_by_folder(str(tmp_path)) == {str(tmp_path): [str(tmp_path / "k=1/out-0.txt")]}
    assert LocalDisk().names(str(tmp_path), "out-", 1) == ["k=1/out-0.txt"]
    assert LocalDisk().names(str(tmp_path), "out-") == []


def test_a_ledger_that_is_gone_is_refused(tmp_path: Path) -> None:
    flow = ps.Flow("gone")
    flow.source("a", ps.items([], "x int")).sink("out", ps.write_files(tmp_path / "out"), delivery="exactly_once")
    sinks = Sinks(flow.graph, "life", tmp_path / "claims")
    assert sinks.open() == {}
    sinks.commit({"out": StagedBatch()}, 0)
    with pytest.raises(DeliveryError, match="its ledger is gone"):
        Sinks(flow.graph, "life", tmp_path / "claims").open()


class Noting(SinkConnector):
    """A sink that notes which batches it showed."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def stage(self, frame: Any, batch: Batch) -> StagedBatch:
        made = StagedBatch()
        made.commit = lambda: self.shown.append(batch.id)  # type: ignore[method-assign]  # the smallest of staged work
        return made


@pytest.mark.parametrize(("delivery", "shown"), [("at_most_once", [0, 1]), ("at_least_once", [0, 1, 1])])
def test_a_batch_that_runs_again_comes_at_most_once_where_that_is_asked(
    tmp_path: Path, delivery: str, shown: list[int]
) -> None:
    flow, sink, frame = ps.Flow("most"), Noting(), MagicMock()
    flow.source("a", ps.items([], "x int")).sink("out", ps.connector(sink), delivery=delivery)
    for batch in (0, 1, 1):
        sinks = Sinks(flow.graph, "life", tmp_path / "claims")
        sinks.commit({"out": sinks.stage(flow.graph.sinks[0], frame, batch)}, batch)
    assert sink.shown == shown


def test_of_two_drivers_that_show_a_batch_at_most_once_one_does(tmp_path: Path) -> None:
    flow, sink, frame = ps.Flow("most"), Noting(), MagicMock()
    flow.source("a", ps.items([], "x int")).sink("out", ps.connector(sink), delivery="at_most_once")
    drivers = [Sinks(flow.graph, "life", tmp_path / "claims") for _ in range(2)]
    staged = [driver.stage(flow.graph.sinks[0], frame, 0) for driver in drivers]
    drivers[0].commit({"out": staged[0]}, 0)
    with pytest.raises(DeliveryError, match="another driver has begun to write batch 0"):
        drivers[1].commit({"out": staged[1]}, 0)
    drivers[0].commit({"out": drivers[0].stage(flow.graph.sinks[0], frame, 1)}, 1)
    assert sink.shown == [0, 1]


def test_every_driver_gets_a_fence_of_its_own(tmp_path: Path) -> None:
    manifests = Manifests(LocalDisk(), str(tmp_path), "out", "life")
    assert [manifests.take_over() for _ in range(3)] == [1, 2, 3]


def test_a_manifest_is_refused_when_another_driver_has_taken_over_meanwhile(tmp_path: Path) -> None:
    manifests = Manifests(LocalDisk(), str(tmp_path), "out", "life")
    manifests.take_over()
    seen = manifests.tail()
    manifests.take_over()
    assert not manifests.put(seen, Entry(0, "f", 1, 2), [])
    assert committed_files(str(tmp_path)) == []


def test_a_batch_that_is_there_in_part_gives_its_offsets_to_the_checkpoint(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 2, 2)
    (said,) = reconcile({"out": Entry(3, "f", 1, offsets='v1\n{}\n{"a":35}', is_complete=False)}, log, [])
    assert "written again from the ledger" in said
    assert (log.begun(), log.last()) == (3, 2)
    assert '{"a":35}' in log.text(3)


def test_a_batch_that_is_there_in_part_is_not_taken_for_one_that_is_whole(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, 3, 3)
    (said,) = reconcile({"out": Entry(3, "f", 1, is_complete=False)}, log, [])
    assert "goes back to batch 2" in said


def test_exactly_once_is_refused_where_it_cannot_hold() -> None:
    flow = ps.Flow("no")
    stream = flow.source("a", ps.items([], "x int"))
    with pytest.raises(
        FlowError, match=r"sink 'out' .*cannot hold delivery='exactly_once': a terminal cannot take back"
    ):
        stream.sink("out", ps.console(), delivery="exactly_once")
    with pytest.raises(FlowError, match="no delivery 'exactly-once'; did you mean 'exactly_once'"):
        ps.Flow("no", delivery="exactly-once")
