"""Verifies the server of jobs: servers, supervisors and drivers are killed at random while jobs run and are paused, resumed and restarted.

After each round every job must come to be as it is wanted: one that is to run has the driver that is wanted and writes more, one that is paused has no driver. At the end nothing may be missing
from what they wrote, nothing may be there twice, and no driver may have met another one of its job.

It waits as long as there is progress, so that a busy machine fails nothing; with a folder, one that was broken off goes on where it was.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import Impossible, PenstockError, RunError
from penstock.jobs.manager.processes.directory import DRIVER, SUPERVISOR, JobDirectory
from penstock.storage import LocalStorage, read_if_present
from penstock.storage.private import make_private
from penstock.temporary import temporary_directory
from penstock.testing.verify.job_driver import TWICE
from penstock.testing.verify.job_kinds import LocalJob, SparkJob, VerifiedJob
from penstock.testing.verify.job_patience import Patience
from penstock.testing.verify.job_servers import JobServers, end_all, kill_one, processes_of
from penstock.testing.verify.job_tally import Course, JobsPlan, JobsTally, counted

LOOK = 0.2
"""Seconds between two looks."""
APART = 2.0
"""Within so many seconds after one kill of a round comes the next."""
COURSE = "verification.json"


class JobsVerification:
    """A verification at work, in a folder of its own."""

    def __init__(self, plan: JobsPlan, folder: Path, stack: ExitStack) -> None:
        self.plan, self.folder = plan, folder
        self.root = folder / "data"
        names = [*(f"spark-{n}" for n in range(plan.spark)), *(f"local-{n}" for n in range(plan.jobs - plan.spark))]
        self.course = self._begun(names)
        end_all(self.root, names)
        self.servers = JobServers(self.root, plan.url)
        self.jobs = [self._job(name, stack) for name in names]
        self.chance = random.Random(plan.seed)
        self.kept: set[str] = set()
        self.began = time.monotonic() - self.course.seconds

    def _begun(self, names: list[str]) -> Course:
        """How far a verification in this folder was, or the beginning of one."""
        make_private(self.folder)
        found = read_if_present(LocalStorage(self.folder), COURSE)
        made = Course(self.plan.shape, dict.fromkeys(names, "running"))
        course = made if found is None else Course(**json.loads(found[0]))
        if course.shape != self.plan.shape:
            raise Impossible(f"{self.folder} has a verification of {course.shape}, expected {self.plan.shape}")
        return course

    def _job(self, name: str, stack: ExitStack) -> VerifiedJob:
        is_spark = name.startswith("spark")
        return SparkJob(name, self.folder / name, stack) if is_spark else LocalJob(name, self.directory(name).path)

    def directory(self, name: str) -> JobDirectory:
        """What a job keeps."""
        return JobDirectory(self.root / "jobs" / name)

    def run(self) -> JobsTally:
        """All rounds that are left, and the judgement."""
        try:
            self.servers.start()
            self._submit()
            while self.course.killed < self.plan.kills:
                self._round()
            self._finish()
            return self._judge()
        finally:
            self.servers.end()
            end_all(self.root, self.course.wanted)

    def _save(self) -> None:
        self.course.seconds = round(time.monotonic() - self.began, 1)
        LocalStorage(self.folder).write(COURSE, json.dumps(asdict(self.course)).encode())

    def _submit(self) -> None:
        """Has all jobs run that do not, the first with Spark before all others: it leaves class data that the others share."""
        known = {job["name"]: job["wish"] for job in self.servers.client().jobs()}
        if not known and self.plan.spark:
            self._share_class_data(self.jobs[0])
            known = {self.jobs[0].name: "stopped"}
        for job in self.jobs:
            wish = self.course.wanted[job.name]
            if job.name not in known:
                job.submit(self.servers.client())
            elif known[job.name] != wish:
                self._ask(job.name, "pause" if wish == "paused" else "resume")
        self._settle(self._written())

    def _share_class_data(self, job: VerifiedJob) -> None:
        job.submit(self.servers.client())
        self._settle(self._written(), [job])
        self._stop([job])

    def _round(self) -> None:
        """Perhaps a wish, then kills one shortly after the other; then everything must come to be as it is wanted."""
        self.chance = random.Random(f"{self.plan.seed} {self.course.killed} {len(self.course.took)}")
        left = self.plan.kills - self.course.killed
        if self.chance.random() < 0.3:
            self._wish()
        began = time.monotonic()
        for n in range(min(left, self.chance.randint(1, self.plan.at_once))):
            time.sleep(self.chance.uniform(0.0, APART) if n else 0.0)
            self._kill()
        self.servers.start()
        worked = self._settle(self._written())
        self.course.took.append(round(time.monotonic() - began, 2))
        self._save()
        self.plan.say(
            f"{self.course.killed:4}/{self.plan.kills} kills: as wanted after {self.course.took[-1]:.1f} s; drivers took {worked:.0f} s of processor time"
        )

    def _wish(self) -> None:
        name = self.chance.choice(sorted(self.course.wanted))
        action = "resume" if self.course.wanted[name] == "paused" else self.chance.choice(("pause", "restart"))
        self.course.wanted[name] = "paused" if action == "pause" else "running"
        self.course.wishes += 1
        self._save()
        self._ask(name, action)

    def _ask(self, name: str, action: str) -> None:
        """Has something done, however often the server dies meanwhile."""
        patience = self.servers.patience(f"no server takes {action} of {name}")
        while True:
            try:
                self.servers.client().act(name, action)
            except (PenstockError, OSError):
                patience.look()
                self.servers.start()
                time.sleep(LOOK)
            else:
                return

    def _kill(self) -> None:
        kind = self.chance.choice(("server", "supervisor", "driver") + (("asleep",) if self.plan.url else ()))
        if kind == "server":
            self.servers.kill(self.chance)
        elif kind == "asleep":
            self.servers.stop_for_a_while(self.chance)
        elif not kill_one(self._processes(kind), self.chance):
            return
        self.course.kills[kind] = self.course.kills.get(kind, 0) + 1
        self._save()

    def _processes(self, kind: str) -> list[int]:
        return [pid for job in self.jobs for pid in processes_of(self.directory(job.name).path, kind)]

    def _written(self) -> dict[str, int]:
        return {job.name: job.written() for job in self.jobs}

    def _settle(self, before: Mapping[str, int], jobs: list[VerifiedJob] | None = None) -> float:
        """Waits until jobs are as they are wanted, as long as one of them gets on; returns the processor time that their drivers took."""
        left = list(self.jobs if jobs is None else jobs)
        waits = {job.name: self._patience(job) for job in left}
        held: Counter[str] = Counter()
        while left := [job for job in left if not self._is_as_wanted(job, before[job.name], held)]:
            for job in left:
                waits[job.name].look()
            time.sleep(LOOK)
        return sum(wait.worked for wait in waits.values())

    def _patience(self, job: VerifiedJob) -> Patience:
        directory = self.directory(job.name)

        def sign() -> object:
            progress = directory.progress()
            size = directory.log.stat().st_size if directory.log.exists() else 0
            return directory.course(), progress.get("phase"), progress.get("batches"), size, job.written()

        drivers = partial(processes_of, directory.path, "driver")
        return Patience(partial(self._lacks, job), sign, drivers)

    def _lacks(self, job: VerifiedJob) -> str:
        shown: Any = "no server answers"
        with suppress(PenstockError, OSError):
            shown = self.servers.client().job(job.name)
        log = self.directory(job.name).log
        printed = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        return f"{job.name} is not {self.course.wanted[job.name]}: {json.dumps(shown)}\n{printed}"

    def _is_as_wanted(self, job: VerifiedJob, before: int, held: Counter[str]) -> bool:
        try:
            phase = self.servers.client().job(job.name)["phase"]
        except (PenstockError, OSError):
            self.servers.start()
            return False
        directory = self.directory(job.name)
        if self.course.wanted[job.name] == "paused":
            return phase == "paused" and not directory.is_held(DRIVER)
        if phase == "held":
            self._let_go(job, held)
        wanted = directory.wanted()
        is_its = wanted is not None and directory.course().generation == wanted.generation
        return phase == "running" and is_its and job.written() > before

    def _let_go(self, job: VerifiedJob, held: Counter[str]) -> None:
        """A job may be held once, for the kills of a round; not again without any."""
        held[job.name] += 1
        if held[job.name] > 1:
            raise RunError(f"it fails by itself: {self._lacks(job)}")
        self.course.held += 1
        self._ask(job.name, "restart")

    def _stop(self, jobs: list[VerifiedJob]) -> None:
        for job in jobs:
            self._ask(job.name, "stop")
        self._wait_for(jobs, lambda job: not self.directory(job.name).is_held(SUPERVISOR))

    def _wait_for(self, jobs: list[VerifiedJob], is_done: Callable[[VerifiedJob], bool]) -> None:
        waits = {job.name: self._patience(job) for job in jobs}
        while left := [job for job in jobs if not is_done(job)]:
            for job in left:
                waits[job.name].look()
            time.sleep(LOOK)

    def _finish(self) -> None:
        """Lets all jobs write what they were sent, and stops them."""
        for name in [name for name, wish in self.course.wanted.items() if wish == "paused"]:
            self.course.wanted[name] = "running"
            self._ask(name, "resume")
        self._wait_for(self.jobs, lambda job: job.is_through())
        self._stop(self.jobs)

    def _judge(self) -> JobsTally:
        self._save()
        found = [job.found() for job in self.jobs]
        tallies = [counted(sent, parts) for sent, parts in found]
        marks = [self.directory(job.name).path / TWICE for job in self.jobs]
        course = self.course
        return JobsTally(
            jobs=len(self.jobs),
            found=len({job["name"] for job in self.servers.client().jobs()} & set(course.wanted)),
            rounds=len(course.took),
            records=sum(len(part) for _, parts in found for part in parts),
            kills=dict(course.kills),
            wishes=course.wishes,
            held=course.held,
            seconds=course.seconds,
            slowest=max(course.took, default=0.0),
            median=round(statistics.median(course.took or [0.0]), 2),
            twice=sum(len(mark.read_text().split()) for mark in marks if mark.exists()),
            **{name: sum(tally[name] for tally in tallies) for name in tallies[0]},
        )


@contextmanager
def _folder_of(plan: JobsPlan) -> Iterator[Path]:
    made = temporary_directory("verify") if plan.folder is None else nullcontext(plan.folder)
    with made as folder:
        yield Path(folder).absolute()


def verify_jobs(plan: JobsPlan) -> JobsTally:
    """Runs the plan and returns the tally; in a folder, what is left of it."""
    with _folder_of(plan) as folder, ExitStack() as stack:
        return JobsVerification(plan, folder, stack).run()
