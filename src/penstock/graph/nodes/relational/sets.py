"""Rows of one or two inputs as sets or multisets: without doubles, in both, in the first alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph.nodes.base import FOR_EVER, Changes, Inputs, Output, Settings, counted, is_plain
from penstock.graph.nodes.changes import visible
from penstock.graph.nodes.keyed import Keyed, check_parallelism

DISTINCT, INTERSECT, EXCEPT = "distinct", "intersect", "except"


@dataclass(frozen=True)
class SetOperation(Keyed):
    """Compares how often each row is there: `distinct` of one input; `intersect` and `except` of two. Null is equal to null.

    With `every` the counts count: `intersect` has a row as often as the input that has fewer of it, `except` as often as the first has more.
    """

    operation: str = field(kw_only=True)
    every: bool = field(default=False, kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether the result comes as signed rows; the compiler says so."""
    kind: ClassVar[str] = "set_operation"
    python: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """Equal rows meet by their plain fields; where there are none there is one task."""
        keys = tuple(f.name for f in visible(given[0].schema).fields if is_plain(f))
        return replace(self, keys=keys) if keys else replace(self, keys=(), parallelism=1)

    def check(self, given: Inputs) -> None:
        """All inputs have the same types of fields, in order."""
        check_parallelism(self.parallelism)
        wanted = 1 if self.operation == DISTINCT else 2
        if self.operation not in (DISTINCT, INTERSECT, EXCEPT) or len(given) != wanted:
            raise FlowError(
                f"expected distinct of one stream, or intersect or except of two, got {self.operation!r} of {len(given)}"
            )
        schemas = [visible(stream.schema) for stream in given]
        for port, schema in zip(self.inputs[1:], schemas[1:], strict=True):
            if not schema.types_equal(schemas[0]):
                raise SchemaError(
                    f"{self.operation} expects the same fields on both sides, ({schemas[0]}), got ({schema}) from {port}; use select to bring them "
                    f"together"
                )

    @property
    def grows(self) -> bool:
        """Whether rows never go as long as none goes from the inputs."""
        return self.operation != EXCEPT

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows: records where no row can go, else a table; each row is there once, so all its fields are the key."""
        schema = visible(given[0].schema)
        if self.counted:
            return (Output(counted(schema)),)
        timed = given[0].event_time if self.operation == DISTINCT else None
        if self.grows and not any(stream.changes for stream in given):
            return (Output(schema, event_time=timed),)
        whole = None if self.every or not all(map(is_plain, schema.fields)) else schema.names
        return (Output(schema, changes=Changes(whole), event_time=timed),)

    def keys_of(self, input: int) -> tuple[str, ...]:
        """The fields by which equal rows meet; both inputs have the same."""
        return self.keys

    @property
    def keeps(self) -> str:
        """How often each row is there."""
        return f"a count for each different row, {FOR_EVER}"

    def settings(self) -> Settings:
        """Which operation."""
        return {"operation": f"{self.operation}{' all' if self.every else ''}"}
