"""Spouts paused from outside: the note in the checkpoint, the command, and the thread of a spout that follows; no JVM."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.connectors.base import SourceContext
from penstock.connectors.process.feed import Feed
from penstock.connectors.process.spout import SpoutSource
from penstock.live.activation import Activation
from tests.command_line import make_app
from tests.spark.checkpoints import begin


def run(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(make_app(["topology"]), ["topology", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output.strip()


def test_the_command_leaves_a_note_that_a_run_finds(tmp_path: Path) -> None:
    begin(tmp_path / "words")
    note = Activation((tmp_path / "words").absolute() / "topology")
    assert (note.is_active, run("status", tmp_path / "words")) == (True, "activated")
    assert run("deactivate", tmp_path / "words") == "deactivated; a run follows before its next batch"
    assert run("deactivate", tmp_path / "words") == "deactivated already"
    assert (note.is_active, run("status", tmp_path / "words", "--json")) == (False, '{\n  "active": false\n}')
    assert run("activate", tmp_path / "words") == "activated; a run follows before its next batch"
    assert note.is_active
    assert "no flow has begun there" in run("deactivate", tmp_path, code=1)


class Numbers(ps.Spout):
    outputs = "n bigint"
    stateful = False
    said: list[str] = []
    called = threading.Event()

    def open(self, context: Any) -> None:
        self._calls = context.register_metric("calls", ps.CountMetric())

    def activate(self) -> None:
        self.said.append("activate")

    def deactivate(self) -> None:
        self.said.append("deactivate")

    def next_tuple(self) -> Any:
        self._calls.increment()
        self.report_error("no connection")
        self.emit(1)
        self.called.set()


def test_the_thread_of_a_spout_follows_and_says_what_its_tasks_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Numbers.said, Numbers.called = [], threading.Event()
    top = ps.Topology("paused")
    top.spout("numbers", Numbers())
    top.sink("out", ps.console(), from_="numbers")
    node = top.graph.sources[0]
    context = SourceContext("numbers", node.endpoint, node.output().schema, tmp_path)
    source = SpoutSource()
    source.is_active = False
    thread = threading.Thread(target=source._run, args=(Feed(tmp_path / "feed", context.schema), context), daemon=True)
    with caplog.at_level(logging.WARNING, "penstock"):
        thread.start()
        assert source.caught_up.wait(300)
        assert (Numbers.said, Numbers.called.is_set()) == ([], False)
        source.is_active = True
        assert Numbers.called.wait(300)
        source.is_active = False
        source.close()
        thread.join(300)
    assert source.failure is None
    assert Numbers.said[0] == "activate"
    assert Numbers.said[-1] == "deactivate"
    metrics, errors = source.reported()
    assert metrics["numbers", 0]["calls"] >= 1
    assert set(errors["numbers", 0]) == {"no connection"}
    assert "spout 'numbers', task 0: no connection" in caplog.text
    assert source.reported() == ({}, {})
