"""Lets the rules of a set act on records, and on the events that they make, until nothing follows any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np
import pyarrow as pa

from penstock.errors import RulesError
from penstock.graph.expr import Expr, Literal
from penstock.graph.rules import BoundRule, BoundRules
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import arrow_schema, arrow_type
from penstock.kernels.rules.axis import Numbers
from penstock.kernels.rules.columns import Expressions, RowError
from penstock.kernels.rules.index import ConditionIndex

ROUNDS = 100
"""How often rules may follow from rules."""


@dataclass(frozen=True)
class EventBatch:
    """Records of an event, each with the number of the input record that it follows from."""

    event: str
    batch: pa.RecordBatch
    origins: Numbers


class Gate:
    """Which rules are active for one key: those that were switched, and else as the rules say.

    >>> gate = Gate({"a": False})
    >>> gate.allows("a", True), gate.allows("b", True)
    (False, True)
    """

    def __init__(self, switched: dict[str, bool]) -> None:
        self.switched = switched

    def allows(self, rule: str, active: bool) -> bool:
        """Whether a rule acts."""
        return self.switched.get(rule, active)

    def apply(self, switches: Iterable[tuple[str, bool]]) -> None:
        """Activates and deactivates rules."""
        self.switched.update(switches)


@dataclass(frozen=True)
class _Site:
    """An emission of a rule: its order among the actions of its event, and what it makes."""

    rank: int
    order: int
    values: tuple[Expr, ...]


class _Emitter:
    """The emissions of one event to one stream that are made alike: only their constants differ."""

    def __init__(self, sites: Sequence[_Site], many: int, kinds: Sequence[pa.DataType]) -> None:
        self.sites, self.kinds = sites, kinds
        self.of_rank = np.full(many, -1, np.int64)
        for at, site in enumerate(sites):
            self.of_rank[site.rank] = at
        self.orders = np.array([site.order for site in sites], np.int64)
        self.constants = [
            pa.array([site.values[at].value for site in sites], kind) if isinstance(value, Literal) else None  # type: ignore[attr-defined]  # those of all sites are constants
            for at, (value, kind) in enumerate(zip(sites[0].values, kinds, strict=True))
        ]

    def columns(
        self, rows: Numbers, ranks: Numbers, batch: pa.RecordBatch, over: Expressions
    ) -> tuple[list[pa.Array], Numbers, Numbers]:
        """The records for pairs of records and rules, the record that each follows from, and its order among the actions."""
        at = self.of_rank[ranks]
        mine = at >= 0
        rows, at = rows[mine], at[mine]
        made = []
        for value, constant, kind in zip(self.sites[0].values, self.constants, self.kinds, strict=True):
            column = over.values(value, batch, rows) if constant is None else constant.take(pa.array(at))
            made.append(column if column.type == kind else column.cast(kind))
        return made, rows, self.orders[at]


class _Event:
    """The rules on one event, of one coupling."""

    def __init__(self, name: str, rules: Sequence[BoundRule], bound: BoundRules) -> None:
        self.name, self.rules = name, rules
        self.over = Expressions(bound.fields[name])
        self.index = ConditionIndex.of([rule.condition for rule in rules], bound.fields[name], self.over.holds)
        self.stops = np.array([rule.stops for rule in rules], np.bool_)
        self.has_stops = bool(self.stops.any())
        self.calling = [at for at, rule in enumerate(rules) if rule.calls]
        self.schemas = bound.fields
        self.emitters = {stream: [*self._emitters(stream)] for stream in dict.fromkeys(_targets(rules))}

    def _emitters(self, stream: str) -> Iterator[_Emitter]:
        kinds = [arrow_type(field.type) for field in self.schemas[stream].fields]
        groups: dict[object, list[_Site]] = {}
        orders = count()
        for rank, rule in enumerate(self.rules):
            mine = [emission for emission in rule.emissions if emission.stream == stream]
            for nth, emission in enumerate(mine):
                key = (nth, *(None if isinstance(v, Literal) else v.shape() for v in emission.values))
                groups.setdefault(key, []).append(_Site(rank, next(orders), emission.values))
        for sites in groups.values():
            yield _Emitter(sites, len(self.rules), kinds)

    def fired(self, given: EventBatch, gate: Gate | None) -> tuple[Numbers, Numbers]:
        """Records and the rules that act on them, in the order in which they act."""
        rows, ranks = self.index.pairs(given.batch)
        if gate is not None:
            return self._passed(rows, ranks, gate)
        if self.has_stops and len(rows):
            first = np.full(given.batch.num_rows, len(self.rules), np.int64)
            ending = self.stops[ranks]
            np.minimum.at(first, rows[ending], ranks[ending])
            kept = ranks <= first[rows]
            rows, ranks = rows[kept], ranks[kept]
        return rows, ranks

    def _passed(self, rows: Numbers, ranks: Numbers, gate: Gate) -> tuple[Numbers, Numbers]:
        """The rules that are active when their turn comes; one may switch those after it."""
        kept, stopped = np.zeros(len(rows), np.bool_), -1
        for at, (row, rank) in enumerate(zip(rows.tolist(), ranks.tolist(), strict=True)):
            rule = self.rules[rank]
            if row == stopped or not gate.allows(rule.name, rule.active):
                continue
            kept[at] = True
            gate.apply(rule.switches)
            stopped = row if rule.stops else stopped
        return rows[kept], ranks[kept]

    def act(self, given: EventBatch, rows: Numbers, ranks: Numbers) -> Iterator[EventBatch]:
        """What the rules make of the records that they act on."""
        for rank in self.calling:
            mine = rows[ranks == rank]
            for call in self.rules[rank].calls if len(mine) else ():
                self.over.values(call, given.batch, mine)
        for stream, emitters in self.emitters.items():
            made = [emitter.columns(rows, ranks, given.batch, self.over) for emitter in emitters]
            whole = _joined(made, arrow_schema(self.schemas[stream]))
            if whole is not None:
                yield EventBatch(stream, whole[0], given.origins[whole[1]])


class RuleEngine:
    """The rules of a set, ready to act."""

    def __init__(self, bound: BoundRules, rounds: int = ROUNDS) -> None:
        self.bound, self.rounds = bound, rounds
        self.immediate = self._events(deferred=False)
        self.deferred = self._events(deferred=True)

    def _events(self, *, deferred: bool) -> dict[str, _Event]:
        grouped: dict[str, list[BoundRule]] = {}
        for rule in self.bound.rules:
            if rule.is_deferred == deferred:
                grouped.setdefault(rule.on, []).append(rule)
        return {name: _Event(name, rules, self.bound) for name, rules in grouped.items()}

    def fires(self, given: EventBatch) -> Numbers:
        """The records for which the condition of some rule holds, whether it is active or not."""
        found = [known[given.event].index.pairs(given.batch)[0] for known in self._couplings if given.event in known]
        return np.unique(np.concatenate(found)) if found else given.origins[:0]

    @property
    def _couplings(self) -> tuple[dict[str, _Event], ...]:
        return (self.immediate, self.deferred)

    def run(self, given: EventBatch, gate: Gate | None = None) -> Iterator[EventBatch]:
        """What the rules that act at once make of records, and of what they make."""
        return self._chain([given], (self.immediate,), gate)

    def finish(self, held: Sequence[EventBatch], gate: Gate | None = None) -> Iterator[EventBatch]:
        """What deferred rules make of the records of a batch; what follows from that is acted on at once."""
        first = [made for each in held for made in self._acted(each, (self.deferred,), gate)]
        yield from first
        yield from self._chain(first, self._couplings, gate)

    def _chain(
        self, waiting: list[EventBatch], rules: tuple[dict[str, _Event], ...], gate: Gate | None
    ) -> Iterator[EventBatch]:
        for nth in range(self.rounds + 1):
            made = [out for each in waiting for out in self._acted(each, rules, gate)]
            if not made:
                return
            if nth == self.rounds:
                raise RowError(int(made[0].origins[0]), self._restless(waiting))
            yield from made
            waiting = made

    def _acted(self, given: EventBatch, rules: Iterable[dict[str, _Event]], gate: Gate | None) -> Iterator[EventBatch]:
        for known in rules:
            if given.event in known and given.batch.num_rows:
                event = known[given.event]
                try:
                    yield from event.act(given, *event.fired(given, gate))
                except RowError as error:
                    raise RowError(int(given.origins[error.at]), error.error) from error

    def _restless(self, left: Sequence[EventBatch]) -> RulesError:
        names = sorted({each.event for each in left})
        rules = [rule.name for rule in self.bound.rules if rule.on in names]
        return RulesError(
            f"the rules did not come to rest: after {self.rounds} rounds they still make events {', '.join(map(repr, names))}, by "
            f"{', '.join(map(repr, rules[:5]))}. Give one of them a condition that ends it, or raise the bound with rounds=..."
        )


def _targets(rules: Sequence[BoundRule]) -> Iterator[str]:
    return (emission.stream for rule in rules for emission in rule.emissions)


def _joined(
    made: Sequence[tuple[list[pa.Array], Numbers, Numbers]], schema: pa.Schema
) -> tuple[pa.RecordBatch, Numbers] | None:
    """The records of several emitters as one batch, in the order of the events and then of the actions."""
    parts = [each for each in made if len(each[1])]
    if not parts:
        return None
    rows = np.concatenate([each[1] for each in parts])
    if len(parts) == 1:
        return pa.RecordBatch.from_arrays(parts[0][0], schema=schema), rows
    order = np.lexsort((np.concatenate([each[2] for each in parts]), rows))
    columns = [pa.concat_arrays([each[0][at] for each in parts]) for at in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema).take(pa.array(order)), rows[order]


@lru_cache(maxsize=16)
def engine_of(bound: BoundRules, rounds: int) -> RuleEngine:
    """The engine of a rule set, made once in a process however many tasks run it."""
    with quiet():
        return RuleEngine(bound, rounds)
