"""Spouts and bolts as streamparse and heronpy have them, on those of Penstock: an adapter holds an instance of the user's class."""

from __future__ import annotations

import logging
import pickle
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

from penstock.errors import FlowError
from penstock.graph.logic.topology.acks import FailedException
from penstock.graph.logic.topology.components import Bolt, Spout
from penstock.graph.logic.topology.metrics import CountMetric, amount_of
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.multilang.fields import OpenFields, opened, outputs_of
from penstock.graph.multilang.handshake import context_of

_LEVELS = {"trace": 10, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "critical": 50}


class _StreamFields(NamedTuple):
    fields: Any = None
    name: str = DEFAULT
    direct: bool = False


class Stream(_StreamFields):
    """A stream that a component emits: its fields, its name, and whether its tuples name their task."""

    DEFAULT_STREAM_ID: ClassVar[str] = DEFAULT

    @property
    def stream_id(self) -> str:
        """Its name, as heronpy has it."""
        return self.name


class _TupleFields(NamedTuple):
    id: str
    component: str
    stream: str
    task: Any
    values: Any


class PortedTuple(_TupleFields):
    """A tuple as a ported bolt gets it: five fields, as elsewhere. It remembers the tuple of Penstock that it stands for."""

    origin: Any = None


@lru_cache(maxsize=512)
def _values_of(names: tuple[str, ...]) -> Any:
    return namedtuple("Values", names, rename=True)


_RUN, _COUNT = uuid4().hex[:12], count(1)


def ported_tuple(tup: Any) -> PortedTuple:
    """A tuple of Penstock as others know it; its id is unique, also beside those of earlier runs."""
    values = tuple(opened(v) for v in tup)
    named = values if tup.is_tick else _values_of(tuple(type(tup).names))(*values)
    made = PortedTuple(f"{_RUN}-{next(_COUNT)}", tup.component, tup.stream, tup._task, named)
    made.origin = tup
    return made


class AtWork:
    """The component of this process that is called just now, for what names none."""

    component: ClassVar[PortedComponent | None] = None


def counted_at_work(name: str, value: Any) -> None:
    """Counts under a name for the component that is at work.

    Raises:
        FlowError: none is.
    """
    if AtWork.component is None:
        raise FlowError(f"counting {name!r} works while a task of a ported spout or bolt runs, not before")
    AtWork.component.report_metric(name, value)


