"""S4's processing elements: an object for each key, made when the key is first seen."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.errors import FlowError
from penstock.graph.duration import Span, micros
from penstock.graph.logic.process import Process, Timer, value

OUTPUT, REMOVE = "output", "remove"
"""The timers of an element."""


class ProcessingElement:
    """The base of a processing element: a class of which each key has an object of its own, for `key_by(...).process`.

    The object of a key is made when the key is first seen: a copy of the one you gave, told by `on_create`. Its attributes are state: they are kept with
    each batch and put back after a restart, but for those whose names begin with an underscore. `self.key` is its key.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Counter(ps.PE):
    ...     output_every = 2
    ...     def on_create(self):
    ...         self.n = 0
    ...     def on_event(self, row):
    ...         self.n += 1
    ...     def output(self):
    ...         yield self.key, self.n
    >>> words = ps.Flow("demo").source("words", ps.items(["a", "b", "a", "a"], "word string"))
    >>> words.key_by("word").process("counter", Counter, "word string, n int").sink("out", ps.console())
    >>> run_local(words.flow)["out"]
    [Row(word='a', n=2)]
    """

    output_every: int | None = None
    """After how many events of a key `output` is called; None: not by count."""
    output_interval: Span | None = None
    """How often `output` is called for a key that has had events, by processing time; None: not by time."""
    ttl: Span | None = None
    """How long after its last event a key is forgotten, by processing time; None: never."""

    key: Any = None

    def on_create(self) -> None:
        """Called when the key is first seen, before its first event."""

    def on_event(self, row: Any) -> Iterable[Any] | None:
        """Called for each event of the key. You must define it.

        Args:
            row: the event.

        Returns:
            Any number of records, or None; a generator will do.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def output(self) -> Iterable[Any] | None:
        """Called as `output_every` and `output_interval` say.

        Returns:
            Any number of records, or None; a generator will do.
        """
        return None

    def on_remove(self) -> Iterable[Any] | None:
        """Called before the key is forgotten because its `ttl` is over.

        Returns:
            Any number of records, or None; a generator will do.
        """
        return None


class Elements(Process):
    """Brings each event to the element of its key."""

    attributes = value(dict)
    events = value(int, default=0)

    def __init__(self, prototype: ProcessingElement) -> None:
        super().__init__()
        self.prototype = prototype

    def on_event(self, row: Any) -> Iterator[Any]:
        """What the element emits for an event, and its output, if that is due by count."""
        element, prototype = self._element(), self.prototype
        yield from element.on_event(row) or ()
        self.events += 1
        if prototype.output_every and self.events % prototype.output_every == 0:
            yield from element.output() or ()
        self._keep(element)
        self._set_timers()

    def on_timer(self, timer: Timer) -> Iterator[Any]:
        """The output that is due by time, or the end of the element."""
        element = self._element()
        if timer.name == REMOVE:
            yield from element.on_remove() or ()
            self.clear()
            return
        yield from element.output() or ()
        self._keep(element)

    def _element(self) -> ProcessingElement:
        """The element of the key at hand, with its attributes."""
        made = copy.deepcopy(self.prototype)
        made.key = self.key
        if self.attributes is None:
            made.on_create()
        else:
            vars(made).update(self.attributes)
        return made

    def _keep(self, element: ProcessingElement) -> None:
        self.attributes = {k: v for k, v in vars(element).items() if not k.startswith("_") and k != "key"}

    def _set_timers(self) -> None:
        """The next output, unless one is due already, and the end, which each event puts off."""
        interval, ttl = self.prototype.output_interval, self.prototype.ttl
        if interval is not None and ("processing", OUTPUT) not in self._timers:
            self.set_timer(_delta(interval), OUTPUT, "processing")
        if ttl is not None:
            self.set_timer(_delta(ttl), REMOVE, "processing")


def _delta(span: Span) -> datetime.timedelta:
    return datetime.timedelta(microseconds=micros(span))


def element_of(step: str, given: object) -> object:
    """A step's logic: processing elements as a process, whatever else is given as it is.

    Raises:
        FlowError: the element cannot be made, lacks `on_event`, or says a count or a time that is none.
    """
    if isinstance(given, type) and issubclass(given, ProcessingElement):
        try:
            given = given()
        except TypeError as error:
            raise FlowError(
                f"step {step!r}: {given} cannot be made without arguments ({error}); give an instance"
            ) from None
    if not isinstance(given, ProcessingElement):
        return given
    if type(given).on_event is ProcessingElement.on_event:
        raise FlowError(f"step {step!r}: {type(given).__qualname__} must define on_event(self, row)")
    every = given.output_every
    if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
        raise FlowError(f"step {step!r}: expected output_every as a number of events from 1 on, got {every!r}")
    for span in (given.output_interval, given.ttl):
        if span is not None and micros(span) <= 0:
            raise FlowError(f"step {step!r}: expected a time above 0 for output_interval and ttl, got {span!r}")
    return Elements(given)
