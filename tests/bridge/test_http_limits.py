"""What a client may cost the HTTP bridge: connections, memory, time. Each test goes past a limit."""

from __future__ import annotations

import gc
import os
import re
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.bridge.guard import Guard
from penstock.bridge.limits import Limits
from penstock.log import Log
from tests.bridge.serving import Client, everything, held_disk, raw, until
from tests.bridge.test_http import http

HEAD = b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%b\r\n"


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=300)


def test_a_connection_that_rests_makes_room_for_one_that_does_not(log: Log) -> None:
    with http(log, limits=Limits(connections=5, crowded_seconds=0.05)) as bridge, ExitStack() as opened:
        resting = [opened.enter_context(Client(bridge.port)) for _ in range(5)]
        for each in resting:
            assert each.post(b"x").status == 200
        time.sleep(0.1)  # the span that is the limit
        with Client(bridge.port) as other:
            assert other.post(b"y").status == 200
        assert everything(resting[0].connection.sock) == b"", "the one that rested longest"
        assert resting[-1].post(b"z").status == 200


def test_requests_that_are_under_way_make_no_room(log: Log) -> None:
    with (
        http(log, limits=Limits(connections=2, crowded_seconds=0.0, head_seconds=600.0)) as bridge,
        ExitStack() as opened,
    ):
        busy = [opened.enter_context(connected(bridge.port)) for _ in range(2)]
        for each in busy:
            each.sendall(HEAD % (4, b"") + b"ha")
        until(lambda: bridge.server.intake.room.size == 4)
        assert raw(bridge.port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 503 ")
        for each in busy:
            each.sendall(b"lf")
            assert each.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_a_head_that_trickles_is_cut_off_however_often_it_gets_a_byte(log: Log) -> None:
    with http(log, limits=Limits(head_seconds=0.5, idle_seconds=600.0)) as bridge, connected(bridge.port) as made:
        began = time.monotonic()
        with suppress(OSError):
            made.sendall(b"GET /health HTTP/1.1\r\nA: ")
            while time.monotonic() - began < 300 and bridge.server.connections:
                made.sendall(b"x")
                time.sleep(0.02)
        assert time.monotonic() - began < 300
        until(lambda: not bridge.server.connections)


def test_a_body_that_trickles_is_cut_off_and_nothing_is_held(log: Log) -> None:
    limits = Limits(head_seconds=0.3, least_rate=1 << 20)
    with http(log, limits=limits) as bridge, connected(bridge.port) as made:
        made.sendall(HEAD % (100_000, b""))
        with suppress(OSError):
            for _ in range(20_000):
                made.sendall(b"x")
                time.sleep(0.01)
        with suppress(OSError):
            assert everything(made).startswith(b"HTTP/1.1 408 ")
        until(lambda: not bridge.server.connections)
        assert bridge.server.intake.room.size == 0


def test_a_client_that_does_not_read_its_answers_is_cut_off(log: Log) -> None:
    """Answers pile up in the bridge until its buffer is full; then it waits, but not for ever."""
    ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with http(log, limits=Limits(write_seconds=0.3)) as bridge, connected(bridge.port) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(1.0)
        with suppress(OSError):
            for _ in range(2_000):
                made.sendall(ask * 100)
        until(lambda: not bridge.server.connections)


def test_bodies_that_never_end_are_bounded_together(log: Log) -> None:
    limits = Limits(body=1 << 20, held=2 << 20, connections=100)
    with http(log, limits=limits) as bridge, ExitStack() as opened:
        hanging = [opened.enter_context(connected(bridge.port)) for _ in range(20)]
        for each in hanging:
            with suppress(OSError):
                each.sendall(HEAD % (1 << 20, b"") + b"x" * 500_000)
        until(lambda: bridge.server.connections < 20)
        assert bridge.server.intake.room.size <= limits.held + limits.piece(20)
        for each in hanging:
            each.close()
        until(lambda: bridge.server.intake.room.size == 0)
        with Client(bridge.port) as client:
            assert client.post(b"whole").status == 200


def test_the_token_is_asked_for_before_the_body_is_read(log: Log) -> None:
    with http(log, guard=Guard.of("0.0.0.0", "s3cret")) as bridge, connected(bridge.port) as made:
        made.sendall(HEAD % (1 << 20, b""))
        answer = made.recv(10_000)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in answer.lower()
        assert bridge.server.intake.room.size == 0


def test_a_client_that_sends_much_gets_the_answer_that_refuses_it(log: Log) -> None:
    for guard, status in ((Guard(), b"413"), (Guard.of("0.0.0.0", "s3cret"), b"401")):
        with http(log, guard=guard) as bridge, connected(bridge.port) as made:
            made.sendall(HEAD % (3 << 20, b"") + b"x" * (3 << 20))
            assert everything(made).startswith(b"HTTP/1.1 " + status)


def test_a_client_that_has_sent_all_and_says_so_is_answered(log: Log) -> None:
    with http(log) as bridge, held_disk() as disk, connected(bridge.port) as made:
        made.sendall(HEAD % (1, b"") + b"x")
        made.shutdown(socket.SHUT_WR)
        assert disk.reached.wait(300)
        disk.go.set()
        assert everything(made).startswith(b"HTTP/1.1 200 ")


def test_a_body_in_small_pieces_costs_what_it_is_long(log: Log) -> None:
    with http(log, limits=Limits(body=4 << 20)) as bridge, connected(bridge.port) as made:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.sendall(HEAD % ((1 << 20) + 20_000, b"") + b"x" * (1 << 20))
        began = time.process_time()
        for _ in range(20_000):
            made.sendall(b"y")
        assert made.recv(1_000).startswith(b"HTTP/1.1 200 ")
        assert time.process_time() - began < 20.0
    assert len(log.read("t", 0, 0)[0].value or b"") == (1 << 20) + 20_000


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=200) | st.binary(max_size=60).map(lambda raw: b"GET /" + raw + b" HTTP/1.1\r\nHost: x\r\n")
)
def test_any_bytes_are_answered_or_refused(listening: int, data: bytes) -> None:
    answer = raw(listening, data + b"\r\n\r\n" + b"GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert {int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", answer)} <= {400, 403, 404, 405, 411, 431, 505}
    assert answer


@pytest.fixture
def listening(log: Log) -> object:
    with http(log, limits=Limits(head_seconds=1.0)) as bridge:
        yield bridge.port


def test_a_stop_loses_no_connection_that_was_just_accepted(log: Log) -> None:
    """asyncio leaves a transport open that it accepted while its server closed; such a warning fails the test."""
    for _ in range(3):
        with http(log) as bridge, ExitStack() as opened:
            for _ in range(8):
                opened.enter_context(connected(bridge.port))
            bridge.stop.set()
        gc.collect()
        assert bridge.done


@pytest.mark.slow
def test_a_thousand_connections_hold_little_memory(log: Log) -> None:
    with http(log, limits=Limits(connections=1000)) as bridge, ExitStack() as opened:
        before = resident()
        for n in range(900):
            each = opened.enter_context(connected(bridge.port))
            each.settimeout(0.05)
            with suppress(OSError):
                each.sendall(
                    b"GET / HTTP/1.1\r\nA: " + b"x" * 30_000 if n % 2 else HEAD % (1 << 20, b"") + b"x" * 900_000
                )
        assert resident() - before < 200 << 20


def resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
