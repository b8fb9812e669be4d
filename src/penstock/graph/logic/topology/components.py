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
from typing import Any, ClassVar

from penstock.errors import FlowError, SchemaError
from penstock.graph.logic.topology.collector import Collector, SpoutCollector
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.topology.task_ids import TaskIds
from penstock.graph.logic.topology.tuples import DEFAULT, Tuple
from penstock.graph.schema import Schema, schema_of

_MISSING = object()
_UNRELIABLE = "emit(..., id=...) needs a spout that says reliable = True in its class"


class EndOfSpout(Exception):
    """What `END` is; a class of its own so that it can be raised as well as returned."""


END = EndOfSpout("this spout is done")
"""What `next_tuple` returns (or raises) when a spout has nothing more to give, ever."""


class Component:
    """What spouts and bolts have in common."""

    outputs: Any = None
    """The fields it emits: a schema, or a dict of stream names to schemas. None when it emits nothing."""
    direct: tuple[str, ...] = ()
    """The streams whose tuples name the task they are meant for."""
    stateful: bool = True
    """Whether the attributes of a task are kept across batches and restarts."""

    config: Mapping[str, Any] = {}
    """Settings of the component, over those of the topology, such as `{"topology.tick.tuple.freq.secs": 10}`."""

    _collector: Collector | None = None
    _context: TaskContext | None = None

    def emit(
        self,
        record: object,
        stream: str = DEFAULT,
        *,
        anchors: Tuple | Iterable[Tuple] | None = None,
        task: int | None = None,
    ) -> TaskIds:
        """Emits a record.

        Args:
            record: a tuple, a dict, a dataclass, or a bare value when the stream has one field.
            stream: the name of the stream.
            anchors: the tuple or tuples from which the record stems, none for `[]`; else the one at hand.
            task: the task of the next bolt that gets it, for direct streams.

        Returns:
            The ids of the tasks that get it, as `context.task_ids(component)` has them.

        Raises:
            UnknownName: there is no such stream.
            FlowError: no task runs.
        """
        collector = self._collector
        if collector is None:
            raise FlowError("emit works while a task runs: in process or next_tuple, not before")
        collector.add(record, stream, anchors, task)
        return collector.task_ids(stream, record, task)

    def report_error(self, error: BaseException | str) -> None:
        """Reports an error without failing: it is logged by the driver with the component and the task.

        Args:
            error: the exception, or a text.

        Raises:
            FlowError: no task runs.
        """
        self._running("report_error").errors.append(
            error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        )

    def _running(self, what: str) -> Collector:
        if self._collector is None:
            raise FlowError(f"{what} works while a task runs, not before")
        return self._collector

    def _to_task(self, task_id: int) -> Collector:
        """Checks that a task id is one."""
        if self._context is None:
            raise FlowError("emit_direct works while a task runs, not before")
        self._context.layout.component_of(task_id)
        return self._running("emit_direct")

    def close(self) -> None:
        """Called once when the task ends; a task that is killed does not get there."""

    def restored(self) -> None:
        """Called when the attributes of an earlier run have been put back, after open or prepare."""

    def _about_to_save(self) -> None:
        """Called before the attributes of a task of a spout are saved."""

    def __repr__(self) -> str:
        return f"{type(self).__module__}:{type(self).__qualname__}"

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_collector", "_context")}


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
    """Whether it emits with ids; root ids then travel with every tuple that stems from it, and it is acked."""
    endless: bool = False
    """Whether it never ends, so that a bounded run needs a limit."""
    ends_when_silent: ClassVar[bool] = False
    """Whether a bounded run is over for it when it has nothing just now."""

    _done: bool = False
    _is_bounded: bool = False

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
    ) -> TaskIds:
        """Emits a record.

        Args:
            record: a tuple, a dict, a dataclass, or a bare value when the stream has one field.
            stream: the name of the stream.
            id: makes the tuple the root of all that stems from it.
            task: the task of the next bolt that gets it, for direct streams.

        Returns:
            The ids of the tasks that get it, but for those that a `partial_key` or `custom` grouping chooses: it does so later.

        Raises:
            UnknownName: there is no such stream.
            FlowError: no task runs, or there is an id and the class does not say `reliable = True`.
        """
        collector = self._collector
        if task is None and collector is not None and stream in collector.quick:
            records, ids = collector.quick[stream]
            if ids is not None:
                ids.append(id)
            elif id is not None:
                raise FlowError(_UNRELIABLE)
            made = TaskIds()
            made.asked = (collector.find, stream, record, collector.gone[stream] + len(records), None)
            records.append(record)
            return made
        if not isinstance(collector, SpoutCollector):
            raise FlowError("emit works while a task runs: in next_tuple, not before")
        self._check_id(collector, id)
        collector.add(record, stream, None, task)
        if collector.ids is not None:
            collector.ids[stream].append(id)
        return collector.task_ids(stream, record, task)

    def _check_id(self, collector: SpoutCollector, id: object) -> None:
        if id is not None and collector.ids is None:
            raise FlowError(_UNRELIABLE)

    def emit_direct(self, task_id: int, record: object, stream: str = DEFAULT, *, id: object = None) -> None:
        """Emits a record to one task, on a direct stream. Of several bolts that read the stream only the one whose task it is gets it.

        Args:
            task_id: the id of the task, as `context.task_ids(component)` has it.
            record: a tuple, a dict, a dataclass, or a bare value when the stream has one field.
            stream: the name of the stream.
            id: makes the tuple the root of all that stems from it.

        Raises:
            FlowError: there is no such task, or the stream is not direct.
        """
        collector = self._to_task(task_id)
        assert isinstance(collector, SpoutCollector), "a task of a spout has such a one"
        self._check_id(collector, id)
        collector.add_direct(record, stream, None, task_id)
        if collector.ids is not None:
            collector.ids[stream].append(id)

    def activate(self) -> None:
        """Called before the first `next_tuple`, and when the spout goes on after a pause."""

    def deactivate(self) -> None:
        """Called when `next_tuple` will not be called for a while, or any more."""

    def done(self) -> None:
        """Says that this is the last: what `next_tuple` has emitted counts, and it is not called again."""
        self._done = True

    def ack(self, id: object) -> None:
        """Called when all that stems from a message is done, and its results are committed.

        Args:
            id: the id with which the tuple was emitted.
        """

    def fail(self, id: object) -> None:
        """Called when something that stems from a message failed, or took longer than the message timeout. Emit it again, or not.

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

    auto_ack: bool = True
    """Whether a tuple is acked when `process` returns. Without it the bolt calls `ack` or `fail` for every tuple, now or later."""
    auto_anchor: bool = True
    """Whether an emit is anchored to the tuple at hand where `anchors` does not say otherwise."""

    def prepare(self, context: TaskContext) -> None:
        """Called once before the first tuple of each instance.

        Args:
            context: the component, the number of the task, how many there are, and the topology around it.
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

    def ack(self, tup: Tuple) -> None:
        """Says that a tuple is done. A tuple may be acked in a later batch than it arrived in.

        Args:
            tup: the tuple.

        Raises:
            FlowError: no task runs.
        """
        self._running("ack").open.ack(tup)
        for hook in self._context.hooks if self._context is not None else ():
            hook.acked(tup)

    def fail(self, tup: Tuple) -> None:
        """Says that a tuple failed: every message from which it stems is replayed by its spout.

        Args:
            tup: the tuple.

        Raises:
            FlowError: no task runs.
        """
        self._running("fail").open.fail(tup)
        for hook in self._context.hooks if self._context is not None else ():
            hook.failed(tup)

    def reset_timeout(self, tup: Tuple) -> None:
        """Gives the messages from which a tuple stems their whole timeout again.

        Args:
            tup: the tuple.

        Raises:
            FlowError: no task runs.
        """
        self._running("reset_timeout").open.renew(tup)

    def emit_direct(
        self, task_id: int, record: object, stream: str = DEFAULT, *, anchors: Tuple | Iterable[Tuple] | None = None
    ) -> None:
        """Emits a record to one task, on a direct stream. Of several bolts that read the stream only the one whose task it is gets it.

        Args:
            task_id: the id of the task, as `context.task_ids(component)` has it.
            record: a tuple, a dict, a dataclass, or a bare value when the stream has one field.
            stream: the name of the stream.
            anchors: the tuple or tuples from which the record stems; else the one at hand.

        Raises:
            FlowError: there is no such task, or the stream is not direct.
        """
        self._to_task(task_id).add_direct(record, stream, anchors, task_id)

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
