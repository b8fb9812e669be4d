"""The state of a keyed step, as a kernel sees it: key groups that hold keys that hold a value.

This is the seam behind which state engines are put. A kernel asks for a key, changes the value, and says so;
what becomes of it at a barrier is the host's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

GROUPS = 128


class KeyedState(Protocol):
    """The state of one step, as far as the task at hand owns it."""

    def get(self, group: int, key: Any) -> Any:
        """What is kept for a key, or None."""

    def put(self, group: int, key: Any, value: Any) -> None:
        """Keeps a value for a key."""

    def delete(self, group: int, key: Any) -> None:
        """Forgets a key."""

    def items(self) -> Iterator[tuple[int, Any, Any]]:
        """All that is kept: (group, key, value)."""


class MemoryState:
    """State in a dict per group; what the local runtime and bounded runs use, and what stored state is read into."""

    def __init__(self, groups: dict[int, dict[Any, Any]] | None = None) -> None:
        self.groups: dict[int, dict[Any, Any]] = groups if groups is not None else {}
        self.changed: set[int] = set()

    def get(self, group: int, key: Any) -> Any:
        """What is kept for a key, or None."""
        kept = self.groups.get(group)
        return None if kept is None else kept.get(key)

    def put(self, group: int, key: Any, value: Any) -> None:
        """Keeps a value for a key."""
        self.changed.add(group)
        self.groups.setdefault(group, {})[key] = value

    def delete(self, group: int, key: Any) -> None:
        """Forgets a key."""
        self.changed.add(group)
        self.groups.get(group, {}).pop(key, None)

    def items(self) -> Iterator[tuple[int, Any, Any]]:
        """All that is kept: (group, key, value)."""
        return ((g, k, v) for g, kept in self.groups.items() for k, v in kept.items())
