"""`penstock bridge`: what it refuses before it listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.log_commands import Commands, said


@pytest.fixture
def bridge(penstock: Commands) -> Commands:
    penstock("topics", "create", "t")
    return penstock


@pytest.mark.parametrize("kind", ["http", "socket"])
def test_an_address_that_others_reach_needs_a_token(bridge: Commands, kind: str) -> None:
    done = bridge("bridge", kind, "--topic", "t", "--host", "0.0.0.0", code=2)
    assert "others can reach 0.0.0.0, so a token is needed" in said(done.output)


def test_a_token_that_is_not_there_is_not_taken_for_none(bridge: Commands, tmp_path: Path) -> None:
    done = bridge("bridge", "http", "--topic", "t", "--token-env", "NO_SUCH", code=2)
    assert "the variable NO_SUCH holds no token" in said(done.output)
    done = bridge("bridge", "http", "--topic", "t", "--token-file", tmp_path / "none", code=2)
    assert "cannot be read" in said(done.output)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("http", "--key-header", "A", "--key-field", "b"), "exclude each other"),
        (("socket", "--key-separator", ":", "--key-field", "b"), "exclude each other"),
        (("http", "--token-env", "A", "--token-file", "b"), "exclude each other"),
        (("http", "--max-body", "much"), "'much' is not a size"),
        (("http", "--max-body", "2GiB"), "between 1 byte and 256MiB"),
        (("socket", "--idle", "long"), "such as 500ms, 20s, 5m, 1h or 1d, got 'long'"),
    ],
)
def test_wrong_options(bridge: Commands, options: tuple[str, ...], text: str) -> None:
    assert text in said(bridge("bridge", options[0], "--topic", "t", *options[1:], code=2).output)


def test_a_topic_or_a_log_that_is_not_there(bridge: Commands, tmp_path: Path) -> None:
    assert "no topic 'tt'; did you mean 't'" in said(bridge("bridge", "http", "--topic", "tt", code=1).output)
    assert "is not there" in said(bridge("bridge", "http", "--topic", "t", "--log", tmp_path / "no", code=1).output)


def test_a_port_that_is_taken(bridge: Commands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "address already in use" in said(bridge("bridge", "http", "--topic", "t", "--port", port, code=1).output)
