"""How the keys and values of a store look, as columns.

>>> import pyarrow as pa
>>> Layout((Column("word", pa.string()),), (Column("n", pa.int64()), Column("last"))).bare
False
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.graph.logic.cells import PickledValue

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ABSENT", "Absent", "Column", "Layout", "PickledValue", "key_columns"]


class Absent:
    """The class of `ABSENT`, the one object that stands for nothing."""

    def __reduce__(self) -> str:
        return "ABSENT"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""What stands in a pickled column where nothing is kept; None is a value like any other there."""


@dataclass(frozen=True)
class Column:
    """A part of a key or of a value.

    With an Arrow type it is kept as such; a value that does not fit is pickled beside it. `exact` is the Python type that
    is read back from the column unchanged; None says that all values fit. Without a type everything is pickled; if it is
    `lazy` too, values are read back as `PickledValue`. `default` stands for nothing.
    """

    name: str
    type: pa.DataType | None = None
    exact: builtins.type | None = None
    default: Any = None
    lazy: bool = False


def key_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a key, in which a field may stand several times: each has a name of its own.

    >>> [column.name for column in key_columns([Column("a"), Column("b"), Column("a")])]
    ['a', 'b', 'a:2']
    """
    names = [column.name for column in columns]
    return tuple(
        replace(column, name=f"{column.name}:{at}") if column.name in names[:at] else column
        for at, column in enumerate(columns)
    )


@dataclass(frozen=True)
class Layout:
    """How the keys and the values of a store look.

    A key is a tuple, unless it is `bare`: then it is the one part itself. A value is a tuple too, unless it is `single`.
    `timers` says that keys may have timers, which are kept beside their values.
    """

    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    single: bool = False
    bare: bool = False
    timers: bool = False
