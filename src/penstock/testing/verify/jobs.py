"""Verifies the server of jobs: servers, supervisors and drivers are killed at random while jobs run and are paused, resumed and restarted.

After each round every job must come to be as it is wanted: one that is to run writes more, one that is paused has no driver. At the end nothing may be missing from what they wrote, nothing
may be there twice, and no driver may have met another one of its job.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from penstock.client import Client
from penstock.errors import Impossible, PenstockError, RunError
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.processes.directory import DRIVER, SUPERVISOR, JobDirectory
from penstock.jobs.manager.processes.environment import DATABASE, job_environment
from penstock.log import Log
from penstock.testing.verify.job_driver import COUNTED, LIGHT, TWICE
from penstock.testing.verify.program import TOPIC
from penstock.testing.verify.targets import LogTarget

PATIENCE = 300.0
"""Seconds in which every job must be as it is wanted."""
ASLEEP = 8.0
"""Seconds for which a server is stopped, longer than its lease holds."""
SUPERVISES, DRIVES = "penstock.jobs.manager.processes.supervisor", "penstock.testing.verify.job_driver"
"""The modules that supervisors and drivers run."""
FED = 5
"""Records that a flow with Spark gets at a time, four times a second."""

FLOW = """\
from pathlib import Path
from penstock.testing.verify.job_driver import claim_here
from penstock.testing.verify.program import flow_of
from penstock.testing.verify.targets import target_of

