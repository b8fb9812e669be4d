"""From the loss of a driver to the first new output of one that stood by: the leader is killed on the same machine, or falls silent as on another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Bar, Result, folder

NAME = "takeover"
ABOUT = "from the loss of a driver to the first new output of one that stood by"
PATIENCE = 300.0
LEASE = 10.0
FLOW = """\
from pathlib import Path
import penstock as ps

flow = ps.Flow("relay")
words = flow.source("words", ps.files({words!r}, "json", "word string"))
words.key_by("word").count("n").sink("out", ps.write_files({out!r}, "json"))
"""


def run(quick: bool) -> Result:
    with folder() as directory:
        killed = seconds_of(directory / "killed", signal.SIGKILL)
    with folder() as directory:
        silent = seconds_of(directory / "silent", signal.SIGSTOP)
    figures = {f"killed_{name}": value for name, value in killed.items()} | {
        f"silent_{name}": value for name, value in silent.items()
    }
    bars = (
        Bar("seconds from a kill to the lease, on the same machine", killed["lease_seconds"], at_most=LEASE / 2),
        Bar("seconds after the end of the lease", silent["seconds"] - LEASE, at_most=30.0),
    )
    return Result(NAME, {"lease": LEASE, **figures}, bars)


def seconds_of(directory: Path, loss: signal.Signals) -> dict[str, float]:
    """Runs a leader and a standby, takes the leader away, and returns the seconds until the standby has the lease, and until a record put then has come out."""
    (directory / "in").mkdir(parents=True)
    text = FLOW.format(words=str(directory / "in"), out=str(directory / "out"))
    (directory / "flow.py").write_text(text)
    with driver(directory, "leader") as leader:
        put(directory, "before")
        wait_for(directory, "before")
        with driver(directory, "standby", "--standby"):
            wait_until(lambda: "standing by" in (directory / "standby.txt").read_text())
            os.killpg(leader.pid, loss)
            began = time.perf_counter()
            put(directory, "after")
            wait_until(lambda: "taking over" in (directory / "standby.txt").read_text())
            leased = time.perf_counter() - began
            wait_for(directory, "after")
            return {"lease_seconds": leased, "seconds": time.perf_counter() - began}


@contextmanager
def driver(directory: Path, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in a process group of its own."""
    command = [
        sys.executable,
        "-m",
        "penstock.cli.main",
        "run",
        str(directory / "flow.py"),
        "--progress",
        "plain",
        *options,
    ]
    command += ["--checkpoint", (directory / "shared").as_uri(), "--lease", f"{LEASE:g}s"]
    with (directory / f"{name}.txt").open("wb") as output:
        made = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        yield made
    finally:
        for sent in (signal.SIGCONT, signal.SIGKILL):
            try:
                os.killpg(made.pid, sent)
            except ProcessLookupError:
                break
        made.wait()


def put(directory: Path, word: str) -> None:
    """One more file of input."""
    beside = directory / f"{word}.json"
    beside.write_text(json.dumps({"word": word}) + "\n")
    beside.rename(directory / "in" / beside.name)


def wait_for(directory: Path, word: str) -> None:
    """Waits until a word has come out."""
    wait_until(lambda: any(word in p.read_text() for p in (directory / "out").glob("*.json")))


def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for something."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"it took over {PATIENCE:.0f} s")
        time.sleep(0.01)
