"""One version of the state of a flow, seen from outside: all that is read of it is of the same moment, and bounded.

Files never change, and one manifest names those of all steps, so what two steps keep fits together while the flow goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.errors import StateError, nearest
from penstock.graph.arrays import IntArray
from penstock.graph.state.arrow import equal, wide_type
from penstock.graph.state.schema import StateSchema
from penstock.graph.times import FOREVER, NEVER
from penstock.state import columns
from penstock.state.chain import StepFiles
from penstock.state.file import KEY_HASH, OpenFile, StateFile, map_file
from penstock.state.file_list import FileList
from penstock.state.merge import merged
from penstock.state.pattern_runs import has_runs, runs_of
from penstock.state.reader import OpenState, Store, described_store, kind_of, shown, with_moments
from penstock.state.store import StateStore, state_storage
from penstock.state.tables import FileTable
from penstock.state.timing.time_index import is_index, without_index


@dataclass(frozen=True)
class ReadLimits:
    """How much may be read of what one step keeps: entries and bytes of its files."""

    entries: int = 2_000_000
    bytes: int = 512 << 20


@dataclass(frozen=True)
class Snapshot:
    """A version of the state: the files and the form of what each step keeps."""

    store: StateStore
    version: int
    files: Mapping[str, list[StateFile]]
    schemas: Mapping[str, StateSchema]

    @classmethod
    def of(cls, state: OpenState, version: int) -> Snapshot:
        """A version; of a checkpoint that is a URL, only the regions are fetched that are asked for."""
        store = StateStore(state_storage(state.folder))
        found = store.read(version)
        return cls(store, version, found, store.kept_schemas(version))

    def stores(self) -> list[Store]:
        """What the steps keep."""
        return [described_store(name, files, self.schemas.get(name)) for name, files in self.files.items()]

    def keys(self, step: str) -> tuple[str, ...]:
        """The fields of the key by which a step keeps values; empty where it keeps rows in time, or has none."""
        schema = self.schemas.get(step)
        return tuple(f.name for f in schema.keys) if schema is not None and schema.store == "values" else ()

    def read(self, step: str, limits: ReadLimits | None = None) -> pa.Table:
        """All that a step keeps.

        Raises:
            StateError: no step of that name keeps anything, or it keeps more than the limits allow.
        """
        files = self._files(step)
        _check(step, files, limits or ReadLimits())
        if not files:
            return pa.table({})
        if kind_of(files) == "rows":
            return self._rows(files)
        return self._shown(step, self._entries(files))

    def lookup(self, step: str, keys: pa.RecordBatch, hashes: IntArray) -> pa.Table:
        """What a step keeps for some keys; only the regions of the files in which they stand are read.

        Args:
            step: a step that keeps values by key.
            keys: a column for each field of the key, in the order of the step's keys; no key twice.
            hashes: the key hash of each.

        Raises:
            StateError: no step of that name keeps anything.
        """
        order = np.argsort(hashes, kind="stable")
        wanted, sought = keys.take(pa.array(order)), hashes[order]
        parts = [self._found(file, wanted, sought) for file in self._files(step)]
        there = [part for part in parts if part is not None and part.num_rows]
        return self._shown(step, merged(there, last=True)) if there else self._empty(step)

    def _found(self, file: StateFile, wanted: pa.RecordBatch, hashes: IntArray) -> pa.RecordBatch | None:
        """The entries of some keys in one file."""
        mine = np.flatnonzero(file.ranges.mask(hashes))
        if not len(mine):
            return None
        opened = map_file(self.store.storage, file)
        at, rows = opened.find(hashes[mine])
        alike = np.ones(len(at), bool)
        for name, array in zip(wanted.schema.names, wanted.columns, strict=True):
            kept = opened.taken(columns.KEY + name, rows)
            alike &= equal(kept, array.cast(wide_type(array.type)).cast(kept.type).take(pa.array(mine[at])))
        return _taken(opened, rows[alike])

    def _files(self, step: str) -> list[StateFile]:
        if step not in self.files:
            raise StateError(f"no step {step!r} keeps state in version {self.version}; {nearest(step, self.files)}")
        return self.files[step]

    def _entries(self, files: list[StateFile]) -> pa.RecordBatch:
        parts = [file.ranges.cut(without_index(map_file(self.store.storage, file).whole()), KEY_HASH) for file in files]
        return merged(parts, last=True)

    def _rows(self, files: list[StateFile]) -> pa.Table:
        found = FileTable(StepFiles(self.store.storage, FileList(files), "", 1), 0).span(NEVER, FOREVER)
        return pa.table({}) if found is None else with_moments(found)

    def _shown(self, step: str, entries: pa.RecordBatch) -> pa.Table:
        found, schema = shown(entries), self.schemas.get(step)
        return runs_of(found, schema) if schema is not None and has_runs(schema, found) else found

    def _empty(self, step: str) -> pa.Table:
        """The columns of a step without entries."""
        files = [replace(file) for file in self._files(step)[-1:]]
        if not files:
            return pa.table({})
        opened = map_file(self.store.storage, files[0])
        return self._shown(step, _taken(opened, np.zeros(0, np.int64)))


def _taken(opened: OpenFile, rows: IntArray) -> pa.RecordBatch:
    names = [name for name in opened.batch.schema.names if not is_index(name)]
    return pa.RecordBatch.from_arrays([opened.taken(name, rows) for name in names], names)


def _check(step: str, files: list[StateFile], limits: ReadLimits) -> None:
    entries, size = sum(file.rows for file in files), sum(file.size for file in files)
    if entries > limits.entries or size > limits.bytes:
        raise StateError(
            f"step {step!r} keeps {entries:,} entries in {size / (1 << 20):,.0f} MiB, and {limits.entries:,} entries in "
            f"{limits.bytes / (1 << 20):,.0f} MiB may be read; look up keys (where KEY = 'value'), which reads no more than it needs, or allow more"
        )
