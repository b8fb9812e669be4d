"""A sink that does not answer is named, broken off and asked again; nothing hangs in silence."""

from __future__ import annotations

import contextlib
import http.client
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import Batch, SinkConnector, SinkContext, StagedBatch
from penstock.connectors.delivery import LedgerSink
from penstock.connectors.http.sink import HttpSink, RequestSender
from penstock.connectors.kafka.writer import KafkaWriter
from penstock.connectors.redis.sink import RedisSink
from penstock.errors import RunError
from penstock.graph.endpoints.servers import write_http, write_redis
from penstock.graph.row import row_class
from penstock.graph.schema import schema_of
from penstock.live.answering import NotAnswered, SinkWatch
from penstock.spark.batch.sinks import TRIES, Sinks
from tests.waiting import wait_until

LONG = 60.0
"""Seconds after which work that is not broken off would end by itself."""


class Silent(SinkConnector):
    """A sink that does not answer the first times it is asked."""

    times = 1

    def __init__(self) -> None:
        self.asked, self.broken = 0, threading.Event()

    def stage(self, frame: Any, batch: Batch) -> StagedBatch:
        """Nothing to prepare."""
        sink = self

        class Shown(StagedBatch):
            def commit(self) -> None:
                sink.show()

        return Shown()

    def show(self) -> None:
        """Waits until it is broken off."""
        self.asked += 1
        if self.asked <= self.times:
            assert self.broken.wait(300)
            self.broken.clear()
            raise ConnectionError("the connection is gone")

    def interrupt(self) -> bool:
        """Ends the wait."""
        self.broken.set()
        return True


class Stubborn(Silent):
    """One that cannot be broken off."""

    def interrupt(self) -> bool:
        """Cannot."""
        threading.Timer(0.5, self.broken.set).start()
        return False


def sinks_of(connector: SinkConnector, watch: SinkWatch, delivery: str = "at_least_once") -> Sinks:
    flow = ps.Flow("f")
    flow.source("in", ps.items([], "n int")).sink("orders", ps.connector(connector), delivery=delivery)
    return Sinks(flow.graph, "life", watch=watch)


def commit(sinks: Sinks) -> None:
    (sink,) = sinks.graph.sinks
    sinks.commit({"orders": sinks.connectors["orders"].stage(None, Batch(7, "orders"))}, 7)  # type: ignore[arg-type]
    assert sink.name == "orders"


def test_a_sink_that_does_not_answer_is_named_broken_off_and_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    silent = Silent()
    with caplog.at_level(logging.WARNING, "penstock"):
        commit(sinks_of(silent, SinkWatch(0.1, 0.5, pause=0.05)))
    assert silent.asked == 2
    assert "sink 'orders' (own), committing batch 7: no answer since " in caplog.text
    assert "so it was broken off (the connection is gone); trying again" in caplog.text


def test_one_that_never_answers_fails_the_batch_with_its_name_and_since_when() -> None:
    silent = Silent()
    silent.times = 99
    with pytest.raises(
        NotAnswered,
        match=r"sink 'orders' \(own\), committing batch 7: no answer since \d\d:\d\d:\d\d \(\d+ s\), so it was broken off",
    ):
        commit(sinks_of(silent, SinkWatch(10.0, 0.1, pause=0.02)))
    assert silent.asked == TRIES


def test_what_may_arrive_once_at_most_is_not_asked_again() -> None:
    silent = Silent()
    silent.capabilities = ps.write_topic("x").capabilities  # type: ignore[misc]
    with pytest.raises(NotAnswered):
        commit(sinks_of(silent, SinkWatch(10.0, 0.1, pause=0.02), "at_most_once"))
    assert silent.asked == 1


def test_one_that_cannot_be_broken_off_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "penstock"), pytest.raises(ConnectionError, match="the connection is gone"):
        commit(sinks_of(Stubborn(), SinkWatch(10.0, 0.1, pause=0.02)))
    assert "and it cannot be broken off" in caplog.text


