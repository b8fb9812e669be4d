"""What a command says when it cannot: a heading that fits, a cause, what to do; and words that agree with their number."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.output.progress import Tally, _headline, plain_line, summary
from penstock.cli.tools.verify import shown
from penstock.live.report import BatchReport
from penstock.spark.jvm.noise import quiet
from penstock.spark.live.status import RunStatus
from penstock.testing.verify import Tally as Verified
from tests.command_line import make_app
from tests.spark.checkpoints import batch, begin

runner = CliRunner()


def run(*words: object, code: int) -> str:
    done = runner.invoke(make_app(), list(map(str, words)), env={"COLUMNS": "300"})
    assert done.exit_code == code, done.output
    return done.output


def test_looking_at_a_checkpoint_is_not_headed_as_a_run_that_stopped(tmp_path: Path) -> None:
    batch(begin(tmp_path / "shop"), 0, {"a": 1})
    for words in (["state", "show", tmp_path / "shop", "--step", "cuont"], ["state", "show", tmp_path]):
        out = run(*words, code=1)
        assert "The flow stopped" not in out
        assert "This flow cannot run" not in out


def test_a_wrong_name_for_verify_is_wrong_usage() -> None:
    for words in (["verify", "postgress"], ["verify", "log", "--window", "F99"], ["verify", "no_such:Class"]):
        out = run(*words, code=2)
        assert "Wrong usage" in out
        assert "flow" not in out.split("\n", 1)[0]


@pytest.mark.parametrize("sink, package", [("postgres", "psycopg"), ("redis", "redis")])
def test_verify_without_the_extra_says_which_is_missing(
    sink: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    out = run("verify", sink, "--records", 10, "--kills", 0, code=1)
    assert f"pip install 'penstock[{sink}]'" in out
    assert "Unexpected" not in out


@pytest.mark.parametrize("kind", ["http", "socket"])
def test_a_port_that_is_taken_is_told_in_words(kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        runner.invoke(make_app(), ["topics", "create", "words", "--log", str(tmp_path / "log")])
        token = ["--open"] if kind == "http" else []
        out = run("bridge", kind, "--topic", "words", "--log", tmp_path / "log", "--port", port, *token, code=1)
    assert f"cannot listen at 127.0.0.1:{port}: address already in use" in out
    assert "--port" in out
    assert "Errno" not in out


def test_one_is_not_many() -> None:
    flow = ps.Flow("one")
    flow.source("in", ps.items([1], "n int")).sink("out", ps.console())
    tally = Tally(flow.graph)
    tally.add(BatchReport(0, {"in": 1}, {"out": (1, 1)}))
    assert "1 batch " in _headline(tally, tally.began, "").plain
    assert "1 row in" in _headline(tally, tally.began, "").plain
    assert "  1 row in (" in plain_line(tally)
    assert "1 row in, " in summary(tally)
    assert summary(tally).endswith("out 1 row")
    assert RunStatus("running", 0, 0, batch=0, rows=1, tasks=1).text.startswith("batch 0: 1 row, 0 of 1 task, ")
    assert summary(tally).startswith("one: 1 batch in")
    assert shown("log", Verified(1, 1, 1, kills={"F1": 1}), 1.0).startswith(
        "log: 1 record in 1 batch, 1 kill (F1 1), 1 read"
    )


TRACE = "Traceback (most recent call last):\n"
DAEMON = '  File "/v/site-packages/pyspark/daemon.py", line 228, in manager\n    code = worker(sock)\n'


def test_the_daemons_own_tracebacks_are_left_out_and_others_are_not() -> None:
    theirs = [TRACE, *DAEMON.splitlines(keepends=True), "EOFError\n"]
    users = [TRACE, *DAEMON.splitlines(keepends=True), '  File "/home/me/flow.py", line 1, in f\n', "EOFError\n"]
    other = [TRACE, *DAEMON.splitlines(keepends=True), "MemoryError\n"]
    assert list(quiet(["a\n", *theirs, *users, "b\n", *other, *theirs])) == ["a\n", *users, "b\n", *other]
    assert list(quiet([TRACE, "  cut"])) == [TRACE, "  cut"]
    assert list(quiet(["Picked up JAVA_TOOL_OPTIONS: x\n", "x\n"])) == ["x\n"]


def test_tracebacks_that_two_workers_write_at_the_same_time_are_looked_at_together() -> None:
    one = [*DAEMON.splitlines(keepends=True), "BrokenPipeError: [Errno 32] Broken pipe\n"]
    users = ['  File "/home/me/flow.py", line 1, in f\n', "ValueError: x\n"]
    assert list(quiet(["a\n", TRACE, TRACE, *one, *one, "b\n"])) == ["a\n", "b\n"]
    assert list(quiet([TRACE, TRACE, *one, *users, "b\n"])) == [TRACE, TRACE, *one, *users, "b\n"]


def test_a_worker_whose_jvm_went_away_says_nothing_of_it() -> None:
    main = '  File "/x/pyspark.zip/pyspark/sql/streaming/python_streaming_source_runner.py", line 4, in <module>\n    x()\n'
    close = '  File "/usr/lib/python3.11/contextlib.py", line 9, in __exit__\n  File "/x/pyspark/worker_util.py", line 5, in get\n  File "/usr/lib/python3.11/socket.py", line 7, in write\n'
    first = [TRACE, *main.splitlines(True), "EOFError\n"]
    then = [TRACE, *main.splitlines(True), *close.splitlines(True), "BrokenPipeError: [Errno 32] Broken pipe\n"]
    chain = ["\n", "During handling of the above exception, another exception occurred:\n", "\n"]
    assert list(quiet(["a\n", *first, *chain, *then, "done\n", "\n"])) == ["a\n", "done\n", "\n"]
    assert list(quiet([*main.splitlines(True), *chain])) == [*main.splitlines(True), *chain]


@pytest.mark.parametrize("command", [("server", "--port", "0"), ("jobs", "list"), ("tokens", "list")])
def test_a_command_that_runs_no_flow_does_not_speak_of_a_run(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("no directory")
    found = CliRunner().invoke(make_app([command[0]]), [*command, "--data", str(tmp_path / "file")])
    assert found.exit_code == 1
    assert "This cannot be done" in found.output
    assert "Unexpected error" not in found.output
