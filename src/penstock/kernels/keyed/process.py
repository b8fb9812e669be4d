"""The kernel of the user's own class: brings the state of each record's key to it, and keeps what it changed."""

from __future__ import annotations

import copy
import datetime
import decimal
from collections.abc import Callable
from functools import cached_property
from operator import is_
from typing import Any

import pyarrow as pa

from penstock.graph.logic.cells import refuse_type
from penstock.graph.logic.process import Process as Logic
from penstock.graph.logic.process import has_timers
from penstock.graph.nodes import Process
from penstock.graph.schema import Schema
from penstock.graph.state.layout import ABSENT, Column, Layout
from penstock.graph.state.timers import PROCESSING, Slot
from penstock.graph.times import NEVER, Times, to_micros
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.keyed.firing import Firing
from penstock.kernels.keyed.keyed import KeyedKernel
from penstock.kernels.quiet import quiet
from penstock.kernels.records.chunk import Chunk, Walk
from penstock.kernels.records.several import PLAIN, several
from penstock.kernels.stateless import by_output, shaped

_TYPES: dict[Any, Any] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    decimal.Decimal: pa.string(),
    datetime.datetime: pa.timestamp("us", tz="UTC"),
    datetime.date: pa.date32(),
}
TTL = Slot(PROCESSING, "@ttl")
"""The timer of a key that forgets the cells that have outlived their time."""


def _kept_as(kind: object) -> pa.DataType | None:
    """The Arrow type of a kind of values; None when they are pickled."""
    return _TYPES.get(kind) if isinstance(kind, type) else None


def _exact(kind: object) -> type | None:
    """The class whose values are read back unchanged; None where there is no one class, and all are pickled."""
    return kind if isinstance(kind, type) else None


