"""Bugs of the state files. No JVM."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from penstock.graph.arrays import BoolArray, IntArray
from penstock.state.chain import StepFiles
from penstock.state.file import OpenFile, StateFile
from penstock.state.file_list import FileList
from penstock.state.notes import read_note
from penstock.state.ranges import KeyRanges
from penstock.state.store import StateStore
from penstock.storage import Storage
from tests.planted.plant import Bug, Check, Room, function, method, nothing
from tests.spark import test_damage, test_states
from tests.spark.checkpoints import batch, begin
from tests.state import test_key_groups

UNNOTICED = "DID NOT RAISE .*StateError"


def any_note(right: Any, storage: Storage, name: str, what: str = "note") -> Any:
    return json.loads(storage.read(name).decode().rpartition("\n")[0])


def whoever_reported(self: StateStore, step: str, files: StepFiles) -> dict[int, Any]:
    return dict(files.notes)


def everything(self: KeyRanges, hashes: IntArray) -> BoolArray:
    return np.ones(len(hashes), bool)


def only_the_newest(self: FileList, ranges: KeyRanges) -> list[StateFile]:
    return [file for file in self if file.ranges.meets(ranges)][-1:]


def ran(room: Room) -> Any:
    """A flow that has run 26 batches."""
    folder = begin(room.path / "shop")
    for number, words in enumerate(test_damage.BATCHES):
        batch(folder, number, words, keep=3)
    return folder


def damage(kind: str, how: str) -> Check:
    return lambda room: test_damage.test_state_that_is_damaged_is_named(ran(room), kind, how)


BUGS = [
    Bug(
        "the checksum of a state file is ignored",
        method(OpenFile, "_check", nothing),
        damage("values", "flip 0.6"),
        UNNOTICED,
    ),
    Bug(
        "the checksum of a manifest is ignored", function(read_note, any_note), damage("manifest", "flip 1"), UNNOTICED
    ),
    Bug(
        "a version is published before every task has reported",
        method(StateStore, "_notes", whoever_reported),
        lambda room: test_damage.test_a_task_that_did_not_report_makes_no_version(ran(room)),
        UNNOTICED,
    ),
    Bug(
        "a task takes keys that it does not own",
        method(KeyRanges, "mask", everything),
        lambda room: test_states.test_a_key_at_a_task_that_does_not_own_it_is_refused(room.path),
        UNNOTICED,
    ),
    Bug(
        "a task reads no more than the newest file of its range",
        method(FileList, "meeting", only_the_newest),
        lambda room: test_key_groups.test_another_number_of_tasks_loses_and_doubles_no_key(128, (3, 7, 4)),
        "assert",
    ),
]
