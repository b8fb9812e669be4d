"""The runs of a pattern in its state, and its automaton in the description of a flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock as ps
import penstock.state
from penstock.cli.flows.checkpoint import BEGUN
from penstock.compiler.describe import describe
from penstock.compiler.state_schemas import schemas_of
from penstock.graph.graph import Graph
from penstock.graph.nodes import Port
from penstock.graph.picture.text import as_text
from penstock.graph.times import Times
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.command_line import make_app

EVENTS = [("ada", "order", 3), ("bob", "order", 5), ("ada", "order", 4), ("bob", "sent", 0)]


def graph() -> Graph:
    flow = ps.Flow("shop")
    events = flow.source("events", ps.items([], "user string, kind string, n int"))
    steps = ps.pattern("p").begin("order", "kind = 'order'").followed_by("sent", "kind = 'sent'", one_or_more=True)
    events.key_by("user").match("paid", steps.followed_by("paid", "kind = 'paid'")).sink("out", ps.console())
    return flow.graph


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The state after one batch."""
    return saved(tmp_path, graph())


def saved(tmp_path: Path, flow: Graph) -> Path:
    """The state of the step `paid` after one batch."""
    store = StateStore(LocalStorage(tmp_path / "state"), schemas=schemas_of(flow))
    state = FileState(store.begin(0, {"paid": 1}, -1)["paid"], 0)
    times = Times(0, 0, 1_000_000, 0)
    timers = state.timers(times)
    pipeline = Pipeline([kernel_of(flow.node("paid"), flow)], [Port("paid")])
    pipeline.open(Context(state=lambda step: state, timers=lambda step: timers))
    pipeline.begin(lambda step: times)
    port = flow.node("paid").inputs[0]
    columns: list[list[Any]] = [list(column) for column in zip(*EVENTS, strict=True)]
    hashes = [hash(user) & (1 << 62) - 1 for user in columns[0]]
    list(pipeline.take(port, Chunk(flow.output(port).schema, columns=columns, key_hashes=hashes)))
    list(pipeline.barrier())
    state.save({clock: pipeline.wake(clock) for clock in ("event", "processing")})
    store.publish(0)
    (tmp_path / BEGUN).write_text("{}")
    return tmp_path


def test_state_has_a_row_for_each_run(checkpoint: Path) -> None:
    rows = penstock.state.read(checkpoint, "paid").to_pylist()
    found = sorted((row["user"], row["waits_for"], [(e["stage"], e["n"]) for e in row["taken"]]) for row in rows)
    assert found == [
        ("ada", "sent", [("order", 3)]),
        ("ada", "sent", [("order", 4)]),
        ("bob", "paid or sent", [("order", 5), ("sent", 0)]),
    ]
    assert all(row["since"] is not None for row in rows)


def test_runs_are_counted_by_what_they_wait_for(checkpoint: Path) -> None:
    (found,) = penstock.state.run_summaries(checkpoint)
    assert (found.step, found.keys, found.runs) == ("paid", 2, 3)
    assert found.waiting == {"sent": 2, "paid or sent": 1}
    assert found.oldest is not None
    assert found.bytes > 0


def test_runs_of_several_patterns_have_their_names(tmp_path: Path) -> None:
    flow = ps.Flow("shop")
    events = flow.source("events", ps.items([], "user string, kind string, n int"))
    steps = ps.pattern("p").begin("order", "kind = 'order'")
    patterns = {
        "paid": steps.followed_by("paid", "kind = 'paid'"),
        "back": ps.pattern("q").begin("sent", "kind = 'sent'").followed_by("back", "kind = 'back'"),
    }
    events.key_by("user").patterns("paid", patterns).sink("out", ps.console())
    rows = penstock.state.read(saved(tmp_path, flow.graph), "paid").to_pylist()
    found = sorted((row["user"], row["pattern"], row["waits_for"], [e["n"] for e in row["taken"]]) for row in rows)
    assert found == [
        ("ada", "paid", "paid", [3]),
        ("ada", "paid", "paid", [4]),
        ("bob", "back", "back", [0]),
        ("bob", "paid", "paid", [5]),
    ]
    (summary,) = penstock.state.run_summaries(tmp_path)
    assert (summary.keys, summary.runs, summary.waiting) == (2, 4, {"paid: paid": 3, "back: back": 1})


def text_graph() -> Graph:
    flow = ps.Flow("shop")
    events = flow.source("events", ps.items([], "user string, kind string, n int"))
    text = ps.pattern_text("every a=order -> b=sent -> paid where timer:within(1 hour)", types="kind")
    events.key_by("user").match("paid", text).sink("out", ps.console())
    return flow.graph


def test_pattern_text_has_a_row_for_each_match_that_was_begun(tmp_path: Path) -> None:
    rows = penstock.state.read(saved(tmp_path, text_graph()), "paid").to_pylist()
    found = sorted((row["user"], [(e["stage"], e["kind"], e["n"]) for e in row["taken"]]) for row in rows)
    assert found == [
        ("ada", [("a", "order", "3")]),
        ("ada", [("a", "order", "4")]),
        ("bob", [("a", "order", "5"), ("b", "sent", "0")]),
    ]
    (summary,) = penstock.state.run_summaries(tmp_path)
    assert (summary.keys, summary.runs, summary.oldest) == (2, 3, min(row["since"] for row in rows))


def test_the_command_shows_runs(checkpoint: Path) -> None:
    def run(*words: str) -> str:
        done = CliRunner().invoke(make_app(), ["state", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "paid or sent: 1, sent: 2" in run("runs", str(checkpoint))
    assert json.loads(run("runs", str(checkpoint), "--format", "json"))[0]["runs"] == 3
    shown = [json.loads(line) for line in run("show", str(checkpoint), "--format", "json").splitlines()]
    assert {row["user"] for row in shown} == {"ada", "bob"}
    only = run("show", str(checkpoint), "--key", "bob")
    assert "paid or sent" in only
    assert "ada" not in only


def test_the_description_draws_the_automaton() -> None:
    described = describe(graph())
    lines = as_text(described).splitlines()
    assert any(line.strip().startswith("| order [start]: take order if order -> sent") for line in lines)
    drawn = next(step["drawing"] for step in described["steps"] if step["name"] == "paid")
    assert "end [final]" in drawn
    assert all("drawing" not in step for step in described["steps"] if step["kind"] != "match")
