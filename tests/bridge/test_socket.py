"""The socket bridge, over real sockets."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.bridge import SocketBridge
from penstock.bridge.guard import Guard
from penstock.bridge.limits import Limits
from penstock.bridge.records import Keys
from penstock.bridge.socket import Lines
from penstock.log import Log
from penstock.log.produce.partitioner import partition_for
from penstock.log.storage import files
from tests.bridge.serving import everything, held_disk, raw, serving, stored, until


def lines(log: Log, topic: str = "t", **options: Any) -> Any:
    return serving(lambda: SocketBridge(log, topic, **options))


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as made:
        yield made


def said(port: int, data: bytes) -> list[str]:
    """What the bridge says to these bytes, when they are all there is."""
    with connected(port) as made:
        made.sendall(data)
        made.shutdown(socket.SHUT_WR)
        return everything(made).decode().splitlines()


def flood(made: socket.socket, most: int, data: bytes = b"x" * 1023 + b"\n") -> int:
    """Send until no more is taken; how much was."""
    sent = 0
    with suppress(OSError):
        while sent < most:
            sent += made.send(data)
    return sent


def values(log: Log, topic: str = "t") -> list[bytes | None]:
    return [r.value for p in log.offsets(topic) for r in log.read(topic, p, 0)]


def test_each_line_is_a_record_and_is_acknowledged_in_order(log: Log) -> None:
    with lines(log) as bridge:
        assert said(bridge.port, b"one\r\ntwo\n\nfour\n") == [f"ok 0 {n}" for n in range(4)]
    assert values(log) == [b"one", b"two", b"", b"four"]


def test_a_line_without_an_end_is_not_stored(log: Log) -> None:
    with lines(log) as bridge:
        assert said(bridge.port, b"one\ntw") == ["ok 0 0", "error the last line had no end and was not stored"]
    assert values(log) == [b"one"]


def test_no_acknowledgement_before_the_line_is_on_disk(log: Log) -> None:
    with lines(log) as bridge, connected(bridge.port) as made, held_disk() as disk:
        made.sendall(b"x\n")
        assert disk.reached.wait(300)
        made.settimeout(0.2)
        with pytest.raises(TimeoutError):
            made.recv(1)
        disk.go.set()
        made.settimeout(300)
        assert made.recv(100) == b"ok 0 0\n"


def test_lines_in_any_pieces(log: Log) -> None:
    data = b"".join(b"%d %b\n" % (n, b"x" * (n * 37 % 500)) for n in range(400))
    with lines(log) as bridge, connected(bridge.port) as made:
        for at in range(0, len(data), 977):
            made.sendall(data[at : at + 977])
        made.shutdown(socket.SHUT_WR)
        assert everything(made) == b"".join(b"ok 0 %d\n" % n for n in range(400))
    assert b"".join((v or b"") + b"\n" for v in values(log)) == data


def test_keys_and_lines_that_have_none(log: Log) -> None:
    with lines(log, "two", keys=Keys(separator=b":")) as bridge:
        answers = said(bridge.port, b"a:1\nnone\nb:2\n:3\n")
    found = {r.key: f"ok {p} {r.offset}" for p in (0, 1) for r in log.read("two", p, 0)}
    assert answers == [found[b"a"], "error no key: ':' must follow it", found[b"b"], found[b""]]
    assert found[b"a"].startswith(f"ok {partition_for(b'a', 2)}")


def test_keys_from_json(log: Log) -> None:
    with lines(log, keys=Keys(field="id")) as bridge:
        answers = said(bridge.port, b'{"id": 7}\n{"id": \n{"no": 1}\n')
    assert [a.split()[0] for a in answers] == ["ok", "error", "error"]
    assert [r.key for r in log.read("t", 0, 0)] == [b"7"]


def test_a_line_too_long_ends_the_connection_after_what_came_before(log: Log) -> None:
    with lines(log, limits=Limits(body=100)) as bridge:
        for end in (b"", b"\nmore\n"):
            answer = raw(bridge.port, b"good\n" + b"x" * 101 + end)
            assert answer.splitlines()[1:] == [b"error a line has at most 100 bytes"]
    assert values(log) == [b"good", b"good"]


def test_plain_mode_says_nothing(log: Log) -> None:
    with lines(log, acks=False) as bridge:
        assert said(bridge.port, b"one\ntwo\nhalf") == []
        assert bridge.server.refused == 1
    assert values(log) == [b"one", b"two"]


def test_many_senders_at_once_each_in_order(log: Log) -> None:
    def send(number: int) -> list[str]:
        return said(bridge.port, b"".join(b"%d %d\n" % (number, n) for n in range(2000)))

    with lines(log) as bridge, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    found = stored(log.path)
    for number, reported in enumerate(answers):
        positions = [tuple(map(int, line.split()[1:])) for line in reported]
        assert [found[p] for p in positions] == [b"%d %d" % (number, n) for n in range(2000)]  # type: ignore[index]
    assert len(found) == 16_000


def test_a_sender_that_is_too_fast_has_to_wait_and_memory_is_bounded(log: Log) -> None:
    limits = Limits(held=1 << 20)
    with lines(log, limits=limits) as bridge, held_disk() as disk, connected(bridge.port) as made:
        made.settimeout(0.5)
        sent = flood(made, 200 << 20)
        assert disk.reached.wait(300)
        assert bridge.server.intake.room.size < 4 << 20
        disk.go.set()
    assert sent < 100 << 20


def test_slow_and_idle_senders_are_cut_off(log: Log) -> None:
    # A client that is held up between connecting and its first byte is idle too.
    limits = Limits(head_seconds=0.3, idle_seconds=2.0, write_seconds=600.0)
    with lines(log, limits=limits) as bridge:
        began = time.monotonic()
        assert raw(bridge.port, b"half a li") == b""
        assert raw(bridge.port, b"") == b""
        assert raw(bridge.port, b"x\n") == b"ok 0 0\n"
        assert time.monotonic() - began < 300


def test_a_line_that_comes_drop_by_drop_is_cut_off(log: Log) -> None:
    """The time is that of the line, not of its last drop."""
    slow = Limits(head_seconds=0.5, idle_seconds=600.0)
    with (
        lines(log, limits=slow) as bridge,
        connected(bridge.port) as made,
        pytest.raises(OSError, match=r"reset|Broken"),
    ):
        drip(made)


def drip(connection: socket.socket) -> None:
    for _ in range(3_000):
        connection.sendall(b"x")
        time.sleep(0.1)


def test_a_sender_that_does_not_read_is_cut_off(log: Log) -> None:
    with lines(log, limits=Limits(write_seconds=0.3)) as bridge, connected(bridge.port) as made:
        began = time.monotonic()
        made.settimeout(30)
        assert flood(made, 100 << 20, b"\n" * 100_000) < 100 << 20
        until(lambda: not bridge.server._talks)
        assert time.monotonic() - began < 300


def test_a_token_comes_first(log: Log) -> None:
    with lines(log, guard=Guard.of("0.0.0.0", "s3cret")) as bridge:
        assert said(bridge.port, b"auth s3cret\nx\n") == ["ok", "ok 0 0"]
        assert said(bridge.port, b"x\ny\n") == ["error the first line must be: auth TOKEN"]
        assert said(bridge.port, b"auth wrong\ny\n") == ["error the first line must be: auth TOKEN"]
    assert values(log) == [b"x"]


def test_a_disk_that_fails_ends_the_connection_and_acknowledges_nothing(log: Log) -> None:
    def broken(call: files.Call) -> None:
        if call.op == "sync":
            raise OSError(28, "No space left on device")

    with lines(log) as bridge:
        files.watch(broken)
        try:
            assert raw(bridge.port, b"a\nb\n") == b"error the log cannot be written now\n" * 2
        finally:
            files.watch(None)
        assert said(bridge.port, b"c\n") == ["ok 0 0"]


def test_a_stop_acknowledges_what_was_taken(log: Log) -> None:
    with lines(log) as bridge, connected(bridge.port) as idle, connected(bridge.port) as made, held_disk() as disk:
        made.sendall(b"one\n")
        assert disk.reached.wait(300)
        bridge.stop.set()
        until(lambda: bridge.server.stopping)
        assert everything(idle) == b""
        disk.go.set()
        assert everything(made) == b"ok 0 0\n"
        until(lambda: bridge.done is not None)
        assert bridge.done


def test_connections_too_many_are_refused(log: Log) -> None:
    with lines(log, limits=Limits(connections=1)) as bridge, connected(bridge.port) as made:
        made.sendall(b"x\n")
        assert made.recv(100) == b"ok 0 0\n"
        with connected(bridge.port) as other:
            assert everything(other) == b"error too many connections; try again\n"


def test_a_connection_that_rests_makes_room_for_one_that_does_not(log: Log) -> None:
    limits = Limits(connections=20, crowded_seconds=0.2)
    with lines(log, limits=limits) as bridge, ExitStack() as open_ones:
        resting = [open_ones.enter_context(connected(bridge.port)) for _ in range(20)]
        until(lambda: len(bridge.server._idle) == 20)
        time.sleep(0.3)
        assert said(bridge.port, b"x\n") == ["ok 0 0"]
        assert everything(resting[0]) == b"", "the one that rested longest"
        resting[-1].sendall(b"y\n")
        assert resting[-1].recv(100) == b"ok 0 1\n"


def test_lines_that_never_end_are_bounded_together(log: Log) -> None:
    limits = Limits(body=1 << 20, held=8 << 20, connections=100)
    with lines(log, limits=limits) as bridge, ExitStack() as open_ones:
        hanging = [open_ones.enter_context(connected(bridge.port)) for _ in range(40)]
        for each in hanging:
            with suppress(OSError):
                each.sendall(b"x" * 900_000)
        until(lambda: bridge.server.refused > 0)
        assert bridge.server._unfinished <= (4 << 20) + limits.piece(40)
        assert said(bridge.port, b"whole\n") == ["ok 0 0"]
    assert bridge.server._unfinished == bridge.server.intake.room.size == 0


def test_nobody_is_listened_to_for_long_before_the_token(log: Log) -> None:
    with lines(log, guard=Guard.of("0.0.0.0", "s3cret")) as bridge, connected(bridge.port) as made:
        flood(made, 10 << 20, b"x" * 10_000)
        assert (
            b"the first line must be: auth TOKEN, and has at most 4096 bytes" in everything(made)
            or not bridge.server._talks
        )
        assert said(bridge.port, b"auth s3cret\n" + b"y" * 100_000 + b"\n") == ["ok", "ok 0 0"]


def test_a_long_line_in_small_pieces_costs_what_it_is_long(log: Log) -> None:
    taken = Lines(4 << 20)
    taken.add(b"x" * (1 << 20))
    began = time.process_time()
    for _ in range(100_000):
        taken.add(b"y")
    assert time.process_time() - began < 2.0
    assert len(taken.add(b"\n")[0]) == (1 << 20) + 100_000


@pytest.mark.slow
def test_a_thousand_connections_hold_little_memory(log: Log) -> None:
    """900 lines that never end once made the bridge hold 1.2 GB."""
    with lines(log, limits=Limits(connections=1000)) as bridge, ExitStack() as open_ones:
        before = resident()
        hanging = [open_ones.enter_context(connected(bridge.port)) for _ in range(900)]
        for each in hanging:
            each.settimeout(0.05)
            flood(each, 900_000, b"x" * 90_000)
        assert resident() - before < 160 << 20


def resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
