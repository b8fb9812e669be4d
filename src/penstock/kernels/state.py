"""The state of a keyed step, as a kernel sees it: a value for each key.

This is the seam behind which state engines are put. A kernel says which keys it will touch, asks for them, changes the
values, and says so; what becomes of it at a barrier is the host's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

GROUPS = 128
"""Keys belong to key groups, tasks own groups; their number never changes."""


class KeyedState(Protocol):
    """The state of one step, as far as the task at hand owns it."""

    def prepare(self, keys: list[Any], places: list[int] | None) -> None:
        """Brings keys near; each must have been named before it is asked for.

        A place is a hash of the key whose last seven bits are its key group; a host that needs none gives none.
        """

    def get(self, key: Any) -> Any:
        """What is kept for a key, or None."""

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key."""

    def delete(self, key: Any) -> None:
        """Forgets a key."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""


class MemoryState:
    """State in a dict; what the local runtime and bounded runs use."""

    def __init__(self, kept: dict[Any, Any] | None = None) -> None:
        self.kept: dict[Any, Any] = kept if kept is not None else {}
        self.get = self.kept.get

    def prepare(self, keys: list[Any], places: list[int] | None) -> None:
        """All keys are near."""

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key."""
        self.kept[key] = value

    def delete(self, key: Any) -> None:
        """Forgets a key."""
        self.kept.pop(key, None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""
        return iter(self.kept.items())
