"""Bugs of the state files. No JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.state.chain import StepFiles
from penstock.state.file import OpenFile
from penstock.state.notes import read_note
from penstock.state.store import StateStore
from penstock.storage import Storage
from tests.planted.plant import Bug, Check, Room, function, method, nothing
from tests.spark import test_damage
from tests.spark.checkpoints import batch, begin

UNNOTICED = "DID NOT RAISE .*StateError"


def any_note(right: Any, storage: Storage, name: str, what: str = "note") -> Any:
    return json.loads(storage.read(name).decode().rpartition("\n")[0])


def whoever_reported(self: StateStore, step: str, files: StepFiles) -> dict[int, Any]:
    names = [e.name for e in self.storage.list(f"{files.folder}/") if e.name.endswith(".json")]
    return {int(Path(name).stem): read_note(self.storage, name) for name in names}


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
]
