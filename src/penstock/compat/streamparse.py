"""Topologies of streamparse: `from penstock.compat.streamparse import Bolt, Grouping, Spout, Stream, Topology`.

>>> class Words(Spout):
...     outputs = ["word"]
...     def initialize(self, config, context):
...         self.left = ["a", "b", "a"]
...     def next_tuple(self):
...         if self.left:
...             self.emit([self.left.pop(0)])
>>> class Count(Bolt):
...     outputs = ["word", "n bigint"]
...     def initialize(self, config, context):
...         self.counts = {}
...     def process(self, tup):
...         word = tup.values[0]
...         self.counts[word] = self.counts.get(word, 0) + 1
...         self.emit([word, self.counts[word]])
>>> class WordCount(Topology):
...     words = Words.spec(config={"penstock.spout.limit": 3})
...     count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
>>> sorted(WordCount.specs)
['count', 'words']
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from penstock.compat.components import PortedBolt, PortedComponent, PortedSpout, PortedTuple, Stream
from penstock.compat.programs import ProgramBolt, ProgramSpout
from penstock.compat.topology import Grouping, Spec, Topology
from penstock.errors import FlowError

Tuple = PortedTuple
TICK = "topology.tick.tuple.freq.secs"

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spec",
    "Spout",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
]


class Placed(PortedComponent):
    """What a component of streamparse knows of its place in the topology."""

    par: Any = 1
    topology_name: Any = None
    component_name: Any = None
    task_id: Any = None
    debug: Any = None
    storm_conf: Any = None
    context: Any = None
    pid: Any = None

    def take_place(self, config: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Sets what pystorm sets after the handshake."""
        self.storm_conf, self.context, self.pid = config, context, os.getpid()
        self.topology_name = self._adapter._context.topology
        self.component_name, self.task_id = context.get("componentid"), context.get("taskid", "")
        self.debug = config.get("topology.debug", False)


class Spout(Placed, PortedSpout):
    """A spout, as streamparse has it."""

    @classmethod
    def spec(cls, name: str | None = None, par: Any = None, config: Any = None, outputs: Any = None) -> Spec:
        """Its place in a topology; what is not said here the class says."""
        return Spec(cls, name, None, cls.par if par is None else par, config, outputs)


