"""The ledger of messages: versions, what is left of drivers that were replaced, and what earlier releases wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.graph.logic.topology.acks import AckReport
from penstock.kernels.topology.pending import AckLedger
from penstock.live.ack_log import AckLog
from penstock.storage import LocalStorage, Storage, names_under
from tests.storage.objects import ObjectStorage


def held(*roots: int) -> AckReport:
    return AckReport(dict.fromkeys(roots, 1))


def done(log: AckLog, batch: int, report: AckReport) -> None:
    log.stage(batch, batch - 1, report)
    log.commit(batch)


def reopened(storage: Storage, version: int, epoch: int = 0) -> AckLog:
    log = AckLog(storage, epoch=epoch)
    log.load(version)
    return log


def test_a_driver_that_was_replaced_writes_no_ledger() -> None:
    storage = ObjectStorage()
    old = reopened(storage, -1, epoch=1)
    done(old, 0, held(1))
    new = reopened(storage, 0, epoch=2)
    done(new, 1, held(2))
    with pytest.raises(StateError, match=r"acks-000000001\.json was written by a later driver"):
        old.stage(1, 0, AckReport(failed={1}))
    assert reopened(storage, 1, epoch=3).ledger == AckLedger({1: 1, 2: 1})


def test_what_a_driver_leaves_that_is_replaced_meanwhile_does_not_count() -> None:
    """It wakes after the other has looked what is there, and writes before the other does; the batch of the other changes nothing."""
    storage = ObjectStorage()
    old = reopened(storage, -1, epoch=1)
    done(old, 0, held(1))
    new = reopened(storage, 0, epoch=2)
    old.stage(1, 0, AckReport(failed={1}))
    done(new, 1, AckReport())
    assert reopened(storage, 1, epoch=3).ledger == AckLedger({1: 1})


def test_a_driver_that_wakes_at_its_start_deletes_nothing_of_another() -> None:
    storage = ObjectStorage()
    done(reopened(storage, -1, epoch=1), 0, held(1))
    new = reopened(storage, 0, epoch=3)
    done(new, 1, held(2))
    reopened(storage, 0, epoch=2)
    assert reopened(storage, 1, epoch=4).ledger == AckLedger({1: 1, 2: 1})


def test_an_attempt_that_was_not_committed_does_not_count_when_its_batch_changes_nothing_later(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = reopened(storage, -1)
    done(log, 0, held(1))
    log.stage(1, 0, AckReport(failed={1}))
    log = reopened(storage, 0)
    done(log, 1, AckReport())
    done(log, 2, AckReport())
    assert reopened(storage, 2).ledger == AckLedger({1: 1})


@pytest.mark.parametrize("epoch", [0, 1])
def test_every_version_that_can_be_asked_for_has_its_ledger(tmp_path: Path, epoch: int) -> None:
    log = AckLog(LocalStorage(tmp_path), keep=50, epoch=epoch)
    log.load(-1)
    for batch in range(151):
        done(log, batch, held(batch))
    for version in (100, 117, 150):
        assert list(reopened(log.storage, version).ledger.open) == list(range(version + 1))
    assert len(names_under(log.storage, "")) == 51


def test_a_ledger_of_an_earlier_release_is_read_and_one_that_is_damaged_refused(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write("acks-000000000.json", json.dumps({"open": [[7, 2]], "failed": [[8, 0]]}).encode())
    log = reopened(storage, 0)
    assert log.ledger == AckLedger({7: 2}, {8: 0})
    done(log, 1, held(9))
    written = storage.read("acks-000000001.json")
    storage.write("acks-000000001.json", written.replace(b"[9, 1]", b"[9, 3]"))
    with pytest.raises(StateError, match=r"ledger of messages .*acks-000000001\.json is damaged"):
        reopened(storage, 1)
