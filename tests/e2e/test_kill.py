"""A driver killed at any moment goes on where it was: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
import penstock as ps
from penstock.spark.run import RunOptions, run_live
from penstock.spark.session import session

class Numbered(ps.Process):
    nth = ps.value(int, default=0)
    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        yield row.word, self.nth

def flow_of(folder: Path) -> ps.Flow:
    flow = ps.Flow("kill")
    lines = flow.source("lines", ps.files(folder / "in", "text", files_per_batch=1))
    words = lines.flat_map("split", lambda r: r.value.split(), "word string")
    words.key_by("word").process("number", Numbered, "word string, nth bigint").sink("numbered", ps.write_files(folder / "numbered", "json"))
    words.key_by("word").count("n").sink("counts", ps.write_files(folder / "counts", "json"))
    return flow

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run = run_live(flow_of(folder).graph, session("kill", "local[2,4]"), RunOptions(checkpoint=folder / "checkpoint", once=True))
    print("started", flush=True)
    run.wait()
    print("done", flush=True)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    """The program in a process group of its own."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(folder)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def wait_for_start(process: subprocess.Popen[str]) -> None:
    """Returns when the flow runs."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "started":
            return
    raise AssertionError("the program ended before it started")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder of JSON files, in the order of the batches."""
    return [json.loads(line) for p in sorted(folder.glob("*.json")) for line in p.read_text().splitlines()]


def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    rolled = random.Random(7)
    (tmp_path / "in").mkdir()
    texts = [" ".join(rolled.choices("abcdefgh", k=50)) for _ in range(12)]
    for at, text in enumerate(texts):
        (tmp_path / "in" / f"{at:03d}.txt").write_text(text + "\n")
    for _ in range(3):
        process = start(tmp_path)
        wait_for_start(process)
        time.sleep(rolled.uniform(0.2, 3.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    last = start(tmp_path)
    output, _ = last.communicate(timeout=200)
    assert last.returncode == 0, output
    expected = Counter(" ".join(texts).split())
    counts = {r["word"]: r["n"] for r in rows(tmp_path / "counts")}
    assert counts == expected
    numbered = Counter((r["word"], r["nth"]) for r in rows(tmp_path / "numbered"))
    assert numbered == Counter((w, i) for w, n in expected.items() for i in range(1, n + 1))
