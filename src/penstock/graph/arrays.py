"""The numpy arrays that steps and state compute with, as types; text, so that numpy is not imported for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

IntArray: TypeAlias = "npt.NDArray[np.signedinteger[Any]]"
"""Whole numbers: key hashes, times in microseconds, numbers of rows."""
BoolArray: TypeAlias = "npt.NDArray[np.bool_]"
"""A flag for each row."""
