"""What a query sees: the columns of the relations in its FROM clause, and the stream that carries them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import nearest
from penstock.frontends.sql.text.source import Place, SqlText
from penstock.graph.nodes import Port
from penstock.graph.order import Term


@dataclass(frozen=True)
class VisibleColumn:
    """A column as a query names it, and the field of the stream that holds it."""

    qualifier: str
    name: str
    field: str
    hidden: bool = False
    """Whether `*` leaves it out."""


@dataclass(frozen=True)
class PendingWindow:
    """Windows of a function in FROM that no step has made yet: an aggregate or a join may make them at once."""

    spec: Any
    time: str
    """The field of the time; empty for processing time."""
    partition: tuple[str, ...] = ()
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class PendingRank:
    """ROW_NUMBER() OVER (...) whose number of rows is not known yet: a condition on it says how many are wanted.

    Args:
        column: the column of the number, which is no field yet.
        keys: the fields of PARTITION BY.
        terms: the order.
    """

    column: str
    keys: tuple[str, ...]
    terms: tuple[Term, ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Relation:
    """A stream with the columns that a query sees of it.

    Args:
        port: the stream.
        columns: the columns, in the order of `*`.
        window: windows that are still to be made; their columns are among `columns`, and no fields yet.
        times: fields that hold the event time of the stream, beside the one that the stream itself says.
        clocks: columns of processing time, which no stream has as fields.
        bounds: the fields of the start and the end of the window that a row is in, where rows carry windows.
    """

    port: Port
    columns: tuple[VisibleColumn, ...]
    window: PendingWindow | None = None
    times: frozenset[str] = frozenset()
    clocks: frozenset[str] = frozenset()
    bounds: tuple[str, str] | None = None
    rank: PendingRank | None = None
    """A row number that is still to be made; its column is among `columns`, and no field yet."""

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The names of the relations, in order."""
        return tuple(dict.fromkeys(c.qualifier for c in self.columns if c.qualifier))

    def named(self, qualifier: str, columns: Iterable[str] = ()) -> Relation:
        """The relation under an alias, perhaps with other names for its columns."""
        names = list(columns) or [c.name for c in self.columns]
        made = tuple(replace(c, qualifier=qualifier, name=n) for c, n in zip(self.columns, names, strict=False))
        return replace(self, columns=made)

    def at(self, port: Port) -> Relation:
        """The same columns in another stream, whose fields have the same names."""
        return replace(self, port=port)

    def renamed(self, port: Port, fields: Mapping[str, str]) -> Relation:
        """The same columns in a stream in which some fields have other names."""
        columns = tuple(replace(c, field=fields.get(c.field, c.field)) for c in self.columns)
        times = frozenset(fields.get(name, name) for name in self.times)
        bounds = self.bounds and (
            fields.get(self.bounds[0], self.bounds[0]),
            fields.get(self.bounds[1], self.bounds[1]),
        )
        return replace(self, port=port, columns=columns, times=times, bounds=bounds)


@dataclass(frozen=True)
class Scope:
    """The columns in reach of an expression; `outer` is the scope of the query around a subquery."""

    text: SqlText
    relation: Relation
    outer: Scope | None = None

    def matches(self, qualifier: str, name: str) -> list[VisibleColumn]:
        """The columns that a name may mean."""
        wanted, owner = name.lower(), qualifier.lower()
        return [
            c for c in self.relation.columns if c.name.lower() == wanted and (not owner or c.qualifier.lower() == owner)
        ]

    def find(self, qualifier: str, name: str, place: Place) -> VisibleColumn | None:
        """The column that a name means; None where there is none.

        Raises:
            SqlError: it may mean several.
        """
        found = self.matches(qualifier, name)
        found = found if qualifier else [c for c in found if not c.hidden] or found
        fields = {c.field for c in found}
        if len(fields) > 1:
            owners = ", ".join(f"{c.qualifier}.{c.name}" for c in found)
            raise self.text.error(place, f"column {name!r} may mean {owners}; say which")
        return found[0] if found else None

    def unknown(self, qualifier: str, name: str, place: Place) -> Exception:
        """The error for a column that is not there, with the nearest names."""
        if qualifier and not any(q.lower() == qualifier.lower() for q in self.relation.qualifiers):
            if self._is_further_out(qualifier):
                return self.text.error(
                    place, f"table {qualifier!r} is further out: a subquery reads the query directly around it; "
                    "join the tables of both subqueries in FROM of the outer one"
                )  # fmt: skip
            owners = [q for q in self.relation.qualifiers if not q.startswith("$")]
            known = nearest(qualifier, owners) if owners else "FROM has none"
            return self.text.error(place, f"no table {qualifier!r} in this query; {known}")
        seen = [c for c in self.relation.columns if not c.name.startswith("$")]
        names = [c.name for c in seen if not qualifier or c.qualifier.lower() == qualifier.lower()]
        near = nearest(name, names) if names else "this query reads no table"
        return self.text.error(place, f"no column {name!r}; {near}")

    def _is_further_out(self, qualifier: str) -> bool:
        """Whether a table is one of a query around this one."""
        scope = self.outer
        while scope is not None:
            if any(q.lower() == qualifier.lower() for q in scope.relation.qualifiers):
                return True
            scope = scope.outer
        return False
