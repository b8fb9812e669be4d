"""`penstock run` and its kin as a user starts them: real processes, real Spark."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.command_line import make_app

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PENSTOCK = str(BIN / "penstock")
LOCAL = ("--master", "local[2]")

GROWING = """
from pathlib import Path
import penstock as ps

HERE = Path(__file__).parent
flow = ps.Flow("growing")
lines = flow.source("lines", ps.files(HERE / "in", "text"))
words = lines.flat_map("split", lambda row: row.value.split(), schema="word string")
words.sink("words", ps.write_files(HERE / "words", "json"))
words.key_by("word").count("n").sink("counts", ps.write_files(HERE / "counts", "json"))
"""

FAILING = """
import penstock as ps

def parse(row):
    return (int(row.text),)

flow = ps.Flow("failing")
lines = flow.source("lines", ps.items(["1", "2", "x3"], "text string"))
lines.map("parse", parse, "n bigint").sink("out", ps.console())

if __name__ == "__main__":
    ps.run(flow, once=True, master="local[2]")
"""

SLOW = """
import time
from pathlib import Path
import penstock as ps

def wait(row):
    (Path(__file__).parent / "began").touch()
    time.sleep(120)
    return row

flow = ps.Flow("slow")
flow.source("lines", ps.items(["1"], "text string")).map("wait", wait).sink("out", ps.console())
"""


def environment() -> dict[str, str]:
    """A shell in which the environment of the tests is active, and nothing of Spark is set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return {**kept, "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}


def call(*command: str, cwd: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=timeout, check=False
    )


def start(*command: str, cwd: Path) -> subprocess.Popen[str]:
    """Starts a command; its two outputs go to files in the folder."""
    with (cwd / "stdout.txt").open("w") as out, (cwd / "stderr.txt").open("w") as errors:
        return subprocess.Popen(command, cwd=cwd, env=environment(), stdout=out, stderr=errors, text=True)


def until(check: Callable[[], Any], process: subprocess.Popen[str], seconds: float = 300) -> Any:
    """Waits until something holds, while a process lives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = check()
        if found:
            return found
        assert process.poll() is None, "the process ended too early"
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder of JSON files, in the order of the batches."""
    return [json.loads(line) for p in sorted(folder.glob("*.json")) for line in p.read_text().splitlines()]


def test_word_count_over_bounded_data(tmp_path: Path) -> None:
    done = call(PENSTOCK, "run", "--batch", *LOCAL, str(ROOT / "examples" / "word_count.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^to +13$", done.stdout, re.MULTILINE)
    assert "word-count: 1 batch" in done.stderr
    assert "WARN" not in done.stderr
    assert "log4j" not in done.stderr
    assert not (tmp_path / ".penstock").exists()


@dataclass(frozen=True)
class Watched:
    """A live run that was watched by its logs and metrics, and ended by SIGTERM."""

    folder: Path
    code: int
    seconds_to_stop: float
    metrics: str
    events: list[dict[str, Any]]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, penstock_spark: Any) -> Watched:
    """A live run over a folder that grows, with JSON logs and metrics, stopped in the middle; then the rest, in the session of all tests."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "growing.py").write_text(GROWING)
    (folder / "in").mkdir()
    (folder / "in" / "0.txt").write_text("a b\n")
    command = (PENSTOCK, "run", *LOCAL, "--json-logs", "--metrics-port", "0", "--interval", "200ms", "growing.py")
    process = start(*command, cwd=folder)
    try:
        for at in range(1, 4):
            until(partial(_has_batches, folder, at), process)
            _put(folder / "in", f"{at}.txt", "a c\n" * at)
        address = re.search(r'"address": "(.+?)"', (folder / "stderr.txt").read_text())
        assert address is not None
        metrics = urllib.request.urlopen(address[1], timeout=300).read().decode()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=300)
        took = time.monotonic() - began
    finally:
        process.kill()
    _put(folder / "in", "9.txt", "z\n")
    with contextlib.chdir(folder):
        assert CliRunner().invoke(make_app(), ["run", "--once", "-q", "growing.py"]).exit_code == 0
    events = [json.loads(line) for line in (folder / "stderr.txt").read_text().splitlines()]
    return Watched(folder, code, took, metrics, events)


def _has_batches(folder: Path, least: int) -> bool:
    return (folder / "stderr.txt").read_text().count('"event": "batch"') >= least


def _put(folder: Path, name: str, text: str) -> None:
    aside = folder / f".{name}"
    aside.write_text(text)
    aside.rename(folder / name)


def test_sigterm_ends_a_live_run_well_and_soon(watched: Watched) -> None:
    assert watched.code == 0
    assert watched.seconds_to_stop < 30


def test_a_restart_loses_and_doubles_nothing(watched: Watched) -> None:
    words = [r["word"] for r in rows(watched.folder / "words")]
    assert sorted(words) == sorted("ab" + "ac" * 6 + "z")
    assert {r["word"]: r["n"] for r in rows(watched.folder / "counts")} == {"a": 7, "b": 1, "c": 6, "z": 1}


def test_json_logs_tell_the_life_of_a_run(watched: Watched) -> None:
    names = [e["event"] for e in watched.events]
    assert names[:3] == ["metrics", "starting", "started"]
    assert names[-1] == "stopped"
    batches = [e for e in watched.events if e["event"] == "batch"]
    assert [b["batch"] for b in batches] == list(range(len(batches)))
    assert batches[0]["rows"] == 1
    assert batches[0]["steps"]["split"] == {"in": 1, "out": 2}
    assert batches[0]["flow"] == "growing"
    assert batches[0]["seconds"] > 0
    assert set(batches[0]["phases"]) >= {"plan", "compute", "state", "sinks", "log"}
    assert watched.events[-1]["batches"] == len(batches)


def test_the_metrics_endpoint_answers_during_a_run(watched: Watched) -> None:
    assert 'penstock_up{flow="growing"} 1.0' in watched.metrics
    read = re.search(r'penstock_rows_in_total\{flow="growing",source="lines"\} (\S+)', watched.metrics)
    assert read is not None
    assert float(read[1]) >= 1
    assert 'penstock_rows_total{direction="out",flow="growing",step="split"}' in watched.metrics
    assert "penstock_batch_seconds_bucket" in watched.metrics
    assert 'penstock_batch_phase_seconds{flow="growing",phase="compute"}' in watched.metrics


@pytest.mark.slow  # test_here.py runs it in the session of all tests, where what Java says is seen too
def test_a_failing_step_of_a_program_shows_the_users_traceback_and_nothing_of_java(tmp_path: Path) -> None:
    """Run by Python itself; `penstock run` is in `test_here.py`."""
    (tmp_path / "failing.py").write_text(FAILING)
    done = call(sys.executable, "failing.py", cwd=tmp_path)
    assert done.returncode == 1
    check_failure(done.stderr)


def check_failure(said: str) -> None:
    """The user's step, record and line, and no word of Java."""
    assert "step 'parse' (made at failing.py:9) failed: ValueError: invalid literal for int()" in said
    assert "record:   Row(text='x3')" in said
    assert 'failing.py", line 5, in parse' in said
    for noise in ("py4j", "org.apache", "java.lang", "ERROR", "\tat "):
        assert noise not in said


def test_a_file_runs_under_spark_submit_with_its_settings(tmp_path: Path) -> None:
    (tmp_path / "submitted.py").write_text(
        "import penstock as ps\n"
        "from pyspark.sql import SparkSession\n"
        "def show(rows, batch):\n"
        "    spark = SparkSession.getActiveSession()\n"
        "    print('saw', sorted(r.n for r in rows), spark.sparkContext.master, spark.conf.get('spark.sql.ansi.enabled'))\n"
        "flow = ps.Flow('submitted')\n"
        "numbers = flow.source('n', ps.items([1, 2], 'n int'))\n"
        "numbers.map('add', lambda r: (r.n + 1,)).sink('out', ps.callback(show))\n"
        "ps.run(flow, batch=True)\n"
    )
    submit = (str(BIN / "spark-submit"), "--master", "local[1]", "--conf", "spark.sql.ansi.enabled=false")
    done = call(*submit, "submitted.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "saw [2, 3] local[1] false" in done.stdout


def test_a_batch_that_lasts_too_long_does_not_hold_up_sigterm(tmp_path: Path) -> None:
    process, took = _interrupt(tmp_path, signal.SIGTERM)
    assert process.returncode == 0, (tmp_path / "stderr.txt").read_text()
    assert took < 60, "the batch takes two minutes"


@pytest.mark.slow  # the same without Spark: tests/jobs/test_signals.py
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    process, took = _interrupt(tmp_path, signal.SIGINT, signal.SIGINT)
    assert process.returncode == 130, "a run that ends by itself ends with 0"
    assert took < 60


def _interrupt(folder: Path, *signals: signal.Signals) -> tuple[subprocess.Popen[str], float]:
    """Starts a flow whose batch takes minutes, sends signals into it, and says how long it took to end."""
    (folder / "slow.py").write_text(SLOW)
    process = start(PENSTOCK, "run", *LOCAL, "slow.py", cwd=folder)
    try:
        until((folder / "began").exists, process)
        began = time.monotonic()
        for number in signals:
            process.send_signal(number)
            time.sleep(0.5)
        process.wait(timeout=300)
        return process, time.monotonic() - began
    finally:
        process.kill()


def test_in_a_terminal_the_demo_draws_itself_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    """Keys go in and the picture comes out through a pseudo terminal, as in a real one."""
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    command = (PENSTOCK, "demo", "--rate", "200", *LOCAL)
    settings = {**environment(), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=settings, stdin=its, stdout=its, stderr=its, start_new_session=True, text=True
    )
    os.close(its)
    drawn = bytearray()
    threading.Thread(target=_drain, args=(mine, drawn), daemon=True).start()
    try:
        until(lambda: b"trending " in drawn and b"mentions" in drawn, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 0
    finally:
        process.kill()
    text = drawn.decode(errors="replace")
    assert "starting Spark" in text
    assert "rows/s" in text
    assert "stopping" in text
    assert re.search(r"trending-hashtags: \d+ batch(es)? in", text[-300:])
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def _drain(end: int, into: bytearray) -> None:
    """Reads a terminal until it closes."""
    with contextlib.suppress(OSError):
        while part := os.read(end, 65536):
            into.extend(part)
    os.close(end)
