"""A step over the tuples of each key in a batch: aggregates and joins of Trident, and the states that Penstock keeps for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.errors import SchemaError
from penstock.graph.logic.trident.keyed import KeyedBatchLogic
from penstock.graph.nodes.base import Inputs, Output, Settings, check_key, label
from penstock.graph.nodes.keyed import Combine, Keyed
from penstock.graph.schema import Schema


@dataclass(frozen=True)
class KeyedBatch(Keyed):
    """What `logic` makes of the tuples of each key in a batch, at its end. `schemas` are those of its outputs, by name.

    `other_keys` has the keys of the inputs after the first. What `logic` keeps outlives the batch where `persistent` says so.
    """

    logic: KeyedBatchLogic = field(kw_only=True)
    schemas: tuple[tuple[str, Schema], ...] = field(kw_only=True)
    other_keys: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True)
    persistent: bool = field(default=False, kw_only=True)
    combined: bool = field(default=False, kw_only=True)
    """Whether its first input has parts, made by a step before the shuffle, in place of tuples."""
    kind: ClassVar[str] = "batch_by_key"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_records: ClassVar[str] = "a batch of tuples has none to take back"

    def check(self, given: Inputs) -> None:
        """The keys of all inputs are there, and of the same types."""
        super().check(given)
        types = [given[0].schema.field(key).type for key in self.keys]
        for at, stream in enumerate(given[1:], 1):
            fields = [stream.schema.field(key) for key in self.keys_of(at)]
            list(map(check_key, fields))
            if [f.type for f in fields] != types:
                shown = ", ".join(f"{f.name} {f.type}" for f in fields)
                raise SchemaError(
                    f"expected fields of the types of the key ({', '.join(map(str, types))}), got {shown or 'none'}"
                )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The streams that the front end has declared."""
        return tuple(Output(schema, name) for name, schema in self.schemas)

    def keys_of(self, input: int) -> tuple[str, ...]:
        """The key fields of one of its inputs."""
        return self.other_keys[input - 1] if input else self.keys

    @property
    def stores(self) -> dict[str, str]:
        """The values of the keys, where they are kept."""
        return {self.name: "values"} if self.persistent else {}

    def settings(self) -> Settings:
        """The key, what is done, and whether it is kept."""
        return {**super().settings(), "class": label(self.logic), "kept": self.persistent}


@dataclass(frozen=True)
class CombineBatch(Combine):
    """The half before the shuffle of a step whose tuples can be put together in parts; the compiler puts it in."""

    of: KeyedBatch  # type: ignore[assignment]  # a Combine of another kind of step
