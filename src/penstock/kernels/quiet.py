"""Keeps the garbage collector quiet while a chunk is worked on.

It would go over the keys and values at hand again and again, which takes as long as the work itself, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """No collection inside, as many as there are to be after it."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
