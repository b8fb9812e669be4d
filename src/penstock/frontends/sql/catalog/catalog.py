"""The catalog: what the names in FROM, INSERT INTO and calls stand for. Names are compared without regard to case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from penstock.errors import nearest
from penstock.frontends.sql.text.source import Place, SqlText
from penstock.frontends.sql.text.statements import CreateTable, CreateView, Options, Query
from penstock.graph.expr import AggregateFunction, ScalarFunction
from penstock.graph.nodes import Endpoint, Port

V = TypeVar("V")


@dataclass(frozen=True)
class Table:
    """A table of a connector: as CREATE TABLE says, or an endpoint that Python gave.

    Args:
        name: its name, as it was defined.
        definition: the statement that defines it; None where Python gave an endpoint.
        endpoint: the endpoint that Python gave, for reading or writing.
        text: the text of the definition, which errors point into.
        hints: options that a query gives in a hint.
        statements: the statements that have made it so far, where there are several.
    """

    name: str
    definition: CreateTable | None = None
    endpoint: Endpoint | None = None
    text: SqlText | None = None
    hints: Options = ()
    statements: tuple[str, ...] = field(default=(), compare=False)

    @property
    def options(self) -> Options:
        """The options in WITH."""
        return self.definition.options if self.definition is not None else ()


@dataclass(frozen=True)
class StreamTable:
    """A stream of a flow under a name."""

    name: str
    port: Port


@dataclass(frozen=True)
class OwnFunction:
    """A table function of the user's."""

    name: str


@dataclass(frozen=True)
class View:
    """A query under a name. It is planned once, when it is first read, in the scope in which it was defined."""

    name: str
    columns: tuple[str, ...]
    query: Query
    text: SqlText
    scope: Any = field(default=None, compare=False)
    """The names that were there before it, for views inside of a query (WITH)."""
    definition: CreateView | None = field(default=None, compare=False)
    """The statement that defines it; None inside of a query."""
    statements: tuple[str, ...] = field(default=(), compare=False)
    """The statements that have made it so far, where there are several."""


Named = Table | StreamTable | View


def statements_of(item: Table | View) -> tuple[str, ...]:
    """The statements that define a table or view: CREATE, and each ALTER since; none where Python gave it."""
    if item.statements or item.definition is None or item.text is None:
        return item.statements
    return (item.text.text[item.definition.at : item.definition.end],)


Function: TypeAlias = ScalarFunction | AggregateFunction | OwnFunction
"""A function of the user's: scalar, aggregate or table."""


@dataclass
class Catalog:
    """Tables, views and functions by name; a child sees those of its parent too, as WITH needs it."""

    parent: Catalog | None = None
    tables: dict[str, Named] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)

    def child(self) -> Catalog:
        """A catalog whose names hide those of this one."""
        return Catalog(self)

    def define(self, item: Named) -> None:
        """Adds a table or view, in place of one of the same name."""
        self.tables[item.name.lower()] = item

    def find(self, name: str) -> Named | None:
        """The table or view of a name."""
        found = self.tables.get(name.lower())
        return found if found is not None or self.parent is None else self.parent.find(name)

    def table(self, text: SqlText, name: str, place: Place) -> Named:
        """The table or view of a name.

        Raises:
            SqlError: there is none; with the nearest names.
        """
        found = self.find(name)
        if found is None:
            raise text.error(place, f"no table {name!r}; {_near(name, self.names())}")
        return found

    def names(self) -> list[str]:
        """All names of tables and views."""
        own = [item.name for item in self.tables.values()]
        return own + [n for n in (self.parent.names() if self.parent else []) if n.lower() not in self.tables]

    def function(self, name: str) -> Function | None:
        """The function of a name."""
        found = self.functions.get(name.lower())
        return found if found is not None or self.parent is None else self.parent.function(name)

    def all_functions(self) -> dict[str, Function]:
        """All functions by name."""
        return (self.parent.all_functions() if self.parent else {}) | self.functions


def _near(name: str, known: Iterable[str]) -> str:
    listed = list(known)
    return nearest(name, listed) if listed else "none is defined; CREATE TABLE it, or give it in tables={...}"


Finder = Callable[[str], V]
