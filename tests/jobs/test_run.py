"""A run that is started without blocking: what cannot work raises at once, errors reach who waits, signals are left alone."""

from __future__ import annotations

import fcntl
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import CheckpointError, FlowError, OptionError, SetupError
from penstock.graph.run import RunSpec
from penstock.jobs import launch
from penstock.jobs.launch import Launch, Watchers
from penstock.jobs.run import start
from penstock.spark.checkpoint.directory import removed_if_failed


def flow() -> ps.Flow:
    made = ps.Flow("numbers")
    made.source("in", ps.items([1, 2, 3], "n int")).sink("out", ps.callback(lambda rows, batch: None))
    return made


class Machine:
    """A machine on which Spark starts when it is allowed to, and then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.allowed, self.reached = threading.Event(), threading.Event()
        monkeypatch.setattr(launch, "use_java", self.use_java)

    def use_java(self) -> Any:
        self.reached.set()
        assert self.allowed.wait(300)
        raise SetupError("no Java here")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_start_returns_while_the_run_goes_on_and_its_error_reaches_who_waits(
    machine: Machine, tmp_path: Path
) -> None:
    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    run = start(RunSpec(checkpoint=tmp_path / "c"), flow())
    assert machine.reached.wait(300)
    assert (run.status().phase, run.status().has_ended) == ("starting", False)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert run.wait(0.01).phase == "starting"
    machine.allowed.set()
    with pytest.raises(SetupError, match="no Java here"):
        run.wait(300)
    status = run.status()
    assert (status.flow, status.phase, status.has_ended, status.batches) == ("numbers", "failed", True, 0)
    assert isinstance(status.error, SetupError)


def test_a_run_that_is_asked_to_stop_says_so(machine: Machine, tmp_path: Path) -> None:
    reported: list[str] = []
    run = start(RunSpec(checkpoint=tmp_path), flow(), Watchers(tell=reported.append))
    assert machine.reached.wait(300)
    run.stop()
    assert run.status().phase == "stopping"
    machine.allowed.set()
    with pytest.raises(SetupError):
        run.wait(300)
    run.stop()
    assert run.status().phase == "failed"


def test_nothing_is_printed(machine: Machine, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    machine.allowed.set()
    with pytest.raises(SetupError):
        start(RunSpec(checkpoint=tmp_path), flow()).wait(300)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("given", [None, "count.py", ps.items([1], "n int")])
def test_what_is_no_flow_is_refused(given: object) -> None:
    with pytest.raises(FlowError, match="a run needs a flow"):
        start(RunSpec(), given)


def test_what_cannot_work_raises_at_once(tmp_path: Path) -> None:
    (tmp_path / "flow.json").write_text('{"flow": "another", "lineage": "x", "sources": {}, "shapes": {}}')
    with pytest.raises(CheckpointError, match="another"):
        start(RunSpec(checkpoint=tmp_path), flow())
    with pytest.raises(OptionError, match=r"there is no gone\.zip"):
        start(RunSpec(py_files=("gone.zip",)), flow())
    with pytest.raises(OptionError, match="function of a batch's report"):
        start(RunSpec(), flow(), Watchers(until="soon"))  # type: ignore[arg-type]


def test_a_launch_knows_its_spec() -> None:
    assert Launch(flow().graph).spec == RunSpec()


def test_a_checkpoint_that_another_process_has_open_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CheckpointError, match="runs already"):
            start(RunSpec(checkpoint=tmp_path), flow())


def test_a_start_that_fails_removes_what_it_made_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for folder in (tmp_path / "kept", tmp_path / ".penstock" / "flow"):
        with suppress(ValueError), removed_if_failed(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "flow.json").touch()
            raise ValueError("no")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["flow.json", "kept"]
