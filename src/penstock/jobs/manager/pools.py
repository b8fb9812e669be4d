"""Pools: how many cores and how much memory jobs may have together, and how much of it one owner may have.

A job that does not fit waits, and says why. Within a pool jobs of a higher priority come first, then those that were submitted earlier; one that waits for
the pool keeps later ones waiting too, so that small jobs do not starve a large one, but one that waits for its owner's share does not hold up others.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.errors import OptionError, UnknownName, nearest
from penstock.jobs.manager.job import Job

DEFAULT = "default"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Share:
    """Cores, and memory in MiB."""

    cores: int = 0
    memory: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.cores + other.cores, self.memory + other.memory)


@dataclass(frozen=True)
class Pool:
    """The limits of a pool and of each owner in it; None is no limit."""

    name: str = DEFAULT
    cores: int | None = None
    memory: int | None = None
    owner_cores: int | None = None
    owner_memory: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise OptionError(
                f"the name of a pool has 1 to 63 characters, of a to z, 0 to 9, '.', '_' and '-', got {self.name!r}"
            )
        for limit in (self.cores, self.memory, self.owner_cores, self.owner_memory):
            if limit is not None and limit < 1:
                raise OptionError(f"a limit of pool {self.name!r} is at least 1, got {limit}")

    def check(self, job: Job) -> None:
        """Refuses a job that would wait for ever."""
        why = self.lacks(needs_of(job), Share(), Share())
        if why:
            raise OptionError(f"job {job.name!r} can never run in pool {self.name!r}: {why}")

    def lacks(self, needs: Share, used: Share, own: Share) -> str:
        """Why a job does not fit beside what is used, by all and by its owner; empty if it does."""
        total, mine = used + needs, own + needs
        for limit, sum_, what, whose in (
            (self.cores, total.cores, "cores", "the pool"),
            (self.memory, total.memory, "MiB", "the pool"),
            (self.owner_cores, mine.cores, "cores", "its owner"),
            (self.owner_memory, mine.memory, "MiB", "its owner"),
        ):
            if limit is not None and sum_ > limit:
                asked = needs.cores if what == "cores" else needs.memory
                return f"it asks for {asked:,} {what}, {whose} has {limit:,}, of which {sum_ - asked:,} are taken"
        return ""


def needs_of(job: Job) -> Share:
    """What a job takes: what it asks for, else all cores of this machine and the memory that Spark gets by itself."""
    return Share(job.cores or os.cpu_count() or 1, job.memory or 2048)


def pool_of(job: Job, pools: Mapping[str, Pool]) -> Pool:
    """The pool of a job; the one named `default` needs not be made. Raises UnknownName."""
    if job.pool not in pools and job.pool != DEFAULT:
        raise UnknownName(f"there is no pool {job.pool!r}; {nearest(job.pool, sorted({*pools, DEFAULT}))}")
    return pools.get(job.pool, Pool())


def waiting(running: Iterable[Job], wanted: Iterable[Job], pools: Mapping[str, Pool]) -> dict[str, str]:
    """Which of the jobs that are wanted must wait beside those that run, and why.

    >>> job = Job("count", "ada", "0" * 64, "count.py", cores=2)
    >>> waiting([], [job], {"default": Pool(cores=1)})
    {'count': 'it asks for 2 cores, the pool has 1, of which 0 are taken'}
    """
    used: Counter[tuple[str, str, str]] = Counter()
    for job in running:
        _take(used, job)
    found: dict[str, str] = {}
    full: set[str] = set()
    for job in sorted(wanted, key=lambda j: (-j.priority, j.created, j.name)):
        pool = pools.get(job.pool, Pool())
        why = pool.lacks(needs_of(job), _taken(used, job.pool), _taken(used, job.pool, job.owner))
        if job.pool in full or why:
            found[job.name] = why or "jobs before it wait for the pool"
            full |= {job.pool} if "the pool" in found[job.name] else set()
        else:
            _take(used, job)
    return found


def _take(used: Counter[tuple[str, str, str]], job: Job) -> None:
    needs = needs_of(job)
    for owner in ("", job.owner):
        used[job.pool, owner, "cores"] += needs.cores
        used[job.pool, owner, "memory"] += needs.memory


def _taken(used: Counter[tuple[str, str, str]], pool: str, owner: str = "") -> Share:
    return Share(used[pool, owner, "cores"], used[pool, owner, "memory"])


def spark_options(job: Job, options: Mapping[str, object]) -> dict[str, object]:
    """Options of a run that keep Spark within what its job asks for; nothing changes for a job that asks for nothing."""
    conf = {**dict(options.get("conf") or {})}  # type: ignore[call-overload]
    master = str(options.get("master") or "")
    is_here = not master or master.startswith("local")
    if job.memory:
        conf |= {"spark.driver.memory" if is_here else "spark.executor.memory": f"{job.memory}m"}
    if job.cores and not is_here:
        conf |= {
            "spark.cores.max": str(job.cores),
            "spark.executor.instances": "1",
            "spark.executor.cores": str(job.cores),
        }
    made: dict[str, object] = {**options, "conf": conf} if conf else dict(options)
    return made | {"master": f"local[{job.cores},4]"} if job.cores and is_here else made
