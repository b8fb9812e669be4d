"""Pickled values, shown to those who look at a checkpoint: no code of it is run.

A pickle may call any function there is. Only the user's own flow opens what it has written; whoever looks at it from outside sees values
that are made of plain builtins, and of everything else how large it is.

>>> import pathlib
>>> look_at(pickle.dumps({"n": [1, 2.5, None]})), look_at(pickle.dumps(pathlib.Path("a")))
({'n': [1, 2.5, None]}, '<pickled, 44 bytes>')
"""

from __future__ import annotations

import contextlib
import io
import pickle
from collections import deque
from collections.abc import Collection
from typing import NoReturn

ALLOWED = {
    "builtins": {"set", "frozenset", "complex"},
    "collections": {"OrderedDict", "Counter", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "penstock.graph.state.layout": {"ABSENT"},
}
"""Names that a pickle may use: classes whose values are plain, and that do nothing when they are made."""


class _UnpicklingRefused(Exception):
    """A pickle asks for something that is not plain."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        """One of the allowed classes; anything else ends the reading before it is imported."""
        if name not in ALLOWED.get(module, ()):
            raise _UnpicklingRefused(f"{module}.{name}")
        found: type = super().find_class(module, name)
        return found

    def persistent_load(self, pid: object) -> NoReturn:
        """Nothing is looked up elsewhere."""
        raise _UnpicklingRefused("a persistent id")


def look_at(pickled: bytes) -> object:
    """A pickled value if it is made of plain builtins and can be shown, else a text that says how large it is."""
    with contextlib.suppress(Exception):  # a crafted pickle may fail in any way
        value = _PlainUnpickler(io.BytesIO(pickled)).load()
        if _is_showable(value, max(LARGE, 10 * len(pickled))):
            return value
    return f"<pickled, {len(pickled):,} bytes>"


LARGE, DEEP, LONG = 100_000, 100, 10_000
"""How many parts a value may have and how deep they may lie; the bits of a number. A few bytes may stand for more parts than any machine has room for."""


def _is_showable(value: object, most: int) -> bool:
    """Whether a value can be written as text: not too many parts, not too deep, no number of thousands of digits, no half of a character."""
    todo, seen = [(value, 0)], 1
    while todo:
        part, depth = todo.pop()
        if isinstance(part, str):
            part.encode()
        elif isinstance(part, int) and part.bit_length() > LONG:
            return False
        inside = _parts(part)
        seen += len(inside)
        if seen > most or depth > DEEP:
            return False
        todo += [(inner, depth + 1) for inner in inside]
    return True


def _parts(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list | tuple | set | frozenset | deque) else ()
