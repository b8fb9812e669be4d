"""The kernel of joins of tables that change.

The change of the result is ∆A ⋈ ∆B + A' ⋈ ∆B + ∆A ⋈ B', where A' and B' are the sides before the batch, and counts multiply. Rows without
a match come out of outer joins with nulls; they go when the first match comes, and return when the last one goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.graph.graph import Graph
from penstock.graph.nodes.base import COUNT, Output
from penstock.graph.nodes.changes import TableJoin, visible
from penstock.graph.schema import Schema
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import Column, Layout, key_columns
from penstock.graph.state.timers import PROCESSING
from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.changes.base import Signed, negative, repeated, signed_rows
from penstock.kernels.changes.rows import Bag, Identity, NegativeCount, Row, identity_of
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.keyed import Key, hashes_of, key_getter, prefetch
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

LEFT, RIGHT = 0, 1
SMALL = 8
"""Up to so many rows of a key are looked through one by one; a dict costs more to build than that."""
Rows = list[Signed]
"""The rows of a key, each with its count."""
Holds = Callable[[Row, Row], bool]
"""Whether a row of the left and one of the right meet the condition of a join."""


class TableSide:
    """One side of a join: how its rows look and are kept, and what this batch changes of them.

    A side that has at most one row for a key keeps its fields as they are; any other keeps a list of each field.
    """

    def __init__(self, schema: Schema, keys: tuple[str, ...], single: bool) -> None:
        self.schema, self.single = visible(schema), single
        self.identity = identity_of(self.schema)
        self.key_of = key_getter(self.schema.names, keys)
        self.width = len(self.schema.fields) + 1
        self.new: dict[Key, Rows] = {}

    def columns(self, prefix: str) -> list[Column]:
        """How the rows of a key are kept: each field, then the count."""
        kinds = [(f.name, arrow_type(f.type)) for f in self.schema.fields] + [("count", pa.int64())]
        return [Column(f"{prefix}.{name}", kind if self.single else pa.list_(kind)) for name, kind in kinds]

    def read(self, kept: tuple[Any, ...]) -> Rows:
        """The rows of a key from the columns they are kept in."""
        counts = kept[-1]
        if counts is None:
            return []
        if self.single:
            return [(kept[:-1], counts)]
        return list(zip(zip(*kept[:-1], strict=True), counts, strict=True))

    def written(self, rows: Rows) -> tuple[Any, ...]:
        """The columns in which the rows of a key are kept."""
        if not rows:
            return (None,) * self.width
        if self.single:
            ((row, count),) = rows
            return (*row, count)
        values, counts = zip(*rows, strict=True)
        return (*map(list, zip(*values, strict=True)), list(counts))


class TableJoinKernel(Kernel):
    """Rows of both sides, by their key."""

    node: TableJoin
    state: KeyedState

    def __init__(self, node: TableJoin, graph: Graph) -> None:
        super().__init__(node)
        schemas = [graph.output(port).schema for port in node.inputs]
        self.sides = [TableSide(schema, node.keys_of(at), node.single[at]) for at, schema in enumerate(schemas)]
        self.left, self.right = self.sides
        self.key_columns = key_columns([Column(k, arrow_type(self.left.schema.field(k).type)) for k in node.keys])
        self.is_signed = COUNT in node.output().schema
        self.pair = _pairing(node.columns, self.left.schema, self.right.schema)
        self.holds = _holding(node, self.left.schema, self.right.schema) if node.condition is not None else None
        self.identity = identity_of(visible(node.output().schema))
        self.left_alone = node.how in ("left", "full", "anti")
        self.right_alone = node.how in ("right", "full")

    def open(self, context: Context) -> None:
        """Finds the rows that are kept."""
        self.state = context.state(self.node.name)
        columns = (*self.left.columns("left"), *self.right.columns("right"))
        self.state.describe(Layout(self.key_columns, columns, timers=self.node.ttl is not None))
        if self.node.ttl is not None:
            self.timers = context.timers(self.node.name)
            self.timers.hash_with(lambda keys: hashes_of(keys, self.key_columns))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the changes of a side; rows without a key match nothing."""
        with quiet():
            return self._emit(self._gathered(chunk, source))

    def _gathered(self, chunk: Chunk, source: int) -> Rows:
        """Notes the rows by their key; returns what rows without one make of the result."""
        made: Rows = []
        side, new = self.sides[source], self.sides[source].new
        rows = list(signed_rows(chunk))
        keys = [side.key_of(row) for row, _ in rows]
        prefetch(self.state, keys, chunk.key_hashes, self.key_columns)
        for key, signed in zip(keys, rows, strict=True):
            if None in key:
                made += self._alone(source, *signed)
            elif key in new:
                new[key].append(signed)
            else:
                new[key] = [signed]
        return made

    def _alone(self, side: int, row: Row, count: int) -> Rows:
        if side == LEFT and self.left_alone:
            return [(self.pair(row, None), count)]
        return [(self.pair(None, row), count)] if side == RIGHT and self.right_alone else []

    def advance(self, times: Times) -> Out:
        """What the changes of both sides make of the result."""
        self.move(times)
        self._forget()
        made: Rows = []
        with quiet():
            for key in dict.fromkeys((*self.left.new, *self.right.new)):
                a_new, b_new = self.left.new.get(key, ()), self.right.new.get(key, ())
                quick = self._replaced(key, a_new) if not b_new else None
                made += self._joined(key, a_new, b_new) if quick is None else quick
        self.left.new, self.right.new = {}, {}
        return self._emit(made)

    def _forget(self) -> None:
        """Forgets the keys whose rows have not changed for their time to live."""
        if self.timers is not None:
            for due in self.timers.due(PROCESSING, self.times.now):
                self.state.delete(due.key)

    def _keep(self, key: Key, kept: tuple[Any, ...]) -> None:
        self.state.put(key, kept)
        if self.timers is not None and self.node.ttl is not None:
            self.timers.set(key, PROCESSING, self.times.now + self.node.ttl)

    def _drop(self, key: Key) -> None:
        self.state.delete(key)
        if self.timers is not None:
            self.timers.clear(key)

    def _emit(self, made: Rows) -> Out:
        if not made:
            return ()
        rows = [(*row, count) for row, count in made] if self.is_signed else repeated(made)
        return (("out", shaped(self, "out", rows)),)

    def _replaced(self, key: Key, rows: Sequence[Signed]) -> Rows | None:
        """What comes of a row of the left that replaces another, as running totals have it; None for other changes."""
        if not self.left.single or self.holds or len(rows) != 2 or (rows[0][1], rows[1][1]) != (-1, 1):
            return None
        (old, _), (new, _) = rows
        kept, end = self.state.get(key), self.left.width
        if kept is None or kept[end - 1] != 1 or kept[: end - 1] != old:
            return None
        self._keep(key, (*new, 1, *kept[end:]))
        pair, partners = self.pair, self.right.read(kept[end:])
        if self.node.how in ("semi", "anti") or not partners:
            shown = self.left_alone if not partners else self.node.how == "semi"
            return [(pair(old, None), -1), (pair(new, None), 1)] if shown else []
        return [(pair(row, other), sign * m) for other, m in partners for row, sign in rows]

    def _joined(self, key: Key, a_new: Iterable[Signed], b_new: Iterable[Signed]) -> Iterable[Signed]:
        kept = self.state.get(key)
        width = self.left.width
        a_old = self.left.read(kept[:width]) if kept is not None else []
        b_old = self.right.read(kept[width:]) if kept is not None else []
        a_new, b_new = self._change(self.left, a_old, a_new), self._change(self.right, b_old, b_new)
        if not a_new and not b_new:
            return ()
        a_now, b_now = self._after(key, self.left, a_old, a_new), self._after(key, self.right, b_old, b_new)
        if a_now or b_now:
            self._keep(key, (*self.left.written(a_now), *self.right.written(b_now)))
        else:
            self._drop(key)
        if self.holds is not None:
            return self._where(self.holds, a_old, a_new, a_now, b_old, b_new, b_now)
        return self._result(a_old, a_new, a_now, b_old, b_new, b_now)

    def _change(self, side: TableSide, old: Rows, new: Iterable[Signed]) -> Rows:
        """The change of a side. With a time to live a row may go that was forgotten, which is no change."""
        made = consolidated_rows(new, side.identity)
        if self.node.ttl is None or all(count > 0 for _, count in made):
            return made
        there = Bag(side.identity)
        there.update(old)
        return [(row, max(count, -there.count(row))) for row, count in made if count > 0 or there.count(row)]

    def _result(self, a_old: Rows, a_new: Rows, a_now: Rows, b_old: Rows, b_new: Rows, b_now: Rows) -> Iterable[Signed]:
        pair, was, is_ = self.pair, bool(b_old), bool(b_now)
        if self.node.how in ("semi", "anti"):
            return list(_shown(a_old, a_new, a_now, was, is_, self.node.how == "semi", lambda row: pair(row, None)))
        made = [(pair(a, b), n * m) for b, m in b_old for a, n in a_new]
        if b_new:
            made += [(pair(a, b), n * m) for a, n in a_now for b, m in b_new]
        if self.left_alone:
            made += _shown(a_old, a_new, a_now, was, is_, False, lambda row: pair(row, None))
        if self.right_alone:
            made += _shown(b_old, b_new, b_now, bool(a_old), bool(a_now), False, lambda row: pair(None, row))
        return consolidated_rows(made, self.identity)

    def _where(
        self, holds: Holds, a_old: Rows, a_new: Rows, a_now: Rows, b_old: Rows, b_new: Rows, b_now: Rows
    ) -> Iterable[Signed]:
        """The same where pairs must meet a condition: a row is alone when none of its key does so with it."""
        pair, how = self.pair, self.node.how
        made: Rows = []
        if how not in ("semi", "anti"):
            made += [(pair(a, b), n * m) for b, m in b_old for a, n in a_new if holds(a, b)]
            made += [(pair(a, b), n * m) for a, n in a_now for b, m in b_new if holds(a, b)]
        if self.left_alone or how == "semi":
            shown = _meeting(a_old, a_new, a_now, b_old, b_new, b_now, holds, how == "semi")
            made += [(pair(row, None), count) for row, count in shown]
        if self.right_alone:
            shown = _meeting(b_old, b_new, b_now, a_old, a_new, a_now, lambda b, a: holds(a, b), False)
            made += [(pair(None, row), count) for row, count in shown]
        return consolidated_rows(made, self.identity)

    def _after(self, key: Key, side: TableSide, old: Rows, new: Rows) -> Rows:
        """The rows of a key after a change; there cannot be less than none of one."""
        if not new:
            return old
        made = consolidated_rows((*old, *new), side.identity)
        for row, count in made:
            if count < 0:
                raise negative(
                    self, key, NegativeCount(f"{row!r} was taken back {-count} times more than it was there")
                )
        if side.single and len(made) > 1:
            raise negative(self, key, NegativeCount(f"a key has one row here, got {len(made)}"))
        return made


