"""Where records enter and leave: sources, sinks, and the static tables of joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.graph.nodes.base import Node
from penstock.graph.schema import Schema


@dataclass(frozen=True)
class Endpoint:
    """A description of something outside: its kind, its options, its schema. It holds no connection.

    `kind` finds the connector that reads or writes it; a connector of the user's own travels in `connector`.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: Schema | None = None
    bounded: bool = True
    connector: Any = None

    def shown(self) -> dict[str, Any]:
        """The options as people may see them: callables by name, long lists by length, secrets not at all."""
        return {k: _shown(k, v) for k, v in self.options.items() if v is not None}


def _shown(name: str, value: Any) -> Any:
    if any(word in name.lower() for word in ("password", "secret", "token", "credential")):
        return "***"
    if callable(value):
        return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, list | tuple) and len(value) > 5:
        return f"{len(value)} items"
    return value if isinstance(value, str | int | float | bool) else repr(value)


@dataclass(frozen=True)
class Source(Node):
    """Records come in. `on_error` says what happens to those that cannot be read."""

    endpoint: Endpoint
    searched: bool = field(default=False, kw_only=True)
    """Whether records that break a batch and name no step are looked for, and become dead letters of their source."""
    kind: ClassVar[str] = "source"

    @property
    def runs_python(self) -> bool:
        """A source is Python only where a function of the user makes its records."""
        return self.endpoint.kind == "generate"

    def settings(self) -> dict[str, Any]:
        """The endpoint's kind and options, and what is done with records that cannot be read."""
        unread = {"on_error": str(self.on_error)} if self.on_error is not None else {}
        return {"from": self.endpoint.kind, **self.endpoint.shown(), **unread}


@dataclass(frozen=True)
class Sink(Node):
    """Records go out. `delivery` says how surely; empty means as surely as the sink can."""

    endpoint: Endpoint
    delivery: str = ""
    kind: ClassVar[str] = "sink"

    def settings(self) -> dict[str, Any]:
        """The endpoint's kind and options, and the delivery asked for."""
        delivery = {"delivery": self.delivery} if self.delivery else {}
        refused = {"on_error": str(self.on_error)} if self.on_error is not None else {}
        return {"to": self.endpoint.kind, **self.endpoint.shown(), **delivery, **refused}
