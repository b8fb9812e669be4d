"""The HTTP bridge, over real sockets."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.bridge import HttpBridge
from penstock.bridge.guard import Guard
from penstock.bridge.limits import Limits
from penstock.bridge.request_format import RequestFormat
from penstock.errors import SetupError
from penstock.log import Log, UnknownTopic
from penstock.log.produce.partitioner import partition_for
from penstock.log.storage import files
from tests.bridge.serving import Client, everything, held_disk, raw, serving, stored, until

NDJSON = "application/x-ndjson"
JSON = "application/json"


def http(log: Log, topic: str = "t", limits: Limits | None = None, guard: Guard | None = None, **taking: Any) -> Any:
    return serving(lambda: HttpBridge(log, topic, taking=RequestFormat(**taking), guard=guard, limits=limits))


def test_a_body_is_a_record_and_the_answer_says_where_it_is(log: Log) -> None:
    with http(log) as bridge, Client(bridge.port) as client:
        answers = [client.post(b"hello"), client.post(b'{"a": 1}', kind=JSON)]
    assert [a.status for a in answers] == [200, 200]
    assert answers[1].json() == {"records": 1, "positions": [{"partition": 0, "offset": 1, "records": 1}]}
    assert [r.value for r in log.read("t", 0, 0)] == [b"hello", b'{"a": 1}']


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (NDJSON, b'{"a": 1.50}\r\n\n[2]\n"x"'),
        ("application/json; charset=utf-8", b' [ {"a": 1.50} ,[2],"x" ] '),
        ("application/cloudevents-batch+json", b'[{"a": 1.50},[2],"x"]'),
    ],
)
def test_many_records_in_one_body_are_one_batch_and_keep_their_bytes(log: Log, kind: str, body: bytes) -> None:
    with http(log) as bridge, Client(bridge.port) as client:
        assert client.post(body, kind=kind).positions == [(0, 0, 3)]
    assert [r.value for r in log.read("t", 0, 0)] == [b'{"a": 1.50}', b"[2]", b'"x"']
    assert len(list(log._partition("t", 0).batches(0))) == 1


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (NDJSON, b'{"a": 1}\n{"a": \n', "line 2: not JSON"),
        (JSON, b'[{"a": 1}, {]', "not JSON"),
        (JSON, b'[{"a": 1}] x', "expected nothing after the array"),
        (JSON, b"[1 2]", "expected , or ] at character 3"),
        (JSON, b'{"a": NaN}', "NaN is no number"),
        (JSON, b"\xff", "byte 0 is not UTF-8"),
        (JSON, b"[" * 100_000, "not JSON"),
        (JSON, b"9" * 5000, "not JSON"),
        (JSON, b"[]", "holds no record"),
        ("", b"", "holds no record"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_whole(log: Log, kind: str, body: bytes, text: str) -> None:
    with http(log) as bridge, Client(bridge.port) as client:
        answer = client.post(body, kind=kind)
        assert answer.status == 400
        assert text in answer.json()["error"]
        assert client.post(b"next").positions == [(0, 0, 1)]


def test_keys_come_from_a_field_and_choose_the_partition(log: Log) -> None:
    rows = [{"user": {"id": f"u{n}"}, "n": n} for n in range(6)]
    with http(log, "two", key_field="user.id") as bridge, Client(bridge.port) as client:
        answer = client.post(json.dumps(rows).encode(), "/topics/two", JSON)
        missing = client.post(b'{"user": 3}', "/topics/two", JSON)
    found = {r.key: (p, r.offset) for p in (0, 1) for r in log.read("two", p, 0)}
    assert {k: p for k, (p, _) in found.items()} == {
        f"u{n}".encode(): partition_for(f"u{n}".encode(), 2) for n in range(6)
    }
    assert sorted(answer.positions) == [(p, 0, sum(q == p for q, _ in found.values())) for p in (0, 1)]
    assert missing.status == 400
    assert "no field 'user.id'" in missing.json()["error"]


def test_keys_and_kept_headers_come_from_the_request(log: Log) -> None:
    with http(log, key_header="X-Device", keep_headers=["X-Kind", "X-None"]) as bridge, Client(bridge.port) as client:
        assert client.post(b"1", X_Device="d7", X_Kind="temp").status == 200
        assert client.post(b"1").status == 400
    (record,) = log.read("t", 0, 0)
    assert record.key == b"d7"
    assert record.headers == (("X-Kind", b"temp"),)


def test_a_compacted_topic_wants_keys(log: Log) -> None:
    log.create_topic("prices", cleanup="compact")
    with http(log, "prices") as bridge, Client(bridge.port) as client:
        assert "compacted" in client.post(b"1", "/topics/prices").json()["error"]


def test_a_topic_that_is_not_there_is_refused_at_the_start(log: Log) -> None:
    with pytest.raises(UnknownTopic, match="no topic 'tt'"), http(log, "tt"):
        pass


def test_no_answer_before_the_record_is_on_disk(log: Log) -> None:
    with http(log) as bridge, Client(bridge.port) as client, held_disk() as disk:
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(client.post(b"x").status))
        asking.start()
        assert disk.reached.wait(300)
        time.sleep(0.2)
        assert answers == []
        assert log.offsets("t")[0] == (0, 0)
        disk.go.set()
        asking.join(300)
        assert answers == [200]
        assert log.offsets("t")[0] == (0, 1)


def test_requests_that_wait_share_one_fsync(log: Log) -> None:
    with http(log) as bridge, held_disk() as disk, ThreadPoolExecutor(9) as pool:
        first = pool.submit(_post, bridge.port, b"first")
        assert disk.reached.wait(300)
        others = [pool.submit(_post, bridge.port, b"%d" % n) for n in range(8)]
        until(lambda: bridge.server.intake.room.requests == 9)
        disk.go.set()
        positions = {tuple(f.result(300).positions[0]) for f in [first, *others]}
        assert positions == {(0, n, 1) for n in range(9)}
        assert disk.syncs == 2


def test_when_too_much_waits_requests_are_told_to_come_again(log: Log) -> None:
    with http(log, limits=Limits(waiting=2)) as bridge, held_disk() as disk, ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(_post, bridge.port, b"%d" % n) for n in range(2)]
        until(lambda: bridge.server.intake.room.requests == 2)
        with Client(bridge.port) as client:
            refused = client.post(b"too much")
            assert refused.status == 429
            assert refused.headers["retry-after"] == "1"
            disk.go.set()
            assert [f.result(300).status for f in waiting] == [200, 200]
            until(lambda: bridge.server.intake.room.requests == 0)
            assert client.post(b"again").status == 200
    assert sorted(r.value or b"" for r in log.read("t", 0, 0)) == [b"0", b"1", b"again"]


def test_bytes_that_are_held_are_bounded_too(log: Log) -> None:
    with http(log, limits=Limits(held=100_000)) as bridge, held_disk() as disk, ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(_post, bridge.port, bytes(100_000))
        until(lambda: bridge.server.intake.room.requests == 1)
        with Client(bridge.port) as client:
            assert client.post(b"x").status == 429
        disk.go.set()
        assert waiting.result(300).status == 200
    assert bridge.server.intake.room.size == 0


def test_a_disk_that_fails_is_said_and_nothing_is_answered_for(log: Log, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(call: files.Call) -> None:
        if call.op == "sync":
            raise OSError(28, "No space left on device", "/secret/place")

    with http(log) as bridge, Client(bridge.port) as client:
        files.watch(broken)
        try:
            answer = client.post(b"lost")
            assert answer.status == 503
            assert "secret" not in answer.body.decode()
            assert answer.headers["retry-after"] == "1"
            assert client.ask("GET", "/health").status == 503
        finally:
            files.watch(None)
        assert client.post(b"kept").positions == [(0, 0, 1)]
        assert client.ask("GET", "/health").json() == {"status": "ok"}
    assert "No space left" in capfd.readouterr().err


def test_many_clients_at_once(log: Log) -> None:
    def send(number: int) -> dict[tuple[int, int], bytes]:
        with Client(bridge.port) as client:
            values = [b"%d.%d" % (number, n) for n in range(40)]
            answers = [client.post(v, "/topics/two") for v in values]
            return {a.positions[0][:2]: v for a, v in zip(answers, values, strict=True)}

    with http(log, "two") as bridge, ThreadPoolExecutor(16) as pool:
        reported = {place: value for found in pool.map(send, range(16)) for place, value in found.items()}
    assert len(reported) == 640
    assert reported == stored(log.path, "two")


def test_a_key_seen_before_is_answered_as_before(log: Log) -> None:
    with http(log) as bridge, Client(bridge.port) as client:
        first = client.post(b"a\n", kind="text/plain", Idempotency_Key="k")
        again = client.post(b"a\n", kind="text/plain", Idempotency_Key="k")
        other = client.post(b"b\n", kind="text/plain", Idempotency_Key="k")
        bad = client.post(b"b", Idempotency_Key="x" * 256)
    assert first.body == again.body
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert (other.status, bad.status) == (422, 400)
    assert log.offsets("t")[0] == (0, 1)


def test_a_key_is_known_whatever_came_between(log: Log) -> None:
    """Records without keys go to the partitions in turns; those with an idempotency key always to the same."""
    with http(log, "two") as bridge, Client(bridge.port) as client:
        answers = []
        for n in range(4):
            answers.append(client.post(b"same", "/topics/two", Idempotency_Key="k").body)
            for _ in range(n):
                client.post(b"%d" % n, "/topics/two")
    assert len(set(answers)) == 1
    assert sum(end for _, end in log.offsets("two").values()) == 7


def test_a_key_is_known_after_a_restart(log: Log) -> None:
    body = b'[{"k": "a"}, {"k": "b"}, {"k": "c"}, {"k": "d"}]'
    answers = []
    for _ in range(2):
        with http(log, "two", key_field="k") as bridge, Client(bridge.port) as client:
            answers.append(client.post(body, "/topics/two", JSON, Idempotency_Key="k"))
    assert answers[0].body == answers[1].body
    assert len(answers[0].positions) == 2
    assert sum(end for _, end in log.offsets("two").values()) == 4


def test_what_reached_one_partition_only_is_completed_when_it_comes_again(log: Log) -> None:
    """The disk fails at the second partition; the client tries again, with a new bridge."""
    body = b'[{"k": "a"}, {"k": "b"}, {"k": "c"}, {"k": "d"}]'

    def broken(call: files.Call) -> None:
        if call.op == "sync" and "/1/" in call.path:
            raise OSError(5, "Input/output error")

    with http(log, "two", key_field="k") as bridge, Client(bridge.port) as client:
        files.watch(broken)
        try:
            assert client.post(body, "/topics/two", JSON, Idempotency_Key="k").status == 503
        finally:
            files.watch(None)
    assert sum(end for _, end in log.offsets("two").values()) in (1, 2, 3)
    with http(log, "two", key_field="k") as bridge, Client(bridge.port) as client:
        assert client.post(body, "/topics/two", JSON, Idempotency_Key="k").status == 200
    assert sorted((r.key or b"") for p in (0, 1) for r in log.read("two", p, 0)) == [b"a", b"b", b"c", b"d"]


def test_the_same_key_twice_at_once_is_stored_once(log: Log) -> None:
    with http(log) as bridge, held_disk() as disk, ThreadPoolExecutor(9) as pool:
        first = pool.submit(_post, bridge.port, b"first")
        assert disk.reached.wait(300)
        others = [pool.submit(_post, bridge.port, b"same", Idempotency_Key="k") for _ in range(4)]
        wrong = pool.submit(_post, bridge.port, b"other", Idempotency_Key="j")
        until(lambda: bridge.server.intake.room.requests == 6)
        disk.go.set()
        assert first.result(300).status == wrong.result(300).status == 200
        assert len({f.result(300).body for f in others}) == 1
        assert sorted("idempotent-replayed" in f.result().headers for f in others) == [False, True, True, True]
    assert sorted(r.value or b"" for r in log.read("t", 0, 0)) == [b"first", b"other", b"same"]


def test_old_keys_are_forgotten(log: Log) -> None:
    with http(log, limits=Limits(remember=2)) as bridge, Client(bridge.port) as client:
        for key in "abca":
            client.post(b"x", Idempotency_Key=key)
        assert log.offsets("t")[0] == (0, 4)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /topics/t HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"POST /topics/u HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 404),
        (b"POST /topics/..%2ft HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 404),
        (b"POST /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\n\r\n", 411),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 411),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nx", 411),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\nx", 413),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length : 1\r\n\r\nx", 400),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n", 411),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nA: b\nC: d\r\n\r\n", 411),
        (b"POST /topics/t HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nA: \x00\r\n\r\n", 400),
        (b"POST /topics/t HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nConnection: close\r\n"
         b"Content-Length: 1\r\n\r\nx", 415),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(log: Log, request_: bytes, status: int) -> None:
    with http(log) as bridge:
        answer = raw(bridge.port, request_)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        assert log.offsets("t")[0] == (0, 0)


def test_a_connection_serves_many_requests_also_after_a_refusal_and_at_once(log: Log) -> None:
    ask = b"POST /topics/%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n%b\r\nx"
    data = ask % (b"t", b"") + ask % (b"u", b"") + ask % (b"t", b"Connection: close\r\n")
    with http(log) as bridge:
        answer = raw(bridge.port, data)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"404", b"200"]
    assert log.offsets("t")[0] == (0, 2)


def test_a_client_that_asks_first_is_told_to_go_on(log: Log) -> None:
    ask = b"POST /topics/%b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    with http(log) as bridge:
        assert raw(bridge.port, ask % b"t" + b"x").startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
        assert raw(bridge.port, ask % b"u").startswith(b"HTTP/1.1 404")


def test_slow_clients_are_cut_off_and_others_served(log: Log) -> None:
    # A client that is held up between connecting and its first byte is idle too.
    limits = Limits(head_seconds=0.4, idle_seconds=2.0, least_rate=1 << 20)
    head = b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
    with http(log, limits=limits) as bridge, ThreadPoolExecutor(12) as pool:
        slow = [pool.submit(raw, bridge.port, data) for data in (b"POST /top", head + b"12345", b"") for _ in range(4)]
        began = time.monotonic()
        assert _post(bridge.port, b"quick").status == 200
        answers = [f.result(300) for f in slow]
        assert time.monotonic() - began < 3000
    assert [a[:12] for a in answers] == [b"HTTP/1.1 408"] * 8 + [b""] * 4
    assert log.offsets("t")[0] == (0, 1)
    assert bridge.server.intake.room.size == 0


def test_connections_too_many_are_refused(log: Log) -> None:
    with http(log, limits=Limits(connections=2)) as bridge, Client(bridge.port) as one, Client(bridge.port) as two:
        assert one.post(b"1").status == two.post(b"2").status == 200
        with Client(bridge.port) as three:
            answer = three.ask("GET", "/health")
            assert answer.status == 503
            assert answer.headers["retry-after"] == "1"
        one.close()
        until(lambda: _ok(bridge.port))


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(log: Log) -> None:
    with http(log) as bridge:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", bridge.port)) as made:
                made.sendall(b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
        assert _post(bridge.port, b"x").positions == [(0, 0, 1)]
        until(lambda: not bridge.server.connections)
        assert bridge.server.intake.room.size == 0


def test_a_token_is_asked_for_and_health_is_not_guarded(log: Log) -> None:
    with http(log, guard=Guard.of("0.0.0.0", "s3cret")) as bridge, Client(bridge.port) as client:
        wrong = [client.post(b"x"), client.post(b"x", Authorization="Bearer s3cre"), client.post(b"x", "/topics/other")]
        assert [(a.status, a.headers.get("www-authenticate")) for a in wrong] == [(401, "Bearer")] * 3
        assert b"s3cret" not in b"".join(a.body for a in wrong)
        assert client.post(b"x", Authorization="Bearer s3cret", Host="anything.example").status == 200
        assert client.ask("GET", "/health").status == 200


def test_web_pages_cannot_hand_in_records(log: Log) -> None:
    with http(log) as bridge:
        for headers in ({"Origin": "http://localhost"}, {"Host": "evil.example"}, {"Origin": "null"}):
            with Client(bridge.port) as client:
                assert client.post(b"x", **headers).status == 403
        assert log.offsets("t")[0] == (0, 0)


def test_an_address_that_others_reach_needs_a_token_or_a_word() -> None:
    with pytest.raises(SetupError, match=r"others can reach 0\.0\.0\.0, so a token is needed"):
        Guard.of("0.0.0.0")
    assert Guard.of("0.0.0.0", anyone=True).trusts_host("any.example")
    assert not Guard.of("::1").asks


def test_a_stop_finishes_what_was_taken_and_closes_the_rest(log: Log) -> None:
    with http(log) as bridge, Client(bridge.port) as idle, held_disk() as disk, ThreadPoolExecutor(3) as pool:
        assert idle.ask("GET", "/health").status == 200
        waiting = [pool.submit(_post, bridge.port, b"%d" % n) for n in range(3)]
        until(lambda: bridge.server.intake.room.requests == 3)
        bridge.stop.set()
        until(lambda: bridge.server.stopping)
        with pytest.raises(OSError):
            _post(bridge.port, b"late")
        disk.go.set()
        assert [f.result(300).status for f in waiting] == [200] * 3
        assert all(f.result().headers["connection"] == "close" for f in waiting)
        until(lambda: bridge.done is not None)
        assert bridge.done
    assert log.offsets("t")[0] == (0, 3)


def test_a_stop_lets_a_request_that_has_begun_come_to_its_end(log: Log) -> None:
    head = b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
    with http(log) as bridge, socket.create_connection(("127.0.0.1", bridge.port), timeout=300) as made:
        made.sendall(head + b"ha")
        until(lambda: bridge.server.intake.room.size == 2)
        bridge.stop.set()
        until(lambda: bridge.server.stopping)
        time.sleep(0.2)
        made.sendall(b"lf")
        assert everything(made).startswith(b"HTTP/1.1 200 OK")
    assert [r.value for r in log.read("t", 0, 0)] == [b"half"]


def test_a_stop_does_not_wait_for_ever(log: Log) -> None:
    made = serving(lambda: HttpBridge(log, "t"), seconds=3.0)
    with held_disk() as disk, ThreadPoolExecutor(1) as pool, made as bridge:
        pool.submit(_post, bridge.port, b"x").add_done_callback(lambda f: f.exception())
        assert disk.reached.wait(300)
        began = time.monotonic()
        bridge.stop.set()
        until(lambda: bridge.done is not None)
        assert bridge.done is False
        assert time.monotonic() - began < 300


def _post(port: int, body: bytes, **headers: str) -> Any:
    with Client(port) as client:
        return client.post(body, **headers)


def _ok(port: int) -> bool:
    with Client(port) as client:
        return client.ask("GET", "/health").status == 200
