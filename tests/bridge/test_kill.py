"""Bridges that are killed in the middle: what was acknowledged is there, and what comes again with its key is there once."""

from __future__ import annotations

import http.client
import random
import signal
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.jobs.ports import free_port
from penstock.log import Log
from tests.bridge.serving import Client, bridge_process, stored, until

Position = tuple[int, int]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with Log(tmp_path / "log") as log:
        log.create_topic("t", 2, segment_bytes=20_000)
    return tmp_path / "log"


class Sender(threading.Thread):
    """Sends numbered records until it is reported to stop, each again and again until it is answered."""

    def __init__(self, number: int, port: int) -> None:
        super().__init__()
        self.number, self.port = number, port
        self.stop = threading.Event()
        self.reported: dict[Position, bytes] = {}
        self.tries = Counter[bytes]()

    def run(self) -> None:
        count = 0
        while not self.stop.is_set():
            value = b"%d.%d" % (self.number, count)
            while not self.send(value):
                time.sleep(0.05)
            count += 1

    def send(self, value: bytes) -> bool:
        self.tries[value] += 1
        try:
            with Client(self.port, timeout=300) as client:
                for _ in range(1 if self.tries[value] > 1 else 3):
                    answer = client.post(value, Idempotency_Key=value.decode())
                if answer.status == 200:
                    self.reported[answer.positions[0][:2]] = value
                return answer.status == 200
        except (OSError, http.client.HTTPException):
            return False


def test_nothing_acknowledged_is_lost_and_nothing_is_doubled_when_the_bridge_is_killed(directory: Path) -> None:
    port, chance = free_port(), random.Random(7)
    senders = [Sender(n, port) for n in range(6)]
    for sender in senders:
        sender.start()
    try:
        for _ in range(4):
            with bridge_process("http", "--topic", "t", log=directory, port=port) as (process, _):
                before = sum(len(s.reported) for s in senders)
                until(lambda before=before: sum(len(s.reported) for s in senders) > before + 30)  # type: ignore[misc]
                time.sleep(chance.random() * 0.3)
                process.send_signal(signal.SIGKILL)
        with bridge_process("http", "--topic", "t", log=directory, port=port) as (process, _):
            for sender in senders:
                sender.stop.set()
            for sender in senders:
                sender.join(300)
            process.terminate()
            assert process.wait(300) == 0
    finally:
        for sender in senders:
            sender.stop.set()
    reported = {at: value for s in senders for at, value in s.reported.items()}
    found = stored(directory)
    assert len(reported) > 120
    assert found == reported
    assert max(Counter(found.values()).values()) == 1
    assert any(n > 1 for s in senders for n in s.tries.values()), "some were sent again"


@pytest.mark.parametrize("call", [21, 22, 23, 24])
def test_a_kill_at_any_call_of_an_append_loses_nothing_acknowledged(directory: Path, call: int) -> None:
    """Lines without keys; the process dies at a system call, in the middle of it if it writes."""
    reported: dict[Position, bytes] = {}
    with (
        bridge_process("socket", "--topic", "t", log=directory, PENSTOCK_LOG_CRASH_AT=str(call)) as (process, port),
        socket.create_connection(("127.0.0.1", port), timeout=300) as made,
        suppress(OSError),
    ):
        answers = made.makefile("rb")
        for n in range(100):
            made.sendall(b"value %d\n" % n)
            word, *numbers = answers.readline().split() or [b""]
            if word != b"ok":
                break
            reported[int(numbers[0]), int(numbers[1])] = b"value %d" % n
    assert process.wait(300) == -signal.SIGKILL
    found = stored(directory)
    assert 0 < len(reported) < 100
    assert reported.items() <= found.items()
    assert len(found) - len(reported) <= 1


def test_sigterm_answers_what_was_taken_and_ends_with_0(directory: Path) -> None:
    with bridge_process("http", "--topic", "t", log=directory) as (process, port), Client(port) as client:
        assert client.post(b"x").status == 200
        began = time.monotonic()
        process.terminate()
        assert process.wait(300) == 0
        assert time.monotonic() - began < 120
        assert process.stderr is not None
        assert process.stderr.read() == "t: 1 record on disk\n"
