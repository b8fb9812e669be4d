"""Multisets of rows by key, kept in typed columns: a list for each field, and one for the counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column
from penstock.kernels.changes.rows import Bag, Identity
from penstock.kernels.records.arrow import arrow_type


def bag_columns(prefix: str, schema: Schema) -> list[Column]:
    """How the rows of a schema are kept for a key."""
    fields = [Column(f"{prefix}{f.name}", pa.list_(arrow_type(f.type))) for f in schema.fields]
    return [*fields, Column(f"{prefix}counts", pa.list_(pa.int64()))]


def bag_of(kept: Sequence[Any] | None, identity: Identity | None) -> Bag:
    """A multiset from the columns it is kept in; None or nulls are the empty one."""
    made = Bag(identity)
    if kept is not None and kept[-1]:
        made.update(zip(zip(*kept[:-1], strict=True), kept[-1], strict=True))
    return made


def checkpoint_content_of(bag: Bag, width: int) -> tuple[Any, ...]:
    """The columns in which a multiset of rows of so many fields is kept."""
    if not len(bag):
        return (None,) * (width + 1)
    rows, counts = zip(*bag, strict=True)
    return (*map(list, zip(*rows, strict=True)), list(counts))
