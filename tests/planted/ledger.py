"""Bugs of the ledger and of what a run does with it. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors import delivery
from penstock.connectors.base import Batch
from penstock.connectors.delivery import WRITE, Entry, verdict
from penstock.connectors.file_ledger import FileLedger, LedgerState
from penstock.connectors.files.manifests import BatchFile, Manifests, Tail
from penstock.connectors.process.feed import parquet_bytes
from penstock.spark.batch.loops import StagedLoop
from penstock.spark.batch.sinks import Sinks, reconcile
from penstock.storage import Conflict, LocalStorage, Version, mounted, open_storage, swap
from penstock.storage.swap import Swap
from tests.connectors import test_delivery, test_log_endpoints
from tests.planted.plant import Bug, Check, Room, function, method, nothing
from tests.spark import test_fed
from tests.storage.objects import ObjectStorage

Verdict = Any
REFUSED = "DID NOT RAISE .*DeliveryError"


def no_fence(right: Verdict, entry: Entry | None, batch: Batch, fence: int) -> str:
    return str(right(entry and replace(entry, fence=0), batch, fence))


def any_fingerprint(right: Verdict, entry: Entry | None, batch: Batch, fence: int) -> str:
    return str(right(entry, replace(batch, fingerprint=entry.fingerprint) if entry else batch, fence))


def never_skipped(right: Verdict, *about: Any) -> str:
    return right(*about) and WRITE


def backwards(right: Verdict, entry: Entry | None, batch: Batch, fence: int) -> str:
    return WRITE if entry is not None and entry.batch > batch.id else str(right(entry, batch, fence))


def no_reconcile(right: Any, *_: Any) -> Iterator[str]:
    return iter(())


def overwritten(self: FileLedger, state: LedgerState, batch: Batch) -> None:
    """The ledger is written whoever has written it since."""
    self.storage.write(self.name, state.as_bytes())


def claims_left(claim: Path) -> None:
    """A swap leaves the claims of others, so one that wakes still has its own."""


def manifest_without_a_look(self: Manifests, tail: Tail, entry: Entry, files: list[BatchFile]) -> bool:
    """The manifest gets the position after the last, whoever has taken over meanwhile."""
    return self._add(self.tail(), asdict(entry) | {"files": [asdict(f) for f in files]})


def loop_overwritten(self: StagedLoop) -> None:
    """What a batch feeds back replaces what another driver has fed back in the same batch."""
    storage = open_storage(Path(self.batch.options["path"]))
    storage.write(
        f"{self.batch.sink}-{self.batch.id:08d}-{self.batch.lineage}-00000.parquet", parquet_bytes(self.table)
    )


def looped(room: Room) -> None:
    with mounted(room.path / "bucket", ObjectStorage()) as shared:
        test_fed.test_a_loop_gets_the_records_of_one_driver(shared, room.path)


def refuses(number: int, fingerprint: str, text: str) -> Check:
    """The topic of a sink at batch 1 must not take this one."""
    test = test_log_endpoints.test_a_batch_that_does_not_fit_the_ledger_is_refused
    return lambda room: test(room.path, number, fingerprint, text)


def fenced(room: Room) -> None:
    test_delivery.test_what_does_not_fit_is_refused(Entry(2, "f2", 9), "another driver of this flow has taken over")


def once(room: Room) -> None:
    test_log_endpoints.test_a_batch_that_comes_again_is_stored_once_and_weaker_deliveries_store_it_again(room.path)


def at_most_once(room: Room) -> None:
    test = test_delivery.test_a_batch_that_runs_again_comes_at_most_once_where_that_is_asked
    test(room.path, "at_most_once", [0, 1])


def swapped(room: Room) -> None:
    """Two swaps that have both passed their checks."""
    storage = LocalStorage(room.path)
    version = storage.compare_and_swap("ledger", None, b"0")
    has, second = Swap._has, list[bool]()

    def overtaken(self: Swap, expected: Version) -> bool:
        found = has(self, expected)
        if not second:
            second.append(True)
            storage.compare_and_swap("ledger", version, b"second")
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Swap, "_has", overtaken)
        patched.setattr("penstock.storage.swap.PATIENCE", 0.05)
        with pytest.raises(Conflict):
            storage.compare_and_swap("ledger", version, b"first")
    assert storage.read("ledger") == b"second"


BUGS = [
    Bug(
        "a driver that was replaced writes over the ledger",
        method(FileLedger, "write", overwritten),
        lambda room: test_log_endpoints.test_a_ledger_that_another_driver_writes_is_left_alone(room.path),
        "DID NOT RAISE .*DeliveryError|holds",
    ),
    Bug(
        "a swap does not take away the claims of others",
        function(swap._remove_others, lambda right, claim: claims_left(claim)),
        swapped,
        "DID NOT RAISE .*Conflict",
    ),
    Bug(
        "a manifest is put after that of another driver",
        method(Manifests, "put", manifest_without_a_look),
        lambda room: test_delivery.test_a_manifest_is_refused_when_another_driver_has_taken_over_meanwhile(room.path),
        "assert not",
    ),
    Bug(
        "a loop takes the records of whoever comes last",
        method(StagedLoop, "commit", loop_overwritten),
        looped,
        "DID NOT RAISE .*LeaseLost",
    ),
    Bug("the ledger has no fence", function(verdict, no_fence), fenced, REFUSED),
    Bug(
        "the fingerprint is not compared",
        function(verdict, any_fingerprint),
        refuses(1, "other", "made of other offsets"),
        REFUSED,
    ),
    Bug("a batch that comes again is written again", function(verdict, never_skipped), once, "8 == 4"),
    Bug(
        "a gap is accepted",
        function(delivery._next, lambda *_: WRITE),
        refuses(3, "f3", "sink is older than the checkpoint"),
        REFUSED,
    ),
    Bug(
        "a batch that goes backwards is accepted",
        function(verdict, backwards),
        refuses(0, "f0", "checkpoint is older than the sink"),
        REFUSED,
    ),
    Bug(
        "a ledger that is gone is accepted",
        method(Sinks, "_check_ledger", nothing),
        lambda room: test_delivery.test_a_ledger_that_is_gone_is_refused(room.path),
        REFUSED,
    ),
    Bug("at most once, but no claim before the write", method(Sinks, "_claim", nothing), at_most_once, r"\[0, 1, 1\]"),
    Bug(
        "nothing is reconciled: lost offsets",
        function(reconcile, no_reconcile),
        lambda room: test_delivery.test_a_ledger_ahead_gives_back_lost_offsets(room.path),
        "any",
    ),
    Bug(
        "nothing is reconciled: a sink from a backup",
        function(reconcile, no_reconcile),
        lambda room: test_delivery.test_a_sink_from_a_backup_rewinds_the_checkpoint(room.path),
        "any",
    ),
]
