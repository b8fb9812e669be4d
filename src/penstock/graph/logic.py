"""The class a user writes for a `process` step, and the state it keeps per key.

>>> class Meter(Process):
...     seen = value(int, default=0)
...     def on_event(self, row):
...         self.seen += 1
...         yield {"word": row.word, "nth": self.seen}
"""

from __future__ import annotations

import copy
import datetime
import decimal
from collections.abc import Iterable
from typing import Any

from penstock.errors import FlowError

_NEVER_CHANGE = (bool, int, float, str, bytes, decimal.Decimal, datetime.date, type(None))


class Cell:
    """A piece of per-key state, declared in the body of a Process class."""

    def __init__(self, kind: Any, default: Any) -> None:
        self.kind = kind
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, logic: Any, owner: type | None = None) -> Any:
        if logic is None:
            return self
        cells = logic._cells
        if self.name not in cells:
            if isinstance(self.default, _NEVER_CHANGE):
                return self.default
            cells[self.name] = copy.deepcopy(self.default)
        return cells[self.name]

    def __set__(self, logic: Any, given: Any) -> None:
        logic._cells[self.name] = given

    def __delete__(self, logic: Any) -> None:
        logic._cells.pop(self.name, None)


def value(kind: Any = object, default: Any = None) -> Any:
    """One value per key."""
    return Cell(kind, default)


def list_of(kind: Any = object) -> Any:
    """A list per key."""
    return Cell(list[kind], [])


def map_of(key: Any = object, item: Any = object) -> Any:
    """A dict per key."""
    return Cell(dict[key, item], {})


class Process:
    """The base of a keyed step of your own. One instance serves many keys; `self.key` says which is at hand.

    What is declared with `value`, `list_of` and `map_of` belongs to the key and survives restarts. Other
    attributes belong to the instance, which may be made anew at any time; set them in `on_open`.
    """

    def __init__(self) -> None:
        self._cells: dict[str, Any] = {}
        self.key: Any = None

    def on_open(self) -> None:
        """Called once before the first record of each instance."""

    def on_event(self, row: Any) -> Iterable[Any] | None:
        """Called for each record of the key; gives any number of records."""
        raise NotImplementedError

    def on_close(self) -> None:
        """Called once after the last record of each instance."""

    def clear(self) -> None:
        """Forgets all that is kept for the key at hand."""
        self._cells.clear()

    @classmethod
    def cells(cls) -> dict[str, Cell]:
        """The state the class declares, by name."""
        return {n: c for k in reversed(cls.__mro__) for n, c in vars(k).items() if isinstance(c, Cell)}


def check_logic(step: str, logic: Any) -> Process:
    """An instance of the user's Process class, or an error that says what is wrong with it."""
    if isinstance(logic, type) and issubclass(logic, Process):
        try:
            logic = logic()
        except TypeError as error:
            raise FlowError(
                f"step {step!r}: {logic.__qualname__} cannot be made without arguments ({error}); give an instance"
            ) from None
    if not isinstance(logic, Process):
        raise FlowError(f"step {step!r} needs a penstock.Process class or an instance of one; {logic!r} came")
    if type(logic).on_event is Process.on_event:
        raise FlowError(f"step {step!r}: {type(logic).__qualname__} must define on_event(self, row)")
    if not hasattr(logic, "_cells"):
        raise FlowError(f"step {step!r}: {type(logic).__qualname__}.__init__ must call super().__init__()")
    return logic
