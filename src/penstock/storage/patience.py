"""Calls to a server that may fail for a while: repeated, with pauses that grow and differ from caller to caller."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""How many seconds a call is repeated before its error is raised."""
FIRST, LONGEST = 0.05, 5.0
"""The pause before the first repetition, and the longest one, in seconds."""


def pauses(patience: float = PATIENCE) -> Iterator[int]:
    """Yields the number of each attempt, and pauses between them, until `patience` seconds have passed.

    >>> list(pauses(0.0))
    [0]
    """
    deadline, number = time.monotonic() + patience, 0
    yield number
    while time.monotonic() < deadline:
        pause = min(FIRST * 2**number, LONGEST)
        time.sleep(random.uniform(pause / 4, pause))
        number += 1
        yield number


def patiently(call: Callable[[], T], is_passing: Callable[[Exception], bool], patience: float = PATIENCE) -> T:
    """The result of a call that is repeated while its errors are of the kind that passes.

    >>> answers = iter([TimeoutError(), "done"])
    >>> def ask() -> str:
    ...     if isinstance(answer := next(answers), Exception):
    ...         raise answer
    ...     return answer
    >>> patiently(ask, lambda error: isinstance(error, TimeoutError))
    'done'
    """
    problem: Exception | None = None
    for _ in pauses(patience):
        try:
            return call()
        except Exception as error:
            if not is_passing(error):
                raise
            problem = error
    assert problem is not None
    raise problem