def consolidated_rows(rows: Iterable[Signed], identity: Identity | None) -> Rows:
    """Signed rows with equal ones added up, without those that add up to nothing; few of them, of one key.

    >>> consolidated_rows([((1,), 1), ((2,), 1), ((1,), -1)], None)
    [((2,), 1)]
    """
    made = list(rows)
    if len(made) < 2:
        return made
    if identity is None and len(made) <= SMALL:
        return _small(made)
    bag = Bag(identity)
    bag.update(made)
    return list(bag)


def _small(rows: Rows) -> Rows:
    """The same by looking through the rows."""
    made: Rows = []
    for row, count in rows:
        for at, (other, many) in enumerate(made):
            if other == row:
                if many + count:
                    made[at] = (other, many + count)
                else:
                    del made[at]
                break
        else:
            made.append((row, count))
    return made


def _shown(
    old: Rows, new: Rows, now: Rows, was: bool, is_: bool, wanted: bool, made: Callable[[Row], Row]
) -> Iterator[Signed]:
    """The change of the rows of a side that are shown while the other side is there (`wanted`), or while it is not."""
    if (was == wanted) != (is_ == wanted):
        rows, sign = (now, 1) if is_ == wanted else (old, -1)
        return ((made(row), sign * count) for row, count in rows)
    return ((made(row), count) for row, count in new) if is_ == wanted else iter(())


