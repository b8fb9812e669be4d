"""What may change in a flow between two runs: what is kept is held against what the flow wants, before Spark starts.

State belongs to steps by their names, offsets to sources by name and kind. What would be lost must be given up by name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.compiler.plan import Plan
from penstock.compiler.state_schemas import schema_of_state
from penstock.errors import CheckpointError, StateError, nearest
from penstock.graph.ids import owner_of
from penstock.graph.nodes import Node, Source
from penstock.graph.state.key_groups import KEY_GROUPS
from penstock.graph.state.schema import StateSchema
from penstock.location import Address
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.spark.checkpoint.state_store import state_store_of
from penstock.spark.live.ticks import NAME as TICKS
from penstock.spark.live.ticks import has_ticks
from penstock.storage import NotFound, StorageError, open_storage

if TYPE_CHECKING:
    from penstock.state.file import StateFile

FLOW = "flow.json"
"""The note in a checkpoint that says whose it is; without it nothing else there counts."""
Named = tuple[str, str]
"""A source: its name and its kind."""


@dataclass(frozen=True)
class FlowLayout:
    """What a flow wants to find: its sources in order, and the form of what each step keeps."""

    flow: str
    sources: tuple[Named, ...] = ()
    schemas: dict[str, StateSchema] = field(default_factory=dict)
    key_groups: int | None = None
    """The number of key groups; None for the one that is kept."""


@dataclass(frozen=True)
class CheckpointContent:
    """What a checkpoint or a savepoint holds."""

    folder: Address
    flow: str
    lineage: str
    sources: tuple[Named, ...]
    schemas: dict[str, StateSchema]
    version: int = -1
    files: dict[str, list[StateFile]] = field(default_factory=dict)
    origin: str = ""
    """The savepoint it began from."""
    key_groups: int = KEY_GROUPS

    def amount(self, store: str) -> str:
        """How much a step keeps, in words."""
        files = self.files.get(store, [])
        return f"{sum(f.rows for f in files):,} entries, {sum(f.size for f in files):,} bytes"


@dataclass(frozen=True)
class Change:
    """How to get from what is kept to what is wanted."""

    indexes: tuple[int | None, ...]
    """For each source the index it had; None for one that is new."""
    moved: bool
    dropped: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    """Stores that get another name, old to new."""


def flow_layout_of(plan: Plan, key_groups: int | None = None) -> FlowLayout:
    """What a plan wants to find."""
    steps = {name for stage in plan.stages for name in stage.steps}
    nodes = [n for n in (*plan.graph.sources, *plan.graph.loops) if n.name in steps]
    ticks = [(TICKS, "ticks")] if has_ticks(plan.graph) else []
    schemas = {
        store: schema_of_state(n, plan.graph, store)
        for s in plan.stages
        if s.state
        for n in s.nodes
        for store in n.stores
    }
    return FlowLayout(plan.graph.name, (*((n.name, _kind(n)) for n in nodes), *ticks), schemas, key_groups)


def _kind(node: Node) -> str:
    return node.endpoint.kind if isinstance(node, Source) else "loop"


def note_of(folder: Address) -> dict[str, Any] | None:
    """The note that says whose a folder is; None where there is none."""
    try:
        note: dict[str, Any] = json.loads(open_storage(folder).read(FLOW))
        note["flow"], note["lineage"], note["sources"]
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError, StorageError) as error:
        raise CheckpointError(
            f"{folder / FLOW} is damaged ({error}); restore it, or start afresh with --fresh"
        ) from None
    return note


def checkpoint_content_of(folder: Address) -> CheckpointContent | None:
    """What a folder holds at the last batch that is through; None where no flow has begun."""
    note = note_of(folder)
    if note is None:
        return None
    sources = tuple((str(n), str(k)) for n, k in note["sources"])
    log, store = SparkLog(folder / "spark"), state_store_of(folder)
    log.check(len(sources))
    version = log.last()
    stateful = bool(note.get("schemas")) or store.has(version)
    files = store.read(version) if stateful else {}
    schemas = store.kept_schemas(version) if stateful else {}
    return CheckpointContent(
        folder,
        note["flow"],
        note["lineage"],
        sources,
        schemas,
        version,
        files,
        note.get("from", ""),
        key_groups_of(note),
    )


def key_groups_of(note: Mapping[str, Any]) -> int:
    """The number of key groups of a checkpoint, by its note."""
    return int(note.get("key_groups", KEY_GROUPS))


def check_key_groups(kept: CheckpointContent, wanted: FlowLayout) -> None:
    """Refuses another number of key groups than a checkpoint has: its tasks share those. A savepoint may be started with any."""
    if wanted.key_groups not in (None, kept.key_groups):
        raise CheckpointError(
            f"{kept.folder} has {kept.key_groups:,} key groups, which are chosen once; expected that or no --key-groups, got {wanted.key_groups:,}. "
            f"To go on with {wanted.key_groups:,}, take a savepoint and start from it: penstock savepoint, then penstock run "
            f"--fresh --from SAVEPOINT --key-groups {wanted.key_groups}"
        )


def change_of(
    kept: CheckpointContent, wanted: FlowLayout, drop: Collection[str] = (), rename: Mapping[str, str] | None = None
) -> Change:
    """What has to be done so that the flow finds what it wants; refuses what would lose something nobody gave up."""
    stores = renamed_stores(kept, wanted, rename or {})
    return replace(_change_of(_with_names(kept, stores), wanted, drop), renamed=stores)


def _change_of(kept: CheckpointContent, wanted: FlowLayout, drop: Collection[str]) -> Change:
    if kept.flow != wanted.flow:
        raise CheckpointError(
            f"{kept.folder} belongs to the flow {kept.flow!r}, not to {wanted.flow!r}; choose another folder"
        )
    stores = [s for s in kept.files if kept.files[s] and _reasons(kept, wanted, s)]
    sources = [n for n, k in kept.sources if k != "ticks" and (n, k) not in wanted.sources] if kept.version >= 0 else []
    lost = [_store_text(kept, wanted, s) for s in stores if not {s, owner_of(s)} & set(drop)]
    lost += [_source_text(kept, wanted, s) for s in sources if s not in drop]
    if lost:
        names = dict.fromkeys([*(owner_of(s) for s in stores), *sources])
        raise StateError(_refusal(kept, lost, [n for n in names if n not in drop]))
    indexes = tuple(_index(s, kept.sources) for s in wanted.sources)
    return Change(indexes, kept.sources != wanted.sources, tuple(stores))


def renamed_stores(kept: CheckpointContent, wanted: FlowLayout, rename: Mapping[str, str]) -> dict[str, str]:
    """The stores of renamed steps, old names to new; a step that has its new name already is left as it is."""
    made: dict[str, str] = {}
    for old, new in rename.items():
        stores = [s for s in kept.files if _step_of(s) == old]
        if stores or new not in {_step_of(s) for s in kept.files}:
            _check_rename(kept, wanted, old, new)
        made |= {s: new + s[len(old) :] for s in stores}
    return made


def _check_rename(kept: CheckpointContent, wanted: FlowLayout, old: str, new: str) -> None:
    has, wants = {_step_of(s) for s in kept.files}, {_step_of(s) for s in wanted.schemas}
    asked = f"--rename-state {old}={new}"
    if old not in has:
        raise StateError(f"{asked}: {kept.folder} keeps no state of a step {old!r}; {nearest(old, sorted(has))}")
    if old in wants:
        raise StateError(f"{asked}: step {old!r} is still in the flow, and keeps state of its own")
    if new not in wants:
        raise StateError(f"{asked}: the flow has no step {new!r} that keeps state; {nearest(new, sorted(wants))}")
    if new in has:
        raise StateError(
            f"{asked}: {kept.folder} has state of step {new!r} already; give that up first: --drop-state {new}"
        )


def _with_names(kept: CheckpointContent, stores: Mapping[str, str]) -> CheckpointContent:
    schemas = {stores.get(s, s): schema for s, schema in kept.schemas.items()}
    return replace(kept, schemas=schemas, files={stores.get(s, s): files for s, files in kept.files.items()})


def _step_of(store: str) -> str:
    """The step that a store belongs to.

    >>> _step_of("pairs@last"), _step_of("counts")
    ('pairs', 'counts')
    """
    return owner_of(store)


def _reasons(kept: CheckpointContent, wanted: FlowLayout, store: str) -> list[str]:
    """Why a store cannot be kept; nothing when it can."""
    if store not in wanted.schemas:
        return ["its step is gone"]
    if store not in kept.schemas:
        return ["its manifest does not say what is kept"]
    return wanted.schemas[store].compatible_with(kept.schemas[store])


def _index(source: Named, before: tuple[Named, ...]) -> int | None:
    """Where a source was. Ticks start over, because those that have been read are gone."""
    return before.index(source) if source in before and source[1] != "ticks" else None


def _may_be(kept: CheckpointContent, store: str, schema: StateSchema) -> bool:
    """Whether a new store may be an old one with another name."""
    return store in kept.schemas and not schema.compatible_with(kept.schemas[store])


def _store_text(kept: CheckpointContent, wanted: FlowLayout, store: str) -> str:
    if store in wanted.schemas:
        reasons = "; ".join(_reasons(kept, wanted, store))
        return (
            f"step {store!r} keeps {kept.schemas.get(store, 'state')}; now it wants {wanted.schemas[store]}: {reasons}"
        )
    new = [s for s in wanted.schemas if s not in kept.files and _may_be(kept, store, wanted.schemas[s])]
    hint = f"; if it has another name now: {' or '.join(f'--rename-state {store}={s}' for s in new)}" if new else ""
    return f"step {store!r} is gone, and keeps state ({kept.amount(store)}){hint}"


def _hint(name: str, new: list[str]) -> str:
    return f"; of the new ones, {nearest(name, new)}" if new else ""


def _source_text(kept: CheckpointContent, wanted: FlowLayout, source: str) -> str:
    was = dict(kept.sources)[source]
    now = dict(wanted.sources).get(source)
    if now is not None:
        return f"source {source!r} was of the kind {was}, and is now {now}: it would start over"
    hint = _hint(source, [n for n, k in wanted.sources if (n, k) not in kept.sources and k != "ticks"])
    return f"source {source!r} ({was}) is gone, and how far it has been read would be lost{hint}"


def _refusal(kept: CheckpointContent, lost: list[str], names: list[str]) -> str:
    flags = " ".join(f"--drop-state {n}" for n in names)
    listed = "\n".join(f"  - {text}" for text in lost)
    return (
        f"flow {kept.flow!r} has changed, and something of version {kept.version} in {kept.folder} cannot be kept:\n{listed}\n"
        f"Give each its former name and form, or say that it may go: {flags}"
    )