def test_while_tasks_run_the_sink_is_not_to_blame(caplog: pytest.LogCaptureFixture) -> None:
    watch = SinkWatch(0.05, 0.1, has_tasks=lambda: True, pause=0.02)
    with caplog.at_level(logging.WARNING, "penstock"), watch.watching("sink 'x'", lambda: True):
        time.sleep(0.4)
    assert caplog.text == ""
    assert watch.at_work == ""


def test_without_a_time_nothing_is_broken_off(caplog: pytest.LogCaptureFixture) -> None:
    watch = SinkWatch(0.1, None, pause=0.02)
    broken: list[bool] = []

    def interrupt() -> bool:
        broken.append(True)
        return True

    with caplog.at_level(logging.WARNING, "penstock"), watch.watching("sink 'x', opening", interrupt):
        wait_until(lambda: caplog.text.count("sink 'x', opening: no answer since") >= 3)
    assert not broken


class Silence:
    """A server that takes connections, reads what it is sent, and says nothing."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.port, self.was_asked = int(self.server.getsockname()[1]), threading.Event()
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.server.accept()[0])
                if self.taken[-1].recv(1):
                    self.was_asked.set()


@pytest.fixture
def silence() -> Iterator[Silence]:
    made = Silence()
    yield made
    for each in (made.server, *made.taken):
        each.close()


def break_off(silence: Silence, work: Callable[[], object], interrupt: Callable[[], bool]) -> None:
    """Breaks off some work that would not end by itself for a long time."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert silence.was_asked.wait(300)
    assert thread.is_alive()
    assert interrupt()
    thread.join(LONG / 2)
    assert isinstance(failed[0], Exception), failed


def test_http_requests_are_broken_off(silence: Silence) -> None:
    sink = HttpSink()
    batch = Batch(0, "out", dict(write_http(f"http://127.0.0.1:{silence.port}/x", timeout=LONG).options), "life")
    row = row_class(("n",))
    rows = [tuple.__new__(row, (n,)) for n in range(20)]
    assert not sink.interrupt(), "nothing is under way"
    break_off(silence, lambda: sink.write(rows, batch), sink.interrupt)


def test_http_requests_that_begin_while_others_are_broken_off_end_too(silence: Silence) -> None:
    """A connection that is made just then has no socket yet when the others are shut down."""
    options = dict(write_http(f"http://127.0.0.1:{silence.port}/x", timeout=LONG, retries=0).options)
    posting = RequestSender(Batch(0, "out", options, "life"))
    connected = posting._connection

    def interrupted() -> http.client.HTTPConnection:
        posting.interrupt()
        return connected()

    posting._connection = interrupted  # type: ignore[method-assign]
    with pytest.raises(RunError, match="was not asked"):
        posting.send([(0, tuple.__new__(row_class(("n",)), (1,)))])


def test_redis_commands_are_broken_off(silence: Silence) -> None:
    sink = RedisSink()
    endpoint = write_redis(f"redis://127.0.0.1:{silence.port}/0", "hash", key="n")
    sink.context = SinkContext("out", "f", dict(endpoint.options), schema_of("n int"), "life")
    break_off(silence, lambda: sink.client().get("x"), sink.interrupt)


def test_a_kafka_writer_gives_up_between_two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.connectors.kafka.writer.PATIENCE", 0.5)
    monkeypatch.setattr("penstock.connectors.kafka.writer.CONNECT", 0.1)
    writer = KafkaWriter({"bootstrap.servers": "127.0.0.1:1"}, "penstock/f/out/life", "t", None)
    writer.interrupted.set()
    with pytest.raises(RunError, match="given up"):
        writer.fresh()
    assert not writer.interrupted.is_set(), "the next try is one of its own"


def test_ledger_sinks_are_asked_again_only_where_a_ledger_is_kept() -> None:
    flow = ps.Flow("f")
    flow.source("in", ps.items([], "n int")).sink("out", ps.write_files("out"))
    bounded = Sinks(flow.graph, "bounded")
    assert isinstance(bounded.connectors["out"], LedgerSink)
    assert not bounded._may_repeat("out")