def _meeting(
    old: Rows, new: Rows, now: Rows, other_old: Rows, other_new: Rows, other_now: Rows, holds: Holds, wanted: bool
) -> Iterator[Signed]:
    """The change of the rows of a side that meet some row of the other (`wanted`), or none."""

    def meet(row: Row, others: Rows) -> bool:
        return any(holds(row, other) for other, _ in others) == wanted

    if not other_new:
        yield from ((row, count) for row, count in new if meet(row, other_now))
        return
    yield from ((row, -count) for row, count in old if meet(row, other_old))
    yield from ((row, count) for row, count in now if meet(row, other_now))


def _holding(node: TableJoin, left: Schema, right: Schema) -> Holds:
    """The condition of a join as a function of a row of each side."""
    assert node.condition is not None
    sides = (Output(left), Output(right))
    pair = _pairing(tuple(source for _, source in node.pair_fields(sides)), left, right)
    met = compile_expr(node.condition, node.pair_schema(sides))

    def holds(one: Row, other: Row) -> bool:
        values = pair(one, other)
        try:
            return met(values) is True
        except Exception as error:
            raise RecordFailed(node, values, None, error) from error

    return holds


def _pairing(
    columns: tuple[tuple[str, str], ...], left: Schema, right: Schema
) -> Callable[[Row | None, Row | None], Row]:
    """A function from a row of each side, or None, to the row of the result; `columns` are the fields it is taken from."""
    ours = [left.names.index(one) if one else -1 for one, _ in columns]
    theirs = [right.names.index(other) if other else -1 for _, other in columns]
    rest = [other for one, other in zip(ours, theirs, strict=True) if one < 0]
    simple = ours == [*range(len(left.names)), *([-1] * len(rest))]
    tail: Callable[[Row], Row] = _getter(rest)

    def pair(one: Row | None, other: Row | None) -> Row:
        if simple and one is not None:
            return one + tail(other) if other is not None else one + (None,) * len(rest)
        return tuple(
            one[a] if one is not None and a >= 0 else other[b] if other is not None and b >= 0 else None
            for a, b in zip(ours, theirs, strict=True)
        )

    return pair


def _getter(indexes: list[int]) -> Callable[[Row], Row]:
    if len(indexes) > 1:
        return itemgetter(*indexes)
    return (lambda row: (row[indexes[0]],)) if indexes else (lambda row: ())
