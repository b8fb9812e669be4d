"""The processing time as a field: what CURRENT_TIMESTAMP means for records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from penstock.errors import FlowError
from penstock.graph import types as t
from penstock.graph.nodes.base import Inputs, Node, Output, Settings
from penstock.graph.nodes.stateless import as_they_are
from penstock.graph.nodes.window import PROCESSING


@dataclass(frozen=True)
class BatchTime(Node):
    """Each record with the processing time of its batch as a field; native, and it keeps nothing.

    A batch that runs again has the time that it had, so the answer is the same.
    """

    into: str = field(kw_only=True)
    """The name of the field."""
    kind: ClassVar[str] = "batch_time"
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """Records are never taken back, so nobody has to remember the time that they got."""
        if given[0].changes is not None:
            raise FlowError(
                "the time at which a row of a table arrived would have to be kept, to take the row back as it was; ask for it before rows are "
                "grouped or joined"
            )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the input, and the time."""
        known = given[0].schema
        made = replace(known, internal=True).with_fields((t.Field(self.into, t.TIMESTAMP, nullable=False),))
        return (given[0].selected(made, as_they_are(known)),)

    def settings(self) -> Settings:
        """The field, and that it is of processing time."""
        return {"into": self.into, "clock": PROCESSING}
