"""A lease has one holder at a time, as far as clocks can tell; nobody compares the clocks of two machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import CheckpointError
from penstock.storage import Conflict, Data, LocalStorage, Storage, StorageError, Version
from penstock.storage.holder import Holder
from penstock.storage.lease import KeptLease, Lease, LeaseLost
from tests.storage.kinds import KINDS
from tests.storage.objects import ObjectStorage
from tests.waiting import wait_until


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lease_of(storage: Storage, name: str, clock: Clock | None = None) -> Lease:
    return Lease(storage, seconds=10.0, holder=Holder(name, host=name), clock=clock or Clock())


@pytest.mark.parametrize("kind", KINDS)
def test_one_holds_it_and_the_next_has_the_next_epoch(kind: str, tmp_path: Path) -> None:
    storage = KINDS[kind](tmp_path)
    one, other = lease_of(storage, "one"), lease_of(storage, "other")
    assert one.take()
    assert not other.take()
    one.renew()
    one.release()
    assert other.take()
    assert (one.epoch, other.epoch) == (1, 2)


def test_a_lease_that_is_not_renewed_is_taken_after_its_time_by_the_clock_of_who_waits() -> None:
    storage, clock = ObjectStorage(), Clock()
    one, other = lease_of(storage, "one"), lease_of(storage, "other", clock)
    assert one.take()
    assert not other.take()
    clock.now += 9.9
    assert not other.take()
    one.renew()
    clock.now += 9.9
    assert (other.is_renewed, other.take(), other.is_renewed) == (False, False, True)
    clock.now += 10.0
    assert other.take()
    with pytest.raises(LeaseLost, match="on other has taken over"):
        one.renew()
    with pytest.raises(LeaseLost):
        one.check()
    one.release()
    other.check()


def test_a_holder_that_slept_and_was_not_missed_goes_on() -> None:
    storage, clock = ObjectStorage(), Clock()
    one = lease_of(storage, "one", clock)
    assert one.take()
    clock.now += 1000.0
    one.check()
    assert storage.requests["put"] == 2
    one.check()
    assert storage.requests["put"] == 2


def test_of_two_that_take_it_at_once_one_gets_it() -> None:
    storage, clock = ObjectStorage(), Clock()
    assert lease_of(storage, "dead").take()
    waiting = [lease_of(storage, name, clock) for name in ("a", "b")]
    assert [each.take() for each in waiting] == [False, False]
    clock.now += 10.0
    swap, storage_b = storage.compare_and_swap, lease_of(storage, "b2", clock)
    storage_b._seen, storage_b._since = waiting[1]._seen, 0.0

    def first_b(name: str, expected: Version | None, data: Data) -> Version:
        storage.compare_and_swap = swap  # type: ignore[method-assign]
        assert storage_b.take()
        return swap(name, expected, data)

    storage.compare_and_swap = first_b  # type: ignore[method-assign]
    assert not waiting[0].take()


class LostAnswers(ObjectStorage):
    """Swaps, and says that it did not."""

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        super().compare_and_swap(name, expected, data)
        raise Conflict("the answer to the first try was lost, the second found another version")


def test_a_swap_whose_answer_was_lost_is_found_again() -> None:
    one = lease_of(LostAnswers(), "one")
    assert one.take()
    one.renew()
    one.renew()


def test_a_damaged_lease_is_refused_by_name() -> None:
    storage = ObjectStorage()
    storage.write("lease", b"{")
    with pytest.raises(CheckpointError, match="the lease 'lease' is damaged"):
        lease_of(storage, "one").take()


def test_a_process_of_this_machine_that_was_killed_delays_nobody(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from penstock.storage import LocalStorage; from penstock.storage.lease import Lease\n"
        "assert Lease(LocalStorage(Path(sys.argv[1])), seconds=3600.0).take(); print('taken', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "taken\n"
    mine = Lease(LocalStorage(tmp_path))
    assert not mine.take()
    assert mine.other is not None
    assert str(mine.other.holder) == f"process {process.pid} on {os.uname().nodename}"
    process.kill()
    wait_until(mine.take)  # also as a zombie that nobody has waited for
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert mine.epoch == 2


def test_a_lease_of_another_machine_is_never_taken_for_dead() -> None:
    assert not Holder("x", "far", "another boot", 1).has_died
    assert not Holder("x").has_died
    assert not Holder.this_process().has_died


def test_a_thread_renews_it_and_says_when_it_is_lost() -> None:
    storage = ObjectStorage()
    kept = KeptLease(Lease(storage, seconds=0.3, holder=Holder("one")))
    assert kept.lease.take()
    kept.start()
    clock = Clock()
    other = Lease(storage, seconds=0.3, holder=Holder("other"), clock=clock)
    for _ in range(5):
        assert not other.take()
        wait_until(lambda: storage.read_versioned("lease")[1] != other._seen)
        clock.now += 0.2
    kept.check()
    current = storage.read_versioned("lease")
    stolen = Lease(storage, seconds=0.3, holder=Holder("thief"))
    stolen._seen, stolen._since = current[1], -100.0
    while not stolen.take():
        stolen._seen, stolen._since = storage.read_versioned("lease")[1], -100.0
    wait_until(lambda: kept.failure is not None)
    with pytest.raises(LeaseLost):
        kept.check()
    kept.close()


class Away(ObjectStorage):
    """A storage that cannot be reached for a while."""

    is_away = False

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        if self.is_away:
            raise StorageError("no answer")
        return super().compare_and_swap(name, expected, data)


def test_a_storage_that_does_not_answer_for_a_while_costs_no_lease() -> None:
    storage = Away()
    kept = KeptLease(Lease(storage, seconds=0.3, holder=Holder("one")))
    assert kept.lease.take()
    kept.start()
    storage.is_away = True
    wait_until(lambda: kept.lease.clock() > kept.lease._until)
    with pytest.raises(StorageError):
        kept.check()
    storage.is_away = False
    kept.check()
    assert kept.failure is None
    kept.close()
    assert Lease(storage, holder=Holder("next")).take()
