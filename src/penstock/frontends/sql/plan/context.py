"""What planning works with: the builder, the catalog, the names of steps, and errors that point to the statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.errors import FlowError, NotYet, SqlError
from penstock.frontends.sql.catalog.catalog import Catalog
from penstock.frontends.sql.catalog.options import ON_ERROR
from penstock.frontends.sql.expr.scope import Relation, Scope, VisibleColumn
from penstock.frontends.sql.expr.translate import Swap, Translator
from penstock.frontends.sql.text.source import Place, SqlText
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import written_at
from penstock.graph.expr import Expr
from penstock.graph.nodes import Node, Output, Port, on_error_of
from penstock.graph.schema import Schema

A = TypeVar("A")


@dataclass(frozen=True)
class TableWrite:
    """What is written into a table so far: the sink, the streams, and the union of them where there are several."""

    sink: str
    ports: tuple[Port, ...]
    union: str = ""
    layers: tuple[Port, ...] = ()
    """The tables that are laid over each other, where rows are told apart by a key."""


@dataclass
class Session:
    """What all statements of a flow share.

    Args:
        builder: the graph that is built.
        catalog: the tables, views and functions.
        settings: what SET has set.
    """

    builder: GraphBuilder
    catalog: Catalog
    settings: dict[str, str] = field(default_factory=dict)
    relations: dict[Any, Relation] = field(default_factory=dict)
    """What was planned already and may be read again: tables."""
    views: dict[int, tuple[Any, Relation]] = field(default_factory=dict)
    """Views that were planned, by their identity; they are held, so that no other gets the identity of one that is gone."""
    used: set[str] = field(default_factory=set)
    shared: dict[Any, Port] = field(default_factory=dict)
    """Steps that another statement needs in the same way, by what they do."""
    writes: dict[Any, TableWrite] = field(default_factory=dict)
    """The sinks of tables."""

    def __post_init__(self) -> None:
        self._policy = self.builder.on_error
        self.follow_settings()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Planning of which nothing stays: neither steps, nor what is known of them."""
        nodes, used = self.builder.nodes, set(self.used)
        known = dict(self.relations), dict(self.views), dict(self.shared)
        try:
            yield
        finally:
            self.builder.restore(nodes)
            self.used = used
            self.relations, self.views, self.shared = known

    def forget(self, steps: set[str]) -> None:
        """Takes steps out of the plan, which nothing that stays may read."""
        self.builder.restore(node for node in self.builder.nodes if node.name not in steps)
        self.used -= steps
        self.views = {key: known for key, known in self.views.items() if known[1].port.step not in steps}
        self.shared = {key: port for key, port in self.shared.items() if port.step not in steps}

    def follow_settings(self) -> None:
        """Has the graph do what SET says of records that a step fails on."""
        word = self.settings.get(ON_ERROR)
        self.builder.on_error = self._policy if word is None else on_error_of(word.replace("-", "_"))

    def step(self, wanted: str) -> str:
        """A name for a step, which no other step has."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted).lstrip(".-") or "step"
        name, number = plain, 1
        taken = {n.name for n in self.builder.nodes} if wanted not in self.used else self.used
        while name in self.used or name in taken:
            number += 1
            name = f"{plain}-{number}"
        self.used.add(name)
        return name


@dataclass(frozen=True)
class Planning:
    """The planning of one statement, or of a query inside of one.

    Args:
        session: what all statements share.
        text: the text of the statement.
        catalog: the names that the query sees.
        prefix: how the names of its steps begin.
        outer: the columns of the query around a subquery.
    """

    session: Session
    text: SqlText
    catalog: Catalog
    prefix: str
    outer: Scope | None = None

    @property
    def builder(self) -> GraphBuilder:
        """The graph that is built."""
        return self.session.builder

    def inside(self, prefix: str = "", catalog: Catalog | None = None, outer: Scope | None = None) -> Planning:
        """The planning of a query inside of this one."""
        return replace(
            self,
            prefix=prefix or self.prefix,
            catalog=catalog if catalog is not None else self.catalog,
            outer=outer if outer is not None else self.outer,
        )

    def step(self, part: str) -> str:
        """The name of a step of this statement."""
        return self.session.step(f"{self.prefix}.{part}")

    def add(self, node: Node, place: Place) -> Port:
        """Adds a step; what does not fit is shown at its place in the statement."""
        try:
            return self.builder.add(replace(node, line=self.text.line_of(place)))
        except SqlError:
            raise
        except (FlowError, NotYet) as error:
            raise self.text.error(place, _without_step(str(error))) from None

    def adding(self, add: Callable[[], A], place: Place) -> A:
        """What a function adds that makes several steps; what does not fit is shown at its place in the statement."""
        try:
            with written_at(self.text.line_of(place)):
                return add()
        except SqlError:
            raise
        except (FlowError, NotYet) as error:
            raise self.text.error(place, _without_step(str(error))) from None

    def share(self, node: Node, place: Place) -> Port:
        """Adds a step, or finds the one that does the same already."""
        key = _likeness(node)
        if key not in self.session.shared:
            self.session.shared[key] = self.add(replace(node, name=self.step(node.name)), place)
        return self.session.shared[key]

    def output(self, port: Port) -> Output:
        """What is known of a stream."""
        return self.builder.output(port)

    def schema(self, port: Port) -> Schema:
        """The fields of a stream."""
        return self.builder.output(port).schema

    def scope(self, relation: Relation) -> Scope:
        """The columns of a relation as expressions see them."""
        return Scope(self.text, relation, self.outer)

    def translator(self, relation: Relation, swap: Swap | None = None) -> Translator:
        """Translates expressions over a relation."""
        return Translator(self.scope(relation), self.catalog, swap)

    def relation(self, port: Port, qualifier: str = "") -> Relation:
        """A stream as a relation, with all its fields as columns."""
        return Relation(port, tuple(VisibleColumn(qualifier, n, n) for n in self.schema(port).names))


def _likeness(node: Node) -> object:
    parts = (getattr(node, name) for name in node.__dataclass_fields__ if name not in ("name", "line", "outputs"))
    return (type(node).__name__, *map(_shape, parts))


def _shape(part: object) -> object:
    if isinstance(part, Expr):
        return part.shape()
    if isinstance(part, tuple):
        return tuple(map(_shape, part))
    try:
        hash(part)
    except TypeError:
        return id(part)
    return part


def _without_step(message: str) -> str:
    """What the graph says, without the name of the step that the user did not choose."""
    return re.sub(r"^(?:step|source|sink) '[^']*' \([^)]*\):? ?", "", message)


def fresh(name: str, taken: Iterable[str]) -> str:
    """A name like another that is not taken, without regard to case."""
    known = {n.lower() for n in taken}
    if name.lower() not in known:
        return name
    number = 2
    while f"{name}_{number}".lower() in known:
        number += 1
    return f"{name}_{number}"
