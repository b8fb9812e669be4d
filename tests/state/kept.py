"""State as a live run leaves it, with the key hashes of a run: no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.schema import StateField, StateSchema
from penstock.graph.types import parse_type
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.records.arrow import arrow_type
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage

Entries = Mapping[tuple[Any, ...], tuple[Any, ...] | None]
"""Values by key; None forgets a key."""


def _field(text: str) -> StateField:
    name, kind, *meaning = text.split(" ", 2)
    return StateField(name, kind, meaning[0] if meaning else "")


@dataclass(frozen=True)
class KeptStep:
    """A step that keeps totals: fields of the key and aggregates, as `name type` and `name type meaning`."""

    name: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    node: str = "aggregate"

    @property
    def schema(self) -> StateSchema:
        """What the manifest says of it."""
        keys = tuple(_field(k) for k in self.keys)
        return StateSchema(self.name, self.node, "values", keys, tuple(map(_field, self.values)))

    @property
    def layout(self) -> Layout:
        """How its state looks: one part for each aggregate."""
        keys = (k.split(" ") for k in self.keys)
        values = (v.split(" ")[:2] for v in self.values)
        return Layout(
            tuple(Column(name, arrow_type(parse_type(kind))) for name, kind in keys),
            tuple(Column(f"{name}.0", arrow_type(parse_type(kind))) for name, kind in values),
        )


def keep(folder: Path, version: int, steps: Mapping[KeptStep, Entries]) -> None:
    """Publishes a version over the one before: what the steps keep now."""
    (folder / "flow.json").parent.mkdir(parents=True, exist_ok=True)
    (folder / "flow.json").write_text("{}")
    schemas = {step.name: step.schema for step in steps}
    store = StateStore(LocalStorage(folder / "state"), run="r", schemas=schemas)
    files = store.begin(version, dict.fromkeys(schemas, 1), version - 1)
    for step, entries in steps.items():
        state = FileState(files[step.name], 0)
        state.describe(step.layout)
        columns = [pa.array(part, c.type) for part, c in zip(zip(*entries, strict=True), step.layout.keys, strict=True)]
        state.prefetch(list(entries), key_hashes(columns, len(entries)).tolist() if entries else [])
        for key, value in entries.items():
            state.put(key, value) if value is not None else state.delete(key)
        state.save()
    store.publish(version)
