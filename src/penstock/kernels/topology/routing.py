"""Groupings: which tasks of a bolt get a tuple.

A router is made for one input of a bolt. On Spark the simple ones are columns (see `penstock.spark.lower.topology`,
which must choose the same); here they serve hosts without a JVM, and those that only Python can do serve both.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from penstock.graph import types as t
from penstock.graph.logic.topology.choosers import StormChooser
from penstock.graph.logic.topology.task_context import TaskContext, TopologyLayout
from penstock.graph.nodes import Grouping
from penstock.graph.nodes.exchange import Chooser
from penstock.graph.row import row_class
from penstock.graph.schema import Schema
from penstock.kernels.hashing.murmur import spark_hash

Targets = Sequence[int]
_MOST = 100_000
_LONG = (t.BIGINT,)


class Router:
    """Chooses tasks from 0 to `tasks - 1`."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The tasks for a tuple of an emitter; `number` is its index in a spout's order, where it has one."""
        raise NotImplementedError

    def turn(self, emitter: int, sent: int) -> int:
        """The number of a tuple of an emitter that has sent so many before."""
        return sent + emitter


class Shuffle(Router):
    """Round robin, for each emitter on its own; emitters begin at different tasks."""

    def __init__(self, tasks: int) -> None:
        super().__init__(tasks)
        self.sent: Counter[int] = Counter()

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The next task in turn."""
        turn = number if number is not None else self.turn(emitter, self.sent[emitter])
        self.sent[emitter] += 1
        return (turn % self.tasks,)


class Fields(Router):
    """Equal values go to equal tasks: Spark's hash of the fields, modulo the tasks."""

    def __init__(self, tasks: int, schema: Schema, fields: Sequence[str]) -> None:
        super().__init__(tasks)
        self.types = [schema.field(f).type for f in fields]
        self.key_of = _getter(schema, fields)
        self.known: dict[Any, Targets] = {}

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The task of the key."""
        return _remembered(self.known, self.key_of(values), self._of)

    def _of(self, key: tuple[Any, ...]) -> Targets:
        return (spark_hash(key, self.types) % self.tasks,)


class Modulo(Router):
    """A number that the tuple has, modulo the tasks."""

    def __init__(self, tasks: int, schema: Schema, fields: Sequence[str]) -> None:
        super().__init__(tasks)
        self.at = schema.names.index(fields[0])

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The task by the remainder."""
        return (values[self.at] % self.tasks,)


class PartialKey(Router):
    """Each key has two candidates; the one to which this emitter has sent fewer tuples gets it."""

    def __init__(self, tasks: int, schema: Schema, fields: Sequence[str]) -> None:
        super().__init__(tasks)
        self.key_of = _getter(schema, fields)
        self.known: dict[Any, Targets] = {}
        self.sent: defaultdict[int, list[int]] = defaultdict(lambda: [0] * tasks)

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The candidate with less to do."""
        first, second = _remembered(self.known, self.key_of(values), self.candidates)
        sent = self.sent[emitter]
        chosen = first if sent[first] <= sent[second] else second
        sent[chosen] += 1
        return (chosen,)

    def candidates(self, key: tuple[Any, ...]) -> Targets:
        """The two tasks of a key, by two hashes; they differ when there are two tasks at all."""
        digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
        first = int.from_bytes(digest[:8], "big") % self.tasks
        if self.tasks == 1:
            return (first, first)
        step = 1 + int.from_bytes(digest[8:], "big") % (self.tasks - 1)
        return (first, (first + step) % self.tasks)


class All(Router):
    """Every task."""

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """All of them."""
        return range(self.tasks)


class Global(Router):
    """The lowest task, always."""

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """Task 0."""
        return (0,)


class Anywhere(Router):
    """The `none` grouping: as good as random, and the same again on a replay."""

    def __init__(self, tasks: int) -> None:
        super().__init__(tasks)
        self.sent: Counter[int] = Counter()

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """A task by the hash of the tuple's number."""
        turn = number if number is not None else self.turn(emitter, self.sent[emitter])
        self.sent[emitter] += 1
        return (spark_hash([turn], _LONG) % self.tasks,)

    def turn(self, emitter: int, sent: int) -> int:
        """As Spark counts the rows of its partitions."""
        return (emitter << 33) + sent


