"""Steps that look at one record (or one batch) at a time and remember nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.expr import Expr, to_sql
from penstock.graph.nodes.base import Node, Port, label


@dataclass(frozen=True)
class Map(Node):
    """A Python function from one record to one record."""

    function: Callable[..., Any]
    kind: ClassVar[str] = "map"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The function."""
        return {"function": label(self.function)}


@dataclass(frozen=True)
class FlatMap(Node):
    """A Python function from one record to any number of records, on any of the step's outputs."""

    function: Callable[..., Any]
    kind: ClassVar[str] = "flat_map"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The function."""
        return {"function": label(self.function)}


@dataclass(frozen=True)
class Filter(Node):
    """A Python function that says which records stay."""

    function: Callable[..., Any]
    kind: ClassVar[str] = "filter"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The function."""
        return {"function": label(self.function)}


@dataclass(frozen=True)
class MapBatches(Node):
    """A Python function from an Arrow record batch to Arrow record batches."""

    function: Callable[..., Any]
    kind: ClassVar[str] = "map_batches"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The function."""
        return {"function": label(self.function)}


@dataclass(frozen=True)
class Select(Node):
    """New records made of expressions; native."""

    columns: tuple[tuple[str, Expr], ...]
    kind: ClassVar[str] = "select"

    def settings(self) -> dict[str, Any]:
        """The expressions by name."""
        return {name: to_sql(e) for name, e in self.columns}


@dataclass(frozen=True)
class WithColumns(Node):
    """The record with fields added or replaced; native."""

    columns: tuple[tuple[str, Expr], ...]
    kind: ClassVar[str] = "with_columns"

    def settings(self) -> dict[str, Any]:
        """The expressions by name."""
        return {name: to_sql(e) for name, e in self.columns}


@dataclass(frozen=True)
class Where(Node):
    """The records for which an expression is true; native."""

    condition: Expr
    kind: ClassVar[str] = "where"

    def settings(self) -> dict[str, Any]:
        """The condition."""
        return {"condition": to_sql(self.condition)}


@dataclass(frozen=True)
class Explode(Node):
    """One record for each item of a list; native."""

    column: str
    items: Expr
    kind: ClassVar[str] = "explode"

    def settings(self) -> dict[str, Any]:
        """The list and the field its items land in."""
        return {self.column: to_sql(self.items)}


@dataclass(frozen=True)
class Union(Node):
    """The records of several streams of one schema."""

    kind: ClassVar[str] = "union"


@dataclass(frozen=True)
class Branch(Node):
    """Each record goes to the first output whose condition it meets, or to `otherwise`."""

    conditions: tuple[tuple[str, Expr | Callable[..., Any]], ...]
    kind: ClassVar[str] = "branch"

    @property
    def runs_python(self) -> bool:
        """Native when every condition is an expression."""
        return any(not isinstance(c, Expr) for _, c in self.conditions)

    def settings(self) -> dict[str, Any]:
        """The conditions by output."""
        return {n: to_sql(c) if isinstance(c, Expr) else label(c) for n, c in self.conditions}


@dataclass(frozen=True)
class AsRecords(Node):
    """Takes each update of a running total as a record of its own."""

    kind: ClassVar[str] = "as_records"


@dataclass(frozen=True)
class Feedback(Node):
    """Where a loop begins: the records that a later step sends back, one round later."""

    fed_by: Port | None = None
    kind: ClassVar[str] = "feedback"

    def settings(self) -> dict[str, Any]:
        """The stream that feeds it."""
        return {"fed by": str(self.fed_by)}
