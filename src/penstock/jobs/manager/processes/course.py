"""The course of a job under its supervisor, as a pure state machine: what happened comes in, what to do comes out.

A driver that fails is started again after 1, 2, 4 ... 60 seconds. One that fails five times in a row, without ten minutes of work in between, is in a crash
loop: the job is held until somebody restarts it. A flow that is wrong is held at once: it would fail again.

A version that replaced another is on trial until it has come up, which the supervisor sees by its checkpoint. One that fails before, or takes too long,
gives way to the version before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from penstock.jobs.exit_codes import BAD_FLOW
from penstock.jobs.manager.job import Job

Phase = Literal["new", "running", "stopping", "waiting", "held", "finished", "paused", "stopped"]
Command = Literal["start", "stop", "kill", "end"]

MOST_FAILURES = 5
"""After so many failures in a row a job is held."""
HEALTHY = 600.0
"""A driver that ran for so many seconds has not failed in a row."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0


@dataclass(frozen=True)
class Course:
    """Where a job is. Moments are seconds of one clock; `until` is when a wait is over, `reason` says why the last driver ended.

    Versions are told apart by their checkpoints: `settled` is that of the last one that came up, `gone_back` of the last one that did not,
    and `why_back` says why.
    """

    phase: Phase = "new"
    generation: int = 0
    failures: int = 0
    restarts: int = 0
    since: float = 0.0
    until: float = 0.0
    reason: str = ""
    settled: str = ""
    gone_back: str = ""
    why_back: str = ""

    def trial_of(self, job: Job) -> str:
        """The checkpoint of the version that is on trial; empty if none is."""
        is_open = job.previous is not None and job.checkpoint not in (self.settled, self.gone_back)
        return job.checkpoint if is_open else ""

    def followed(self, job: Job) -> Job:
        """What is to run: the job as it is wanted, or with the version before."""
        return job.gone_back() if self.gone_back == job.checkpoint else job

    @property
    def has_driver(self) -> bool:
        """Whether a driver is there."""
        return self.phase in ("running", "stopping")


@dataclass(frozen=True)
class Exit:
    """A driver ended, with this code; negative is the signal that ended it."""

    code: int

    def __str__(self) -> str:
        return f"ended by signal {-self.code}" if self.code < 0 else f"ended with exit code {self.code}"


def look(course: Course, job: Job, now: float, *, is_up: bool = False) -> tuple[Course, Command | None]:
    """What to do at a moment, given what is wanted, and whether a version on trial has come up.

    >>> job = Job("count", "ada", "0" * 64, "count.py")
    >>> course, command = look(Course(), job, 10.0)
    >>> course.phase, command
    ('running', 'start')
    >>> look(course, job.wished("stopped"), 11.0)[1]
    'stop'
    """
    if is_up and course.trial_of(job):
        course = replace(course, settled=job.checkpoint)
    if course.has_driver:
        return _look_at_driver(course, job, now)
    if job.wish != "running":
        return replace(course, phase=job.wish, generation=job.generation, since=now), "end"
    if course.phase in ("held", "finished") and course.generation == job.generation:
        return course, "end"
    is_same = course.generation == job.generation
    if course.phase == "waiting" and is_same and now < course.until <= now + LONGEST_WAIT:
        return course, None
    return _start(course, job, now), "start"


def _look_at_driver(course: Course, job: Job, now: float) -> tuple[Course, Command | None]:
    is_wanted = job.wish == "running" and job.generation == course.generation
    if is_wanted and course.phase == "running":
        return _look_at_trial(course, job, now)
    if job.is_forced:
        return replace(course, phase="stopping"), "kill"
    if course.phase == "stopping":
        return course, None
    return replace(course, phase="stopping", since=now), "stop"


def _look_at_trial(course: Course, job: Job, now: float) -> tuple[Course, Command | None]:
    if not course.trial_of(job) or now - course.since <= job.trial:
        return course, None
    why = f"the new version had not come up after {job.trial:g} seconds"
    return replace(course, phase="stopping", since=now, gone_back=job.checkpoint, why_back=why), "kill"


def _start(course: Course, job: Job, now: float) -> Course:
    is_same = course.generation == job.generation
    return replace(
        course,
        phase="running",
        generation=job.generation,
        failures=course.failures if is_same else 0,
        restarts=course.restarts + (course.phase == "waiting"),
        since=now,
    )


def ended(course: Course, code: int, now: float, trial: str = "") -> Course:
    """The course after its driver has ended; what is to be done about it is said at the next look. `trial` is the checkpoint of a version on trial.

    >>> ended(Course("running", 1, since=0.0), 1, 3.0).phase, ended(Course("running", 1), 2, 3.0).phase
    ('waiting', 'held')
    """
    reason = str(Exit(code))
    if course.phase == "stopping":
        return replace(course, phase="new", reason=reason)
    if code == 0:
        return replace(course, phase="finished", failures=0, since=now, reason=reason, settled=trial or course.settled)
    if trial:
        why = f"the new version {reason} before it came up"
        return replace(course, phase="new", failures=0, since=now, reason=reason, gone_back=trial, why_back=why)
    failures = 1 if now - course.since >= HEALTHY else course.failures + 1
    failed = replace(course, failures=failures, since=now, reason=reason)
    if code == BAD_FLOW:
        return replace(failed, phase="held", reason=f"{reason}: the flow or an option is wrong, see its log")
    if failures >= MOST_FAILURES:
        return replace(failed, phase="held", reason=f"{reason}, {failures} times in a row")
    return replace(failed, phase="waiting", until=now + wait_after(failures))


def wait_after(failures: int) -> float:
    """How many seconds pass before a driver is started again.

    >>> [wait_after(n) for n in (1, 2, 3, 10)]
    [1.0, 2.0, 4.0, 60.0]
    """
    return min(FIRST_WAIT * 2.0 ** (failures - 1), LONGEST_WAIT)
