"""Bugs of sinks, caught by the contract of connectors and by tests of the sinks. They need Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import penstock as ps
from penstock.connectors.delivery import Entry
from penstock.connectors.file_ledger import LedgerState
from penstock.connectors.files.manifests import Manifests
from penstock.connectors.files.sink import FilesSink
from penstock.connectors.log.sink import StagedRecords
from penstock.spark.batch.sinks import reconcile
from penstock.spark.lower.python import mapped
from penstock.testing.connectors import OpenSink
from tests.planted.ledger import no_reconcile
from tests.planted.plant import Bug, Check, Room, function, method
from tests.spark import test_dead_letters, test_log_connector, test_reconcile
from tests.testing.test_connector_contract import TestFiles

staged, raised = FilesSink.stage, Manifests.take_over


def same_fence(self: Manifests) -> int:
    return self.tail().fence or raised(self)


def shown_when_staged(self: FilesSink, frame: Any, batch: Any) -> Any:
    """The manifest is there before the batch is safe."""
    made = staged(self, frame, batch)
    made.commit()
    return made


def entry_first(self: StagedRecords) -> None:
    """The ledger says that the batch is there; then it is appended."""
    begins = self._begins(self.sink.ledger.read())
    done = Entry.of(self.batch, self.sink.fence, self.rows or 0)
    self.sink.ledger.write(LedgerState(self.sink.fence, done), self.batch)
    self._append(begins)


def no_intent(self: StagedRecords, _: LedgerState) -> dict[int, int]:
    """Where a batch begins is asked anew each time."""
    topic = self.batch.options["topic"]
    return {p: self.sink.producer.last_sequence(topic, p) + 1 for p in self._shares}


def contract(test: str) -> Check:
    """A promise of the contract, asked of the files sink."""

    def check(room: Room) -> None:
        asked, endpoint = TestFiles(), ps.write_files(room.path / "out")
        opened = OpenSink(asked, endpoint, room.spark, asked.schema)
        getattr(asked, test)(opened, endpoint)

    return check


def half_a_batch(room: Room) -> None:
    test = test_log_connector.test_a_batch_that_died_between_two_partitions_adds_only_what_is_missing
    test(room.spark, room.path)


def first_task_only(right: Any, at: Any, frame: Any, function: Any, inside: Any, schema: Any, profile: Any) -> Any:
    """Dead letters are left to the first task, which a stage may not have."""
    changed = replace(function, replays=inside, routed=True) if inside else function
    return frame.mapInArrow(changed, schema, profile=profile)


BUGS = [
    Bug(
        "a start does not raise the fence",
        method(Manifests, "take_over", same_fence),
        contract("test_a_driver_that_was_replaced_is_refused"),
        "DID NOT RAISE .*DeliveryError",
    ),
    Bug(
        "the manifest is published before the commit",
        method(FilesSink, "stage", shown_when_staged),
        contract("test_what_is_staged_is_not_shown"),
        "20 rows are too many",
    ),
    Bug(
        "the ledger is written before the batch",
        method(StagedRecords, "_commit_once", entry_first),
        half_a_batch,
        r"\(1, True\) == \(1, False\)",
    ),
    Bug(
        "a batch that died half-way is appended from its beginning",
        method(StagedRecords, "_begins", no_intent),
        half_a_batch,
        "==",
    ),
    Bug(
        "a replayed dead letter is left to the first task",
        function(mapped, first_task_only),
        lambda room: test_dead_letters.test_a_letter_is_replayed_into_a_stage_that_has_no_first_task(
            room.spark, room.path
        ),
        r"\[3\] == \[-1, 3\]",
    ),
    Bug(
        "a start does not reconcile",
        function(reconcile, no_reconcile),
        lambda room: test_reconcile.test_offsets_that_a_power_cut_took_are_written_again(room.spark, room.path),
        "made of other offsets",
    ),
]
