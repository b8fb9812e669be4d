"""Pickled values, shown to those who look at a checkpoint: no code of it is run.

A pickle may call any function there is. Only the user's own flow opens what it has written; whoever looks at it from outside sees values
that are made of plain builtins, and of everything else how large it is.

>>> import pathlib
>>> look_at(pickle.dumps({"n": [1, 2.5, None]})), look_at(pickle.dumps(pathlib.Path("a")))
({'n': [1, 2.5, None]}, '<pickled, 44 bytes>')
"""

from __future__ import annotations

import io
import pickle
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
    """A pickled value if it is made of plain builtins, else a text that says how large it is."""
    try:
        return _PlainUnpickler(io.BytesIO(pickled)).load()
    except Exception:  # a crafted pickle may fail in any way
        return f"<pickled, {len(pickled):,} bytes>"
