"""Rows: records as functions and sinks get them."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex

from penstock.errors import nearest


class Row(tuple[Any, ...]):
    """A record as a function gets it: `row.word`, `row["word"]` and `row[0]` are the same value."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self, at: str | SupportsIndex | slice) -> Any:
        return tuple.__getitem__(self, Row.place(self, at) if isinstance(at, str) else at)

    def place(self, name: str) -> int:
        """Where a field stands."""
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"no field {name!r}; {nearest(name, self.names)}") from None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no field {name!r}; {nearest(name, self.names)}")

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self.names, self, strict=True))})"

    def asdict(self) -> dict[str, Any]:
        """The row as a dict."""
        return dict(zip(self.names, self, strict=True))

    def replace(self, **fields: Any) -> dict[str, Any]:
        """The row as a dict, with some fields changed."""
        return {**self.asdict(), **fields}


@lru_cache(maxsize=512)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """The class of the rows with these fields. The getters are those of a namedtuple, which run in C."""
    model: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # the fields are known only here
    fields: tuple[str, ...] = model._fields
    getters = {n: vars(model)[f] for n, f in zip(names, fields, strict=True)}
    return type("Row", (Row,), {**getters, "__slots__": (), "names": names})
