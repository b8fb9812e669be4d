"""Triggers: what has changed of each key is emitted when a trigger fires, until the key ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.expr import Expr, to_text
from penstock.graph.nodes.base import COUNT, OUT, Changes, Inputs, Output, Settings, counted, has_hidden, need_boolean
from penstock.graph.nodes.changes import visible
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.nodes.window import EVENT, PROCESSING
from penstock.graph.schema import Schema

ENDED = "ended"
"""The output that says which keys have ended, and when."""
ENDED_AT = "ended_at"
OP, EVERY, UNTIL = "op", "every", "until"
"""The fields of the settings of a key: what happens to it, how often it fires (microseconds), and at which event time it ends."""
ADD, DROP, END = "add", "drop", "end"
SETTINGS = {OP: t.STRING, EVERY: t.BIGINT, UNTIL: t.TIMESTAMP}


@dataclass(frozen=True)
class Trigger(Keyed):
    """Emits the changes of each key when a trigger fires: every so often, or when a condition turns true of one of its rows.

    Without a trigger changes are emitted at once. The second input, if there is one, has the settings of each key; keys that have none are
    left out.

    Args:
        every: how often a key fires, in microseconds; None where it does not, or its settings say it.
        clock: by which time it fires: event or processing.
        when: fires in the batch in which it turns true of a row of the key, while it was true of none.
        until: ends the key when it is true of one of its rows.
        whole: a firing emits all rows of the key as records, and not what has changed since the last one.
        grows: rows are only ever added, except when a key is dropped; what comes out are records.
        version: the field that is another one each time that a key begins. A key that begins takes none of its rows back, and what comes out does
            not have the field.
    """

    every: int | None = field(default=None, kw_only=True)
    clock: str = field(default=EVENT, kw_only=True)
    when: Expr | None = field(default=None, kw_only=True)
    until: Expr | None = field(default=None, kw_only=True)
    whole: bool = field(default=False, kw_only=True)
    grows: bool = field(default=False, kw_only=True)
    version: str = field(default="", kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether the changes come out as signed rows; the compiler says so."""
    kind: ClassVar[str] = "trigger"
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The conditions are such, and the settings have their fields."""
        super().check(given)
        rows = visible(given[0].schema)
        if self.clock not in (EVENT, PROCESSING):
            raise FlowError(f"expected clock 'event' or 'processing', got {self.clock!r}")
        if self.every is not None and self.every <= 0:
            raise FlowError(f"every is a span of time such as '5m', got {shown(self.every)}")
        if self.when is not None and self.every is not None:
            raise FlowError("a trigger fires every so often, or when a condition turns true; expected one of both")
        for what, written in (("when", self.when), ("until", self.until)):
            if written is not None:
                need_boolean(what, written, rows)
        if ENDED_AT in self.keys:
            raise SchemaError(f"{ENDED_AT!r} is the field that says when a key has ended; rename the key")
        if len(given) > 1:
            self._check_settings(given[1].schema)

    def _check_settings(self, schema: Schema) -> None:
        for name in self.keys:
            schema.field(name)
        for name, kind in SETTINGS.items():
            if name in schema and schema.field(name).type != kind:
                raise SchemaError(f"expected {name} {kind} in the settings of keys, got {schema.field(name).type}")
        if OP not in schema:
            raise SchemaError(f"expected the field {OP!r} in the settings of keys: {ADD}, {DROP} or {END}")

    def resolve(self, given: Inputs) -> Self:
        """Rows that come as signed ones already leave as such."""
        return replace(self, counted=self.counted or (COUNT in given[0].schema and not self.whole and not self.grows))

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows, and the keys that have ended."""
        keys = self.key_fields(given)
        ended = Schema((*keys, t.Field(ENDED_AT, t.TIMESTAMP)), internal=has_hidden(keys))
        rows = visible(given[0].schema)
        shown = Schema(tuple(f for f in rows.fields if f.name != self.version), internal=rows.internal)
        if self.counted:
            main = Output(counted(shown))
        elif self.whole or self.grows:
            main = Output(shown)
        else:
            main = Output(shown, OUT, self._changes(given))
        return main, Output(ended, ENDED)

    def _changes(self, given: Inputs) -> Changes | None:
        """How the table changes; of one version at a time a key without the version is one."""
        changes = given[0].changes
        if changes is None or changes.key is None:
            return changes
        return replace(changes, key=tuple(name for name in changes.key if name != self.version))

    @property
    def keeps(self) -> str:
        """What a firing will emit."""
        if self.whole:
            return f"all rows {self.per_key}, while they are there"
        waits = "" if self.every is None and self.when is None else "the changes since the last firing, and "
        return f"{waits}when it fired and how many rows it emitted {self.per_key}"

    def settings(self) -> Settings:
        """The key, the trigger and the end."""
        made = super().settings()
        if self.every is not None:
            made |= {"every": shown(self.every), "clock": self.clock}
        for name, written in (("when", self.when), ("until", self.until)):
            made |= {} if written is None else {name: to_text(written)}
        made |= {"version": self.version} if self.version else {}
        return made | ({"whole": True} if self.whole else {})