claim_here()
folder = Path({folder!r})
flow = flow_of(folder, target_of("log").endpoint({address!r}))
"""


@dataclass(frozen=True)
class JobsPlan:
    """What is done. With the URL of a PostgreSQL there are two servers, which are also stopped for a while. `say` is called with the progress."""

    kills: int = 200
    jobs: int = 5
    spark: int = 1
    """How many of the jobs are flows with Spark; the others count without a JVM."""
    seed: int = 0
    url: str = ""
    say: Callable[[str], None] = field(default=lambda text: None)

    def __post_init__(self) -> None:
        if self.kills < 0 or not 0 <= self.spark <= self.jobs or self.jobs < 1:
            raise Impossible(
                f"expected 0 or more kills, 1 or more jobs, and of these 0 or more with Spark, got {self.kills}, {self.jobs}, {self.spark}"
            )


@dataclass(frozen=True)
class JobsTally:
    """What was found. `lost`, `duplicate`, `strange`, `reordered` and `twice` must be nothing, and every job must be there."""

    jobs: int
    found: int
    rounds: int
    records: int
    kills: Mapping[str, int]
    wishes: int
    """How often a job was paused, resumed or restarted."""
    held: int
    """How often a job was held after five failures in a row, and let go."""
    seconds: float
    slowest: float
    median: float
    """Seconds until every job was as it is wanted again."""
    lost: int = 0
    duplicate: int = 0
    strange: int = 0
    reordered: int = 0
    twice: int = 0
    """How often a driver met another one of its job."""

    @property
    def wrong(self) -> dict[str, int]:
        """What is not as it must be."""
        counts = ("lost", "duplicate", "strange", "reordered", "twice")
        return {"gone": self.jobs - self.found, **{name: getattr(self, name) for name in counts}}

    @property
    def ok(self) -> bool:
        """Whether all held."""
        return not any(self.wrong.values()) and self.records > 0

    def as_dict(self) -> dict[str, Any]:
        """The tally as plain values."""
        return {**asdict(self), "kills": dict(self.kills), "ok": self.ok}

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {many}" for name, many in sorted(self.kills.items()))
        wrong = ", ".join(f"{many} {name}" for name, many in self.wrong.items())
        return (
            f"jobs: {self.jobs} jobs, {sum(self.kills.values())} kills ({kills}) in {self.rounds} rounds, {self.wishes} wishes, "
            f"{self.records:,} records, {self.seconds:.0f} s\n"
            f"  as wanted after {self.median:.1f} s (median), {self.slowest:.1f} s (slowest); held and let go {self.held} times\n"
            f"  {wrong}\n"
            f"  exactly once, one at a time: {'yes' if self.ok else 'NO'}"
        )


class VerifiedJob(Protocol):
    """A job, and what it has written."""

    name: str

    def submit(self, client: Client) -> None:
        """Has it run."""

    def written(self) -> int:
        """How many records are there."""

    def is_through(self) -> bool:
        """Whether all that was sent has been written."""

    def found(self) -> tuple[list[int], list[list[int]]]:
        """What was sent, and what is there, by part, in its order."""


@dataclass
class LightJob:
    """A job that counts."""

    name: str
    directory: Path

    def submit(self, client: Client) -> None:
        """Has it run."""
        client.submit(self.name, client.bundle(pack([])), LIGHT)

    def written(self) -> int:
        """How many numbers are there."""
        path = self.directory / COUNTED
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def is_through(self) -> bool:
        """It is never behind."""
        return True

    def found(self) -> tuple[list[int], list[list[int]]]:
        """What was counted."""
        numbers = [int(line) for line in (self.directory / COUNTED).read_text().splitlines()]
        return list(range(len(numbers))), [numbers]


class SparkJob:
    """A flow with state that reads a topic and writes another one exactly once; it is fed as long as it is verified."""

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        self.name, self.folder, self.sent = name, folder, 0
        folder.mkdir()
        self.address = stack.enter_context(LogTarget().running(folder, ""))
        with Log(folder / "log") as log:
            log.create_topic(TOPIC, 1)
        self.reader = LogTarget().reader(self.address)
        stack.callback(self.reader.close)
        stack.enter_context(self._fed())

    @contextmanager
    def _fed(self) -> Iterator[None]:
        self.ended = threading.Event()
        thread = threading.Thread(target=self._feed, name="penstock-verify-feed", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.ended.set()
            thread.join()

    def _feed(self) -> None:
        with Log(self.folder / "log") as log, log.producer() as producer:
            while not self.ended.wait(0.25):
                ids = range(self.sent, self.sent + FED)
                values = [json.dumps({"key": f"k{i % 7}", "id": i, "part": 0}).encode() for i in ids]
                producer.send_many(TOPIC, values, partition=0)
                self.sent += FED

    def submit(self, client: Client) -> None:
        """Has it run."""
        file = self.folder / "flow.py"
        file.write_text(FLOW.format(folder=str(self.folder), address=self.address))
        bundle = client.bundle(pack([(file.name, file)]))
        client.submit(self.name, bundle, file.name, {"interval": "500ms", "master": "local[1,4]"})

    def written(self) -> int:
        """How many records are there."""
        return sum(glance.rows for glance in self.reader.glance().values())

    def is_through(self) -> bool:
        """Whether all that was sent has been written."""
        self.ended.set()
        return self.written() >= self.sent

    def found(self) -> tuple[list[int], list[list[int]]]:
        """What was sent, and what is there: the ids of each key in their order."""
        rows = [row for part in self.reader.rows().values() for row in part]
        keys = sorted({row.key for row in rows})
        return list(range(self.sent)), [[row.id for row in rows if row.key == key] for key in keys]


@dataclass
class JobServers:
    """The servers, which are started again when they are killed, as a machine would."""

    root: Path
    url: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Starts those that are missing."""
        self.processes = [process for process in self.processes if process.poll() is None]
        own = job_environment() | ({DATABASE: self.url} if self.url else {})
        while len(self.processes) < (2 if self.url else 1):
            with (self.root.parent / "server.log").open("ab") as log:
                command = [sys.executable, "-m", "penstock.testing.verify.job_server", str(self.root)]
                self.processes.append(
                    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=own)
                )
            self._await()

    def _await(self) -> None:
        process, deadline = self.processes[-1], time.monotonic() + PATIENCE
        while not self.answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RunError(f"the server failed:\n{(self.root.parent / 'server.log').read_text()[-4000:]}")
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether the server that leads answers, and is one of those that run."""
        try:
            self.client().jobs()
        except (PenstockError, OSError):
            return False
        return True

    def client(self) -> Client:
        """A client of the server that leads."""
        return Client.found(self.root)

    def end(self) -> None:
        """Ends them."""
        for process in self.processes:
            process.kill()
            process.wait()


class JobsVerification:
    """A verification at work, in a folder of its own."""

    def __init__(self, plan: JobsPlan, folder: Path, stack: ExitStack) -> None:
        self.plan, self.folder, self.chance = plan, folder, random.Random(plan.seed)
        self.root = folder / "data"
        self.servers = JobServers(self.root, plan.url)
        self.jobs: list[VerifiedJob] = [
            *(SparkJob(f"spark-{n}", folder / f"spark-{n}", stack) for n in range(plan.spark)),
            *(LightJob(f"light-{n}", self.root / "jobs" / f"light-{n}") for n in range(plan.jobs - plan.spark)),
        ]
        self.wanted = dict.fromkeys((job.name for job in self.jobs), "running")
        self.kills: Counter[str] = Counter()
        self.held = self.wishes = 0
        self.took: list[float] = []

    def run(self) -> JobsTally:
        """All rounds, and the judgement."""
        began = time.monotonic()
        try:
            self.servers.start()
            for job in self.jobs:
                job.submit(self.servers.client())
            self._settled(self._written())
            while sum(self.kills.values()) < self.plan.kills:
                self._round()
            self._finish()
            return self._judge(time.monotonic() - began)
        finally:
            self._end()

    def _round(self) -> None:
        """One to three kills at once, perhaps a wish; then everything must come to be as it is wanted."""
        left = self.plan.kills - sum(self.kills.values())
        if self.chance.random() < 0.3:
            self._wish()
        before, began = self._written(), time.monotonic()
        for _ in range(min(left, self.chance.choice((1, 1, 2, 3)))):
            self._kill()
        self.servers.start()
        self._settled(before)
        self.took.append(time.monotonic() - began)
        self.plan.say(f"{sum(self.kills.values()):4}/{self.plan.kills} kills: as wanted after {self.took[-1]:.1f} s")

    def _wish(self) -> None:
        name = self.chance.choice(sorted(self.wanted))
        action = "resume" if self.wanted[name] == "paused" else self.chance.choice(("pause", "restart"))
        self._ask(name, action)
        self.wanted[name] = "paused" if action == "pause" else "running"
        self.wishes += 1

    def _ask(self, name: str, action: str) -> None:
        """Has something done, however often the server dies meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.servers.client().act(name, action)
            except (PenstockError, OSError):
                if time.monotonic() > deadline:
                    raise
                self.servers.start()
                time.sleep(0.1)
            else:
                return

    def _kill(self) -> None:
        kind = self.chance.choice(("server", "supervisor", "driver") + (("asleep",) if self.plan.url else ()))
        if kind in ("server", "asleep"):
            self.servers.start()
            process = self.chance.choice(self.servers.processes)
            self._kill_server(process) if kind == "server" else self._stop_server(process)
        else:
            found = [pid for job in self.jobs for pid in processes_of(self.root / "jobs" / job.name, kind)]
            if not found:
                return
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(found), signal.SIGKILL)
        self.kills[kind] += 1

    @staticmethod
    def _kill_server(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    @staticmethod
    def _stop_server(process: subprocess.Popen[bytes]) -> None:
        """Stops a server for longer than a lease holds; then it goes on as if nothing had been."""
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(ASLEEP)
            process.send_signal(signal.SIGCONT)

    def _written(self) -> dict[str, int]:
        return {job.name: job.written() for job in self.jobs}

    def _settled(self, before: Mapping[str, int]) -> None:
        """Waits until every job is as it is wanted."""
        deadline, left = time.monotonic() + PATIENCE, list(self.jobs)
        while left:
            left = [job for job in left if not self._is_as_wanted(job, before[job.name])]
            if left and time.monotonic() > deadline:
                raise RunError(
                    f"{left[0].name} is not {self.wanted[left[0].name]} after {PATIENCE:g} s: {self._shown(left[0])}"
                )
            time.sleep(0.1)

    def _is_as_wanted(self, job: VerifiedJob, before: int) -> bool:
        try:
            phase = self.servers.client().job(job.name)["phase"]
        except (PenstockError, OSError):
            self.servers.start()
            return False
        if self.wanted[job.name] == "paused":
            return phase == "paused" and not JobDirectory(self.root / "jobs" / job.name).is_held(DRIVER)
        if phase == "held":
            self.held += 1
            self._ask(job.name, "restart")
        return phase == "running" and job.written() > before

    def _shown(self, job: VerifiedJob) -> str:
        with suppress(PenstockError, OSError):
            return json.dumps(self.servers.client().job(job.name))
        return "no server answers"

    def _finish(self) -> None:
        """Lets all jobs write what they were sent, and stops them."""
        for name in [name for name, wish in self.wanted.items() if wish == "paused"]:
            self._ask(name, "resume")
            self.wanted[name] = "running"
        deadline = time.monotonic() + PATIENCE
        while not all(job.is_through() for job in self.jobs) and time.monotonic() < deadline:
            time.sleep(0.1)
        for job in self.jobs:
            self._ask(job.name, "stop")
        while any(JobDirectory(self.root / "jobs" / job.name).is_held(SUPERVISOR) for job in self.jobs):
            if time.monotonic() > deadline:
                raise RunError("a job does not stop")
            time.sleep(0.1)

    def _judge(self, seconds: float) -> JobsTally:
        tallies = [counted(*job.found()) for job in self.jobs]
        marks = [self.root / "jobs" / job.name / TWICE for job in self.jobs]
        return JobsTally(
            jobs=len(self.jobs),
            found=len({job["name"] for job in self.servers.client().jobs()} & set(self.wanted)),
            rounds=len(self.took),
            records=sum(job.written() for job in self.jobs),
            kills=dict(self.kills),
            wishes=self.wishes,
            held=self.held,
            seconds=round(seconds, 1),
            slowest=round(max(self.took, default=0.0), 2),
            median=round(statistics.median(self.took or [0.0]), 2),
            twice=sum(len(mark.read_text().split()) for mark in marks if mark.exists()),
            **{name: sum(tally[name] for tally in tallies) for name in tallies[0]},
        )

    def _end(self) -> None:
        """Leaves nothing running, however it ended."""
        self.servers.end()
        for job in self.jobs:
            for kind in ("supervisor", "driver"):
                for pid in processes_of(self.root / "jobs" / job.name, kind):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


def counted(sent: list[int], parts: list[list[int]]) -> dict[str, int]:
    """What is wrong with what was written.

    >>> counted([0, 1, 2], [[0, 2, 1, 1, 7]])
    {'lost': 0, 'duplicate': 1, 'strange': 1, 'reordered': 1}
    """
    there, known = Counter(n for part in parts for n in part), set(sent)
    return {
        "lost": len(known - there.keys()),
        "duplicate": sum(many - 1 for n, many in there.items() if n in known),
        "strange": sum(many for n, many in there.items() if n not in known),
        "reordered": sum(b < a for part in parts for a, b in pairwise(part)),
    }


def processes_of(directory: Path, kind: str) -> list[int]:
    """The supervisor or the driver of a job, with others that are about to be."""
    asked = (SUPERVISES, directory.parent.parent, directory.name) if kind == "supervisor" else (DRIVES, directory)
    words = {str(word).encode() for word in asked}
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal() and words <= _command(entry)]


def _command(process: Path) -> set[bytes]:
    try:
        return set((process / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return set()


def verify_jobs(plan: JobsPlan) -> JobsTally:
    """Runs the plan and returns the tally."""
    with tempfile.TemporaryDirectory(prefix="penstock-verify-") as made, ExitStack() as stack:
        return JobsVerification(plan, Path(made), stack).run()
