"""Rows with what a table holds for their key when they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.graph.nodes.base import Changes, Inputs, Output, counted
from penstock.graph.nodes.changes import TableJoin
from penstock.graph.nodes.join import LEFT


@dataclass(frozen=True)
class LookupJoin(TableJoin):
    """Each row of the left with the rows that the right has for its key now; what the right does later changes nothing of it.

    The changes of the right that come in a batch are in force for the rows of that batch. Where the left is a table, what a row found is remembered, because it must
    be the same when the row goes.
    """

    kind: ClassVar[str] = "lookup_join"
    hows: ClassVar[tuple[str, ...]] = ("inner", "left")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of both; records where the left has records."""
        schema, left = self._schema(self._visible(given)), given[LEFT]
        if self.counted:
            return (Output(counted(schema)),)
        changes = None if left.changes is None else Changes(left.updates if self.single[1] else None)
        return (Output(schema, changes=changes, event_time=left.event_time),)

    @property
    def keeps(self) -> str:
        """The right, and what rows of a table found."""
        return f"the rows of the right side {self.per_key}, while they are there; of a table on the left what each row has found"
