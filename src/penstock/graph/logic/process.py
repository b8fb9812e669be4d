"""The class a user writes for a `process` step, and the state it keeps per key.

>>> class Meter(Process):
...     seen = value(int, default=0)
...     def on_event(self, row):
...         self.seen += 1
...         yield {"word": row.word, "nth": self.seen}
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import FlowError
from penstock.graph.duration import micros
from penstock.graph.logic.cells import Cell, WatchedCell, list_of, map_of, span, value
from penstock.graph.times import FOREVER, to_micros, to_moment

__all__ = ["Cell", "Process", "Timer", "check_logic", "list_of", "map_of", "value"]


@dataclass(frozen=True)
class Timer:
    """A timer that fires, as `Process.on_timer` gets it: when it was set for, its name, and by which clock.

    >>> import datetime
    >>> import penstock as ps
    >>> ps.Timer(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "end").clock
    'event'
    """

    at: datetime.datetime
    name: str = ""
    clock: str = "event"


CLOCKS = ("event", "processing")


class Process:
    """The base of a keyed step of your own. One instance serves many keys; `self.key` says which is at hand.

    What is declared with `value`, `list_of` and `map_of` belongs to the key and survives restarts. Other
    attributes belong to the instance, which may be replaced at any time; set them in `on_open`.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Numbered(ps.Process):
    ...     seen = ps.value(int, default=0)
    ...     def on_event(self, row):
    ...         self.seen += 1
    ...         yield row.word, self.seen
    >>> words = ps.Flow("demo").source("words", ps.items(["a", "a"], "word string"))
    >>> words.key_by("word").process("numbered", Numbered, "word string, nth int").sink("out", ps.console())
    >>> run_local(words.flow)["out"]
    [Row(word='a', nth=1), Row(word='a', nth=2)]
    """

    ttl: Any = None
    """How long cells without a ttl of their own are kept after they were last written, by processing time; None: for ever."""

    def __init_subclass__(cls) -> None:
        """Gives the ttl of the class to its cells that have none."""
        super().__init_subclass__()
        for name, cell in cls.cells().items() if cls.ttl is not None else ():
            if cell.ttl is None:
                made = WatchedCell(cell.kind, cell.default, span(cls.ttl))
                made.name = name
                setattr(cls, name, made)

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        """Everything that belongs to a key, empty."""
        self.key: Any = None
        self._cells: dict[str, Any] = {}
        self._stamps: dict[str, int] = {}
        self._timers: dict[tuple[str, str], int] = {}
        self._dirty = False
        self._now = 0
        self._watermark: int | None = None
        self._timeless = False
        self._event_time: Callable[[], int | None] | None = None

    def on_open(self) -> None:
        """Called once before the first record of each instance."""

    def on_event(self, row: Any) -> Iterable[Any] | None:
        """Called for each record of the key. You must define it.

        Args:
            row: the record.

        Returns:
            Any number of records, or None; a generator will do.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def on_timer(self, timer: Timer) -> Iterable[Any] | None:
        """Called when a timer of the key fires. A class that sets timers must define it.

        Args:
            timer: the timer.

        Returns:
            Any number of records, or None; a generator will do.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def on_close(self) -> None:
        """Called once after the last record of each instance."""

    def clear(self) -> None:
        """Forgets all that is kept for the key at hand, its timers too."""
        for cell in self.cells().values():
            if cell.plain:
                vars(self).pop(cell.name, None)
        self._dirty = True
        self._cells.clear()
        self._stamps.clear()
        self._timers.clear()

    @property
    def now(self) -> datetime.datetime:
        """Processing time; it stands still while a batch runs."""
        return to_moment(self._now)

    @property
    def watermark(self) -> datetime.datetime | None:
        """Where event time stands: no record before it is expected. None while nothing is known."""
        return None if self._watermark is None else to_moment(self._watermark)

    @property
    def ended(self) -> bool:
        """Whether the input is over and all time has passed. A timer set now fires at once; do not set it again and again."""
        return self._watermark is not None and self._watermark >= FOREVER

    @property
    def event_time(self) -> datetime.datetime | None:
        """When the record or timer at hand happened; None where the stream has no event time."""
        time = self._event_time() if self._event_time is not None else None
        return None if time is None else to_moment(time)

    def set_timer(self, at: datetime.datetime | datetime.timedelta, name: str = "", clock: str = "event") -> None:
        """Has `on_timer` called for this key when time reaches a moment.

        A timer of the same name and clock is moved. One in the past fires at the end of this batch. By event time it can be set
        only where the stream has an event time.

        Args:
            at: a datetime, or a timedelta from now on: by event time from the record at hand, else from processing time.
            name: tells several timers of a key apart.
            clock: "event", or "processing" to go by processing time.

        Raises:
            ValueError: the clock or the name is not one, or the stream has no event time.
            TypeError: the class has no `on_timer`, or `at` is neither.
        """
        _check_clock(clock)
        if name.startswith("@"):
            raise ValueError(
                f"the name of a timer does not start with '@', got {name!r}: such names are Penstock's own"
            )
        if not has_timers(self):
            raise TypeError(f"{type(self).__qualname__} sets a timer but has no on_timer(self, timer)")
        if clock == "event" and self._timeless:
            raise ValueError(
                f"{type(self).__qualname__} sets a timer by event time, but its stream has none, so the timer would never fire. Give the "
                f"source event_time='a timestamp field', or set the timer by processing time: set_timer(..., clock='processing')"
            )
        self._timers[clock, name] = self._moment(at, clock)
        self._dirty = True

    def _moment(self, at: datetime.datetime | datetime.timedelta, clock: str) -> int:
        if isinstance(at, datetime.datetime):
            return to_micros(at)
        if not isinstance(at, datetime.timedelta):
            raise TypeError(f"a timer is set for a datetime, or for a timedelta from now on, got {at!r}")
        begin = self._now if clock == "processing" else self._event_time and self._event_time()
        if begin is None:
            raise ValueError("a timedelta in event time counts from the record at hand, which has no event time")
        return begin + micros(at)

    def cancel_timer(self, name: str = "", clock: str = "event") -> None:
        """Takes a timer back; nothing happens when there is none.

        Args:
            name: the name under which it was set.
            clock: the clock by which it was set.

        Raises:
            ValueError: the clock is not one.
        """
        _check_clock(clock)
        if self._timers.pop((clock, name), None) is not None:
            self._dirty = True

    def _wrote(self, cell: Cell) -> None:
        self._dirty = True
        if cell.ttl is not None:
            self._stamps[cell.name] = self._now

    def __delattr__(self, name: str) -> None:
        cell = getattr(type(self), name, None)
        if isinstance(cell, Cell) and cell.plain:
            vars(self).pop(name, None)
        else:
            super().__delattr__(name)

    @classmethod
    def cells(cls) -> dict[str, Cell]:
        """The state the class declares, by name.

        Returns:
            The cells that `value`, `list_of` and `map_of` made.
        """
        return {n: c for k in reversed(cls.__mro__) for n, c in vars(k).items() if isinstance(c, Cell)}


def _check_clock(clock: str) -> None:
    if clock not in CLOCKS:
        raise ValueError(f"a timer runs by the clock 'event' or 'processing', got {clock!r}")


def has_timers(logic: Process) -> bool:
    """Whether a class may set timers: it says what to do when one fires."""
    return type(logic).on_timer is not Process.on_timer


def minds_time(logic: Process) -> bool:
    """Whether anything may happen to a key without a record: a timer fires, a cell is forgotten."""
    return has_timers(logic) or any(cell.ttl is not None for cell in logic.cells().values())


def check_logic(step: str, logic: object) -> Process:
    """An instance of the user's Process class, or an error that says what is wrong with it."""
    made: Process = instance_of(step, logic, Process, "on_event(self, row)")
    if not hasattr(made, "_cells"):
        raise FlowError(f"step {step!r}: {type(made).__qualname__}.__init__ must call super().__init__()")
    return made


