"""A job that somebody looks at: its throughput with a console open, against its throughput while there is no manager at all.

One job runs through: its driver goes on when the manager ends, so both are measured in one warm JVM, in turns. The console is what a page of a job asks for: the events
of all jobs and of the job, its history every two seconds, and a sample of a stream.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.console import server
from benchmarks.harness import Bar, Result, folder
from penstock.client import Client
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.directory import SUPERVISOR

NAME = "watched"
ABOUT = "a job's throughput with a console open, against that without a manager"
JOB, LINES, AHEAD, PATIENCE = "watched", 60_000, 12, 300.0
FLOW = """
import penstock as ps

flow = ps.Flow("watched")
lines = flow.source("lines", ps.files(INPUT, format="text", files_per_batch=1))
words = lines.flat_map("split", lambda r: [(w,) for w in r.value.split()], schema="word string")
words.key_by("word").count("many").sink("out", ps.console(rows=1))
"""


class Input:
    """Files that are there before the job needs them: names of one file, as many as it takes."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.made = directory / "lines", 0
        self.directory.mkdir()
        self.file = directory / "lines.txt"
        words = [f"w{n * 7_919 % 5_000}" for n in range(10_000)]
        numbers = itertools.cycle(range(0, 10_000, 10))
        self.file.write_text("".join(f"{' '.join(words[n : n + 10])}\n" for n in itertools.islice(numbers, LINES)))

    def fill(self, batches: int) -> None:
        """Stays ahead of the job."""
        while self.made < batches + AHEAD:
            os.link(self.file, self.directory / f"{self.made:06d}.txt")
            self.made += 1


def batches(log: Path) -> dict[int, float]:
    """The seconds of each batch that had a whole file, by its number, as the driver has logged them."""
    found = {}
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        with suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            if told["event"] == "batch" and told["rows"] == LINES:
                found[int(told["batch"])] = float(told["seconds"])
    return found


def next_batches(log: Path, given: Input, many: int, skip: int = 1) -> list[float]:
    """The seconds of the next batches, without the first of them: it was under way."""
    first = max(batches(log), default=-1) + 1 + skip
    deadline = time.monotonic() + PATIENCE
    while True:
        found = batches(log)
        given.fill(max(found, default=0))
        if first + many - 1 in found:
            return [found[number] for number in range(first, first + many) if number in found]
        if time.monotonic() > deadline:
            raise RuntimeError(log.read_text(errors="replace")[-2_000:])
        time.sleep(0.1)


@contextmanager
def console(url: str, token: str) -> Iterator[None]:
    """What an open page asks for."""
    ended = threading.Event()
    streams = ("jobs", f"jobs/{JOB}", f"jobs/{JOB}/sample?step=split")
    threads = [threading.Thread(target=_follow, args=(f"{url}/api/v1/live/{path}", token, ended)) for path in streams]
    threads.append(threading.Thread(target=_ask, args=(f"{url}/api/v1/jobs/{JOB}/history?span=5m", token, ended)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(PATIENCE)


def _opened(url: str, token: str) -> urllib.request.Request:
    return urllib.request.Request(url, headers={"Authorization": f"Bearer {token.strip()}"})


def _follow(url: str, token: str, ended: threading.Event) -> None:
    with urllib.request.urlopen(_opened(url, token), timeout=PATIENCE) as answer:
        while not ended.is_set() and answer.readline():
            pass


def _ask(url: str, token: str, ended: threading.Event) -> None:
    while not ended.wait(2.0):
        with urllib.request.urlopen(_opened(url, token), timeout=PATIENCE) as answer:
            answer.read()


def run(quick: bool) -> Result:
    warm, many, rounds = (4, 5, 2) if quick else (15, 15, 6)
    with folder() as directory:
        given, root = Input(directory), directory / "data"
        given.fill(0)
        log = Manager(root).directory(JOB).log
        file = directory / "watched.py"
        file.write_text(FLOW.replace("INPUT", repr(str(given.directory))))
        try:
            with server(root) as (_, url, token):
                client = Client(url, token.strip())
                client.submit(JOB, client.bundle(pack([(file.name, file)])), file.name)
                next_batches(log, given, warm)
            taken: dict[str, list[float]] = {"alone": [], "watched": []}
            for _ in range(rounds):
                taken["alone"].append(_rate(next_batches(log, given, many)))
                with server(root) as (_, url, token), console(url, token):
                    taken["watched"].append(_rate(next_batches(log, given, many)))
        finally:
            _end(root)
    ratio = statistics.median(w / a for w, a in zip(taken["watched"], taken["alone"], strict=True))
    figures = {f"{name}_rows_per_second": statistics.median(found) for name, found in taken.items()}
    return Result(NAME, {"rounds": rounds, **figures}, (Bar("throughput watched over alone", ratio, at_least=0.98),))


def _rate(seconds: list[float]) -> float:
    return LINES / statistics.median(seconds)


def _end(root: Path) -> None:
    """Ends the job: its supervisor follows what is wanted, without a manager too."""
    directory = Manager(root).directory(JOB)
    epoch, job = directory.wanted_of()
    if job is not None:
        directory.write_wanted(job.wished("stopped", is_forced=True), epoch)
    deadline = time.monotonic() + 60.0
    while directory.is_held(SUPERVISOR) and time.monotonic() < deadline:
        time.sleep(0.1)
