"""Hostile records that come over the network: each is stored as it came or refused, and what is stored is output or a dead letter."""

from __future__ import annotations

import random
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.bridge import HttpBridge, SocketBridge
from penstock.log import Log
from penstock.testing import run_local
from tests.breadth import some_now
from tests.bridge.serving import Client, everything, serving
from tests.same import hostile

pytestmark = pytest.mark.timeout(900)
KINDS = ("application/json", "application/x-ndjson", "text/plain", "")


def hostile_lines(many: int) -> list[bytes]:
    """Lines of JSON and of CSV, almost, or not at all, and bytes that are no text."""
    texts = [*hostile.json_texts(many // 2), *hostile.csv_lines(many // 4)]
    good = [b'{"id":1}', b'{"id":2,"s":"a"}', b"1,,a,,,,"]
    made = [*(text.encode() for text in texts), *hostile.raw_values(many - len(texts), good)]
    return [line.replace(b"\n", b" ").removesuffix(b"\r") for line in made]


def sent_over_tcp(port: int, lines: list[bytes]) -> list[str]:
    """The answers of a bridge to lines that are sent while they are read."""
    with socket.create_connection(("127.0.0.1", port), timeout=300) as made, ThreadPoolExecutor(1) as sending:

        def send() -> None:
            made.sendall(b"".join(line + b"\n" for line in lines))
            made.shutdown(socket.SHUT_WR)

        sent = sending.submit(send)
        answers = everything(made).decode().splitlines()
        sent.result()
    return answers


def outcome(path: Path, form: str, schema: str | None) -> tuple[int, list[Any]]:
    """How many records of the topic are output, and the dead letters."""
    flow = ps.Flow("hostile")
    flow.source("in", ps.topic("t", schema, format=form, path=path), on_error="dead_letter").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    found = run_local(flow)
    return len(found["out"]), found["dead"]


def values(path: Path) -> list[bytes | None]:
    with Log(path) as log:
        return [r.value for p in log.offsets("t") for r in log.read("t", p, 0)]


@pytest.mark.parametrize("many", some_now((2_000, 20_000), 1))
def test_lines_over_tcp_are_output_or_dead_letters(tmp_path: Path, many: int) -> None:
    lines = hostile_lines(many)
    with Log(tmp_path / "log") as log:
        log.create_topic("t", 2)
        with serving(lambda: SocketBridge(log, "t")) as bridge:
            answers = sent_over_tcp(bridge.port, lines)
    assert [a.split()[0] for a in answers] == ["ok"] * len(lines)
    assert Counter(values(tmp_path / "log")) == Counter(lines)
    for form, schema in (("json", hostile.SCHEMA), ("text", None)):
        good, dead = outcome(tmp_path / "log", form, schema)
        assert good + len(dead) == len(lines)
        assert good
        assert all(letter.cause and letter.position for letter in dead)


@pytest.mark.parametrize("many", some_now((1_000, 5_000), 1))
def test_bodies_over_http_are_stored_whole_or_refused(tmp_path: Path, many: int) -> None:
    """A body of several records is stored with all of them, or with none."""
    chance, stored, refused = random.Random(7), 0, 0
    with Log(tmp_path / "log") as log:
        log.create_topic("t", 2)
        with serving(lambda: HttpBridge(log, "t")) as bridge, Client(bridge.port) as client:
            for body in hostile_lines(many):
                answer = client.post(body, kind=chance.choice(KINDS))
                assert answer.status in (200, 400), (answer, body[:200])
                stored += answer.json()["records"] if answer.status == 200 else 0
                refused += answer.status == 400
    kept = values(tmp_path / "log")
    assert len(kept) == stored
    assert refused
    good, dead = outcome(tmp_path / "log", "json", hostile.SCHEMA)
    assert good + len(dead) == stored
    assert all(letter.cause for letter in dead)
