"""Ports for servers of one's own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.jobs import ports
from penstock.jobs.ports import LOOPBACK, answers, free_port


def test_a_free_port_is_none_that_a_connection_could_get() -> None:
    found = {free_port() for _ in range(20)}
    assert max(found) < ports._first_of_connections()
    assert not any(answers(port) for port in found)


def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    with socket.create_server((LOOPBACK, port)):
        turns = iter([port, port, port - 1])
        monkeypatch.setattr(ports, "_is_free", lambda number: number != port)
        monkeypatch.setattr("random.randrange", lambda *_: next(turns))
        assert free_port() == port - 1
        assert answers(port)


@pytest.mark.parametrize("text", ["1024 60999", "nonsense", ""])
def test_where_connections_get_every_port_the_system_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "range").write_text(text)
    monkeypatch.setattr(ports, "_RANGE", tmp_path / "range")
    assert ports._first_of_connections() == (1024 if text.startswith("1024") else 32_768)
    assert free_port() > 1024