class Local(Router):
    """From each task to its twin."""

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The emitter's own number."""
        return (emitter % self.tasks,)


class RouteContext(NamedTuple):
    """What a chooser may know: the stream that its tuples come from, the bolt that gets them, and the topology."""

    origin: tuple[str, str] = ("", "")
    bolt: str = ""
    layout: TopologyLayout = TopologyLayout()


class Custom(Router):
    """The user's own choice. Each emitter has a chooser of its own."""

    def __init__(
        self, tasks: int, schema: Schema, chooser: Chooser | Callable[..., object] | None, around: RouteContext
    ) -> None:
        super().__init__(tasks)
        self.make = row_class(schema.names)
        self.chooser, self.around = chooser, around
        self.choosers: dict[int, Callable[[Any], Any]] = {}

    def targets(self, values: tuple[Any, ...], emitter: int, number: int | None = None) -> Targets:
        """The tasks the chooser names, checked."""
        if emitter not in self.choosers:
            self.choosers[emitter] = self._chooser(emitter)
        given = self.choosers[emitter](tuple.__new__(self.make, values))
        return tuple(map(self._checked, given if isinstance(given, Iterable) else (given,)))

    def _chooser(self, emitter: int) -> Callable[[Any], Any]:
        made: Any = copy.deepcopy(self.chooser)
        if hasattr(made, "prepare"):
            component, stream = self.around.origin
            context, ids = self._context(component, emitter), list(range(self.tasks))
            known = isinstance(made, StormChooser) and self.around.bolt in context.components
            made.prepare(context, stream, context.task_ids(self.around.bolt) if known else ids)
        choose: Callable[[Any], Any] = getattr(made, "choose", made)
        return choose

    def _context(self, component: str, emitter: int) -> TaskContext:
        layout = self.around.layout
        peers = {c.name: c.tasks for c in layout.components}
        return TaskContext(component, emitter, peers.get(component, 1), peers, layout)

    def _checked(self, task: object) -> int:
        if not isinstance(task, int) or isinstance(task, bool) or not 0 <= task < self.tasks:
            raise ValueError(f"a chooser names tasks from 0 to {self.tasks - 1}, got {task!r}")
        return task


def router_of(grouping: Grouping, tasks: int, schema: Schema, around: RouteContext = RouteContext()) -> Router:  # noqa: B008 - frozen
    """The router of a grouping."""
    if grouping.kind == "fields":
        return Fields(tasks, schema, grouping.fields)
    if grouping.kind == "modulo":
        return Modulo(tasks, schema, grouping.fields)
    if grouping.kind == "partial_key":
        return PartialKey(tasks, schema, grouping.fields)
    if grouping.kind == "custom":
        return Custom(tasks, schema, grouping.chooser, around)
    simple = {"all": All, "global": Global, "none": Anywhere}
    return simple.get(grouping.kind, Shuffle)(tasks)


def _getter(schema: Schema, fields: Sequence[str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    indexes = [schema.names.index(f) for f in fields]
    if len(indexes) == 1:
        at = indexes[0]
        return lambda values: (values[at],)
    return itemgetter(*indexes)


def _remembered(known: dict[Any, Targets], key: tuple[Any, ...], of: Callable[[Any], Targets]) -> Targets:
    """What `of` says of a key, asked once while there are not too many; keys that cannot be looked up are asked anew."""
    try:
        found = known.get(key)
    except TypeError:
        return of(key)
    if found is None:
        found = of(key)
        if len(known) < _MOST:
            known[key] = found
    return found
