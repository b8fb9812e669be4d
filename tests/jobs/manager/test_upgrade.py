"""Another version of a job: it takes over when it comes up, and the version before goes on when it does not."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.jobs.manager.job import Job, JobVersion
from penstock.jobs.manager.manager import Manager, Upgrade
from penstock.jobs.manager.processes.course import Course, ended, look
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.manager.processes.trial import QUIET, has_come_up
from penstock.jobs.manager.upgrade import begin
from penstock.live.activation import Activation
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from tests.jobs.manager.conftest import children_of, kill, supervisors_of
from tests.jobs.manager.test_manager import becomes
from tests.spark.checkpoints import batch, put, text
from tests.spark.checkpoints import begin as begin_checkpoint
from tests.waiting import wait_until

OLD = Job("count", "ada", "0" * 64, "count.py")
NEW = OLD.upgraded("1" * 64, "new.py", {"max_rows": 5})


def runs(manager: Manager) -> str:
    """The target and the checkpoint of the driver that was started last."""
    file = manager.directory("count").path / "version.txt"
    return file.read_text() if file.exists() else ""


def running(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")


def test_a_version_that_comes_up_takes_over(manager: Manager, job: Job) -> None:
    running(manager, job)
    manager.upgrade("count", Upgrade(job.bundle, "new.py"), "ada")
    wait_until(lambda: manager.state("count").course.settled == "checkpoint-2")
    becomes(manager, "count", "running")
    assert runs(manager) == "new.py checkpoint-2"
    assert manager.directory("count").checkpoint.name == "checkpoint-2"
    assert manager.state("count").job.target == "new.py"


def test_a_version_that_fails_gives_way_to_the_one_before(manager: Manager, job: Job) -> None:
    running(manager, job)
    manager.upgrade("count", Upgrade(job.bundle, "broken.py", {"max_rows": 5}), "ada")
    wait_until(lambda: manager.state("count").course.gone_back == "checkpoint-2")
    becomes(manager, "count", "running")
    wait_until(lambda: runs(manager) == "count.py checkpoint")
    state = manager.state("count")
    assert (state.job.target, state.job.options, state.job.previous) == ("count.py", {}, None)
    assert state.course.why_back == "the new version ended with exit code 1 before it came up"
    assert [event.what for event in manager.records.events("count")].count("went back") == 1


def test_a_version_that_does_not_come_up_in_time_is_ended(manager: Manager, job: Job) -> None:
    running(manager, job)
    manager.upgrade("count", Upgrade(job.bundle, "silent.py", trial=1.0), "ada")
    wait_until(lambda: manager.state("count").course.gone_back == "checkpoint-2")
    wait_until(lambda: runs(manager) == "count.py checkpoint")
    assert manager.state("count").course.why_back == "the new version had not come up after 1 seconds"


def test_a_second_upgrade_waits_for_the_first_and_may_follow_one_that_went_back(manager: Manager, job: Job) -> None:
    running(manager, job)
    manager.upgrade("count", Upgrade(job.bundle, "silent.py"), "ada")
    with pytest.raises(OptionError, match="is being upgraded"):
        manager.upgrade("count", Upgrade(job.bundle, "new.py"), "ada")
    wait_until(lambda: runs(manager) == "silent.py checkpoint-2")
    for pid in supervisors_of(manager):
        for child in children_of(pid):
            kill(child)
    wait_until(lambda: manager.state("count").course.gone_back == "checkpoint-2")
    manager.upgrade("count", Upgrade(job.bundle, "new.py"), "ada")
    wait_until(lambda: runs(manager) == "new.py checkpoint-3")
    assert manager.state("count").job.previous == JobVersion(job.bundle, "count.py")


def test_a_supervisor_that_is_killed_during_a_trial_takes_it_up_again(manager: Manager, job: Job) -> None:
    running(manager, job)
    manager.upgrade("count", Upgrade(job.bundle, "silent.py"), "ada")
    wait_until(lambda: runs(manager) == "silent.py checkpoint-2")
    for pid in supervisors_of(manager):
        kill(pid)
    wait_until(lambda: not manager.state("count").is_supervised)
    becomes(manager, "count", "starting")
    course = manager.state("count").course
    assert course.trial_of(manager.state("count").job) == "checkpoint-2"
    manager.wish("count", "stopped", "ada", is_forced=True)


def test_bundles_and_trials_are_checked(manager: Manager, job: Job) -> None:
    running(manager, job)
    with pytest.raises(OptionError, match="there is no bundle"):
        manager.upgrade("count", Upgrade("f" * 64), "ada")
    with pytest.raises(OptionError, match="1 to 86,400 seconds"):
        manager.upgrade("count", Upgrade(job.bundle, trial=0.0), "ada")
    with pytest.raises(OptionError, match="name of a checkpoint"):
        JobVersion(job.bundle, "x.py", checkpoint="../up")


def test_a_version_without_input_has_come_up_when_it_has_waited_for_a_while(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    directory = manager.directory("count")
    progress = {"phase": "running", "checkpoint": "checkpoint-2", "since": 50.0, "waits_since": 100.0, "under_way": ""}
    directory.write_progress(progress)
    assert not has_come_up(directory, NEW, 100.0 + QUIET - 1)
    assert has_come_up(directory, NEW, 100.0 + QUIET)
    offsets, commits = (directory.path / "checkpoint-2" / "spark" / name for name in ("offsets", "commits"))
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("planned, and not begun by Python")
    assert not has_come_up(directory, NEW, 100.0 + QUIET)
    commits.mkdir()
    (commits / "0").write_text("done")
    assert has_come_up(directory, NEW, 100.0)
    shutil.rmtree(offsets.parent)
    directory.write_progress({**progress, "under_way": "batch 0"})
    assert not has_come_up(directory, NEW, 100.0 + QUIET)
    directory.write_progress({**progress, "checkpoint": "checkpoint"})
    assert not has_come_up(directory, NEW, 100.0 + QUIET)


def test_a_version_whose_sources_were_not_asked_yet_has_not_come_up_however_long_that_takes(
    manager: Manager, job: Job
) -> None:
    manager.submit(job, "ada")
    directory = manager.directory("count")
    progress = {"phase": "running", "checkpoint": "checkpoint-2", "since": 100.0, "under_way": ""}
    for waits in ({}, {"waits_since": None}, {"waits_since": "x"}, {"waits_since": True}):
        directory.write_progress({**progress, **waits})
        assert not has_come_up(directory, NEW, 100_000.0)


def test_a_job_with_a_version_to_go_back_to_is_kept_as_json() -> None:
    assert Job.from_json(NEW.to_json()) == NEW
    assert NEW.gone_back() == replace(OLD, generation=2)


STEPS = st.lists(st.sampled_from(["fail", "up", "late", "stop", "resume", "restart", "lost"]), max_size=30)


@given(STEPS)
def test_on_its_course_a_job_runs_the_new_version_or_the_old_one_and_changes_its_mind_once(steps: list[str]) -> None:
    course, job, now, verdicts = Course("stopping", 1), NEW, 0.0, []
    course = ended(course, 0, now)
    for step in steps:
        now += 1.0
        course, _ = look(course, job, now, is_up=step == "up" and course.has_driver)
        match step:
            case "fail" if course.phase == "running":
                course = ended(course, 1, now, course.trial_of(job))
            case "late":
                now += job.trial
            case "stop":
                job = job.wished("stopped")
            case "resume":
                job = job.wished("running")
            case "restart":
                job = job.wished("running").renewed()
            case "lost" if course.has_driver:
                course = replace(course, phase="new", failures=0, since=0.0)
        if course.phase == "stopping":
            course = ended(course, -9, now)
        verdicts.append((course.settled == NEW.checkpoint, course.gone_back == NEW.checkpoint))
    assert (True, True) not in verdicts
    changes = [after for before, after in zip([(False, False), *verdicts], verdicts, strict=False) if before != after]
    assert len(changes) <= 1
    wanted = OLD if course.gone_back else NEW
    assert course.followed(job).version == wanted.version


def test_upgrades_killed_at_random_end_with_one_version_and_one_driver(manager: Manager, job: Job) -> None:
    chance = random.Random(11)
    running(manager, job)
    for target in ("new.py", "broken.py", "new.py", "broken.py"):
        wait_until(lambda: not _on_trial(manager))
        manager.upgrade("count", Upgrade(job.bundle, target), "ada")
        for _ in range(3):
            if chance.random() < 0.5:
                for pid in supervisors_of(manager):
                    kill(pid)
            manager.reconcile()
    wait_until(lambda: not _on_trial(manager))
    becomes(manager, "count", "running")
    assert manager.state("count").job.target == "new.py"
    assert "twice" not in (manager.directory("count").path / "starts.txt").read_text()


def test_dead_letters_replays_and_paused_spouts_go_along_once(tmp_path: Path) -> None:
    directory = JobDirectory(tmp_path)
    before = run_once(tmp_path / "checkpoint")
    letter = {"id": "a", "step": "parse", "payload": {}}
    put(before / DEAD_LETTERS / "0000000000.jsonl", json.dumps(letter).encode())
    put(before / "replay" / "claimed" / "0.json", b"{}")
    Activation(before / "topology").ask(on=False)
    job = replace(NEW, checkpoint="checkpoint-2")
    for _ in range(2):  # a driver that was killed does it again
        assert begin(directory, job)["savepoint"]
        after = tmp_path / "checkpoint-2"
        assert list(DeadLetterStore(after / DEAD_LETTERS).dead_letters()) == [letter]
        assert text(after / "replay" / "claimed" / "0.json") == "{}"
        assert not Activation(after / "topology").is_active
    Activation(after / "topology").ask(on=True)
    begin(directory, job)
    assert Activation(after / "topology").is_active, "somebody has said so since"
    assert list(DeadLetterStore(before / DEAD_LETTERS).dead_letters()) == [letter]


def run_once(folder: Path) -> Path:
    batch(begin_checkpoint(folder), 0, {"a": 1})
    return folder


def _on_trial(manager: Manager) -> bool:
    manager.reconcile()
    state = manager.state("count")
    return bool(state.course.trial_of(state.job))
