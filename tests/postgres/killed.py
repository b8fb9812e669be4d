"""A flow into a server, killed at named places until it gets through, with a reader that looks on all the while."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.faults import SETTING

PER_FILE = 200
PROGRAM = """
import sys
from pathlib import Path
import penstock as ps
import penstock.graph.endpoints.servers as servers
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

folder, url = Path(sys.argv[1]), sys.argv[2]
flow = ps.Flow("killed")
numbers = flow.source("numbers", ps.files(folder / "in", "json", "id bigint, word string", files_per_batch=1))
numbers.sink("out", {sink}, delivery="exactly_once")
run_live(flow.graph, session("killed", "local[2,4]"), RunSpec(checkpoint=folder / "checkpoint", mode="once")).wait()
"""


class Killed:
    """The flow and its input."""

    def __init__(self, folder: Path, url: str, sink: str, files: int = 5) -> None:
        self.folder, self.url, self.files = folder, url, files
        (folder / "in").mkdir()
        (folder / "program.py").write_text(PROGRAM.replace("{sink}", sink))
        for at in range(files):
            rows = range(at * PER_FILE, (at + 1) * PER_FILE)
            text = "".join(f'{{"id": {i}, "word": "w{i}"}}\n' for i in rows)
            (folder / "in" / f"{at:03d}.json").write_text(text)

    @property
    def expected(self) -> list[int]:
        return list(range(self.files * PER_FILE))

    def run(self, crash: str = "") -> int:
        """Runs the flow; gives how its process ended."""
        command = [sys.executable, str(self.folder / "program.py"), str(self.folder), self.url]
        process = subprocess.Popen(
            command, env={**os.environ, SETTING: crash}, start_new_session=True, stderr=subprocess.DEVNULL, text=True
        )
        try:
            return process.wait(300)
        finally:
            self._end(process)

    def _end(self, process: subprocess.Popen[str]) -> None:
        """The JVM of a killed driver ends by itself; if it has not, it is ended."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


@contextmanager
def watching(count: Callable[[], int]) -> Iterator[list[int]]:
    """Counts what a reader sees, again and again."""
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            seen.append(count())

    reader = threading.Thread(target=look)
    reader.start()
    try:
        yield seen
    finally:
        done.set()
        reader.join()


def whole(seen: list[int]) -> None:
    """Holds when a reader saw whole batches only, and never fewer than before."""
    assert [n for n in seen if n % PER_FILE] == []
    assert seen == sorted(seen)