class ProcessKernel(KeyedKernel):
    """The user's own class."""

    node: Process

    def __init__(self, node: Process, schema: Schema) -> None:
        super().__init__(node, schema)
        cells = list(node.logic.cells().values())
        self.plain = [c for c in cells if c.plain]
        self.watched = [c for c in cells if not c.plain]
        self.passing = [c for c in self.watched if c.ttl is not None]
        self.has_timers = has_timers(node.logic)
        self.waits_for_time = self.has_timers or bool(self.passing)
        self.defaults = tuple(c.default for c in self.plain)
        self.simple = not self.watched and not self.has_timers
        self.bare = len(node.keys) == 1
        quick = self._each_of_one if len(self.plain) == 1 else self._each_of_plain
        self.each = quick if self.simple else self._each

    def layout(self) -> Layout:
        """A column for each cell, and the time of its last write if it is forgotten after a time."""
        plain = [Column(c.name, _kept_as(c.kind), _exact(c.kind), c.default) for c in self.plain]
        watched = [Column(c.name, _kept_as(c.kind), _exact(c.kind), ABSENT, lazy=True) for c in self.watched]
        stamps = [Column(f"{c.name}@written", pa.int64()) for c in self.passing]
        single = self.simple and len(plain) == 1
        return Layout(self.key_columns, (*plain, *watched, *stamps), single, self.bare, self.waits_for_time)

    def open(self, context: Context) -> None:
        """Makes an instance of its own."""
        super().open(context)
        if self.waits_for_time:
            self.waits = self.timers = self.timers_of(context)
        self.logic: Logic = copy.copy(self.node.logic)
        self.logic._renew()
        self.row: Any = None
        if self.node.event_time is not None:
            self.logic._event_time = self._event_time
        self._call("on_open")
        self.known = {*vars(self.logic), *(c.name for c in self.plain)}

    def _event_time(self) -> int | None:
        timed = self.node.event_time
        moment = getattr(self.row, timed.column) if timed is not None else None
        return None if moment is None or timed is None else to_micros(moment) + timed.shift

    def move(self, times: Times) -> None:
        """Tells the instance the time."""
        super().move(times)
        self.logic._now = times.now
        self.logic._timeless = times.timeless
        self.stand(times.previous)

    def stand(self, watermark: int) -> None:
        """Tells the instance where event time stands."""
        self.logic._watermark = None if watermark == NEVER else watermark

    def keys(self, chunk: Chunk) -> list[Any]:
        """The key of each record, prefetched; a single field stands for itself."""
        if not self.bare:
            return super().keys(chunk)
        keys = chunk.columns()[self.key_indexes[0]]
        self.state.prefetch(keys, chunk.key_hashes)
        return keys

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records the class emits for these."""
        made: list[Any] = []
        with quiet():
            keys, walk = self.keys(chunk), chunk.walk()
            try:
                self.each(walk, keys, made)
                self._refuse_attributes()
            except Exception as error:
                failed = RecordFailed(self.node, self.row, walk.at, error)
                failed.made = list(self.given(made)) if self.guarded else None
                raise failed from error
            return list(self.given(made))

    def _whole(self, row: object) -> list[Any]:
        """All that the class emits for a record, or nothing if it fails on the way."""
        given = self.logic.on_event(row)
        made = list(given if given.__class__ in PLAIN else several(given))
        self._refuse_attributes()
        around = vars(self.logic)
        self._refuse_types(tuple([around.get(c.name, c.default) for c in self.plain]))
        return made

    @property
    def _on_event(self) -> Callable[[Any], Any]:
        return self._whole if self.guarded else self.logic.on_event

    def given(self, made: list[Any]) -> Out:
        """Records, by output."""
        if len(self.node.outputs) == 1:
            return [("out", shaped(self, "out", made))]
        return by_output(self, made)

    def _each_of_one(self, rows: Walk, keys: list[Any], made: list[Any]) -> None:
        """The quick way for one plain cell: it goes into the instance and comes out of it."""
        around, on_event = vars(self.logic), self._on_event
        cache, touched, delete = self.state.cache, self.state.touched, self.state.delete
        get, cell, (default,) = cache.get, self.plain[0], self.defaults
        name, kind = cell.name, cell.kind
        extend = made.extend
        for self.row, key in zip(rows, keys, strict=True):
            around[name] = kept = get(key, default)
            around["key"] = key
            given = on_event(self.row)
            if given is not None:
                extend(given if given.__class__ in PLAIN else several(given))
            left = around.get(name, default)
            if left is not kept:
                if left.__class__ is not kind:
                    refuse_type(self.logic, cell, left)
                if left is default:
                    delete(key)
                else:
                    cache[key] = left
                    touched[key] = None

    def _each_of_plain(self, rows: Walk, keys: list[Any], made: list[Any]) -> None:
        """The quick way for plain cells alone."""
        around, on_event = vars(self.logic), self._on_event
        get, put, delete = self.state.get, self.state.put, self.state.delete
        named, defaults = [c.name for c in self.plain], self.defaults
        pairs = list(zip(named, defaults, strict=True))
        for self.row, key in zip(rows, keys, strict=True):
            kept = get(key, defaults)
            around.update(zip(named, kept, strict=True))
            around["key"] = key
            given = on_event(self.row)
            made += given if given.__class__ in PLAIN else several(given)
            left = tuple([around.get(name, default) for name, default in pairs])
            if not all(map(is_, left, kept)):
                self._refuse_types(left)
                put(key, left) if not all(map(is_, left, defaults)) else delete(key)

    def _each(self, rows: Walk, keys: list[Any], made: list[Any]) -> None:
        """The way for all else."""
        on_event = self._on_event
        for self.row, key in zip(rows, keys, strict=True):
            kept = self.load(key)
            given = on_event(self.row)
            made += given if given.__class__ in PLAIN else several(given)
            self.store(key, kept)

    def _refuse_types(self, values: tuple[Any, ...]) -> None:
        for cell, given in zip(self.plain, values, strict=True):
            if given.__class__ is not cell.kind:
                refuse_type(self.logic, cell, given)

    def _refuse_attributes(self) -> None:
        """Attributes that the class set while it worked: they belong to no key, and are lost when the instance is made anew."""
        new = vars(self.logic).keys() - self.known
        for name in sorted(n for n in new if not isinstance(getattr(type(self.logic), n, None), cached_property)):
            del vars(self.logic)[name]
            raise AttributeError(
                f"{type(self.logic).__qualname__} sets self.{name}, which it does not declare: it would be lost at a restart and shared by "
                f"keys. Declare it ({name} = ps.value(...)), or set it in on_open if it is no state"
            )

    def load(self, key: object) -> Any:
        """Brings the state of a key into the instance; what has outlived its time is gone."""
        logic = self.logic
        around = vars(logic)
        around["key"] = key
        kept = self.state.get(key)
        around["_dirty"] = False
        around["_timers"] = self._timers_of(key) if self.has_timers else {}
        if kept is None:
            around.update(zip((c.name for c in self.plain), self.defaults, strict=True))
            around["_cells"], around["_stamps"] = {}, {}
            return None
        parts = iter(copy.deepcopy(kept) if self.guarded else kept)
        for cell in self.plain:
            around[cell.name] = next(parts)
        around["_cells"] = {c.name: v for c in self.watched if (v := next(parts)) is not ABSENT}
        around["_stamps"] = {c.name: v for c in self.passing if (v := next(parts)) is not None}
        self._expire()
        return kept

    def _timers_of(self, key: object) -> dict[Slot, int]:
        timers = self.waits.of(key)
        timers.pop(TTL, None)
        return timers

    def _expire(self) -> None:
        for cell in self.passing:
            if cell.name in self.logic._stamps and self._end_of(cell) <= self.times.now:
                self.logic._cells.pop(cell.name, None)
                del self.logic._stamps[cell.name]
                self.logic._dirty = True

    def _end_of(self, cell: Any) -> int:
        return int(self.logic._stamps[cell.name] + cell.ttl)

    def store(self, key: object, kept: Any) -> None:
        """Keeps what the instance has of a key, if it changed."""
        around = vars(self.logic)
        plain = tuple([around.get(c.name, c.default) for c in self.plain])
        before = self.defaults if kept is None else kept[: len(plain)]
        if not self.logic._dirty and all(map(is_, plain, before)):
            return
        self._refuse_types(plain)
        if self.waits_for_time:
            self._set_timers(key)
        cells = self.logic._cells
        if not cells and all(map(is_, plain, self.defaults)):
            self.state.delete(key)
            return
        watched = [cells.get(c.name, ABSENT) for c in self.watched]
        stamps = [self.logic._stamps.get(c.name) for c in self.passing]
        self.state.put(key, (*plain, *watched, *stamps))

    def _set_timers(self, key: object) -> None:
        """Has the service keep the timers that the instance has for a key, and the one that ends its cells."""
        before, after = self.waits.of(key), {Slot(*slot): at for slot, at in self.logic._timers.items()}
        ends = [self._end_of(c) for c in self.passing if c.name in self.logic._stamps]
        after |= {TTL: min(ends)} if ends else {}
        for clock, tag in before.keys() - after.keys():
            self.waits.delete(key, clock, tag)
        for slot, at in after.items():
            if before.get(slot) != at:
                self.waits.set(key, slot.clock, at, slot.tag)

    def advance(self, times: Times) -> Out:
        """The records of the timers that are due; cells that have outlived their time go."""
        self.move(times)
        if not self.waits_for_time:
            return ()
        made: list[Any] = []
        self.stand(times.watermark)
        Firing(self).run(made)
        self._call("_refuse_attributes", self)
        return self.given(made)

    def close(self) -> None:
        """Tells the class that it is over."""
        self._call("on_close")

    def _call(self, method: str, of: Any = None) -> None:
        try:
            getattr(of or self.logic, method)()
        except Exception as error:
            where = "on_timer" if of is self else method
            raise RecordFailed(self.node, f"none: it was {where} that failed", 0, error) from error
