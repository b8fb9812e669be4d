"""The kernel of triggers: gathers the changes of each key, and emits them when the key fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.graph.expr import Expr
from penstock.graph.graph import Graph
from penstock.graph.nodes.relational.trigger import ADD, END, ENDED, EVERY, OP, UNTIL, Trigger
from penstock.graph.nodes.window import EVENT
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import PROCESSING, Slot
from penstock.graph.times import FOREVER, NEVER, Times, to_micros, to_moment
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.changes.bags import bag_columns, bag_of, checkpoint_content_of
from penstock.kernels.changes.base import GatheredChangesKernel, Signed
from penstock.kernels.changes.rows import Bag, Row
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.keyed import Key, key_getter, prefetch
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

AT_END, ON_MOMENT = "end", "until"
"""The timers of a key beside that of its firings: when the input is over, and when the key ends."""
FIRST = NEVER + 1
"""When a key fires whose event time is not known yet: its timer is set anew when it is."""


@dataclass
class KeyState:
    """What is kept of a key: how it fires, what became of it, and its rows or their changes."""

    rows: Bag
    every: int | None = None
    ended: int | None = None
    firings: int = 0
    emitted: int = 0
    last: int | None = None
    true: int = 0
    """Of how many rows the condition of the trigger is true."""
    over: int = 0
    """Of how many rows the condition of the end is true."""

    def numbers(self) -> tuple[int | None, ...]:
        """All but the rows."""
        return self.every, self.ended, self.firings, self.emitted, self.last, self.true, self.over


NUMBERS = ("every", "ended", "firings", "emitted", "last", "true", "over")
"""The columns of a key beside those of its rows."""


@dataclass
class Made:
    """What a move of time emits."""

    rows: list[Signed] = field(default_factory=list)
    ended: list[Row] = field(default_factory=list)


class TriggerKernel(GatheredChangesKernel):
    """Of a key it keeps the rows that wait, or all of them, and how often it has fired."""

    node: Trigger

    def __init__(self, node: Trigger, graph: Graph) -> None:
        schemas = [graph.output(port).schema for port in node.inputs]
        super().__init__(node, schemas[0])
        self.has_settings = len(schemas) > 1
        self.when, self.until = self._condition(node.when), self._condition(node.until)
        if self.has_settings:
            names = schemas[1].names
            self.setting_key = key_getter(names, node.keys)
            self.setting_at = {name: names.index(name) for name in (OP, EVERY, UNTIL) if name in names}
        self.set: dict[Key, Row] = {}
        self._firing = Slot(node.clock)
        self.version_at = self.visible.names.index(node.version) if node.version else None

    def _condition(self, written: Expr | None) -> Callable[[Row], bool] | None:
        if written is None:
            return None
        met = compile_expr(written, self.visible)

        def holds(row: Row) -> bool:
            try:
                return met(row) is True
            except Exception as error:
                raise RecordFailed(self.node, row, None, error) from error

        return holds

    def layout(self) -> Layout:
        """The numbers, then the rows."""
        numbers = [Column(name, pa.int64()) for name in NUMBERS]
        return Layout(self.key_columns, (*numbers, *bag_columns("row.", self.visible)), timers=True)

    def open(self, context: Context) -> None:
        """Finds the state and its timers."""
        super().open(context)
        self.timers = self.timers_of(context)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers changes of rows, and the settings of keys, of which the last counts."""
        if source == 0:
            return super().take(chunk)
        rows = list(chunk.values())
        keys = [self.setting_key(row) for row in rows]
        prefetch(self.state, keys, chunk.key_hashes, self.key_columns)
        self.set.update(zip(keys, rows, strict=True))
        return ()

    def advance(self, times: Times) -> Out:
        """Settings first, then changes, then what time brings."""
        self.move(times)
        made = Made()
        settings, self.set = self.set, {}
        for key, row in settings.items():
            self._settle(key, row)
        new, self.new = self.new, {}
        for key, change in new.items():
            self._change(key, change, made)
        self._time(made)
        yield from self.emit(made.rows)
        if made.ended:
            yield ENDED, shaped(self, ENDED, made.ended)

    def emit(self, made: list[Signed]) -> Out:
        """Signed rows; where only records come out, those that are added."""
        made = made if self.is_signed else [(row, count) for row, count in made if count > 0]
        at = self.version_at
        return super().emit(made if at is None else [((*row[:at], *row[at + 1 :]), count) for row, count in made])

    # -- what is kept ------------------------------------------------------------------------------------------------

    def _read(self, key: Key) -> KeyState | None:
        kept = self.state.get(key)
        if kept is None:
            return None
        return KeyState(bag_of(kept[len(NUMBERS) :], self.identity), *kept[: len(NUMBERS)])

    def _write(self, key: Key, state: KeyState) -> None:
        self.state.put(key, (*state.numbers(), *checkpoint_content_of(state.rows, self.width)))

    def _settle(self, key: Key, row: Row) -> None:
        """What is said of a key: it begins, ends, or goes. One that begins forgets what it was before."""
        assert self.timers is not None
        op = row[self.setting_at[OP]]
        before = self._read(key)
        if op == END and (before is None or before.ended is not None):
            return
        self.timers.clear(key)
        if op == END and before is not None:
            before.rows, before.ended = Bag(self.identity), self.times.now
            self._write(key, before)
        elif op == ADD:
            self._begin(key, row)
            self._stand(key, before)
        else:
            self.state.delete(key)

    def _begin(self, key: Key, row: Row) -> None:
        state = KeyState(Bag(self.identity), self._setting(row, EVERY) or self.node.every)
        until = self._setting(row, UNTIL)
        if until is not None:
            assert self.timers is not None
            self.timers.set(key, EVENT, to_micros(until), ON_MOMENT)
        if self.node.whole:
            self._wait(key, state)
        self._write(key, state)

    def _stand(self, key: Key, before: KeyState | None) -> None:
        """The rows of a key that begins again in one batch: all of the new version, or where there is none, those that it had and what differs."""
        if self.version_at is not None:
            added = Bag(self.identity)
            added.update((row, count) for row, count in self.new.get(key, ()) if count > 0)
            self.new[key] = added
            return
        if self.node.whole and before is not None and len(before.rows):
            before.rows.update(self.new.get(key, ()))
            self.new[key] = before.rows

    def _setting(self, row: Row, name: str) -> Any:
        return row[self.setting_at[name]] if name in self.setting_at else None

    # -- what happens to a key ---------------------------------------------------------------------------------------

    def _change(self, key: Key, change: Bag, made: Made) -> None:
        state = self._read(key)
        if state is None and not self.has_settings:
            state = KeyState(Bag(self.identity), self.node.every)
        if state is None or state.ended is not None or not len(change):
            return
        was_true = state.true > 0
        state.rows.update(change)
        state.true += self._true_of(self.when, change)
        state.over += self._true_of(self.until, change)
        if state.over > 0:
            self._end(key, state, made, fires=self.node.when is None or (state.true > 0 and not was_true))
            return
        fires = state.every is None if self.node.when is None else state.true > 0 and not was_true
        if fires:
            self._fire(state, made)
        self._wait(key, state)
        self._write(key, state)

    @staticmethod
    def _true_of(condition: Callable[[Row], bool] | None, change: Iterable[Signed]) -> int:
        return 0 if condition is None else sum(count for row, count in change if condition(row))

    def _fire(self, state: KeyState, made: Made) -> None:
        """Emits what waits, or all rows."""
        rows = list(state.rows)
        made.rows += sorted(rows, key=lambda signed: signed[1])
        state.firings += 1
        state.last = self.times.now
        state.emitted += sum(abs(count) for _, count in rows)
        if not self.node.whole:
            state.rows = Bag(self.identity)

    def _end(self, key: Key, state: KeyState, made: Made, *, fires: bool) -> None:
        """Ends a key for good: what waits is emitted, and nothing of it is kept but that it has ended."""
        assert self.timers is not None
        if fires and len(state.rows):
            self._fire(state, made)
        state.rows, state.ended = Bag(self.identity), self.times.now
        self.timers.clear(key)
        self._write(key, state)
        made.ended.append((*key, to_moment(self.times.now)))

    # -- time --------------------------------------------------------------------------------------------------------

    def _wait(self, key: Key, state: KeyState) -> None:
        """Sets the timer of the next firing, where there is something to fire. One that is set stays: it may be due in this batch."""
        assert self.timers is not None
        if state.every is None or not (self.node.whole or len(state.rows)) or self._firing in self.timers.of(key):
            return
        at = self.times.watermark if self.node.clock == EVENT else self.times.now
        if at >= FOREVER:
            self.timers.set(key, EVENT, FOREVER, AT_END)
            return
        self.timers.set(key, self.node.clock, FIRST if at <= NEVER else (at // state.every + 1) * state.every)
        if self.node.clock == PROCESSING:
            self.timers.set(key, EVENT, FOREVER, AT_END)

    def _time(self, made: Made) -> None:
        """Fires and ends what is due. A key fires once, however many of its moments have passed."""
        assert self.timers is not None
        for due in self.timers.due(EVENT, self.times.watermark):
            self._due(due.key, due.tag, due.time, made)
        for due in self.timers.due(PROCESSING, self.times.now):
            self._due(due.key, due.tag, due.time, made)

    def _due(self, key: Key, tag: str, time: int, made: Made) -> None:
        state = self._read(key)
        if state is None or state.ended is not None:
            return
        if tag == ON_MOMENT:
            self._end(key, state, made, fires=self.node.when is None)
            return
        is_over = self.times.watermark >= FOREVER
        if len(state.rows) and (time != FIRST or is_over):
            self._fire(state, made)
        if not is_over:
            self._wait(key, state)
        self._write(key, state)
