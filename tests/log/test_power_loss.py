"""After a power loss at any moment, all that was acknowledged is there: every fsync that is needed is made, and before the answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.log.record import TopicPartition
from penstock.log.storage import files
from penstock.log.storage.files import Call
from tests.log.disk import Disk
from tests.log.helpers import values


@contextmanager
def watched(path: Path) -> Iterator[Disk]:
    """Write down every call that changes the disk."""
    disk = Disk(path)
    files.watch(disk.note)
    try:
        yield disk
    finally:
        files.watch(None)


def each_moment(disk: Disk, target: Path, images: int, seed: int) -> Iterator[Call | None]:
    """Perform the calls one by one; after each, make images of what a power loss would leave."""
    chance = random.Random(seed)
    for call in disk.calls:
        if call.op == "reported":
            yield call
            continue
        disk.perform(call)
        for _ in range(images):
            disk.lose_power(target, chance)
            yield None


def write_and_tell(log: Log, disk: Disk, rounds: int) -> None:
    following = 0
    with log.producer() as producer:
        for number in range(rounds):
            several = [b"%d" % n for n in range(following, following + 1 + number % 3)]
            producer.send_many("t", several)
            following += len(several)
            disk.note(Call("reported", "", following))


def survives(fast_path: Path, rounds: int, images: int, seed: int) -> None:
    with Log(fast_path / "log") as log:
        log.create_topic("t", segment_bytes=400)
        with watched(fast_path / "log") as disk:
            write_and_tell(log, disk, rounds)
    reported = 0
    for call in each_moment(disk, fast_path / "left", images, seed):
        if call is not None:
            reported = call.offset
            continue
        with Log(fast_path / "left") as left:
            assert left.verify() == [], f"{reported} were acknowledged, and there is damage (seed {seed})"
            found = values(left)
            assert len(found) >= reported, f"{reported} were acknowledged, {len(found)} are left (seed {seed})"
            assert found == [b"%d" % n for n in range(len(found))]
            with left.producer() as producer:
                assert producer.send_many("t", [b"more"])[0].offset == len(found)


def test_what_was_acknowledged_is_there_after_a_power_loss(fast_path: Path) -> None:
    survives(fast_path, rounds=14, images=6, seed=random.randrange(1000))


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_many_power_losses(fast_path: Path) -> None:
    for seed in range(10):
        survives(fast_path / str(seed), rounds=25, images=6, seed=seed)


def test_a_committed_offset_is_there_after_a_power_loss(fast_path: Path) -> None:
    partition = TopicPartition("t", 0)
    with Log(fast_path / "log") as log:
        log.create_topic("t")
        with log.producer() as producer:
            producer.send_many("t", [b"x"] * 20)
        log.groups.commit("g", {partition: 0})
        with watched(fast_path / "log") as disk:
            for offset in range(1, 6):
                log.groups.commit("g", {partition: offset})
                disk.note(Call("reported", "", offset))
    reported = 0
    for call in each_moment(disk, fast_path / "left", 5, 3):
        if call is not None:
            reported = call.offset
            continue
        with Log(fast_path / "left") as left:
            assert left.groups.committed("g")[partition] in (reported, reported + 1)


def test_compaction_loses_no_key_in_a_power_loss(fast_path: Path) -> None:
    with Log(fast_path / "log") as log:
        log.create_topic("t", cleanup="compact", segment_bytes=600)
        with log.producer() as producer:
            for n in range(40):
                producer.send_many("t", [b"%d" % n], keys=[b"k%d" % (n * 7 % 10)])
        with watched(fast_path / "log") as disk:
            log.clean()
        expected = {r.key: r.value for r in log.read("t", 0, 0)}
        assert len(log.read("t", 0, 0)) == 10
    for _ in each_moment(disk, fast_path / "left", 5, 4):
        with Log(fast_path / "left") as left:
            assert {r.key: r.value for r in left.read("t", 0, 0)} == expected
            assert left.verify() == []
            left.clean()
            assert len(left.read("t", 0, 0)) == 10
