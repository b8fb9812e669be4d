"""What a rule does when it fires.

Each action says what it emits: records of a named stream. Effects outside leave as such records too, and a sink commits them with its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from penstock.graph import types as t
from penstock.graph.expr import Column, Expr, Literal, to_text
from penstock.graph.rules.templates import template

Fields: TypeAlias = tuple[tuple[str, Expr], ...]
"""The fields of a record that an action makes, each with its expression; none means the event as it is."""
ALERTS = "alerts"
"""The output of the alerts of a rule set."""
OP = "op"
"""The field that says what happened to a row of a table."""


@dataclass(frozen=True)
class Action:
    """The base of all actions. `stream` is where its records go; empty where it makes none."""

    is_open: ClassVar[bool] = False
    """Whether it has an effect outside the flow."""

    @property
    def target(self) -> str:
        """The stream that its records go to; empty where it makes none."""
        return ""

    def changed(self, change: Callable[[Expr], Expr]) -> Action:
        """The action with its expressions changed."""
        return self


@dataclass(frozen=True)
class Emit(Action):
    """Emits a record to a named stream: the event as it is, or the fields that are given."""

    stream: str
    fields: Fields = ()
    verb: ClassVar[str] = "emit to"

    @property
    def target(self) -> str:
        """The stream."""
        return self.stream

    def changed(self, change: Callable[[Expr], Expr]) -> Action:
        """The action with its expressions changed."""
        return replace(self, fields=tuple((name, change(value)) for name, value in self.fields))

    def __str__(self) -> str:
        return f"{self.verb} {self.stream}{listed(self.fields)}"


@dataclass(frozen=True)
class Post(Emit):
    """Sends a record to an endpoint of the rule set, such as an HTTP service, by a sink of the same name."""

    is_open: ClassVar[bool] = True
    verb: ClassVar[str] = "post to"


@dataclass(frozen=True)
class Update(Emit):
    """Inserts or replaces the row of a table that has the same key."""

    verb: ClassVar[str] = "update"


@dataclass(frozen=True)
class Delete(Emit):
    """Deletes the row of a table that has the key."""

    verb: ClassVar[str] = "delete from"


@dataclass(frozen=True)
class Alert(Action):
    """Raises an alert: a severity, and a text with expressions in braces."""

    severity: str
    text: Expr
    written: str = ""
    is_open: ClassVar[bool] = True

    @classmethod
    def of(cls, severity: str, text: str) -> Alert:
        """An alert from a text with expressions in braces."""
        return cls(severity, template(text), text)

    @property
    def target(self) -> str:
        """The stream of alerts."""
        return ALERTS

    def changed(self, change: Callable[[Expr], Expr]) -> Action:
        """The action with its text changed."""
        return replace(self, text=change(self.text))

    def __str__(self) -> str:
        return f"alert({quoted(self.severity)}, {quoted(self.written)})"


@dataclass(frozen=True)
class Evaluate(Action):
    """Computes an expression for what its Python functions do; the value is dropped."""

    value: Expr
    is_open: ClassVar[bool] = True

    def changed(self, change: Callable[[Expr], Expr]) -> Action:
        """The action with its expression changed."""
        return replace(self, value=change(self.value))

    def __str__(self) -> str:
        return f"call {to_text(self.value)}"


@dataclass(frozen=True)
class Stop(Action):
    """Keeps rules of a lower priority from the event."""

    def __str__(self) -> str:
        return "stop"


@dataclass(frozen=True)
class Switch(Action):
    """Activates or deactivates another rule of the set, for the key of the event."""

    rule: str
    active: bool

    def __str__(self) -> str:
        return f"{'activate' if self.active else 'deactivate'} {quoted(self.rule)}"


def listed(fields: Fields) -> str:
    """Fields as rule text has them.

    >>> listed((("card", Column("card")), ("twice", Column("n"))))
    '(card, twice = n)'
    """
    if not fields:
        return ""
    parts = [n if isinstance(e, Column) and e.name == n else f"{n} = {to_text(e)}" for n, e in fields]
    return f"({', '.join(parts)})"


def quoted(text: str) -> str:
    """A text as a constant of rule text."""
    return to_text(Literal(text, t.STRING))


def fields_of(columns: tuple[str, ...], named: Mapping[str, Expr]) -> Fields:
    """The fields of an action: some of the event by name, others by expressions."""
    return (*((name, Column(name)) for name in columns), *named.items())
