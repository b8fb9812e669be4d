"""Compiles a pattern to its automaton, from the end of the pattern to its begin.

>>> from penstock.graph.expr import parse
>>> from penstock.graph.patterns.tree import Contiguity, Sequence, Stage
>>> tree = Sequence((Stage("a", parse("n = 1")), Stage("b", parse("n = 2"))), (Contiguity.RELAXED,))
>>> print(automaton_of(Pattern("p", tree)))
a [start]: take a if a -> b
b: take b if b -> end; ignore if not b
end [final]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.graph.patterns.automaton import (
    END,
    TRUE,
    Action,
    Automaton,
    Guard,
    Kind,
    State,
    Test,
    Transition,
    both,
    negated,
)
from penstock.graph.patterns.items import Item, head_of, items_of
from penstock.graph.patterns.pattern import Pattern
from penstock.graph.patterns.tree import Condition, Contiguity, Stage


def automaton_of(pattern: Pattern) -> Automaton:
    """The automaton of a pattern."""
    return _Compiler(pattern).compiled()


@dataclass(eq=False)
class _Way:
    action: Action
    target: _Node
    guard: Guard
    stage: str = ""


@dataclass(eq=False)
class _Node:
    """A state under way."""

    name: str
    kind: Kind = Kind.NORMAL
    gap: int | None = None
    ways: list[_Way] = field(default_factory=list)

    def take(self, target: _Node, guard: Guard, stage: str) -> None:
        self.ways.append(_Way(Action.TAKE, target, guard, stage))

    def ignore(self, target: _Node, guard: Guard) -> None:
        self.ways.append(_Way(Action.IGNORE, target, guard))

    def proceed(self, target: _Node, guard: Guard = TRUE) -> None:
        self.ways.append(_Way(Action.PROCEED, target, guard))


@dataclass(eq=False)
class _Group:
    """The group whose inside is being compiled."""

    item: Item
    is_first: bool
    """Whether it is the first round of a repetition."""
    heads: tuple[Guard, ...] = ()
    """The conditions of the first stages of all alternatives."""

    @property
    def until(self) -> Condition:
        return self.item.until


@dataclass(eq=False)
class _Position:
    """An item where it stands: in which sequence, and in which group."""

    items: tuple[Item, ...]
    at: int
    group: _Group | None
    following: Item | None

    @property
    def item(self) -> Item:
        return self.items[self.at]

    @property
    def is_head(self) -> bool:
        """Whether it is the first of a group."""
        return self.group is not None and self.at == 0

    def before(self) -> Iterator[Item]:
        """The items before it, from the nearest."""
        return reversed(self.items[: self.at])


class _Compiler:
    """Builds the states from the end of the pattern to its begin."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.gaps: Mapping[str, int] = dict(pattern.gaps)
        self.rounds: Mapping[str, int] = dict(pattern.rounds)
        self.stops: dict[str, _Node] = {}
        self.originals: dict[int, _Node] = {}
        self.used: set[str] = set()
        self.tests: list[Test] = []
        self.numbers: dict[tuple[str, bool], int] = {}

    def compiled(self) -> Automaton:
        """The automaton."""
        end = self.node(END, Kind.FINAL)
        start = self.sequence(items_of(self.pattern.root), end, None, None)
        ordered = self.ordered(start)
        numbers = {id(node): at for at, node in enumerate(ordered)}
        stages = self.pattern.stages
        states = tuple(self.state(node, numbers, stages) for node in ordered)
        return Automaton(states, 0, stages, tuple(self.tests), self.pattern.within, self.pattern.skip_till_next)

    def ordered(self, start: _Node) -> list[_Node]:
        """The states that can be reached, from the start."""
        found, waiting = dict[_Node, None](), deque([start])
        while waiting:
            node = waiting.popleft()
            if node not in found:
                found[node] = None
                waiting += [way.target for way in node.ways]
        return list(found)

    def state(self, node: _Node, numbers: dict[int, int], stages: tuple[str, ...]) -> State:
        """A state as it is kept."""
        ways = [
            Transition(
                way.action, numbers[id(way.target)], way.guard, stages.index(way.stage) if way.stage in stages else -1
            )
            for way in node.ways
        ]
        return State(node.name, node.kind, tuple(ways), node.gap)

    def node(self, name: str, kind: Kind = Kind.NORMAL) -> _Node:
        """A new state."""
        self.used.add(name)
        return _Node(name, kind)

    def taking_node(self, item: Item, kind: Kind = Kind.NORMAL) -> _Node:
        """A new state in which an event of an item is waited for, and how long.

        Of a repetition the state that is made first, which is its last, has no gap of its own.
        """
        is_new = item.name not in self.used
        made = self.node(item.name, kind)
        if not item.loops and not item.repeats:
            made.gap = self.gaps.get(item.name)
        elif not is_new:
            made.gap = self.rounds.get(item.name)
        return made

    def sequence(self, items: tuple[Item, ...], sink: _Node, group: _Group | None, following: Item | None) -> _Node:
        """The states of a sequence whose end is `sink`; its first state."""
        for at in reversed(range(1, len(items))):
            position = _Position(items, at, group, following)
            sink = self.middle(position, sink)
            following = items[at]
        return self.converted(_Position(items, 0, group, following), sink)

    def middle(self, position: _Position, sink: _Node) -> _Node:
        """The states of an item that is not the first."""
        if position.item.absence is None:
            return self.converted(position, sink)
        if position.item.absence:
            return self.not_next(position, sink)
        return self.not_until_end(position) if sink.kind is Kind.FINAL else sink

    def not_until_end(self, position: _Position) -> _Node:
        """An absence at the end of the pattern: a match when time is up."""
        condition, name = self.taking(position, position.item), position.item.name
        made = self.taking_node(position.item, Kind.PENDING)
        made.proceed(self.stop(condition, name), condition)
        made.ignore(made, negated(condition))
        self.add_stops(position, made)
        return made

    def not_next(self, position: _Position, sink: _Node) -> _Node:
        """The absence of the very next event."""
        condition, name = self.taking(position, position.item), position.item.name
        made = self.taking_node(position.item)
        if sink.kind is Kind.FINAL:
            made.ignore(sink, negated(condition))
        else:
            made.proceed(sink, negated(condition))
        made.proceed(self.stop(condition, name), condition)
        return made

    def converted(self, position: _Position, sink: _Node) -> _Node:
        """The states of an item with its quantifier."""
        item = position.item
        if item.loops:
            looping = self.looping(position, self.without_absences(position, sink))
            made = self.times(position, looping, sink)
        elif item.repeats:
            made = self.times(position, sink, sink)
        else:
            made = self.single(
                position, sink, sink, self.taking(position, item), self.ignoring(position), item.optional, first=True
            )
        self.add_stops(position, made)
        return made

    def times(self, position: _Position, sink: _Node, onward: _Node) -> _Node:
        """So many states one after the other."""
        item, last = position.item, sink
        inner = self.and_not_until(self.inner_ignoring(position), item)
        take = both(self.not_until(item), self.taking(position, item))
        if item.greedy and item.least != item.most:
            self.make_greedy(item, sink, take)
        for _ in range(item.least, item.most):
            last = self.single(position, last, onward, take, inner, optional=True, first=False)
            self.add_following_stop(position, last)
        for _ in range(item.least - 1):
            last = self.single(position, last, onward, take, inner, optional=False, first=False)
            self.add_following_stop(position, last)
        return self.single(position, last, onward, take, self.ignoring(position), item.optional, first=True)

    def make_greedy(self, item: Item, sink: _Node, take: Guard) -> None:
        """What follows goes on only with events that the repetition does not take."""
        if item.until is not None:
            self.originals[id(sink)] = self.copied(sink)
        for way in sink.ways:
            way.guard = both(way.guard, negated(take))

    def single(
        self,
        position: _Position,
        sink: _Node,
        onward: _Node,
        take: Guard,
        ignore: Guard | None,
        optional: bool,
        *,
        first: bool,
    ) -> _Node:
        """One state that takes an event; of an optional one also a state in which it has not been taken yet, which does not proceed."""
        item = position.item
        if not isinstance(item.body, Stage):
            return self.grouped(position, sink, onward, optional, first)
        made = self.taking_node(item)
        after = self.without_absences(position, sink)
        made.take(after, take, item.name)
        if optional:
            self.add_onward(item, made, onward)
        if ignore is not None:
            waiting = made
            if optional or self.heads_optional_group(position):
                waiting = self.node(item.name)
                waiting.take(after, take, item.name)
                waiting.ignore(waiting, ignore)
                self.add_stops(position, waiting)
            made.ignore(waiting, ignore)
        return made

    def add_onward(self, item: Item, made: _Node, onward: _Node) -> None:
        """The way past an optional state."""
        if item.greedy and item.until is not None:
            until = self.ending(item)
            made.proceed(self.originals[id(onward)], until)
            made.proceed(onward, negated(until))
        else:
            made.proceed(onward)

    def heads_optional_group(self, position: _Position) -> bool:
        """Whether an item is the first of a group that may be left out."""
        return (
            position.is_head and position.group is not None and position.group.is_first and position.group.item.optional
        )

    def grouped(self, position: _Position, sink: _Node, onward: _Node, optional: bool, first: bool) -> _Node:
        """The states of a group, once."""
        made = self.inside(position, sink, first)
        if optional:
            made.proceed(onward)
        return made

    def inside(self, position: _Position, sink: _Node, first: bool) -> _Node:
        """The states in a group, or those of all alternatives after a state that proceeds to each."""
        item = position.item
        assert not isinstance(item.body, Stage)
        group = _Group(item, first, self.heads_of(position, item))
        branches = [self.sequence(items, sink, group, position.following) for items in item.body]
        if len(branches) == 1:
            return branches[0]
        head = self.node("choice")
        for branch in branches:
            head.proceed(branch)
        return head

    def heads_of(self, position: _Position, item: Item) -> tuple[Guard, ...]:
        """The conditions of the first stages of alternatives, of those around them too."""
        assert not isinstance(item.body, Stage)
        around = position.group.heads if position.is_head and position.group is not None else ()
        if len(item.body) == 1:
            return around
        return (*around, *(guard for items in item.body for guard in self.first_conditions(items[0], position.group)))

    def first_conditions(self, item: Item, group: _Group | None) -> list[Guard]:
        """The conditions of the first stages of an item."""
        if isinstance(item.body, Stage):
            return [self.test(item.body.condition, item.name)]
        return [guard for items in item.body for guard in self.first_conditions(items[0], group)]

    def looping(self, position: _Position, sink: _Node) -> _Node:
        """A state that takes any number of events."""
        item = position.item
        if not isinstance(item.body, Stage):
            return self.looping_group(position, sink)
        ignore = self.and_not_until(self.inner_ignoring(position), item)
        take = both(self.not_until(item), self.taking(position, item))
        made = self.taking_node(item)
        if item.greedy:
            self.add_greedy_ways(position, made, sink)
        else:
            made.proceed(sink)
        made.take(made, take, item.name)
        self.add_following_stop(position, made)
        if ignore is not None:
            waiting = self.node(item.name)
            waiting.take(made, take, item.name)
            waiting.ignore(waiting, ignore)
            made.ignore(waiting, ignore)
            self.add_following_stop(position, waiting)
        return made

    def add_greedy_ways(self, position: _Position, made: _Node, sink: _Node) -> None:
        """The ways out of a greedy loop: by the event that ends it, or by one that it does not take."""
        item = position.item
        until = self.ending(item) if item.until is not None else TRUE
        copy = self.originals[id(sink)] = self.copied(sink) if until else sink
        for way in sink.ways:
            way.guard = both(way.guard, negated(self.taking(position, item)))
        if sink.kind is Kind.PENDING:
            self.add_absence(made, sink, copy, until)
            return
        if until:
            made.proceed(copy, until)
        made.proceed(sink, negated(until) if until else TRUE)

    def add_absence(self, made: _Node, sink: _Node, copy: _Node, until: Guard) -> None:
        """The way to an absence at the end, which goes over to that of a loop that has ended with the event that ends the loop."""
        made.proceed(sink)
        if until:
            for way in sink.ways:
                way.guard = both(way.guard, negated(until))
            sink.ways += [replace(way, guard=both(until, way.guard)) for way in copy.ways]

    def looping_group(self, position: _Position, sink: _Node) -> _Node:
        """A group that goes round any number of times."""
        back = self.node("group")
        made = self.inside(position, back, first=False)
        made.proceed(sink)
        back.proceed(made)
        return made

    def without_absences(self, position: _Position, sink: _Node) -> _Node:
        """A copy of what follows an optional item, without the absences before it: these end when it takes an event."""
        absent = [name for _, name in self.absences(position)]
        return self.stripped(sink, absent, {}) if absent and position.item.optional else sink

    def stripped(self, sink: _Node, absent: list[str], known: dict[int, _Node]) -> _Node:
        """A copy of a state without the ways to some stops."""
        if id(sink) in known:
            return known[id(sink)]
        copy = known[id(sink)] = self.node(sink.name, sink.kind)
        for way in sink.ways:
            target = copy if way.target is sink else way.target
            if way.action is Action.PROCEED:
                if way.target.kind is Kind.STOP and way.target.name in absent:
                    continue
                target = way.target if way.target.kind is Kind.STOP else self.stripped(way.target, absent, known)
            copy.ways.append(_Way(way.action, target, way.guard, way.stage))
        return copy

    def copied(self, node: _Node) -> _Node:
        """A copy of a state; a way to itself leads to the copy."""
        copy = self.node(node.name, node.kind)
        copy.ways = [replace(way, target=copy if way.target is node else way.target) for way in node.ways]
        return copy

    def absences(self, position: _Position) -> list[tuple[Guard, str]]:
        """The absences that hold before an item: those right before it, and those before optional items right before it."""
        found: list[tuple[Guard, str]] = []
        for item in position.before():
            if item.is_waiting:
                found.append((self.taking(position, item), item.name))
            elif not item.optional:
                break
        return found

    def add_stops(self, position: _Position, node: _Node) -> None:
        """The ways by which absences before an item end a run."""
        for condition, name in self.absences(position):
            node.proceed(self.stop(condition, name), condition)

    def add_following_stop(self, position: _Position, node: _Node) -> None:
        """The way by which an absence after a repetition ends a run."""
        item = position.following
        if item is not None and item.is_waiting:
            condition = self.taking(position, item)
            node.proceed(self.stop(condition, item.name), condition)

    def stop(self, condition: Guard, name: str) -> _Node:
        """The state of a run that is dropped; one for each absence."""
        if name not in self.stops:
            made = self.stops[name] = self.node(name, Kind.STOP)
            made.take(made, condition, "")
        return self.stops[name]

    def test(self, condition: Condition, own: str, until: bool = False) -> Guard:
        """The guard that a condition holds."""
        if condition is None:
            return TRUE
        if (own, until) not in self.numbers:
            self.numbers[own, until] = len(self.tests)
            self.tests.append(Test(condition, own, until))
        return (((self.numbers[own, until], True),),)

    def ending(self, item: Item) -> Guard:
        """The guard that an event ends a loop."""
        return self.test(item.until, item.name if isinstance(item.body, Stage) else head_of(item), until=True)

    def not_until(self, item: Item) -> Guard:
        """The guard that an event does not end a loop."""
        return TRUE if item.until is None else negated(self.ending(item))

    def and_not_until(self, guard: Guard | None, item: Item) -> Guard | None:
        """A guard, and that the event does not end a loop."""
        return None if guard is None else both(self.not_until(item), guard)

    def taking(self, position: _Position, item: Item) -> Guard:
        """The guard that an event is taken by a stage; a group has none of its own."""
        if not isinstance(item.body, Stage):
            return TRUE
        own = self.test(item.body.condition, item.name)
        return own if position.group is None else both(self.not_until(position.group.item), own)

    def ignoring(self, position: _Position) -> Guard | None:
        """The guard that an event between an item and the one before it is ignored; None where none may be."""
        group, link = position.group, position.item.link
        if position.is_head and group is not None:
            link = self.link_of(group)
        return self.passing(position, link)

    def link_of(self, group: _Group) -> Contiguity:
        """The contiguity before the first item of a group."""
        return group.item.link if group.is_first else group.item.inner

    def inner_ignoring(self, position: _Position) -> Guard | None:
        """The guard that an event between two repetitions is ignored."""
        group = position.group
        return self.passing(
            position, group.item.inner if position.is_head and group is not None else position.item.inner
        )

    def passing(self, position: _Position, link: Contiguity) -> Guard | None:
        """The guard of a contiguity."""
        item, guard = position.item, TRUE
        if link is Contiguity.STRICT or not isinstance(item.body, Stage):
            return None
        if link is Contiguity.RELAXED:
            heads = position.group.heads if position.is_head and position.group is not None else ()
            for each in (self.test(item.body.condition, item.name), *heads):
                guard = both(guard, negated(each))
        return guard if position.group is None else both(self.not_until(position.group.item), guard)
