"""When Spark's JVM goes away, pyspark's own threads print no traceback: what happened is told once, in words."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from penstock.spark.failures import as_run_error
from penstock.spark.jvm.ending import quiet_ending

TOKEN = "secret"


@pytest.fixture(autouse=True)
def quieted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pyspark made quiet, and given back as it was."""
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    before = [*logging.getLogger().filters]
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        monkeypatch.setattr(server, "handle_error", server.handle_error)
    quiet_ending()
    yield
    logging.getLogger().filters[:] = before


def counted(sent: bytes) -> None:
    """Takes counts from a JVM that sends this and is gone."""
    from pyspark.accumulators import AccumulatorTCPServer, UpdateRequestHandler

    with (
        AccumulatorTCPServer(("127.0.0.1", 0), UpdateRequestHandler, TOKEN) as server,
        socket.create_connection(("127.0.0.1", server.server_address[1])) as jvm,
    ):
        jvm.sendall(sent)
        jvm.shutdown(socket.SHUT_WR)
        server.handle_request()


def test_the_thread_that_takes_counts_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    counted(TOKEN.encode() + struct.pack("!i", 0))
    assert capfd.readouterr().err == ""


def test_what_else_befalls_that_thread_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    counted(b"other!")
    assert "not correct" in capfd.readouterr().err


def test_a_call_that_py4j_lets_fail_is_not_logged_as_well(caplog: pytest.LogCaptureFixture) -> None:
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from py4j.protocol import Py4JError

    with socket.create_server(("127.0.0.1", 0)) as listening:
        jvm = threading.Thread(target=lambda: _hang_up(listening))
        jvm.start()
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=listening.getsockname()[1]))
        with pytest.raises(Py4JError) as failed:
            gateway.entry_point.hello()
        jvm.join()
        gateway.close()
    assert "Spark's JVM has ended" in str(as_run_error(failed.value))
    logging.getLogger().error("of somebody else")
    assert [each.getMessage() for each in caplog.records if each.name == "root"] == ["of somebody else"]


def _hang_up(listening: socket.socket) -> None:
    """A JVM that is killed with a command in its hands."""
    connection, _ = listening.accept()
    connection.recv(1)
    connection.close()