class ReliableSpout(Spout):
    """A spout that emits again what failed, at most `max_fails` times."""

    max_fails = 3
    retry_failed_tuples = True

    def emit(
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Emits a tuple with an id, and remembers it until it is acked."""
        if tup_id is None:
            raise FlowError("a ReliableSpout emits with an id: self.emit(values, tup_id=...)")
        self.__dict__.setdefault("unacked_tuples", {})[tup_id] = (tup, stream, direct_task)
        return super().emit(tup, tup_id, stream, direct_task, need_task_ids)

    def ack(self, tup_id: Any) -> None:
        """Forgets the tuple."""
        self.__dict__.setdefault("failed_tuples", {}).pop(tup_id, None)
        self.__dict__.setdefault("unacked_tuples", {}).pop(tup_id, None)

    def fail(self, tup_id: Any) -> None:
        """Emits the tuple again; one that has failed too often counts as acked."""
        fails = self.__dict__.setdefault("failed_tuples", {})
        found = self.__dict__.setdefault("unacked_tuples", {}).pop(tup_id, None)
        fails[tup_id] = fails.get(tup_id, 0) + 1
        if found is not None and fails[tup_id] <= self.max_fails and self.retry_failed_tuples:
            self.emit(found[0], tup_id, found[1], found[2])
        else:
            self.ack(tup_id)


class Bolt(Placed, PortedBolt):
    """A bolt, as streamparse has it."""

    tick_freq: ClassVar[float | None] = None
    """How often it gets a tick, in seconds, where no setting says so."""

    @classmethod
    def spec(
        cls, name: str | None = None, inputs: Any = None, par: Any = None, config: Any = None, outputs: Any = None
    ) -> Spec:
        """Its place in a topology; what is not said here the class says."""
        return Spec(cls, name, inputs, cls.par if par is None else par, config, outputs)

    @classmethod
    def needed(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """The ticks that it lives by."""
        frequency = cls.tick_seconds()
        return {} if config.get(TICK) or frequency is None else {TICK: frequency}

    @classmethod
    def tick_seconds(cls) -> float | None:
        """How often it needs a tick; None where it needs none."""
        return cls.tick_freq


class BatchingBolt(Bolt):
    """A bolt that gathers tuples by `group_key`, and gives them to `process_batch` when more than `ticks_between_batches` ticks have come."""

    tick_freq: ClassVar[float | None] = 1
    ticks_between_batches = 1

    @property
    def acks_on_return(self) -> bool:
        """Its tuples are acked with their batch."""
        return False

    def group_key(self, tup: Any) -> Any:
        """What tuples of one batch have in common."""
        return None

    def process_batch(self, key: Any, tups: list[Any]) -> None:
        """Called with the tuples of a key."""
        raise NotImplementedError

    def process(self, tup: Any) -> None:
        """Keeps the tuple until its batch is due."""
        self.__dict__.setdefault("_batches", defaultdict(list))[self.group_key(tup)].append(tup)

    def process_tick(self, tup: Any) -> None:
        """A batch is due after so many ticks."""
        self.__dict__["_tick_counter"] = self.__dict__.get("_tick_counter", 0) + 1
        if self.__dict__["_tick_counter"] > self.ticks_between_batches and self.__dict__.get("_batches"):
            self.process_batches()
            self.__dict__["_tick_counter"] = 0

    def process_batches(self) -> None:
        """Gives every batch to `process_batch`; acks its tuples, or fails them, where the class leaves that to its base."""
        for key, tups in self.__dict__.pop("_batches", {}).items():
            self.__dict__["_current_tups"] = tups
            try:
                self.process_batch(key, tups)
            except Exception as error:
                if not self.auto_fail or not any(t.origin._roots is not None for t in tups):
                    raise
                self.raise_exception(error)
                self._each(self.fail, tups)
            else:
                self._each(self.ack, tups if self.auto_ack else [])
            finally:
                del self.__dict__["_current_tups"]

    @staticmethod
    def _each(say: Callable[[Any], None], tups: list[Any]) -> None:
        for tup in tups:
            say(tup)

    def emit(
        self,
        tup: Any,
        stream: str = "default",
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Emits a tuple, anchored to those of the batch unless `anchors` or `auto_anchor` says otherwise. Task ids are not returned."""
        if anchors is None and self.auto_anchor:
            anchors = self.__dict__.get("_current_tups")
        super().emit(tup, stream, anchors, direct_task)


class TicklessBatchingBolt(BatchingBolt):
    """A bolt that gathers tuples for `secs_between_batches`. Ticks of its own bring its batches, so time that a test moves counts."""

    secs_between_batches: float = 2

    @classmethod
    def tick_seconds(cls) -> float | None:
        """A tick is a batch."""
        return cls.secs_between_batches

    def process_tick(self, tup: Any) -> None:
        """A batch is due."""
        self.process_batches()


class ShellSpout(Spout):
    """A program of any language as a spout."""

    @classmethod
    def spec(  # type: ignore[override]  # as streamparse has it
        cls,
        name: str | None = None,
        command: str = "",
        script: str = "",
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> Spec:
        """Its place in a topology."""
        return Spec(ProgramSpout(command, script), name, None, 1 if par is None else par, config, outputs)


class ShellBolt(Bolt):
    """A program of any language as a bolt."""

    @classmethod
    def spec(  # type: ignore[override]  # as streamparse has it
        cls,
        name: str | None = None,
        command: str = "",
        script: str = "",
        inputs: Any = None,
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> Spec:
        """Its place in a topology."""
        return Spec(ProgramBolt(command, script), name, inputs, 1 if par is None else par, config, outputs)


class StormHandler(logging.Handler):
    """A handler that hands on to the log of Penstock, as pystorm's hands on to that of Storm."""

    def __init__(self, serializer: Any = None) -> None:
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Hands a record on."""
        logging.getLogger("penstock.shell").log(record.levelno, "%s", self.format(record))


def _java(what: str) -> NoReturn:
    raise FlowError(
        f"{what} names a class of Java, which does not run here; write it as a Spout or Bolt, or use an endpoint of Penstock"
    )


class JavaBolt:
    """Refused: a class of Java does not run here."""

    @classmethod
    def spec(cls, *args: Any, **options: Any) -> NoReturn:
        """Refused.

        Raises:
            FlowError: always.
        """
        _java("JavaBolt.spec")


class JavaSpout:
    """Refused: a class of Java does not run here."""

    @classmethod
    def spec(cls, *args: Any, **options: Any) -> NoReturn:
        """Refused.

        Raises:
            FlowError: always.
        """
        _java("JavaSpout.spec")
