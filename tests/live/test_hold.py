"""One driver at a time has a checkpoint: a directory by a lock, a URL by a lease."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from penstock.errors import CheckpointError
from penstock.live import hold
from penstock.live.hold import LeaseSeeker, check_free, lock_directory
from penstock.location import Location
from penstock.storage import MemoryStorage, StorageError
from penstock.storage.base import Version
from penstock.storage.holder import Holder
from penstock.storage.lease import Lease, LeaseLost
from penstock.storage.urls import storage_at


@pytest.fixture
def shared(tmp_path: Path) -> Location:
    return Location((tmp_path / "shared").as_uri())


def test_a_directory_that_another_has_locked_is_refused_until_it_is_let_go(tmp_path: Path) -> None:
    held = lock_directory(tmp_path / "kept", "shop")
    with pytest.raises(CheckpointError, match="flow 'shop' runs already: another process has"):
        check_free(tmp_path / "kept", "shop")
    with pytest.raises(CheckpointError, match="runs already"):
        lock_directory(tmp_path / "kept", "shop")
    held.check()
    held.close()
    check_free(tmp_path / "kept", "shop")


def test_a_url_whose_lease_is_renewed_is_refused_and_one_that_was_given_up_is_taken_at_once(shared: Location) -> None:
    held = LeaseSeeker(shared, "shop", 6.0).take()
    with pytest.raises(CheckpointError, match=r"flow 'shop' runs already: process .* has file:///.*/shared open"):
        LeaseSeeker(shared, "shop", 6.0).take()
    held.check()
    held.close()
    again = LeaseSeeker(shared, "shop", 3600.0).take()
    assert (held.epoch, again.epoch) == (1, 2)
    again.close()


def test_a_driver_that_stands_by_says_for_whom_and_takes_over(shared: Location) -> None:
    said: list[str] = []
    leader = Lease(storage_at(shared.url), seconds=1.0)
    assert leader.take()
    held = LeaseSeeker(shared, "shop", 1.0, tell=said.append).wait()
    assert held is not None
    assert said == [f"standing by: {leader.holder} runs the flow", "taking over, epoch 2"]
    with pytest.raises(
        LeaseLost, match=r"this driver \(epoch 1\) no longer has the checkpoint: process .* has taken over"
    ):
        leader.check() if leader.clock() >= leader._until else leader.renew()
    held.close()


def test_a_driver_that_stands_by_can_be_stopped(shared: Location) -> None:
    held = LeaseSeeker(shared, "shop", 6.0).take()
    stops = iter([False, True])
    assert LeaseSeeker(shared, "shop", 6.0, lambda: next(stops)).wait() is None
    held.close()


class AwayStorage(MemoryStorage):
    """A storage that cannot be reached for a while; then the leader renews its lease again."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        if self.failures:
            self.failures -= 1
            raise StorageError("the store does not answer")
        return super().read_versioned(name)


def test_a_driver_that_stands_by_outlasts_a_storage_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither ends, nor takes the lease of a leader that could not renew it either."""
    storage, said = AwayStorage(), list[str]()
    now = [100.0]
    monkeypatch.setattr(hold, "open_storage", lambda folder: storage)
    monkeypatch.setattr(hold, "Lease", partial(Lease, clock=lambda: now[0]))
    monkeypatch.setattr(LeaseSeeker, "_pause", lambda self, lease: now.append(now.pop() + 0.05))
    leader = Lease(storage, holder=Holder("leader"), seconds=0.4, clock=lambda: now[0])
    assert leader.take()
    looks: list[bool] = []

    def stops() -> bool:
        looks.append(True)
        if len(looks) == 2:
            storage.failures = 12  # longer than the lease
        if len(looks) == 15:
            leader.renew()
        return len(looks) == 18

    assert LeaseSeeker(Location("memory://x"), "shop", 0.4, stops, said.append).wait() is None
    assert said == [
        "standing by: leader runs the flow",
        "the checkpoint cannot be reached; trying until it can: the store does not answer",
    ]
