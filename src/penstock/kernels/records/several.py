"""What a function that may emit many records has returned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import GeneratorType
from typing import Any

from penstock.graph.row import Row
from penstock.kernels.records.brief import brief

PLAIN = frozenset({list, GeneratorType})
"""The classes of results that are gone over as they are; asked before `several`, which costs more."""
_ONE = (str, bytes, Mapping, Row)


def several(given: Any) -> Iterable[Any]:
    """The records of a function that has returned neither a list nor a generator; none for None, False or what is empty.

    Raises:
        TypeError: it is one record, whose parts would each be taken for a record.

    >>> several(None), several((("a", 1), ("b", 2)))
    ((), (('a', 1), ('b', 2)))
    """
    if not given:
        return ()
    if isinstance(given, _ONE) or not hasattr(given, "__iter__"):
        raise TypeError(
            f"expected a list of records, or a function that yields them, got one: {brief(given)}. Yield it, or return [it]"
        )
    return given  # type: ignore[no-any-return]  # whatever it is, it is gone over
