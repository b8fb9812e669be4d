"""Bugs of the embedded log and of the bridge before it. No JVM."""

from __future__ import annotations

from functools import partial
from typing import Any

from penstock.bridge.intake import Intake
from penstock.log import Log
from penstock.log.produce.identity import Identity
from penstock.log.produce.sequences import Sequences
from penstock.log.produce.writer import Writer
from penstock.log.storage.batch import HEADER_SIZE, Batch, read_batch, read_header
from penstock.log.storage.files import File, sync_dir
from tests.bridge import test_http
from tests.log import test_damage, test_power_loss, test_producer
from tests.log.helpers import fill
from tests.planted.plant import Bug, Check, Room, function, method, nothing

LOST = "were acknowledged"
synced = File.sync


def early_answer(self: Writer, tail: Any, end: int, parts: list[bytes]) -> None:
    """The fsync is made, but with the next append: after the answer."""
    assert self._file is not None
    assert self._marks is not None
    self._file.sync()
    after = self._file.write(parts, tail.position)
    self._marks.write(tail.mark._replace(end=end, position=after))


def no_fsync(self: File) -> None:
    if self.path.suffix != ".log":
        synced(self)


def no_checksum(right: Any, buffer: Any, at: int, tag: int, position: int, since: int = 0) -> Batch:
    header = read_header(buffer, at, tag)
    return Batch(header, memoryview(buffer)[at + HEADER_SIZE : at + header.size], position, since)


def answer_first(self: Intake) -> None:
    while group := self._next():
        self._tell(partial(self._settle, group))
        self._commit(group)
    self._tell(self._ended.set)


def power_loss(room: Room) -> None:
    test_power_loss.survives(room.path, rounds=14, images=4, seed=1)


def flips(room: Room) -> None:
    test_damage.test_every_single_bit_flip_of_a_segment_is_found_by_readers(small_log(room))


def torn(room: Room) -> None:
    test_damage.test_a_long_torn_write_leaves_nothing_behind_a_short_one(small_log(room))


def small_log(room: Room) -> Any:
    """A closed log with one segment of three batches of two records."""
    with Log(room.path / "made") as log:
        log.create_topic("t")
        return room.path / "made", fill(log, 3)


def with_log(test: Any) -> Check:
    """A test of the log or the bridge that wants an open one."""

    def check(room: Room) -> None:
        with Log(room.path / "log") as log:
            if test.__module__ == test_http.__name__:
                log.create_topic("t")
            test(log)

    return check


BUGS = [
    Bug("the log answers before the fsync", method(Writer, "_write", early_answer), power_loss, LOST),
    Bug("a segment is not synced at all", method(File, "sync", no_fsync), power_loss, LOST),
    Bug("the directory is not synced", function(sync_dir, nothing), power_loss, LOST),
    Bug("the reader ignores the CRC", function(read_batch, no_checksum), flips, "was not noticed"),
    Bug("a torn tail is not cut", method(File, "truncate", nothing), torn, "Damage"),
    Bug(
        "a batch that is sent again is appended again",
        method(Sequences, "check", nothing),
        with_log(test_producer.test_a_retried_batch_is_recognised),
        r"\(2, 2, False\) == \(0, 2, True\)",
    ),
    Bug(
        "an older producer of a name is not fenced",
        method(Identity, "check", nothing),
        lambda room: test_producer.test_an_older_producer_of_a_name_is_fenced_at_once(room.path),
        "DID NOT RAISE .*ProducerFenced",
    ),
    Bug(
        "the bridge answers before the fsync",
        method(Intake, "_run", answer_first),
        with_log(test_http.test_no_answer_before_the_record_is_on_disk),
        r"\[200\] == \[\]",
    ),
]
