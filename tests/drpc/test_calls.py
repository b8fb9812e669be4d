"""Calls through the log and by HTTP, answered by a flow that runs in this process."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from typer.testing import CliRunner

from penstock.bridge.drpc.app import application
from penstock.bridge.drpc.calls import CallLimits, Calls, Refused
from penstock.bridge.guard import Guard
from penstock.bridge.listening import listening_socket
from penstock.drpc import CallError, Client, LogClient
from penstock.errors import SetupError
from penstock.log import Log
from penstock.testing import LocalDRPC
from tests.command_line import make_app
from tests.drpc.test_functions import doubling
from tests.waiting import wait_until


@contextlib.contextmanager
def served(folder: Path) -> Iterator[list[int]]:
    """A flow in a thread: it takes what is in the topic as a batch, and answers when the batch is committed. Yields the sizes of batches."""
    drpc, ended, sizes = LocalDRPC(doubling()), threading.Event(), list[int]()
    with Log(folder) as log:
        with contextlib.suppress(Exception):
            log.create_topic("drpc.double.requests")
            log.create_topic("drpc.double.answers")
        requests, answers = log.consumer(None, ["drpc.double.requests"]), log.producer()

        def run() -> None:
            seen = 0
            while not ended.is_set():
                records = [json.loads(r.value or b"") for r in requests.poll(timeout=0.05)]
                if records:
                    sizes.append(len(records))
                    drpc.driver.push("drpc-double", *((r["drpc_request"], r["args"]) for r in records))
                    rows = drpc.driver.barrier()["drpc-double-answers"]
                    answers.send_many(
                        "drpc.double.answers",
                        [json.dumps(dict(zip(r.names, r, strict=True))).encode() for r in rows[seen:]],
                    )
                    seen = len(rows)

        thread = threading.Thread(target=run)
        thread.start()
        yield sizes
        ended.set()
        thread.join()


@contextlib.contextmanager
def listening(calls: Calls, guard: Guard) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(application(calls, guard), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def got(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_calls_through_the_log_are_answered_each_with_its_own(tmp_path: Path) -> None:
    with served(tmp_path), LogClient(tmp_path, timeout=300) as client, ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda n: client.execute("double", str(n)), range(100)))
    assert found == [str(2 * n + 1) for n in range(100)]


def test_a_call_that_fails_and_one_that_nobody_answers(tmp_path: Path) -> None:
    with (
        served(tmp_path),
        LogClient(tmp_path, timeout=300) as client,
        pytest.raises(CallError, match="ValueError: invalid"),
    ):
        client.execute("double", "x")
    with LogClient(tmp_path, timeout=0.05) as client, pytest.raises(CallError, match=r"has not answered in 0.05 s"):
        client.execute("double", "1")


def test_a_request_that_waits_is_answered_when_its_flow_starts(tmp_path: Path) -> None:
    with Calls(tmp_path, CallLimits(timeout=300), create=True) as calls:
        _, answer = calls.start("double", "5")
        with served(tmp_path):
            assert answer.result(300) == "11"


def test_the_server_takes_get_and_post_and_refuses_what_is_too_much(tmp_path: Path) -> None:
    with served(tmp_path), Calls(tmp_path, CallLimits(timeout=300, args=20)) as calls, listening(calls, Guard()) as url:
        assert got(f"{url}/health") == (200, "ok")
        assert got(f"{url}/drpc/double/21") == (200, "43")
        assert got(f"{url}/drpc/double/%20%34") == (200, "9")
        assert Client(url).execute("double", "1") == "3"
        status, text = got(f"{url}/drpc/double/x/y")
        assert (status, "ValueError: invalid literal" in text) == (500, True)
        assert got(f"{url}/drpc/double")[0] == 500
        assert got(f"{url}/drpc/unknown/1")[0] == 404
        assert got(f"{url}/drpc/a%20b/1")[0] == 404
        assert got(f"{url}/drpc/double/{'9' * 21}")[0] == 413
        assert got(f"{url}/drpc/double/1", Origin="http://evil.example")[0] == 403
        with pytest.raises(CallError, match="at most 20 bytes"):
            Client(url).execute("double", "9" * 100)
        with pytest.raises(CallError, match="'unknown'"):
            Client(url).execute("unknown")


def test_a_full_queue_and_a_late_answer_are_said_and_leave_room_again(tmp_path: Path) -> None:
    limits = CallLimits(queue=2, timeout=0.2)
    with Calls(tmp_path, limits, create=True) as calls, listening(calls, Guard()) as url:
        calls.start("slow", "1")
        calls.start("slow", "2")
        assert got(f"{url}/drpc/slow/3") == (429, "2 calls of 'slow' wait already; try again")
        for request in list(calls._waiting["slow"]):
            calls.forget("slow", request)
        status, text = got(f"{url}/drpc/slow/4")
        assert (status, "has not answered in 0.2 s" in text) == (504, True)
        assert calls._waiting["slow"] == {}


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    guard = Guard.of("127.0.0.1", "secret")
    with served(tmp_path), Calls(tmp_path, CallLimits(timeout=300)) as calls, listening(calls, guard) as url:
        assert got(f"{url}/drpc/double/1")[0] == 401
        assert got(f"{url}/drpc/double/1", Authorization="Bearer wrong")[0] == 401
        assert Client(url, token="secret").execute("double", "1") == "3"


def test_a_server_that_stops_answers_those_who_wait(tmp_path: Path) -> None:
    calls = Calls(tmp_path, create=True)
    _, answer = calls.start("slow", "1")
    calls.close()
    with pytest.raises(CallError, match="was stopped"):
        answer.result(1)


@pytest.mark.parametrize("wrong", [{"queue": 0}, {"timeout": 0}, {"args": -1}])
def test_limits_are_positive(wrong: Any) -> None:
    with pytest.raises(SetupError, match="above 0"):
        CallLimits(**wrong)


def test_refusals_have_a_status(tmp_path: Path) -> None:
    with Calls(tmp_path) as calls, pytest.raises(Refused) as caught:
        calls.call("nobody", "")
    assert caught.value.status == 404


def run(*words: str) -> Any:
    return CliRunner().invoke(make_app(["drpc"]), ["drpc", *words])


def test_the_command_calls_through_the_log_and_by_a_server(tmp_path: Path) -> None:
    with served(tmp_path), Calls(tmp_path, CallLimits(timeout=300)) as calls, listening(calls, Guard()) as url:
        assert run("call", "double", "4", "--log", str(tmp_path)).output == "9\n"
        assert run("call", "double", "5", "--url", url).output == "11\n"
        failed = run("call", "double", "x", "--url", url)
        assert failed.exit_code == 1
    away = run("call", "double", "x", "--url", "http://127.0.0.1:9", "--timeout", "1s")
    assert away.exit_code == 1
    assert run("serve", "--host", "0.0.0.0").exit_code == 2
    assert run("serve", "--token-env", "NO_SUCH_TOKEN").exit_code == 2


@pytest.mark.parametrize(
    "hostile",
    [
        b"nonsense",
        b"[" * 100_000,
        b"1",
        b'{"drpc_request":[1],"result":"1","error":null}',
        b'{"drpc_request":"x"}',
        None,
    ],
)
def test_what_is_no_answer_is_passed_over(tmp_path: Path, hostile: bytes | None) -> None:
    with served(tmp_path), LogClient(tmp_path, timeout=300) as client, Log(tmp_path) as log:
        assert client.execute("double", "1") == "3"
        log.producer().send("drpc.double.answers", hostile).result()
        assert client.execute("double", "2") == "5"


def test_those_who_wait_are_told_when_answers_cannot_be_read(tmp_path: Path) -> None:
    with Calls(tmp_path, CallLimits(timeout=300), create=True) as calls:
        _, answer = calls.start("slow", "1")
        calls._give_up("slow", OSError("the disk is gone"))
        with pytest.raises(CallError, match="cannot be read: the disk is gone"):
            answer.result(1)
        calls.start("slow", "2")
        assert len(calls._waiting["slow"]) == 1


def test_half_a_character_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with Calls(tmp_path, create=True) as calls:
        with pytest.raises(Refused, match="half of a character") as caught:
            calls.start("double", "\ud800")
        assert caught.value.status == 400
    with pytest.raises(CallError, match="half of a character"):
        Client("http://127.0.0.1:1").execute("double", "\ud800")


def test_a_port_that_is_taken_is_told_in_words(tmp_path: Path) -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        found = run("serve", "--port", str(port), "--log", str(tmp_path))
    assert found.exit_code == 1
    assert f"cannot listen at 127.0.0.1:{port}: address already in use" in found.output
    assert "Traceback" not in found.output


def test_what_answers_and_is_no_server_is_told(tmp_path: Path) -> None:
    with listening_socket("127.0.0.1", 0) as other:
        other.listen()

        def babble() -> None:
            with other.accept()[0] as peer:
                peer.sendall(b"220 mail\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        with pytest.raises(CallError, match="no answer from"):
            Client(f"http://127.0.0.1:{other.getsockname()[1]}").execute("double", "1")
        thread.join()


class Leaving(Future[str]):
    """The answer of somebody who gives up just after it was asked whether it still waits."""

    def done(self) -> bool:
        before = super().done()
        self.cancel()
        return before


def test_who_gives_up_when_the_answer_comes_takes_nobody_elses_away(tmp_path: Path) -> None:
    with Calls(tmp_path, create=True) as calls:
        gone, _ = calls.start("double", "1")
        request, answer = calls.start("double", "2")
        calls._waiting["double"][gone] = Leaving()
        with Log(tmp_path) as log:
            producer = log.producer()
            for each in (gone, request):
                value = json.dumps({"drpc_request": each, "result": "4", "error": None}).encode()
                producer.send("drpc.double.answers", value).result()
        assert answer.result(300) == "4"
