"""Partitioned spouts as a spout that deals out ranges and a bolt that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.frontends.topology.declare import BoltDeclaration, Declared, SpoutDeclaration, Subscription
from penstock.graph.ids import child
from penstock.graph.logic.topology.config import PENDING, TICK
from penstock.graph.logic.topology.partitioned import OPEN_RANGES, RANGES, PartitionedSpout, RangeReader, RangeSpout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Grouping
from penstock.graph.schema import schema_of


def dealing(name: str) -> str:
    """The name of the spout that deals out the ranges of another."""
    return child(name, "ranges")


def with_ranges(declared: Mapping[str, Declared], config: Mapping[str, Any]) -> dict[str, Declared]:
    """The components of a topology, with two in the place of each partitioned spout: the bolt has its name."""
    return {each.name: each for found in declared.values() for each in _expanded(found, config)}


def _expanded(found: Declared, config: Mapping[str, Any]) -> Iterator[Declared]:
    if not isinstance(found, SpoutDeclaration) or not isinstance(found.spout, PartitionedSpout):
        yield found
        return
    name, spout = found.name, found.spout
    pending = {**config, **found.config}.get(PENDING) or OPEN_RANGES
    streams = {DEFAULT: schema_of(RANGES)}
    yield replace(
        found,
        name=dealing(name),
        spout=RangeSpout(spout),
        tasks=1,
        streams=streams,
        config={**found.config, PENDING: pending * found.tasks},
        on_error=None,
    )
    reads = Subscription(dealing(name), DEFAULT, Grouping("modulo", ("turn",)), line=found.line)
    reader = RangeReader(spout)
    yield BoltDeclaration(
        name,
        reader,
        found.tasks,
        found.streams,
        found.line,
        [reads],
        {**found.config, TICK: None},
        on_error=found.on_error,
    )
