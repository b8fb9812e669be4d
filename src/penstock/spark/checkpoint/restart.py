"""The beginning of a run, as far as the checkpoint folder goes: what is there is brought into the form the flow wants.

`check` only looks, before Spark is started; `settle` acts, when the folder is locked. Each can be run again after a
crash at any moment.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.compiler.compile import compile_graph
from penstock.errors import CheckpointError
from penstock.graph.graph import Graph
from penstock.graph.state.schema import schemas_to_json
from penstock.spark.checkpoint.changes import Change, Kept, Wanted, change_of, kept_of, note_of, wanted_of
from penstock.spark.checkpoint.savepoint import NOTE, Savepoint, lay_out, load, take
from penstock.state.file import put_safely
from penstock.state.notes import put_note, read_note
from penstock.state.store import StateStore
from penstock.storage import LocalStorage

_CHANGING = "changing"
_PARTS = ("flow.json", "spark", "state", "sources", "loops", "claims", "ticks")
"""What a savepoint puts in the place of what is there; whatever else stands in the folder stays."""


@dataclass(frozen=True)
class Restart:
    """A flow that starts in a folder: from nothing, from what is there, or from a savepoint."""

    folder: Path
    wanted: Wanted
    savepoint: Path | None = None
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
            place = self.folder / _CHANGING if self._interrupted() else self.folder
            kept = kept_of(place)
            if kept is not None:
                change_of(kept, self.wanted, self.drop, self.rename)

    def settle(self) -> str:
        """Makes the folder what the flow wants, and gives the id of its lineage."""
        if self._interrupted():
            self._lay_out(load(self.folder / _CHANGING))
        if self.savepoint is not None and note_of(self.folder) is None:
            found = load(self.savepoint)
            found.verify()
            self._lay_out(found, origin=found.id)
        self._check_origin()
        kept = kept_of(self.folder)
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
        self._write_note(lineage, "")
        return lineage

    def _go_on(self, kept: Kept) -> str:
        change = change_of(kept, self.wanted, self.drop, self.rename)
        if change.moved and kept.version >= 0:
            self._lay_out(take(self.folder, self.folder / _CHANGING))
            return kept.lineage
        if change.moved:
            shutil.rmtree(self.folder / "spark", ignore_errors=True)
        self._fit_state(kept, change)
        self._write_note(kept.lineage, kept.origin)
        return kept.lineage

    def _lay_out(self, found: Savepoint, origin: str = "") -> None:
        """Puts a savepoint in the place of what is there; its note comes last and makes it count."""
        kept = _kept(found.folder)
        change = change_of(kept, self.wanted, self.drop, self.rename)
        clear(self.folder, _PARTS)
        lay_out(found, self.folder, change)
        self._fit_state(kept, change)
        self._write_note(kept.lineage, origin or kept.origin)
        shutil.rmtree(self.folder / _CHANGING, ignore_errors=True)

    def _fit_state(self, kept: Kept, change: Change) -> None:
        """State of which nothing is wanted goes; a flow that keeps something for the first time begins with none."""
        store = StateStore(LocalStorage(self.folder / "state"))
        rename_stores(store, change.renamed)
        if not self.wanted.schemas:
            shutil.rmtree(self.folder / "state", ignore_errors=True)
        elif kept.version >= 0 and not store.has(kept.version):
            store.publish(kept.version)
        elif change.dropped:
            drop_stores(store, kept.version, change.dropped)

    def _interrupted(self) -> bool:
        return (self.folder / _CHANGING / NOTE).exists()

    def _write_note(self, lineage: str, origin: str) -> None:
        wanted = self.wanted
        note = {
            "flow": wanted.flow,
            "lineage": lineage,
            "sources": wanted.sources,
            "schemas": schemas_to_json(wanted.schemas),
        }
        body = json.dumps(note | ({"from": origin} if origin else {}), indent=1)
        path = self.folder / "flow.json"
        if not path.exists() or path.read_text() != body:
            put_safely(path, [body.encode()])


def _kept(folder: Path) -> Kept:
    kept = kept_of(folder)
    if kept is None:
        raise CheckpointError(f"{folder} has no flow.json; use another savepoint")
    return kept


def clear(folder: Path, parts: Collection[str] | None = None) -> None:
    """Empties a checkpoint folder, or removes some parts of it.

    Its note and Spark's part go first: they must not outlive what they are about.
    """
    first = {"flow.json": 0, "spark": 1}
    for part in sorted(folder.iterdir(), key=lambda p: first.get(p.name, 2)):
        if part.name != "lock" and (parts is None or part.name in parts):
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def drop_stores(store: StateStore, version: int, stores: Collection[str]) -> None:
    """Takes what some steps keep out of a version."""
    path = store.manifest(version)
    made = read_note(store.storage, path, "manifest")
    for part in ("steps", "schemas"):
        made[part] = {s: v for s, v in made[part].items() if s not in stores}
    put_note(store.storage, path, made)


def rename_stores(store: StateStore, names: Mapping[str, str]) -> None:
    """Gives stores other names in every version that is kept; the newest comes last, so that a crash before it changes nothing."""
    for version in sorted(store.versions()) if names else ():
        path = store.manifest(version)
        made = read_note(store.storage, path, "manifest")
        for part in ("steps", "schemas"):
            made[part] = {names.get(s, s): v for s, v in made[part].items()}
        put_note(store.storage, path, made)


def check_start(graph: Graph, restart: Restart, *, fresh: bool = False) -> None:
    """Refuses a start that cannot work, before Spark is there: what is kept must fit the flow."""
    wanted = wanted_of(compile_graph(graph, live=True))
    replace(restart, wanted=wanted).check(fresh=fresh)
