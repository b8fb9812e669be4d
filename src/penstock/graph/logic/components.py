"""The classes a user writes for a topology: spouts, which give tuples, and bolts, which take and give them.

>>> class Split(Bolt):
...     outputs = "word string"
...     def process(self, tup):
...         for word in tup.sentence.split():
...             self.emit((word,))
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.errors import FlowError, SchemaError, UnknownName, nearest
from penstock.graph.schema import Schema, schema_of

DEFAULT = "default"
"""The stream that is meant when none is named."""
_MISSING = object()


class EndOfSpout(Exception):
    """What `END` is; a class of its own so that it can be raised as well as returned."""


END = EndOfSpout("this spout is done")
"""What `next_tuple` returns (or raises) when a spout has nothing more to give, ever."""


@dataclass(frozen=True)
class TaskContext:
    """What a task may know of itself: its component, its number (from 0), and how many tasks there are."""

    component: str
    task: int = 0
    tasks: int = 1
    peers: Mapping[str, int] = field(default_factory=dict)

    def tasks_of(self, component: str) -> int:
        """How many tasks another component runs as; for direct streams."""
        if component not in self.peers:
            raise UnknownName(f"the topology has no component {component!r}; {nearest(component, self.peers)}")
        return self.peers[component]


class Tuple:
    """A record as a bolt gets it: its fields by name, and where it comes from.

    `tup.word` and `tup["word"]` are the same; a field whose name is taken here (`values`, `stream`, `component`,
    `roots`) is reached as `tup["values"]`.

    >>> import penstock as ps
    >>> class Split(ps.Bolt):
    ...     outputs = "word string"
    ...     def process(self, tup: ps.Tuple):
    ...         return [] if tup.component == "tests" else tup.line.split()
    """

    __slots__ = ()
    component: ClassVar[str] = ""
    stream: ClassVar[str] = DEFAULT
    _roots: bytes | None

    @property
    def values(self) -> tuple[Any, ...]:
        """The fields, in order, as a plain tuple."""
        return tuple(self)  # type: ignore[arg-type]  # every Tuple is a row as well

    @property
    def roots(self) -> frozenset[int]:
        """The ids of the spout tuples this one stems from; empty when the spout gave none."""
        return roots_of(getattr(self, "_roots", None))


def roots_of(packed: bytes | None) -> frozenset[int]:
    """Root ids from the form in which they travel: eight bytes each.

    >>> sorted(roots_of(pack_roots([7, 1])))
    [1, 7]
    """
    given = packed or b""
    return frozenset(int.from_bytes(given[i : i + 8], "big") for i in range(0, len(given), 8))


def pack_roots(roots: Iterable[int]) -> bytes | None:
    """Root ids in the form in which they travel; None when there are none."""
    return b"".join(r.to_bytes(8, "big") for r in sorted(set(roots))) or None


class Collector:
    """Takes what a task emits; its host takes it from there.

    Each stream has its records, and beside them, where the stream carries them, the tasks they are meant for and the
    roots they stem from.
    """

    def __init__(self, streams: Iterable[str], direct: Iterable[str] = (), rooted: bool = False) -> None:
        self.records: dict[str, list[Any]] = {s: [] for s in streams}
        self.tasks: dict[str, list[int]] = {s: [] for s in direct}
        self.roots: dict[str, list[bytes | None]] = {s: [] for s in self.records} if rooted else {}
        self.rooted = rooted
        self.current: bytes | None = None

    def add(self, record: object, stream: str, anchors: Iterable[Tuple] | None, task: int | None) -> None:
        """One record for a stream; anchored to the tuple at hand unless `anchors` says otherwise."""
        if stream not in self.records:
            raise UnknownName(f"no stream {stream!r}; {nearest(stream, self.records)}")
        if task is not None or stream in self.tasks:
            self._add_task(stream, task)
        self.records[stream].append(record)
        if self.rooted:
            self.roots[stream].append(self.current if anchors is None else _joined(anchors))

    def _add_task(self, stream: str, task: int | None) -> None:
        if stream not in self.tasks:
            raise FlowError(
                f"emit(..., task={task}) needs a direct stream; {stream!r} is not one. Say direct = ({stream!r},) in the class"
            )
        if not isinstance(task, int) or isinstance(task, bool) or task < 0:
            raise FlowError(f"stream {stream!r} is direct: emit(..., task=n) names the task that gets it, got {task!r}")
        self.tasks[stream].append(task)

    def taken(self, stream: str) -> tuple[list[Any], list[int], list[bytes | None]]:
        """What was emitted to a stream (records, tasks, roots), which is empty again afterwards."""
        records, self.records[stream] = self.records[stream], []
        tasks, roots = self.tasks.get(stream, []), self.roots.get(stream, [])
        if tasks:
            self.tasks[stream] = []
        if roots:
            self.roots[stream] = []
        return records, tasks, roots


def _joined(anchors: Iterable[Tuple]) -> bytes | None:
    packed = {getattr(a, "_roots", None) for a in anchors} - {None}
    if len(packed) <= 1:
        return next(iter(packed), None)
    return pack_roots(root for each in packed for root in roots_of(each))


class Component:
    """What spouts and bolts have in common."""

    outputs: Any = None
    """The fields it emits: a schema, or a dict of stream names to schemas. None when it emits nothing."""
    direct: tuple[str, ...] = ()
    """The streams whose tuples name the task they are meant for."""
    stateful: bool = True
    """Whether the attributes of a task are kept across batches and restarts."""

    _collector: Collector | None = None

    def emit(
        self, record: object, stream: str = DEFAULT, *, anchors: Iterable[Tuple] | None = None, task: int | None = None
    ) -> None:
        """Emits a record.

        Args:
            record: a tuple, a dict, a dataclass, or a bare value when the stream has one field.
            stream: the name of the stream.
            anchors: the tuples from which the record stems; else the one at hand.
            task: the task of the next bolt that gets it, for direct streams.

        Raises:
            UnknownName: there is no such stream.
            FlowError: no task runs.
        """
        if self._collector is None:
            raise FlowError("emit works while a task runs: in process or next_tuple, not before")
        self._collector.add(record, stream, anchors, task)

    def close(self) -> None:
        """Called once when the task ends; a task that is killed does not get there."""

    def restored(self) -> None:
        """Called when the attributes of an earlier run have been put back, after open or prepare."""

    def __repr__(self) -> str:
        return f"{type(self).__module__}:{type(self).__qualname__}"

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_collector"}


class Spout(Component):
    """The base of a source of your own.

    `next_tuple` is called again and again, in the driver. What it emits (or returns, or yields) is put on disk before
    the topology sees it. A spout that ends returns `END` from `next_tuple`; one that never does says `endless = True`.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Numbers(ps.Spout):
    ...     outputs = "n int"
    ...     n = 0
    ...     def next_tuple(self):
    ...         self.n += 1
    ...         self.emit(self.n)
    ...         return ps.END if self.n == 3 else None
    >>> top = ps.Topology("demo")
    >>> top.spout("numbers", Numbers())
    >>> top.sink("out", ps.console(), from_="numbers")
    >>> run_local(top)["out"]
    [Row(n=1), Row(n=2), Row(n=3)]
    """

    reliable: bool = False
    """Whether it emits with ids; root ids then travel with every tuple that stems from it."""
    endless: bool = False
    """Whether it never ends, so that a bounded run needs a limit."""

    _next_root: Any = None
    _done: bool = False

    def open(self, context: TaskContext) -> None:
        """Called once before the first tuple of each instance.

        Args:
            context: the component, the number of the task, and how many there are.
        """

    def next_tuple(self) -> Any:
        """Called again and again; emits what there is, if anything. You must define it.

        Returns:
            `ps.END` when there will never be more; else nothing, or records to emit.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def emit(  # type: ignore[override]  # a spout has nothing to anchor to, and ids instead
        self, record: object, stream: str = DEFAULT, *, id: object = None, task: int | None = None
    ) -> None:
        """Emits a record.

        Args:
            record: a tuple, a dict, a dataclass, or a bare value when the stream has one field.
            stream: the name of the stream.
            id: makes the tuple the root of all that stems from it.
            task: the task of the next bolt that gets it, for direct streams.

        Raises:
            UnknownName: there is no such stream.
            FlowError: no task runs, or there is an id and the class does not say `reliable = True`.
        """
        if id is not None and not self.reliable:
            raise FlowError("emit(..., id=...) needs a spout that says reliable = True in its class")
        collector = self._collector
        if collector is None:
            raise FlowError("emit works while a task runs: in next_tuple, not before")
        if collector.rooted:
            collector.current = None if id is None else self._next_root(id)
        collector.add(record, stream, None, task)

    def done(self) -> None:
        """Says that this is the last: what `next_tuple` has emitted counts, and it is not called again."""
        self._done = True

    def ack(self, id: object) -> None:
        """Will be called when all that stems from a tuple is done. Acks are not there yet.

        Args:
            id: the id with which the tuple was emitted.
        """

    def fail(self, id: object) -> None:
        """Will be called when something that stems from a tuple failed. Acks are not there yet.

        Args:
            id: the id with which the tuple was emitted.
        """


