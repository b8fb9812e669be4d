"""Keeps pyarrow from importing pandas in workers that do not use it.

pyarrow imports pandas, if it is installed, when it makes its first array from Python values: a second of processor time in each worker, before
the first record. Here pyarrow looks for it once while it is hidden. When pandas is imported after all, by a step or by a call of pyarrow that
needs it, pyarrow is made to look again, so that arrays of Series and data frames are what they always are.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

NAME = "pandas"


def put_off_pandas() -> None:
    """Has pyarrow do without pandas until something imports it; does nothing where pandas has been imported already."""
    if NAME in sys.modules or any(isinstance(finder, _Announcing) for finder in sys.meta_path):
        return
    hiding = _Hiding()
    sys.meta_path.insert(0, hiding)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(hiding)
    sys.meta_path.insert(0, _Announcing())


class _Hiding(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == NAME:
            raise ModuleNotFoundError(f"no {NAME} for now", name=NAME)


class _Announcing(MetaPathFinder):
    """Finds pandas as it is, and tells pyarrow when it has been imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(NAME)
        if found is not None and found.loader is not None:
            found.loader = _NotifyingLoader(found.loader)
        return found


class _NotifyingLoader(Loader):
    """A loader after which pyarrow looks for pandas again."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        _look_again()


def _look_again() -> None:
    """Reads a property that needs pandas: pyarrow then repeats its search, which failed before."""
    pa.lib._pandas_api.pd  # noqa: B018 - reading it is the point
