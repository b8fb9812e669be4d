"""Rows: records as functions and sinks get them."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex

from penstock.errors import nearest


class Row(tuple[Any, ...]):
    """A record as a function gets it: a tuple with named fields. `row.word`, `row["word"]` and `row[0]` are the same value.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items([("a", 2)], "word string, n int")).sink("out", ps.console())
    >>> row = run_local(flow)["out"][0]
    >>> row, row == ("a", 2), row.replace(n=3)
    (Row(word='a', n=2), True, {'word': 'a', 'n': 3})
    """

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self, at: str | SupportsIndex | slice) -> Any:
        return tuple.__getitem__(self, Row.index_of(self, at) if isinstance(at, str) else at)

    def index_of(self, name: str) -> int:
        """The position of a field.

        Args:
            name: the name of the field.

        Returns:
            Its number, from 0.

        Raises:
            KeyError: there is none; the message has the nearest name.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"no field {name!r}; {nearest(name, self.names)}") from None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no field {name!r}; {nearest(name, self.names)}")

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self.names, self, strict=True))})"

    def asdict(self) -> dict[str, Any]:
        """The row as a dict.

        Returns:
            The values by name.
        """
        return dict(zip(self.names, self, strict=True))

    def replace(self, **fields: Any) -> dict[str, Any]:
        """The row as a dict, with some fields changed.

        Args:
            fields: the new values, by name.

        Returns:
            The values by name.
        """
        return {**self.asdict(), **fields}


@lru_cache(maxsize=512)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """The class of the rows with these fields. The getters are those of a namedtuple, which run in C."""
    model: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # the fields are known only here
    fields: tuple[str, ...] = model._fields
    getters = {n: vars(model)[f] for n, f in zip(names, fields, strict=True)}
    return type("Row", (Row,), {**getters, "__slots__": (), "names": names})
