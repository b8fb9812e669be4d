"""Row patterns over a stream: what SQL writes as MATCH_RECOGNIZE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.expr import Column, to_text
from penstock.graph.ids import child
from penstock.graph.nodes.base import FOR_EVER, LATE, Inputs, Output, Settings, TimeField
from penstock.graph.nodes.keyed import Keyed, check_names
from penstock.graph.nodes.ordering import check_terms, time_of
from penstock.graph.patterns.conditions import NavigationExpr
from penstock.graph.patterns.row_pattern import Definitions, RowExpressions, RowPattern
from penstock.graph.patterns.row_program import compile_rows
from penstock.graph.schema import Schema

DRAWN = 50
"""So many instructions are drawn."""
TIMED_OUT = "timed_out"
"""The output of partial matches whose time ran out."""


@dataclass(frozen=True)
class MatchRows(Keyed):
    """The matches of a row pattern in the rows of each key, in the order of event time. Without a key, of all rows in one task."""

    pattern: RowPattern = field(kw_only=True)
    define: Definitions = field(default=(), kw_only=True)
    measures: Definitions = field(default=(), kw_only=True)
    timed_by: TimeField = field(default=TimeField(""), kw_only=True)
    kind: ClassVar[str] = "match_rows"
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True
    over_records: ClassVar[str] = "a match cannot be taken back when one of its rows goes"

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is; without a key there is one task."""
        made = replace(self, timed_by=time_of(self, given, "match_rows"))
        return made if made.keys else replace(made, parallelism=1)

    def check(self, given: Inputs) -> None:
        """The order is of plain fields, and measures have names of their own."""
        super().check(given)
        check_terms(self.pattern.order, given[0].schema)
        taken = self.keys if self.pattern.rows.is_one else given[0].schema.names
        for name, _ in self.measures:
            if name in taken and not self.pattern.rows.is_one:
                raise SchemaError(
                    f"measure {name!r} has the name of a field, and all fields are emitted; name it otherwise"
                )
        check_names(tuple(taken), (name for name, _ in self.measures), "measure")
        if not self.measures and not self.keys and self.pattern.rows.is_one:
            raise FlowError(
                "one row for each match of all rows has no field; add measures, such as measures={'n': 'count(*)'}"
            )

    def expressions(self, schema: Schema) -> RowExpressions:
        """The conditions and measures over the fields of the input."""
        return RowExpressions.of(self.pattern, self.define, self.measures, schema)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key or all fields, then the measures; the late rows; with `within`, partial matches whose time ran out."""
        made = self.expressions(given[0].schema)
        measures = tuple(t.Field(name, each.type) for name, each in made.measures)
        internal = given[0].schema.internal
        fields = self.key_fields(given) if self.pattern.rows.is_one else given[0].schema.fields
        main = Output(Schema((*fields, *measures), internal=internal), event_time=self._event_time(made))
        outputs = (main, Output(given[0].schema, LATE))
        partial = (*self.key_fields(given), *measures)
        if self.pattern.within is None or not partial:
            return outputs
        return (*outputs, Output(Schema(partial, internal=internal), TIMED_OUT))

    def _event_time(self, made: RowExpressions) -> TimeField | None:
        """With `within` rows are emitted soon enough to have an event time: their own, or that of a row which a measure looks at."""
        if self.pattern.within is None or made.ahead or made.ahead_of_match:
            return None
        if not self.pattern.rows.is_one:
            return self.timed_by
        found = (name for name, measure in made.measures if is_time(measure, self.timed_by.column))
        return next((replace(self.timed_by, column=name) for name in found), None)

    @property
    def keeps(self) -> str:
        """The rows that a match may still need."""
        within = self.pattern.within
        until = f"at most {shown(within)}" if within else f"while a match is open, else {FOR_EVER}"
        return f"the rows {self.per_key} that a match may still need, {until}"

    @property
    def hold(self) -> int:
        """A match is sure when its time is up at the latest, and has the time of one of its rows."""
        return self.pattern.within or 0

    @property
    def waiting(self) -> str:
        """The store of the rows that event time has not passed yet."""
        return child(self.name, "waiting")

    @property
    def stores(self) -> dict[str, str]:
        """For each key the rows that a match may need; and the rows that event time has not passed yet."""
        return {self.name: "values", self.waiting: "rows"}

    @property
    def drawing(self) -> tuple[str, ...]:
        """The program of the pattern, a line for each instruction, the first of them if there are many."""
        instructions = compile_rows(self.pattern.root).instructions
        lines = tuple(f"{at}: {each}" for at, each in enumerate(instructions[:DRAWN]))
        more = len(instructions) - len(lines)
        return (*lines, f"... and {more:,} more") if more else lines

    def settings(self) -> Settings:
        """The key, the pattern, and its expressions."""
        key = super().settings() if self.keys else {}
        define = {f"define {name}": to_text(each) for name, each in self.define}
        return {**key, **self.pattern.settings(), **define, **{name: to_text(each) for name, each in self.measures}}


def is_time(measure: NavigationExpr, column: str) -> bool:
    """Whether a measure is the event time of the first or last row of a match, and no more."""
    if not isinstance(measure.expr, Column):
        return False
    if not measure.inputs:
        return measure.expr.name == column
    (look,) = measure.inputs
    plain = isinstance(look.value, Column) and look.value.name == column
    return plain and not (look.variable or look.offset or look.step)
