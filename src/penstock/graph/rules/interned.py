"""Values that are large and travel often: pickled once, and made again once in a process.

A rule set of ten thousand rules is half a million objects; a task that has it already does not read them again.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from functools import cached_property
from typing import Any

MOST = 32
"""As many values as a process remembers."""
_known: OrderedDict[tuple[str, str], object] = OrderedDict()


class InternedValue:
    """The base of a frozen dataclass with a `digest`; `is_plain` says that it holds no functions, which need the pickler of a run."""

    @property
    def is_plain(self) -> bool:
        """Whether Python's own pickler takes it."""
        return True

    @cached_property
    def _packed(self) -> bytes:
        return pickle.dumps(self._parts(), 5)

    def _parts(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]  # of a dataclass

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_plain:
            return _made, (type(self), self._parts())
        digest = getattr(self, "digest")  # noqa: B009 - subclasses have it as a field or as a property
        _remember(type(self).__name__, digest, self)
        return _restored, (type(self), digest, self._packed)


def _made(kind: type, parts: dict[str, object]) -> object:
    made: object = object.__new__(kind)
    made.__dict__.update(parts)
    return made


def _restored(kind: type, digest: str, packed: bytes) -> object:
    found = _known.get((kind.__name__, digest))
    if found is None:
        found = _made(kind, pickle.loads(packed))
        _remember(kind.__name__, digest, found)
    return found


def _remember(kind: str, digest: str, value: object) -> None:
    _known[kind, digest] = value
    _known.move_to_end((kind, digest))
    while len(_known) > MOST:
        _known.popitem(last=False)
