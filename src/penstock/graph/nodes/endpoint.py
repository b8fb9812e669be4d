"""Where records enter and leave: sources, sinks, and the static tables of joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.errors import FlowError, SchemaError
from penstock.graph.capabilities import Capabilities
from penstock.graph.nodes.base import Changes, Inputs, Node, Output, Settings, Shown
from penstock.graph.nodes.partitions import check_partitions
from penstock.graph.nodes.policy import DEAD
from penstock.graph.schema import Schema

UNSEEN = ("layout",)
"""Options that say what the rest of the graph says."""


@dataclass(frozen=True)
class Endpoint:
    """A description of something outside: its kind, its options, its schema. It holds no connection.

    `kind` finds the connector that reads or writes it, and `capabilities` says what that can do; a connector of the user's own travels in
    `connector`.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: Schema | None = None
    bounded: bool = True
    connector: Any = None
    capabilities: Capabilities = field(default_factory=Capabilities)

    @property
    def key(self) -> tuple[str, ...]:
        """The fields that the user named as the key of a sink's rows; none where none are."""
        given = self.options.get("key") or ()
        return (given,) if isinstance(given, str) else tuple(given)

    def shown(self) -> Settings:
        """The options as people may see them: callables by name, long lists by length, secrets not at all."""
        shown = {k: v for k, v in self.options.items() if v is not None and k not in UNSEEN and v != {}}
        return {k: _shown(k, v) for k, v in shown.items()}


def _shown(name: str, value: object) -> Shown:
    if any(word in name.lower() for word in ("password", "secret", "token", "credential")):
        return "***"
    if callable(value):
        return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', type(value).__qualname__)}"
    if name == "partition_by" and isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, list | tuple) and len(value) > 5:
        return f"{len(value)} items"
    return value if isinstance(value, str | int | float | bool) else repr(value)


@dataclass(frozen=True)
class Source(Node):
    """Records come in. `on_error` says what happens to those that cannot be read; `schema` counts for more than the endpoint's own."""

    endpoint: Endpoint
    schema: Schema | None = None
    searched: bool = field(default=False, kw_only=True)
    """Whether records that break a batch and name no step are looked for, and become dead letters of their source."""
    by_flow: bool = field(default=False, kw_only=True)
    """Whether its error policy is that of the whole flow, which does not ask whether this source reads text."""
    kind: ClassVar[str] = "source"
    noun: ClassVar[str] = "source"

    def check(self, given: Inputs) -> None:
        """It is an endpoint."""
        if not isinstance(self.endpoint, Endpoint):
            raise FlowError(f"{self.where} needs an endpoint such as ps.files(...), got {self.endpoint!r}")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Records of its schema."""
        schema = self.schema or self.endpoint.schema
        if schema is None:
            raise SchemaError(
                "this endpoint has no schema of its own; give schema=..., as text or as ps.files_schema(path) reads it"
            )
        return (Output(schema),)

    @property
    def runs_python(self) -> bool:
        """A source is Python only where a function of the user makes its records."""
        return self.endpoint.capabilities.runs_python

    def settings(self) -> Settings:
        """The endpoint's kind and options, and what is done with records that cannot be read."""
        policy: Settings = {"on_error": str(self.on_error)} if self.on_error is not None else {}
        return {"from": self.endpoint.kind, **self.endpoint.shown(), **policy}


@dataclass(frozen=True)
class Sink(Node):
    """Records go out. `delivery` is the guarantee asked for; empty means the best that the sink can hold."""

    endpoint: Endpoint
    delivery: str = ""
    key: tuple[str, ...] | None = field(default=None, kw_only=True)
    """The key of its rows, where they replace each other; the compiler says so."""
    kind: ClassVar[str] = "sink"
    noun: ClassVar[str] = "sink"
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """It is an endpoint."""
        if not isinstance(self.endpoint, Endpoint):
            raise FlowError(f"{self.where} needs an endpoint such as ps.console(), got {self.endpoint!r}")
        if by := self.endpoint.options.get("partition_by"):
            check_partitions(by, self.endpoint.options["format"], given[0].schema)
        changes = given[0].changes
        if changes is not None and (changes.deletes or changes.key is None):
            self._check_table(changes)

    def _check_table(self, changes: Changes) -> None:
        """Whether rows may go, and how they are found, must fit what the sink can do."""
        said = "To write its changes as records, say .changelog('name') before it"
        able, mine = self.endpoint.capabilities.table_rows, self.endpoint.key
        if able == "shown":
            return
        if able == "added":
            raise FlowError(
                f"it reads a table from which rows may go, and a {self.endpoint.kind} sink as it is configured only adds rows. {said}"
            )
        if changes.key is None and not mine:
            raise FlowError(
                f"it reads a table of which no key is proved, so it cannot tell which row to replace. Give it key='a field' that "
                f"no two rows share. {said}"
            )
        if mine and not set(changes.key or ()) <= set(mine):
            raise FlowError(
                f"it reads a table by {', '.join(changes.key or ())}, of which several rows may have the same {', '.join(mine)}: they would "
                f"replace and delete each other. Give it key={list(changes.key or ())!r}, or more fields. {said}"
            )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Nothing comes out."""
        return ()

    def settings(self) -> Settings:
        """The endpoint's kind and options, and the delivery asked for."""
        delivery: Settings = {"delivery": self.delivery} if self.delivery else {}
        refused: Settings = {"on_error": str(self.on_error)} if self.on_error is not None else {}
        return {"to": self.endpoint.kind, **self.endpoint.shown(), **delivery, **refused}


@dataclass(frozen=True)
class DeadLetters(Node):
    """Where dead letters come out of the flow; only sinks may read it."""

    kind: ClassVar[str] = "dead_letters"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Dead letters, of whatever step."""
        return (Output(DEAD),)