class PortedComponent:
    """What a user's class inherits: `emit` and the like reach its adapter."""

    outputs: Any = None
    config: ClassVar[Mapping[str, Any]] = {}
    _adapter: Any = None

    @property
    def logger(self) -> logging.Logger:
        """The log of the component."""
        return logging.getLogger(f"penstock.{type(self).__module__}.{type(self).__qualname__}")

    def log(self, message: object, level: Any = None) -> None:
        """Writes to the log of the component."""
        number = level if isinstance(level, int) and level > 9 else _LEVELS.get(str(level or "info").lower(), 20)
        self.logger.log(number, "%s", message)

    def initialize(self, config: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Called before the first tuple."""

    def take_place(self, config: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Sets what a component has of its place in the topology, before `initialize`."""

    @classmethod
    def typed(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings as they are meant."""
        return dict(config)

    @staticmethod
    def new_state() -> dict[Any, Any]:
        """What `init_state` gets."""
        return {}

    @staticmethod
    def context_for(context: TaskContext) -> Mapping[str, Any]:
        """The context as `initialize` gets it."""
        return context_of(context) if context.layout.components else {}

    def report_metric(self, name: str, value: Any) -> None:
        """Counts under a name; what is no number counts as one."""
        context = self._adapter._context
        metric = context.metrics.get(name) or context.register_metric(name, CountMetric())
        metric.increment(amount_of(value))

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Reports an error without failing."""
        self._adapter.report_error(exception)


class Adapter:
    """What the adapters of spouts and bolts share: the streams of the user's class, and the attributes that are its state."""

    def take(self, cls: type[PortedComponent], outputs: Any) -> None:
        """The class, and the streams that it or its place in the topology declares."""
        self._cls = cls
        self._streams = streams_of(cls if outputs is None else outputs)
        self.outputs = {name: fields.schema for name, (fields, _) in self._streams.items()} or None
        self.direct = tuple(name for name, (_, direct) in self._streams.items() if direct)
        self.kept: dict[str, bytes] = {}

    def begin(self, context: TaskContext) -> None:
        """Makes the user's instance."""
        self._made: Any = self._cls()
        self._made._adapter = self
        AtWork.component = self._made
        self.state = self._made.new_state()
        if hasattr(self._made, "init_state"):
            self._made.init_state(self.state)
        config, place = dict(context.config), self._made.context_for(context)
        self._made.take_place(config, place)
        self._anew = frozenset(vars(self._made))
        self._made.initialize(config, place)
        self._given = self._pickles()

    def save(self) -> None:
        """What can be saved of the user's attributes; what cannot, such as a connection, is made anew by `initialize`."""
        if hasattr(self._made, "pre_save"):
            self._made.pre_save(None)
        self.kept = {k: v for k, v in self._pickles().items() if v is not None and v != self._given.get(k)}

    def _pickles(self) -> dict[str, bytes | None]:
        """The user's attributes, without those that are made anew for each instance."""
        return {k: _pickled(v) for k, v in vars(self._made).items() if k not in self._anew}

    def restored(self) -> None:
        """Puts the user's attributes back."""
        if hasattr(self._made, "init_state"):
            self._made.init_state(self.state)
        vars(self._made).update({k: pickle.loads(v) for k, v in self.kept.items()})

    def record(self, values: Any, stream: str) -> tuple[Any, ...]:
        """A record as it travels.

        Raises:
            TypeError: it is neither a list nor a tuple.
            FlowError: there is no such stream.
        """
        if not isinstance(values, list | tuple):
            raise TypeError(f"emit: expected a list or a tuple of values, got {values!r}")
        if stream not in self._streams:
            raise FlowError(f"{self._cls.__qualname__} emits to a stream {stream!r}, which its outputs do not have")
        return self._streams[stream][0].record(list(values))

    def __repr__(self) -> str:
        return f"{self._cls.__module__}:{self._cls.__qualname__}"


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value)
    except Exception:  # whatever a class of the user's raises: it is not saved
        return None


DeclaredStream = tuple[str, list[str], bool]
"""The name of a stream, its fields, and whether it is direct."""


def declared_streams(listed: Any) -> list[DeclaredStream]:
    """The streams of a list: names of fields, which are those of the default stream, or `Stream`s."""
    if not listed:
        return []
    if isinstance(listed, str):
        raise FlowError(f"expected a list of fields, such as ['word'], got {listed!r}")
    made = [e for e in listed if isinstance(e, Stream)]
    fields = [e for e in listed if not isinstance(e, Stream)]
    plain = [Stream(fields)] if fields else []
    return [(s.name, list(s.fields or []), s.direct) for s in [*plain, *made]]


def streams_of(given: Any) -> dict[str, tuple[OpenFields, bool]]:
    """The streams of a class or of a list."""
    listed: Any = getattr(given, "outputs", None) if isinstance(given, type) else given
    return {name: (outputs_of(fields), direct) for name, fields, direct in declared_streams(listed)}


class BoltAdapter(Adapter, Bolt):
    """A ported bolt at work."""

    auto_ack = False
    auto_anchor = False

    def __init__(self, cls: type[Any], outputs: Any = None) -> None:
        self.take(cls, outputs)
        self.open: dict[str, Any] = {}

    def prepare(self, context: TaskContext) -> None:
        """Makes the user's instance."""
        self._now: PortedTuple | None = None
        self.begin(context)

    def process(self, tup: Any) -> None:
        """Gives the tuple to the user's instance, and acks or fails it where the class leaves that to its base."""
        made, given = self._made, ported_tuple(tup)
        AtWork.component, self._now = made, given
        if tup._roots is not None:
            self.open[given.id] = tup
        try:
            if tup.is_tick:
                made.process_tick(given)
            else:
                made.process(given)
            if made.acks_on_return:
                self.ack(given)
        except FailedException:
            self.fail(given)
        except Exception as error:
            if not made.auto_fail or tup._roots is None:
                raise
            self.report_error(error)
            self.fail(given)
        finally:
            self._now = None

    def ack(self, tup: Any) -> None:
        """The tuple is done; it may be named by its id."""
        if (origin := self._origin(tup, self.open.pop)) is not None:
            super().ack(origin)

    def fail(self, tup: Any) -> None:
        """The tuple failed; it may be named by its id."""
        if (origin := self._origin(tup, self.open.pop)) is not None:
            super().fail(origin)

    @staticmethod
    def _origin(tup: Any, find: Callable[[str, None], Any]) -> Any:
        """The tuple of Penstock of one that is given as a whole, or by its id; None for an id that is not open."""
        if isinstance(tup, PortedTuple):
            return find(tup.id, None) or tup.origin
        return find(str(tup), None)

    def end_batch(self, batch: int) -> None:
        """Saves the user's attributes."""
        self.save()

    def send(self, values: Any, stream: str, anchors: Iterable[Any] | None, task: int | None) -> Sequence[int]:
        """Emits for the user's instance."""
        if anchors is None:
            anchors = [self._now] if self._made.auto_anchor and self._now is not None else []
        roots = [origin for a in anchors if (origin := self._origin(a, self.open.get)) is not None]
        record = self.record(values, stream)
        if task is None:
            return self.emit(record, stream, anchors=roots)
        self.emit_direct(task, record, stream, anchors=roots)
        return [task]


class SpoutAdapter(Adapter, Spout):
    """A ported spout at work."""

    endless = True
    reliable = True

    def __init__(self, cls: type[Any], outputs: Any = None) -> None:
        self.take(cls, outputs)

    def open(self, context: TaskContext) -> None:
        """Makes the user's instance."""
        self.begin(context)

    def next_tuple(self) -> None:
        """Asks the user's instance."""
        AtWork.component = self._made
        self._made.next_tuple()

    def _about_to_save(self) -> None:
        """Saves the user's attributes."""
        self.save()

    def ack(self, id: object) -> None:
        """Tells the user's instance."""
        self._made.ack(id)

    def fail(self, id: object) -> None:
        """Tells the user's instance."""
        self._made.fail(id)

    def activate(self) -> None:
        """Tells the user's instance."""
        self._made.activate()

    def deactivate(self) -> None:
        """Tells the user's instance."""
        self._made.deactivate()

    def close(self) -> None:
        """Tells the user's instance."""
        self._made.close()

    def send(self, values: Any, stream: str, number: Any, task: int | None) -> Sequence[int]:
        """Emits for the user's instance."""
        record = self.record(values, stream)
        if task is None:
            return self.emit(record, stream, id=number)
        self.emit_direct(task, record, stream, id=number)
        return [task]


class PortedSpout(PortedComponent):
    """A spout of the user's."""

    def next_tuple(self) -> None:
        """Called again and again."""
        raise NotImplementedError

    def ack(self, tup_id: Any) -> None:
        """A message is done."""

    def fail(self, tup_id: Any) -> None:
        """A message failed."""

    def activate(self) -> None:
        """Tuples will be asked for."""

    def deactivate(self) -> None:
        """No tuples will be asked for, for a while."""

    def close(self) -> None:
        """The task ends."""

    def emit(
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str = DEFAULT,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Emits a tuple, with an id when it is to be acked or failed; returns the tasks that get it where they are asked for."""
        made = self._adapter.send(tup, stream or DEFAULT, tup_id, direct_task)
        return list(made) if need_task_ids else None


class PortedBolt(PortedComponent):
    """A bolt of the user's."""

    auto_ack = True
    auto_anchor = True
    auto_fail = True

    @property
    def acks_on_return(self) -> bool:
        """Whether a tuple is acked when `process` returns."""
        return self.auto_ack

    def process(self, tup: Any) -> None:
        """Called for each tuple."""
        raise NotImplementedError

    @classmethod
    def needed(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that follow from those that are given."""
        return {}

    def process_tick(self, tup: Any) -> None:
        """Called for each tick."""

    def emit(
        self,
        tup: Any,
        stream: str = DEFAULT,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Emits a tuple, anchored to the one at hand unless `anchors` says otherwise; returns the tasks that get it where they are asked for."""
        made = self._adapter.send(tup, stream or DEFAULT, anchors, direct_task)
        return list(made) if need_task_ids else None

    def ack(self, tup: Any) -> None:
        """A tuple is done; it may be named by its id."""
        self._adapter.ack(tup)

    def fail(self, tup: Any) -> None:
        """A tuple failed; it may be named by its id."""
        self._adapter.fail(tup)

    @staticmethod
    def is_tick(tup: Any) -> bool:
        """Whether a tuple is a tick."""
        return bool(tup.stream == "__tick" and tup.component == "__system")
