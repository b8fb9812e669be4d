"""Several processes write and read one log at the same time."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.log.storage import files
from penstock.log.storage.files import FileLock
from tests.log.helpers import run_python, values
from tests.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

WRITE = """
import sys
from penstock.log import Log
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Log(path) as log, log.producer() as producer:
    for n in range(count):
        producer.send_many("t", [f"{name} {n} {i}".encode() for i in range(3)])
"""

CONSUME = """
import sys, time
from penstock.log import Log
with Log(sys.argv[1]) as log, log.consumer("g", "t") as consumer:
    while True:
        for record in consumer.poll(10, timeout=0.1):
            print(record.partition, record.offset, record.value.decode(), flush=True)
        consumer.commit()
        print("at", *(p.partition for p in consumer.assignment()), flush=True)
"""


def test_two_processes_append_at_once(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", segment_bytes=4000)
    writers = [run_python(WRITE, tmp_path, name, 60, wait=False) for name in "ab"]
    with Log(tmp_path) as log, log.producer() as producer, log.consumer(None, "t") as consumer:
        seen = []
        for n in range(40):
            producer.send_many("t", [f"c {n} {i}".encode() for i in range(3)])
            seen += consumer.poll()
        for writer in writers:
            writer.communicate()
            assert writer.returncode == 0
        while batch := consumer.poll():
            seen += batch
        found = [(v or b"").decode().split() for v in values(log)]
        assert [r.value for r in seen] == values(log)
        assert log.verify() == []
    for name, count in (("a", 60), ("b", 60), ("c", 40)):
        mine = [(int(n), int(i)) for who, n, i in found if who == name]
        assert mine == [(n, i) for n in range(count) for i in range(3)]
    batches = [found[at : at + 3] for at in range(0, len(found), 3)]
    assert all(len({(who, n) for who, n, _ in batch}) == 1 for batch in batches)


def test_a_reader_sees_whole_batches_in_order_while_a_writer_writes(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", segment_bytes=3000)
    writer = run_python(WRITE, tmp_path, "a", 150, wait=False)
    seen = 0
    with Log(tmp_path) as log:
        while writer.poll() is None or seen < log.offsets("t")[0][1]:
            records = log.read("t", 0, seen)
            assert [r.offset for r in records] == list(range(seen, seen + len(records)))
            assert len(records) % 3 == 0
            seen += len(records)
    writer.communicate()
    assert seen == 450


def test_a_log_opened_before_a_fork_works_on_both_sides(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t")
        producer = log.producer()
        producer.send_many("t", [b"before"])

        def child() -> None:
            for n in range(20):
                log.producer().send_many("t", [b"child %d" % n])

        ended = os.fork()
        if ended == 0:
            try:
                child()
            finally:
                os._exit(0)
        for n in range(20):
            producer.send_many("t", [b"parent %d" % n])
        os.waitpid(ended, 0)
        found = Counter((v or b"").split()[0] for v in values(log))
        assert found == {b"before": 1, b"child": 20, b"parent": 20}
        assert log.verify() == []


def test_two_members_split_the_partitions_and_one_takes_over_when_the_other_dies(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", 4)
        producer = log.producer()
        members = [run_python(CONSUME, tmp_path, wait=False) for _ in range(2)]
        try:

            def owners() -> list[str | None]:
                producer.send_many("t", [b"x"] * 8, keys=[b"%d" % n for n in range(8)])
                if "g" not in log.groups.names():
                    return []
                return [o.owner for o in log.groups.describe("g").offsets]

            wait_until(lambda: set(Counter(owners()).values()) == {2})
            info = log.groups.describe("g")
            assert len(info.members) == 2
            members[0].send_signal(signal.SIGKILL)
            wait_until(lambda: len(set(owners())) == 1 and None not in owners())
            wait_until(lambda: log.groups.describe("g").lag == 0)
            assert len(log.groups.describe("g").members) == 1
        finally:
            for member in members:
                member.kill()
        lines = [line.split() for member in members for line in member.communicate()[0].splitlines()]
        read = {(int(a[0]), int(a[1])) for a in lines if len(a) == 3 and a[0] != "at"}
        ends = log.offsets("t")
        assert read == {(p, o) for p, (_, end) in ends.items() for o in range(end)}


def test_a_writer_that_holds_the_partition_does_not_hold_up_readers(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t")
        log.producer().send_many("t", [b"x"])
        with FileLock(tmp_path / "topics/t/0/append.lock"), Log(tmp_path) as reader:
            assert values(reader) == [b"x"]
            assert values(log) == [b"x"]
            assert reader.consumer(None, "t").poll()[0].value == b"x"


def test_nothing_is_seen_before_it_is_synced(tmp_path: Path) -> None:
    """Another reader looks at the log before each system call of an append: the record comes with the last of them."""
    with Log(tmp_path) as log, Log(tmp_path) as reader:
        log.create_topic("t")
        producer = log.producer()
        producer.send_many("t", [b"1"])
        assert values(reader) == [b"1"]
        seen: list[tuple[str, int]] = []
        files.watch(lambda call: seen.append((f"{call.op} {Path(call.path).name}", len(values(reader)))))
        try:
            producer.send_many("t", [b"2"])
        finally:
            files.watch(None)
        segment = f"{0:020d}.log"
        assert seen == [(f"write {segment}", 1), (f"sync {segment}", 1), ("write committed", 1)]
        assert values(reader) == [b"1", b"2"]
