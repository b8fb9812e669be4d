"""Records sent by HTTP: at least once, with a key by which the server can tell what came before."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.connectors.base import Batch, Capabilities, Refusal, RowSink, StagedBatch, rows_of
from penstock.connectors.http.sink import HttpSink, RequestSender
from penstock.errors import FlowError, Impossible, RunError
from penstock.graph.endpoints.servers import write_http
from penstock.graph.row import row_class
from penstock.graph.run import RunSpec
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.batch.sinks import Sinks
from penstock.spark.run import run_bounded, run_live
from tests.http.conftest import Desk
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW = row_class(("id", "word"))


def rows(*values: tuple[Any, ...]) -> list[Any]:
    return [tuple.__new__(ROW, v) for v in values]


def send(url: str, some: list[Any], number: int = 0, **options: Any) -> None:
    batch = Batch(number, "out", dict(write_http(url, **options).options), "life")
    HttpSink().write(some, batch)


def test_each_record_is_a_request(desk: Desk) -> None:
    send(desk.url, rows((1, "a"), (2, None)), headers={"X-Key": "hush"}, concurrency=1)
    assert desk.bodies == [{"id": 1, "word": "a"}, {"id": 2, "word": None}]
    assert desk.paths == ["/hook?token=geheim"] * 2
    assert [h["X-Key"] for h in desk.headers] == ["hush", "hush"]
    assert desk.headers[0]["Content-Type"] == "application/json"


def test_records_can_go_together(desk: Desk) -> None:
    send(desk.url, rows(*((i, "w") for i in range(5))), per_request=2, concurrency=1)
    assert [len(b) for b in desk.bodies] == [2, 2, 1]


def test_a_batch_that_comes_again_has_the_same_keys_in_whatever_order(desk: Desk) -> None:
    send(desk.url, rows((1, "a"), (2, "b"), (1, "a")))
    first = sorted(desk.keys)
    assert len(set(first)) == 3, "equal records are two records"
    assert all(k.startswith("life/out/0/") for k in first)
    desk.headers.clear()
    send(desk.url, rows((2, "b"), (1, "a"), (1, "a")))
    assert sorted(desk.keys) == first
    desk.headers.clear()
    send(desk.url, rows((1, "a")), number=1)
    assert desk.keys[0] not in first


def test_a_busy_server_is_asked_again(desk: Desk) -> None:
    desk.answers = [(503, {}), (429, {"Retry-After": "1"}), (500, {})]
    began = time.monotonic()
    send(desk.url, rows((1, "a")))
    assert len(desk.bodies) == 4
    assert len(set(desk.keys)) == 1
    assert time.monotonic() - began > 1.0, "Retry-After is kept"


def test_a_refusal_ends_the_batch_and_keeps_secrets(desk: Desk) -> None:
    desk.answers = [(422, {})]
    with pytest.raises(RunError, match=r"sink 'out': http://127\.0\.0\.1:\d+ answered 422") as failed:
        send(desk.url, rows((1, "a")), headers={"Authorization": "Bearer hush"})
    assert len(desk.bodies) == 1
    assert "geheim" not in str(failed.value)
    endpoint = write_http(desk.url, headers={"Authorization": "Bearer hush"})
    for text in (str(endpoint.shown()), repr(endpoint)):
        assert "hush" not in text
        assert "geheim" not in text


def test_a_server_that_stays_away_ends_the_batch(desk: Desk) -> None:
    desk.answers = [(503, {})] * 3
    with pytest.raises(RunError, match="answered 503"):
        send(desk.url, rows((1, "a")), retries=2)
    assert len(desk.bodies) == 3
    with pytest.raises(RunError, match="cannot be reached"):
        send("http://127.0.0.1:9/none", rows((1, "a")), retries=0)


def test_a_run_that_ends_does_not_wait_for_the_next_try(desk: Desk) -> None:
    desk.answers = [(503, {"Retry-After": "600"})]
    sink = HttpSink()

    def close() -> None:
        wait_until(lambda: bool(desk.bodies))
        sink.close()

    closing = threading.Thread(target=close)
    closing.start()
    began = time.monotonic()
    with pytest.raises(RunError, match="answered 503"):
        sink.write(rows((1, "a")), Batch(0, "out", dict(write_http(desk.url).options), "life"))
    closing.join()
    assert time.monotonic() - began < 300


def test_no_more_requests_at_once_than_allowed(desk: Desk) -> None:
    desk.pause = 0.02
    send(desk.url, rows(*((i, "w") for i in range(40))), concurrency=3)
    assert len(desk.bodies) == 40
    assert 1 < desk.most <= 3


def test_exactly_once_is_refused(desk: Desk) -> None:
    flow = ps.Flow("http")
    with pytest.raises(FlowError, match="cannot hold delivery='exactly_once'"):
        flow.source("in", ps.items([], "id bigint")).sink("out", write_http(desk.url), delivery="exactly_once")
    with pytest.raises(FlowError, match="begins with 'ftp'"):
        write_http("ftp://h/")


@pytest.mark.spark
def test_a_live_flow_sends_its_records(desk: Desk, penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("http")
    flow.source("in", ps.items([1, 2, 3], "id bigint", batches=2)).sink("out", write_http(desk.url))
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait()
    assert sorted(b["id"] for b in desk.bodies) == [1, 2, 3]


def refusing(desk: Desk, *bad: str) -> None:
    """Has the server answer 422 to any request with one of these words."""
    desk.judge = lambda body: (422, {}) if any(word in str(body) for word in bad) else (200, {})


@pytest.mark.parametrize("per_request", [1, 4])
def test_rows_that_the_server_refuses_are_told_and_the_rest_arrives(desk: Desk, per_request: int) -> None:
    refusing(desk, "bad", "worse")
    posting = RequestSender(Batch(0, "out", dict(write_http(desk.url, per_request=per_request).options), "life"))
    given = list(enumerate(rows((1, "a"), (2, "bad"), (3, "c"), (4, "worse"))))
    reported = [one for at in range(0, 4, per_request) for one in posting.stage_rows(given[at : at + per_request])]
    assert [(number, row[1]) for number, row, _ in reported] == [(1, "bad"), (3, "worse")]
    assert all("answered 422" in said for *_, said in reported)
    taken = [
        row for body, status in desk.answered if status == 200 for row in (body if isinstance(body, list) else [body])
    ]
    assert [row["word"] for row in taken] == ["a", "c"]


def test_equal_rows_of_halves_keep_keys_of_their_own(desk: Desk) -> None:
    refusing(desk, "bad")
    posting = RequestSender(Batch(0, "out", dict(write_http(desk.url, per_request=2).options), "life"))
    for some in (rows((1, "a"), (2, "bad")), rows((1, "a"), (3, "bad"))):
        posting.stage_rows(list(enumerate(some)))
    keys = [key for key, body in zip(desk.keys, desk.bodies, strict=True) if body == [{"id": 1, "word": "a"}]]
    assert len(set(keys)) == 2, "a server that knows keys must take both"


def test_a_wrong_address_is_no_refusal_of_a_row(desk: Desk) -> None:
    desk.answers = [(404, {})]
    posting = RequestSender(Batch(0, "out", dict(write_http(desk.url).options), "life"))
    with pytest.raises(RunError, match="answered 404"):
        posting.stage_rows(list(enumerate(rows((1, "a")))))


@pytest.mark.spark
def test_refused_rows_become_letters(desk: Desk, penstock_spark: Any, tmp_path: Path) -> None:
    refusing(desk, "bad")
    flow = ps.Flow("http")
    given = flow.source("in", ps.items([(1, "a"), (2, "bad"), (3, "c")], "id bigint, word string"))
    given.sink("out", write_http(desk.url), on_error="dead_letter")
    reports: list[Any] = []
    options = RunSpec(checkpoint=tmp_path, mode="once")
    run_live(flow.graph, penstock_spark, options, observers=(reports.append,)).wait(0.02)
    assert sorted(body["id"] for body, status in desk.answered if status == 200) == [1, 3]
    (letter,) = DeadLetterStore(tmp_path / "dead-letters").dead_letters()
    assert (letter["step"], letter["record"]) == ("out", "Row(id=2, word='bad')")
    assert "answered 422" in letter["cause"]
    assert "geheim" not in str(letter)
    assert reports[0].balance == {"read": 3, "written": 2, "dead": 1}


def flow_of(desk: Desk, given: list[Any], batches: int = 1, **settings: Any) -> ps.Flow:
    flow = ps.Flow("http")
    rows = flow.source("in", ps.items(given, "id bigint, word string", batches=batches))
    rows.sink("out", write_http(desk.url), **settings)
    return flow


@pytest.mark.spark
def test_refused_rows_can_be_skipped_and_are_counted(desk: Desk, penstock_spark: Any) -> None:
    refusing(desk, "bad")
    (report,) = run_bounded(flow_of(desk, [(1, "a"), (2, "bad")], on_error="skip").graph, penstock_spark)
    assert (report.skipped, report.dead) == ({"out": 1}, {})


@pytest.mark.spark
def test_a_letter_goes_to_the_server_again(desk: Desk, penstock_spark: Any, tmp_path: Path) -> None:
    refusing(desk, "bad")
    given = [(1, "a"), (2, "bad")]
    options = RunSpec(checkpoint=tmp_path, mode="once")
    run_live(flow_of(desk, given, on_error="dead_letter").graph, penstock_spark, options).wait(0.02)
    refusing(desk)
    desk.answered.clear()
    Replays(tmp_path / "replay").ask(list(DeadLetterStore(tmp_path / "dead-letters").dead_letters()))
    flow = flow_of(desk, [*given, (3, "c"), (4, "d")], 2, on_error="dead_letter")
    run_live(flow.graph, penstock_spark, options).wait(0.02)
    assert sorted((body["id"], status) for body, status in desk.answered) == [(2, 200), (3, 200), (4, 200)]


@pytest.mark.spark
def test_a_server_that_refuses_everything_stops_the_flow(desk: Desk, penstock_spark: Any) -> None:
    refusing(desk, "bad")
    with pytest.raises(RunError, match="refuses all 21 rows of one batch"):
        run_bounded(flow_of(desk, [(i, "bad") for i in range(21)], on_error="skip").graph, penstock_spark)


class Paper(RowSink):
    """A sink of the user's own that takes no long words."""

    capabilities = Capabilities(writes=True, deliveries=("at_least_once", "at_most_once"), row_errors="reported")

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        found, staged = rows_of(frame), StagedBatch()
        refused = [Refusal(at, row, "too long") for at, row in enumerate(found) if len(row.word) > 3]
        staged.rows = len(found) - len(refused)
        return staged, refused


@pytest.mark.spark
def test_a_connector_of_ones_own_may_refuse_rows(penstock_spark: Any) -> None:
    flow = ps.Flow("own")
    words = flow.source("in", ps.items([(1, "a"), (2, "longer")], "id bigint, word string"))
    words.sink("out", ps.connector(Paper()), delivery="at_least_once", on_error="dead_letter")
    (report,) = run_bounded(flow.graph, penstock_spark)
    assert (report.dead, report.taken["out"]) == ({"out": 1}, 1)


def test_rows_that_are_delivered_one_by_one_hold_at_least_once() -> None:
    flow = ps.Flow("own")
    words = flow.source("in", ps.items([], "id bigint, word string"))
    words.sink("out", ps.connector(Paper()), delivery="at_most_once", on_error="skip")
    with pytest.raises(Impossible, match="holds delivery='at_least_once'; 'at_most_once' was asked for"):
        Sinks(flow.graph, "life")
