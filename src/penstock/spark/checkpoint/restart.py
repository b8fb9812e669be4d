"""The beginning of a run, as far as the checkpoint folder goes: what is there is brought into the form the flow wants.

`check` only looks, before Spark is started; `settle` acts, when the folder is locked. Each can be run again after a
crash at any moment.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.compiler.compile import compile_graph
from penstock.errors import CheckpointError
from penstock.graph.graph import Graph
from penstock.graph.state.key_groups import KEY_GROUPS
from penstock.graph.state.schema import schemas_to_json
from penstock.live.ack_log import ACKS
from penstock.live.hold import LEASE, LOCK
from penstock.location import Address
from penstock.spark.checkpoint.changes import (
    FLOW,
    Change,
    CheckpointContent,
    FlowLayout,
    change_of,
    check_key_groups,
    checkpoint_content_of,
    flow_layout_of,
    note_of,
)
from penstock.spark.checkpoint.savepoint import Savepoint, discard, is_savepoint, lay_out, load, take
from penstock.spark.checkpoint.state_store import state_store_of
from penstock.state.notes import put_note, read_note
from penstock.storage import delete_under, open_storage, read_if_present

if TYPE_CHECKING:
    from penstock.state.store import StateStore

_CHANGING = "changing"
_PARTS = (FLOW, "spark", "state", "sources", "loops", "claims", "ticks", ACKS)
"""What a savepoint replaces; whatever else stands in the folder stays."""


@dataclass(frozen=True)
class Restart:
    """A flow that starts in a folder: from nothing, from what is there, or from a savepoint."""

    folder: Address
    wanted: FlowLayout
    savepoint: Address | None = None
    drop: Collection[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    """Steps that have another name now: old to new."""

    def check(self, *, fresh: bool = False) -> None:
        """Refuses what cannot work; changes nothing."""
        if self.savepoint is not None and (fresh or note_of(self.folder) is None):
            found = load(self.savepoint)
            found.verify()
            change_of(_kept(found.folder), self.wanted, self.drop, self.rename)
        elif not fresh:
            self._check_origin()
            directory = self.folder / _CHANGING if self._interrupted() else self.folder
            kept = checkpoint_content_of(directory)
            if kept is not None:
                check_key_groups(kept, self.wanted)
                change_of(kept, self.wanted, self.drop, self.rename)

    def settle(self) -> str:
        """Makes the folder what the flow wants, and returns the id of its lineage."""
        if self._interrupted():
            self._lay_out(load(self.folder / _CHANGING))
        if self.savepoint is not None and note_of(self.folder) is None:
            found = load(self.savepoint)
            found.verify()
            self._lay_out(found, origin=found.id)
        self._check_origin()
        kept = checkpoint_content_of(self.folder)
        return self._begin() if kept is None else self._go_on(kept)

    def _check_origin(self) -> None:
        note = note_of(self.folder)
        if self.savepoint is not None and note is not None and note.get("from") != load(self.savepoint).id:
            raise CheckpointError(
                f"{self.folder} holds a flow that did not begin from the savepoint {self.savepoint}. To go back to the savepoint, "
                f"add --fresh, which forgets what is there; or give this run a folder of its own with --checkpoint"
            )

    def _begin(self) -> str:
        lineage = uuid.uuid4().hex[:12]
        self._write_note(lineage, "", KEY_GROUPS)
        return lineage

    def _go_on(self, kept: CheckpointContent) -> str:
        check_key_groups(kept, self.wanted)
        change = change_of(kept, self.wanted, self.drop, self.rename)
        if change.moved and kept.version >= 0:
            discard(self.folder / _CHANGING)
            self._lay_out(take(self.folder, self.folder / _CHANGING))
            return kept.lineage
        if change.moved:
            delete_under(open_storage(self.folder), "spark/")
        self._fit_state(kept, change)
        self._write_note(kept.lineage, kept.origin, kept.key_groups)
        return kept.lineage

    def _lay_out(self, found: Savepoint, origin: str = "") -> None:
        """Replaces what is there by a savepoint; its note comes last and makes it count."""
        kept = _kept(found.folder)
        if not origin:
            check_key_groups(kept, self.wanted)
        change = change_of(kept, self.wanted, self.drop, self.rename)
        clear(self.folder, _PARTS)
        lay_out(found, self.folder, change)
        self._fit_state(kept, change)
        self._write_note(kept.lineage, origin or kept.origin, kept.key_groups)
        discard(self.folder / _CHANGING)

    def _fit_state(self, kept: CheckpointContent, change: Change) -> None:
        """State of which nothing is wanted goes; a flow that keeps something for the first time begins with none."""
        store = state_store_of(self.folder)
        rename_stores(store, change.renamed)
        if not self.wanted.schemas:
            delete_under(store.storage, "")
        elif kept.version >= 0 and not store.has(kept.version):
            store.publish(kept.version)
        elif change.dropped:
            drop_stores(store, kept.version, change.dropped)

    def _interrupted(self) -> bool:
        return is_savepoint(self.folder / _CHANGING)

    def _write_note(self, lineage: str, origin: str, key_groups: int) -> None:
        wanted = self.wanted
        note = {
            "flow": wanted.flow,
            "lineage": lineage,
            "sources": wanted.sources,
            "schemas": schemas_to_json(wanted.schemas),
            "key_groups": wanted.key_groups or key_groups,
        }
        body = json.dumps(note | ({"from": origin} if origin else {}), indent=1).encode()
        storage = open_storage(self.folder)
        before = read_if_present(storage, FLOW)
        if before is None or before[0] != body:
            storage.write(FLOW, body)


def _kept(folder: Address) -> CheckpointContent:
    kept = checkpoint_content_of(folder)
    if kept is None:
        raise CheckpointError(f"{folder} has no {FLOW}; use another savepoint")
    return kept


def clear(folder: Address, parts: Collection[str] | None = None) -> None:
    """Empties a checkpoint folder, or removes some parts of it.

    Its note and Spark's part go first: they must not outlive what they are about.
    """
    storage, first = open_storage(folder), {FLOW: 0, "spark": 1}
    for part in sorted(storage.children(), key=lambda name: first.get(name, 2)):
        if part not in (LOCK, LEASE) and (parts is None or part in parts):
            storage.delete(part)
            delete_under(storage, f"{part}/")


def drop_stores(store: StateStore, version: int, stores: Collection[str]) -> None:
    """Takes what some steps keep out of a version."""
    path = store.manifest(version)
    made = read_note(store.storage, path, "manifest")
    for part in {"steps", "schemas", "runs"} & made.keys():
        made[part] = {s: v for s, v in made[part].items() if s not in stores}
    put_note(store.storage, path, made)


def rename_stores(store: StateStore, names: Mapping[str, str]) -> None:
    """Gives stores other names in every version that is kept; the newest comes last, so that a crash before it changes nothing."""
    for version in sorted(store.versions()) if names else ():
        path = store.manifest(version)
        made = read_note(store.storage, path, "manifest")
        wakes = made.get("wakes", {})
        for part in (made["steps"], made["schemas"], made.get("runs", {}), *wakes.values()):
            renamed = {names.get(s, s): v for s, v in part.items()}
            part.clear()
            part.update(renamed)
        put_note(store.storage, path, made)


def check_start(graph: Graph, restart: Restart, *, fresh: bool = False) -> None:
    """Refuses a start that cannot work, before Spark is there: what is kept must fit the flow."""
    wanted = flow_layout_of(compile_graph(graph, live=True), restart.wanted.key_groups)
    replace(restart, wanted=wanted).check(fresh=fresh)
