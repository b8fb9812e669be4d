"""Drivers that are paused, woken and killed at any request: each batch is begun with one set of offsets and committed by one driver."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.spark.checkpoint import mirror
from penstock.spark.checkpoint.mirror import LogMirror
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.state.notes import read_note, swap_note
from penstock.storage import mounted, open_storage
from penstock.storage.holder import Holder
from penstock.storage.lease import Lease, LeaseLost
from tests.storage.objects import ObjectStorage
from tests.storage.stepped import Process, SteppedStorage

BATCHES = 3
SECONDS = 10.0
DRIVERS = 3
ACTION = st.tuples(st.sampled_from(("step", "step", "step", "run", "sleep", "kill")), st.integers(0, DRIVERS - 1))


class World:
    """One storage, some drivers, and what each has done."""

    def __init__(self, folder: Path) -> None:
        self.storage, self.folder = ObjectStorage(), folder
        self.begun: dict[int, set[str]] = defaultdict(set)
        self.committed: dict[int, list[int]] = defaultdict(list)
        self.started = 0
        self.drivers = [self.start() for _ in range(DRIVERS)]

    def start(self) -> Process:
        """A driver in a working directory of its own."""
        self.started += 1
        number = self.started
        return Process(lambda process: self.drive(process, number))

    def drive(self, process: Process, number: int) -> None:
        """What a driver does: it takes the lease, builds its directory, and runs batches."""
        storage = SteppedStorage(self.storage, process)
        with mounted(Path(f"/drivers/{id(self)}/{number}"), storage) as there:
            lease = Lease(storage, seconds=SECONDS, holder=Holder(str(number)), clock=process.clock)
            while not lease.take():
                pass
            work = self.folder / str(number)
            made = LogMirror(there, work, lease.epoch, lease.check)
            made.build()
            log = SparkLog(work / "spark")
            for batch in range(log.last() + 1, log.last() + 1 + BATCHES):
                self.run(made, work / "spark", batch, number, lease.epoch)

    def run(self, made: LogMirror, spark: Path, batch: int, number: int, epoch: int) -> None:
        """A batch: offsets of this driver's own unless it runs again, a manifest, a commit."""
        offsets = spark / "offsets" / str(batch)
        if not offsets.exists():
            offsets.parent.mkdir(parents=True, exist_ok=True)
            offsets.write_text(f'v1\n{{}}\n{{"t":{{"0":{100 * batch + number}}}}}')
        made.begin(batch)
        self.begun[batch].add(offsets.read_text())
        swap_note(open_storage(made.folder / "state"), f"versions/{batch}.json", {"epoch": epoch, "by": number})
        made.finish(batch)
        self.committed[batch].append(number)

    def act(self, action: str, number: int) -> None:
        """Moves one driver; one that has ended is started anew, on another machine."""
        driver = self.drivers[number]
        if driver.is_over:
            self.check(driver)
            self.drivers[number] = self.start()
        elif action == "sleep":
            driver.now += SECONDS
        elif action == "kill":
            driver.kill()
        else:
            for _ in range(12 if action == "run" else 1):
                driver.step()

    def check(self, driver: Process) -> None:
        """A driver ends because it is done, was killed, or another has taken over."""
        if driver.error is not None and not isinstance(driver.error, LeaseLost | StateError):
            raise driver.error

    def check_all(self) -> None:
        """What must hold in every execution."""
        for driver in self.drivers:
            self.check(driver)
        assert all(len(texts) == 1 for texts in self.begun.values()), self.begun
        assert all(len(by) <= 1 for by in self.committed.values()), self.committed
        through = sorted(int(e.name.rpartition("/")[2]) for e in self.storage.list("spark/commits/"))
        assert through == list(range(len(through)))
        for batch in through:
            epoch = json.loads(self.storage.read(f"spark/commits/{batch}").split(b"\n", 1)[1])["epoch"]
            assert read_note(self.storage, f"state/versions/{batch}.json")["epoch"] >= epoch

    def close(self) -> None:
        """Ends all drivers."""
        for driver in self.drivers:
            if not driver.is_over:
                driver.kill()


@pytest.fixture(autouse=True)
def _one_request_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_AT_ONCE", 1)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTION, min_size=20, max_size=120))
def test_each_batch_is_begun_with_one_set_of_offsets_and_committed_once(actions: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            for action in actions:
                world.act(*action)
            world.check_all()
        finally:
            world.close()


def test_a_driver_that_wakes_at_any_request_commits_nothing_that_another_has(tmp_path: Path) -> None:
    """The same, exhaustively: one driver is paused after each number of requests, another takes over and runs, the first wakes."""
    committed = 0
    for pause in range(60):
        folder = tmp_path / str(pause)
        folder.mkdir()
        world = World(folder)
        try:
            paused, other = world.drivers[0], world.drivers[1]
            for _ in range(pause):
                paused.step()
            for _ in range(3):
                other.step()
            other.now += SECONDS
            for _ in range(100):
                other.step()
            for _ in range(100):
                paused.step()
            world.check_all()
            committed = max(committed, len(world.committed))
        finally:
            world.close()
    assert committed >= BATCHES