class Bolt(Component):
    """The base of a step of your own.

    Each task is an instance of its own. What it keeps in its attributes is the task's state: it is saved with each
    batch and put back after a restart. Attributes whose names begin with an underscore are not; make them in `prepare`.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Split(ps.Bolt):
    ...     outputs = "word string"
    ...     def process(self, tup):
    ...         return tup.line.split()
    >>> top = ps.Topology("demo")
    >>> top.spout("lines", ps.items(["to be"], "line string"))
    >>> _ = top.bolt("split", Split()).shuffle("lines")
    >>> top.sink("out", ps.console(), from_="split")
    >>> run_local(top)["out"]
    [Row(word='to'), Row(word='be')]
    """

    def prepare(self, context: TaskContext) -> None:
        """Called once before the first tuple of each instance.

        Args:
            context: the component, the number of the task, and how many there are.
        """

    def process(self, tup: Any) -> Iterable[Any] | None:
        """Called for each tuple. You must define it.

        Args:
            tup: the tuple.

        Returns:
            Any number of records, or None; it may also `emit` them, or be a generator.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def end_batch(self, batch: int) -> Iterable[Any] | None:
        """Called at the end of each batch of each task, after its last tuple; it may emit. A bolt without it is not called.

        Args:
            batch: the id of the batch; one that runs again has the same.

        Returns:
            Any number of records, or None.
        """

    def merge(self, other: dict[str, Any]) -> None:
        """Takes over the state of a task that is no more, when a bolt goes on with fewer tasks.

        Args:
            other: the attributes of that task.

        Raises:
            NotImplementedError: the class does not define it, so the bolt cannot go on with fewer tasks.
        """
        raise NotImplementedError


def streams_of(component: Component) -> dict[str, Schema]:
    """The streams a component emits, by name. A dict always means streams; one schema is that of the default stream."""
    given = component.outputs
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return {DEFAULT: schema_of(given)}
    try:
        return {name: schema_of(schema) for name, schema in given.items()}
    except SchemaError as error:
        raise SchemaError(
            f"outputs as a dict has a schema for each stream, such as {{'default': 'word string'}}: {error}"
        ) from None


def task_of(template: Component, collector: Collector) -> Any:
    """An instance for one task: a deep copy of the one the user gave."""
    made = copy.deepcopy(template)
    made._collector = collector
    return made


def kept_attributes(task: Component, template: Component) -> dict[str, Any]:
    """The attributes that are a task's state: those without an underscore that are not as they were given.

    What the user passed to the constructor and never changed is not among them, so a new value counts at once.
    """
    given = vars(template)
    return {k: v for k, v in vars(task).items() if not k.startswith("_") and not _same(given.get(k, _MISSING), v)}


def _same(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # arrays and the like do not say
        return False


def check_component(name: str, given: object, base: type[Component], line: str) -> Any:
    """An instance of a user's spout or bolt class, or an error that says what is wrong with it."""
    what = base.__name__.lower()
    made = _made(name, given, what, line) if isinstance(given, type) else given
    if not isinstance(made, base):
        raise FlowError(
            f"{what} {name!r} ({line}) needs a penstock.{base.__name__}, a class or an instance, got {given!r}"
        )
    method = "process" if base is Bolt else "next_tuple"
    if getattr(type(made), method) is getattr(base, method):
        argument = "self, tup" if base is Bolt else "self"
        raise FlowError(f"{what} {name!r} ({line}): {type(made).__qualname__} must define {method}({argument})")
    return made


def _made(name: str, given: type, what: str, line: str) -> Any:
    try:
        return given()
    except TypeError as error:
        raise FlowError(
            f"{what} {name!r} ({line}): {given.__qualname__} cannot be made without arguments ({error}); give an instance"
        ) from None