def instance_of(step: str, logic: object, base: type, method: str) -> Any:
    """An instance of a class of the user's, which must define a method of its base; a class is called to make one."""
    if isinstance(logic, type) and issubclass(logic, base):
        made = logic
        try:
            logic = made()
        except TypeError as error:
            raise FlowError(
                f"step {step!r}: {made.__qualname__} cannot be made without arguments ({error}); give an instance"
            ) from None
    if not isinstance(logic, base):
        raise FlowError(f"step {step!r} needs a penstock.{base.__name__} class or an instance of one, got {logic!r}")
    name = method.split("(", maxsplit=1)[0]
    if getattr(type(logic), name) is getattr(base, name):
        raise FlowError(f"step {step!r}: {type(logic).__qualname__} must define {method}")
    return logic


class StateUpdate(Process):
    """What `update_state` runs: a function of the record and of what was kept, which returns what to keep and records."""

    state = value(object)

    def __init__(self, function: Callable[[Any, Any], tuple[Any, Iterable[Any]]]) -> None:
        super().__init__()
        self.function = function

    def on_event(self, row: Any) -> Iterator[Any]:
        """Keeps what the function says; None forgets the key."""
        self.state, made = self.function(row, self.state)
        if self.state is None:
            self.clear()
        yield from made or ()
