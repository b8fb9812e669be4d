"""The manager and its console: 50 jobs with 100 steps each that report every second. What the manager takes, how quickly it answers, how much a page weighs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.harness import Bar, Result, folder
from penstock.client import Client
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.directory import SUPERVISOR
from penstock.server.assets import assets

NAME = "console"
ABOUT = "the manager with 50 jobs of 100 steps that report every second: processor, memory, p99 of every GET, weight of the page"
JOBS, STEPS = 50, 100
PATIENCE = 60.0
PAINTS = 5
BROWSERS = ("/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chromium", "google-chrome")
_PAINTED = (
    "[performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now(), performance.now()]"
)


class Reports:
    """Jobs that are supervised, as the locks say, and whose drivers report every second; all of them in this process."""

    def __init__(self, manager: Manager) -> None:
        self.manager, self.at = manager, 0
        self.began = time.time()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def make(self, stack: ExitStack) -> None:
        """Makes the jobs, and holds what their supervisors would hold."""
        bundle = self.manager.bundles.put(pack([]))
        for number in range(JOBS):
            job = Job(f"job-{number:02d}", "bench", bundle, "flow.py", created=time.time())
            self.manager.records.add(job, "bench")
            directory = self.manager.directory(job.name)
            directory.make()
            directory.write_wanted(job)
            directory.write_course(Course("running", 1, since=time.time()))
            directory.write_plan(plan())
            lock = directory.lock(SUPERVISOR)
            assert lock is not None
            stack.enter_context(lock)

    def _run(self) -> None:
        while not self.ended.wait(max(0.0, self.began + self.at - time.time())):
            self.at += 1
            for number in range(JOBS):
                self.manager.directory(f"job-{number:02d}").write_progress(progress(self.at, number, self.began))


def plan() -> dict[str, object]:
    outputs: list[dict[str, object]] = [
        {"port": "out", "schema": "n bigint", "fields": [], "mode": "append-only", "updates": None, "changes": None}
    ]
    steps = [
        {"name": f"step-{n:03d}", "kind": "map", "runs": "python", "settings": {}, "outputs": outputs}
        for n in range(STEPS)
    ]
    streams = [
        {"from": {"step": f"step-{n:03d}", "port": "out"}, "to": f"step-{n + 1:03d}", "schema": "n bigint"}
        for n in range(STEPS - 1)
    ]
    return {"flow": "bench", "steps": steps, "streams": streams, "stages": [], "totals": {"steps": STEPS}}


def progress(at: int, number: int, began: float) -> dict[str, object]:
    """What a driver says after so many seconds."""
    rows = at * (1_000 + number)
    figures = {"batches": at, "rows": rows, "seconds": at * 0.4, "phase:plan": at * 0.1, "phase:compute": at * 0.3}
    measured: dict[str, float] = {}
    for step in range(STEPS):
        name = f"step-{step:03d}"
        figures |= {f"in:{name}": rows + step, f"out:{name}": rows - step, f"busy:{name}": at * 0.01}
        measured |= {f"skew:{name}": 1.2, f"tasks:{name}": 4, f"kept:{name}": at * 10, f"bytes:{name}": at * 640}
    last = {"batch": at, "rows": 1_000, "seconds": 0.4, "lag": {"step-000": {"records": 5}}}
    told = {"pid": number + 10, "generation": 1, "flow": "bench", "phase": "running", "batches": at, "rows": rows}
    totals = {"figures": figures, "watermarks": {}, "measured": measured}
    return {
        **told,
        "last": last,
        "lags": [["step-000", "records", 5]],
        "totals": totals,
        "began": began,
        "time": time.time(),
    }


@contextmanager
def server(root: Path) -> Iterator[tuple[int, str, str]]:
    """The server in a process of its own: its pid, its address, a token."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    (root / "server.json").unlink(missing_ok=True)  # of one before
    command = [sys.executable, "-m", "penstock.cli.main", "server", "--data", str(root), "--port", "0"]
    with (root.parent / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (root / "server.json").exists() or not (root / "admin.token").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((root.parent / "server.log").read_text())
            time.sleep(0.05)
        yield process.pid, json.loads((root / "server.json").read_text())["url"], (root / "admin.token").read_text()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def processor(pid: int) -> float:
    """The seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """The memory of a process in MiB."""
    line = next(s for s in Path(f"/proc/{pid}/status").read_text().splitlines() if s.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def asked(url: str, token: str, path: str) -> float:
    """The seconds until a request is answered."""
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token.strip()}"})
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        answer.read()
    return time.perf_counter() - began


ROUTES = (
    "/api/v1/me",
    "/api/v1/jobs",
    "/api/v1/jobs/job-07",
    "/api/v1/jobs/job-07/plan",
    "/api/v1/jobs/job-07/failure",
    "/api/v1/jobs/job-07/history?span=5m",
    "/api/v1/jobs/job-07/history?span=1h",
    "/api/v1/jobs/job-07/history?span=all",
    "/api/v1/jobs/job-07/history?span=5m&step=step-050",
    "/api/v1/jobs/job-07/events",
    "/api/v1/jobs/job-07/advice",
    "/api/v1/jobs/job-07/checkpoints",
    "/api/v1/pool-uses",
    "/api/v1/alerts",
    "/api/v1/logs",
    "/api/v1/metrics",
    "/api/v1/jobs/job-07/log",
    "/api/v1/live/jobs?events=1",
    "/api/v1/live/jobs/job-07?events=1",
    "/",
    "/app.js",
)


def run(quick: bool) -> Result:
    quiet, rounds = (15.0, 10) if quick else (60.0, 70)
    with folder() as directory, ExitStack() as stack:
        manager = Manager(directory / "data")
        with manager.opened():  # the server opens it then
            reports = Reports(manager)
            reports.make(stack)
        reports.thread.start()
        try:
            with server(manager.root) as (pid, url, token):
                measured = _measured(pid, url, token, quiet, rounds)
                return _result(*measured, quiet, drawn(url, token))
        finally:
            reports.ended.set()
            reports.thread.join()


def _measured(pid: int, url: str, token: str, quiet: float, rounds: int) -> tuple[float, float, list[float]]:
    """The share of a core and the memory with nobody asking, and the seconds of all answers."""
    time.sleep(5.0)  # it starts
    before = processor(pid)
    time.sleep(quiet)
    share, taken = (processor(pid) - before) / quiet, memory(pid)
    answers = [asked(url, token, path) for _ in range(rounds) for path in ROUTES]
    if os.environ.get("BENCH_SHOW"):
        for at, path in enumerate(ROUTES):
            print(path, [round(x * 1000) for x in sorted(answers[at :: len(ROUTES)])])
    return share, max(taken, memory(pid)), answers


def drawn(url: str, token: str) -> tuple[float, float] | None:
    """The seconds until a browser shows something of the page of a job, and until its graph is there, the middle of some; None without a browser."""
    program = next((there for place in BROWSERS if (there := shutil.which(place))), None)
    if program is None or importlib.util.find_spec("playwright") is None:
        return None
    from playwright.sync_api import sync_playwright

    found: list[tuple[float, float]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(PAINTS):
            page = browser.new_context().new_page()
            page.goto(Client(url, token.strip()).sign_in_link())
            page.wait_for_selector("main h1")
            page.goto("about:blank")
            page.goto(f"{url}/#/jobs/job-07")
            page.wait_for_selector("g.step")
            first, last = page.evaluate(_PAINTED)
            found.append((float(first), float(last)))
            page.context.close()
        browser.close()
    return statistics.median(f / 1_000 for f, _ in found), statistics.median(g / 1_000 for _, g in found)


def _result(
    share: float, taken: float, answers: list[float], quiet: float, paint: tuple[float, float] | None
) -> Result:
    weight = sum(len(asset.packed) for path, asset in assets().items() if path != "/") / 1_000
    p99 = statistics.quantiles(answers, n=100)[98]
    figures = {"seconds": quiet, "requests": len(answers), "p50_ms": statistics.median(answers) * 1_000}
    painted: tuple[Bar, ...] = ()
    if paint is not None:
        figures["graph_drawn_seconds"] = paint[1]
        painted = (Bar("first paint of a job page in s", paint[0], at_most=1.0),)
    bars = (
        Bar("share of a core", share, at_most=0.25),
        Bar("memory in MiB", taken, at_most=300.0),
        Bar("p99 of a GET in ms", p99 * 1_000, at_most=100.0),
        Bar("weight of all files in kB, compressed", weight, at_most=500.0),
        *painted,
    )
    return Result(NAME, figures, bars)
