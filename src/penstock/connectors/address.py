"""Where a server is: what the connectors of databases share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, repr=False)
class ServerAddress:
    """Where a server is, and the password, which is never shown."""

    url: str
    password: str | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """The address in an endpoint's options."""
        return cls(options["url"], options.get("password"))

    def __repr__(self) -> str:
        return f"Address({self.url!r})"
