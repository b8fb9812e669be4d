"""A cluster that refuses a client is known at once, not when all patience is over."""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from penstock.connectors.kafka.admin import Cluster
from penstock.errors import RunError

WRONG = "kanarie-wrong-2d"
REASON = b"Authentication failed: Invalid username or password"
METADATA, HANDSHAKE, VERSIONS, AUTHENTICATE = 3, 17, 18, 36
UNSUPPORTED, REFUSED = 35, 58


class RefusingBroker(socketserver.BaseRequestHandler):
    """As much of Kafka's protocol as a client needs to hear that its password is wrong."""

    def handle(self) -> None:
        while request := self._request():
            api, version, number = struct.unpack(">hhi", request[:8])
            answer = struct.pack(">i", number) + self._answer(api, version)
            self.request.sendall(struct.pack(">i", len(answer)) + answer)

    def _answer(self, api: int, version: int) -> bytes:
        if api == VERSIONS:
            known = [(VERSIONS, 0, 0), (HANDSHAKE, 0, 1), (AUTHENTICATE, 0, 0), (METADATA, 0, 4)]
            listed = b"".join(struct.pack(">hhh", *each) for each in known)
            return struct.pack(">hi", UNSUPPORTED if version else 0, len(known)) + listed
        if api == HANDSHAKE:
            return struct.pack(">hih", 0, 1, 5) + b"PLAIN"
        assert api == AUTHENTICATE, api
        return struct.pack(">hh", REFUSED, len(REASON)) + REASON + struct.pack(">i", 0)

    def _request(self) -> bytes:
        head = self._read(4)
        return self._read(struct.unpack(">i", head)[0]) if head else b""

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size and (part := self.request.recv(size - len(found))):
            found += part
        return found if len(found) == size else b""


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


@pytest.fixture
def refusing() -> Iterator[str]:
    with Server(("127.0.0.1", 0), RefusingBroker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_wrong_password_is_said_at_once(refusing: str) -> None:
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    cluster = Cluster(refusing, {**client, "sasl.username": "ada", "sasl.password": WRONG})
    began = time.monotonic()
    with pytest.raises(RunError, match="Invalid username or password") as caught:
        cluster.topics()
    assert time.monotonic() - began < 15, "half of the patience that a silent cluster gets"
    assert WRONG not in str(caught.value)


def test_a_cluster_that_is_not_there_gets_all_the_patience_it_was_given() -> None:
    from confluent_kafka import KafkaException

    cluster = Cluster("127.0.0.1:9", {})
    began = time.monotonic()
    with pytest.raises(KafkaException, match="_TRANSPORT"):
        cluster.metadata(patience=1.0)
    assert 0.9 < time.monotonic() - began < 15
