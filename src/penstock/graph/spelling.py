"""How a value was made: the public function and its arguments, so that a flow can be written into a file.

>>> from penstock.graph.windows import tumbling
>>> spelling_of(tumbling("10s"))
Spelling(function='tumbling', arguments={'size': '10s'})
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_ATTRIBUTE = "_spelling"


@dataclass(frozen=True)
class Spelling:
    """A call of a public function: its name, and its arguments by the names of their parameters."""

    function: str
    arguments: Mapping[str, object]


def spelled(function: Callable[P, R]) -> Callable[P, R]:
    """For functions that describe something, such as an endpoint or a window: what they return knows how it was written."""
    signature = inspect.signature(function)

    @wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        result = function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        object.__setattr__(result, _ATTRIBUTE, Spelling(function.__name__, dict(given)))
        return result

    return made


def spelling_of(value: object) -> Spelling | None:
    """How a value was written; None where nothing says so."""
    found = getattr(value, "__dict__", {}).get(_ATTRIBUTE)
    return found if isinstance(found, Spelling) else None
