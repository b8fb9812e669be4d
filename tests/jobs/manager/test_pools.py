"""Pools: jobs wait when there is no place for them, say why, and start when there is."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError, UnknownName
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.pools import Pool, needs_of, spark_options, waiting
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.directory import JobDirectory
from tests.jobs.manager.test_manager import becomes

JOB = Job("a", "ada", "0" * 64, "a.py", cores=1, memory=100)


def job(name: str, owner: str = "ada", cores: int = 1, **more: int) -> Job:
    return replace(JOB, name=name, owner=owner, cores=cores, **more)  # type: ignore[arg-type]


def test_a_job_waits_for_the_pool_and_starts_when_another_pauses(manager: Manager, job: Job) -> None:
    manager.records.put_pool(Pool("default", cores=2), "root")
    for name in ("one", "two", "three"):
        manager.submit(replace(job, name=name, cores=1, created=float(len(name))), "ada")
    becomes(manager, "one", "running")
    becomes(manager, "two", "running")
    state = manager.state("three")
    assert (state.phase, state.waits) == ("queued", "it asks for 1 cores, the pool has 2, of which 2 are taken")
    manager.wish("one", "paused", "ada")
    becomes(manager, "three", "running")
    manager.wish("one", "running", "ada")
    becomes(manager, "one", "queued")
    manager.records.put_pool(Pool("default", cores=3), "root")
    becomes(manager, "one", "running")


def test_a_held_job_gives_its_place_back(manager: Manager, job: Job) -> None:
    manager.records.put_pool(Pool("default", cores=1), "root")
    directory = manager.directory("wrong")
    directory.make()
    (directory.path / "plan.txt").write_text("2")
    manager.submit(replace(job, name="wrong", cores=1), "ada")
    becomes(manager, "wrong", "held")
    manager.submit(replace(job, name="right", cores=1), "ada")
    becomes(manager, "right", "running")
    (directory.path / "plan.txt").unlink()
    manager.restart("wrong", "ada")
    becomes(manager, "wrong", "queued")
    manager.wish("right", "stopped", "ada")
    becomes(manager, "wrong", "running")


def test_a_job_that_could_never_run_is_refused(manager: Manager, job: Job) -> None:
    manager.records.put_pool(Pool("small", cores=1, owner_memory=512), "root")
    with pytest.raises(OptionError, match="can never run in pool 'small': it asks for 2 cores, the pool has 1"):
        manager.submit(replace(job, pool="small", cores=2, memory=100), "ada")
    with pytest.raises(OptionError, match="asks for 600 MiB, its owner has 512"):
        manager.submit(replace(job, pool="small", cores=1, memory=600), "ada")
    with pytest.raises(UnknownName, match="there is no pool 'smal'; did you mean 'small'"):
        manager.submit(replace(job, pool="smal"), "ada")
    with pytest.raises(OptionError, match="up to 100,000 cores"):
        replace(job, cores=-1)
    with pytest.raises(OptionError, match="at least 1, got 0"):
        Pool("x", cores=0)


def test_a_pool_with_jobs_stays(manager: Manager, job: Job) -> None:
    manager.records.put_pool(Pool("own", cores=4), "root")
    manager.submit(replace(job, pool="own", cores=1), "ada")
    with pytest.raises(OptionError, match="pool 'own' has jobs: count"):
        manager.records.remove_pool("own", "root")
    with pytest.raises(UnknownName, match="there is no pool 'other'"):
        manager.records.remove_pool("other", "root")
    assert manager.records.pools() == {"own": Pool("own", cores=4)}


def test_priorities_come_first_and_a_large_job_is_not_starved_by_small_ones() -> None:
    pools = {"default": Pool(cores=4)}
    wanted = [job("small", created=2), job("large", cores=4, created=1), job("urgent", priority=1, created=3)]
    found = waiting([job("runs")], wanted, pools)
    assert found == {
        "large": "it asks for 4 cores, the pool has 4, of which 2 are taken",
        "small": "jobs before it wait for the pool",
    }


def test_one_owner_at_its_limit_does_not_hold_up_others() -> None:
    pools = {"default": Pool(cores=10, owner_cores=2)}
    wanted = [job("third", created=1), job("other", "bob", created=2)]
    found = waiting([job("first"), job("second")], wanted, pools)
    assert found == {"third": "it asks for 1 cores, its owner has 2, of which 2 are taken"}


JOBS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.integers(1, 4), st.integers(1, 300), st.integers(-1, 1), st.booleans()),
    max_size=12,
)


@given(JOBS, st.integers(1, 8), st.integers(1, 4), st.integers(100, 900))
def test_limits_are_never_exceeded_by_jobs_that_start(
    drawn: list[tuple[str, int, int, int, bool]], cores: int, owner_cores: int, memory: int
) -> None:
    pool = Pool("default", cores=cores, owner_cores=owner_cores, memory=memory)
    jobs = [job(f"j{n}", o, c, memory=m, priority=p, created=n) for n, (o, c, m, p, _) in enumerate(drawn)]
    runs = [made for made, (*_, is_running) in zip(jobs, drawn, strict=True) if is_running]
    wanted = [made for made in jobs if made not in runs]
    waits = waiting(runs, wanted, {"default": pool})
    started = [made for made in wanted if made.name not in waits]
    for owner in {made.owner for made in started}:
        assert sum(made.cores for made in (*runs, *started) if made.owner == owner) <= owner_cores
    if started:
        assert sum(made.cores for made in (*runs, *started)) <= cores
        assert sum(made.memory for made in (*runs, *started)) <= memory
    assert all(waits.values())


def test_spark_gets_what_the_job_asks_for(tmp_path: Path) -> None:
    assert spark_options(replace(JOB, cores=0, memory=0), {"parallelism": 2}) == {"parallelism": 2}
    local = spark_options(replace(JOB, cores=3, memory=512), {"master": "local[64]", "conf": {"spark.x": "1"}})
    assert local == {"master": "local[3,4]", "conf": {"spark.x": "1", "spark.driver.memory": "512m"}}
    remote = spark_options(replace(JOB, cores=3, memory=512), {"master": "spark://host:7077"})
    assert remote["conf"] == {
        "spark.executor.memory": "512m",
        "spark.cores.max": "3",
        "spark.executor.instances": "1",
        "spark.executor.cores": "3",
    }


def test_a_job_that_asks_for_nothing_counts_as_what_spark_takes() -> None:
    assert needs_of(replace(JOB, cores=0, memory=0)).cores == os.cpu_count()
    assert needs_of(replace(JOB, cores=0, memory=0)).memory == 2048


def test_jobs_that_wait_look_at_each_other_once_in_a_look(
    manager: Manager, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not each of them at all others: of two hundred that would be forty thousand looks at files, every second."""
    manager.records.put_pool(Pool("default", cores=1), "root")
    for number in range(12):
        manager.records.add(replace(job, name=f"job-{number}", cores=1, created=float(number)), "ada")
    manager.reconcile()
    looks: list[Path] = []
    course = JobDirectory.course

    def noting(directory: JobDirectory) -> Course:
        looks.append(directory.path)
        return course(directory)

    monkeypatch.setattr(JobDirectory, "course", noting)
    manager.reconcile()
    assert [state.job.name for state in manager.last_states() if state.waits] == [
        *(f"job-{n}" for n in (1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9))
    ]
    assert len(looks) <= 3 * 12
