"""A writer that is killed between any two of its system calls loses nothing it acknowledged.

The writer is a process of its own (forked, so that a kill costs milliseconds). It has a name and goes on where the log says its
last record is; so at the end the log must hold the numbers 0, 1, 2 ... with none missing and none twice.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.log.storage import files
from tests.log.helpers import forked, values

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def number_of(value: bytes | None) -> int:
    """The number in a value, which must be whole."""
    assert value is not None
    number, _, rest = value.partition(b" ")
    assert rest == b"x" * (int(number) * 7 % 90)
    return int(number)


def value_of(number: int) -> bytes:
    return b"%d " % number + b"x" * (number * 7 % 90)


def write_some(path: Path, reported: int, batches: int, *, single: bool = False) -> None:
    """Go on with the numbers; tell each acknowledged end through a pipe."""
    log = Log(path)
    producer = log.producer("writer", linger_ms=0)
    following = producer.last_sequence("t") + 1
    for _ in range(batches):
        several = range(following, following + 1 + following % 4)
        if single:
            for ack in [producer.send("t", value_of(n)) for n in several]:
                ack.result()
        else:
            producer.send_many("t", [value_of(n) for n in several])
        following = several.stop
        os.write(reported, b"%d\n" % following)
    log.close()


def run_and_kill(path: Path, act: Callable[[int], None], kill: Callable[[int], None] | None = None) -> tuple[int, int]:
    """How the writer ended, and the last end it was reported is safe."""
    read, write = os.pipe()
    if kill is None:
        ended = forked(lambda: act(write))
    else:
        child = os.fork()
        if child == 0:
            try:
                act(write)
            finally:
                os._exit(1)
        kill(child)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(write)
    with os.fdopen(read) as lines:
        reported = [int(line) for line in lines]
    assert ended in (0, -signal.SIGKILL)
    return ended, reported[-1] if reported else 0


def check(path: Path, promised: int) -> int:
    """All that was promised is there, in order, once, and nothing else; how many there are."""
    with Log(path) as log:
        found = [number_of(v) for v in values(log)]
        assert found == list(range(len(found)))
        assert len(found) >= promised
        assert log.verify() == []
        assert log.damage("t") == []
        return len(found)


def count_calls(path: Path, act: Callable[[int], None]) -> int:
    calls = 0

    def hook(call: files.Call) -> None:
        nonlocal calls
        calls += 1

    read, write = os.pipe()
    files.watch(hook)
    try:
        act(write)
    finally:
        files.watch(None)
        os.close(read)
        os.close(write)
    return calls


def kill_between_calls(path: Path, kills: int, seed: int) -> None:
    random.seed(seed)
    with Log(path) as log:
        log.create_topic("t", segment_bytes=2000)
    calls = count_calls(path, lambda reported: write_some(path, reported, 12))
    promised = check(path, 0)
    killed = 0
    while killed < kills:
        number = random.randint(1, calls)

        def act(reported: int, number: int = number) -> None:
            files.watch(files.crash_at(number))
            write_some(path, reported, 12, single=number % 3 == 0)

        ended, reported = run_and_kill(path, act)
        killed += ended != 0
        promised = check(path, max(promised, reported))


def test_kills_between_system_calls_lose_nothing(tmp_path: Path) -> None:
    kill_between_calls(tmp_path, 40, seed=int(time.time()))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_kills_between_system_calls_lose_nothing(tmp_path: Path) -> None:
    for part in range(10):
        kill_between_calls(tmp_path / str(part), 100, seed=part)


def test_each_of_the_calls_of_one_run_is_a_safe_place_to_die(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", segment_bytes=600)
    promised = 0
    for number in range(1, 60):

        def act(reported: int, number: int = number) -> None:
            files.watch(files.crash_at(number))
            write_some(tmp_path, reported, 6)

        _, reported = run_and_kill(tmp_path, act)
        promised = check(tmp_path, max(promised, reported))


def test_kills_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", segment_bytes=5000)
    promised = rounds = 0
    while rounds < 20 or promised == 0:
        rounds += 1
        longest = 0.002 * rounds

        def kill(child: int, longest: float = longest) -> None:
            time.sleep(random.uniform(0.001, longest))
            os.kill(child, signal.SIGKILL)

        _, reported = run_and_kill(tmp_path, lambda reported: write_some(tmp_path, reported, 100_000), kill)
        promised = check(tmp_path, max(promised, reported))


def test_a_commit_is_old_or_new_after_a_kill(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", 2)
        with log.producer() as producer:
            for partition in (0, 1):
                producer.send_many("t", [b"x"] * 100, partition=partition)
    safe = 0
    for number in range(1, 16):

        def act(reported: int, number: int = number, safe: int = safe) -> None:
            with Log(tmp_path) as log, log.consumer("g", "t", assignment=[("t", 0), ("t", 1)]) as consumer:
                files.watch(files.crash_at(number))
                for offset in range(safe + 1, safe + 4):
                    consumer.seek("t", 0, offset)
                    consumer.seek("t", 1, offset)
                    consumer.commit()
                    os.write(reported, b"%d\n" % offset)

        _, reported = run_and_kill(tmp_path, act)
        with Log(tmp_path) as log:
            both = set(log.groups.committed("g").values()) or {0}
        assert len(both) == 1
        assert max(safe, reported) <= min(both) <= max(safe, reported) + 1
        safe = min(both)


def test_a_kill_during_compaction_loses_no_key(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", cleanup="compact", segment_bytes=400)
    expected: dict[bytes, bytes] = {}
    for number in range(1, 50):
        with Log(tmp_path) as log, log.producer() as producer:
            for n in range(6):
                key, value = b"k%d" % random.randrange(8), b"%d.%d" % (number, n)
                producer.send_many("t", [value], keys=[key])
                expected[key] = value

        def act(reported: int, number: int = number) -> None:
            files.watch(files.crash_at(number))
            with Log(tmp_path) as log:
                log.clean()

        run_and_kill(tmp_path, act)
        with Log(tmp_path) as log:
            assert {r.key: r.value for r in log.read("t", 0, 0)} == expected
            assert log.verify() == []


def test_a_kill_during_retention_is_no_damage(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", retention_bytes=1200, segment_bytes=300)
    sent = 0
    for number in range(1, 30):

        def act(reported: int, number: int = number, sent: int = sent) -> None:
            with Log(tmp_path) as log, log.producer() as producer:
                files.watch(files.crash_at(number))
                for n in range(sent, sent + 20):
                    producer.send_many("t", [b"%d" % n])
                    os.write(reported, b"%d\n" % (n + 1))
                log.clean()

        _, reported = run_and_kill(tmp_path, act)
        with Log(tmp_path) as log:
            start, end = log.offsets("t")[0]
            assert end >= reported
            assert [r.offset for r in log.read("t", 0, start)] == list(range(start, end))
            assert log.verify() == []
            sent = end
    assert start > 0
