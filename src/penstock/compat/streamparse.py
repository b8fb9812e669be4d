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

import time
from collections import defaultdict
from typing import Any, ClassVar, NoReturn

from penstock.compat.components import PortedBolt, PortedSpout, PortedTuple, Stream
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
    "Spec",
    "Spout",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
]


class Spout(PortedSpout):
    """A spout, as streamparse has it."""

    @classmethod
    def spec(cls, name: str | None = None, par: Any = 1, config: Any = None, outputs: Any = None) -> Spec:
        """Its place in a topology."""
        return Spec(cls, name, None, par, config, outputs)


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
        """Emits the tuple again, unless it has failed too often."""
        fails = self.__dict__.setdefault("failed_tuples", {})
        found = self.__dict__.setdefault("unacked_tuples", {}).pop(tup_id, None)
        fails[tup_id] = fails.get(tup_id, 0) + 1
        if found is not None and fails[tup_id] <= self.max_fails and self.retry_failed_tuples:
            self.emit(found[0], tup_id, found[1], found[2])
        else:
            fails.pop(tup_id, None)


class Bolt(PortedBolt):
    """A bolt, as streamparse has it."""

    @classmethod
    def spec(
        cls, name: str | None = None, inputs: Any = None, par: Any = 1, config: Any = None, outputs: Any = None
    ) -> Spec:
        """Its place in a topology."""
        return Spec(cls, name, inputs, par, {**cls._ticks(), **(config or {})}, outputs)

    @classmethod
    def _ticks(cls) -> dict[str, Any]:
        frequency = getattr(cls, "tick_freq", None)
        return {TICK: frequency} if frequency else {}


class BatchingBolt(Bolt):
    """A bolt that gathers tuples by `group_key` and gives them to `process_batch` with the ticks."""

    auto_ack = True
    tick_freq: ClassVar[float] = 1
    ticks_between_batches = 1
    _handled = False

    def group_key(self, tup: Any) -> Any:
        """What tuples of one batch have in common."""
        return None

    def process_batch(self, key: Any, tups: list[Any]) -> None:
        """Called with the tuples of a key."""
        raise NotImplementedError

    def process(self, tup: Any) -> None:
        """Keeps the tuple until its batch is due."""
        self.auto_ack = False
        self.__dict__.setdefault("batches", defaultdict(list))[self.group_key(tup)].append(tup)

    def process_tick(self, tup: Any) -> None:
        """A batch is due after so many ticks."""
        self.__dict__["ticks"] = self.__dict__.get("ticks", 0) + 1
        if self.__dict__["ticks"] >= self.ticks_between_batches:
            self.process_batches()

    def process_batches(self) -> None:
        """Gives every batch to `process_batch`; acks its tuples, or fails them."""
        self.__dict__["ticks"] = 0
        for key, tups in self.__dict__.pop("batches", {}).items():
            try:
                self.__dict__["current"] = tups
                self.process_batch(key, tups)
            except Exception as error:
                if not any(t.origin._roots is not None for t in tups):
                    raise
                self.raise_exception(error)
                for tup in tups:
                    self.fail(tup)
            else:
                for tup in tups:
                    self.ack(tup)
            finally:
                self.__dict__.pop("current", None)

    def emit(
        self,
        tup: Any,
        stream: str = "default",
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Emits a tuple, anchored to those of the batch unless `anchors` says otherwise."""
        batch = self.__dict__.get("current", [])
        return super().emit(tup, stream, batch if anchors is None else anchors, direct_task, need_task_ids)


class TicklessBatchingBolt(BatchingBolt):
    """A bolt that gathers tuples for `secs_between_batches`, by the clock."""

    tick_freq: ClassVar[float] = 1
    secs_between_batches = 2

    def process_tick(self, tup: Any) -> None:
        """A batch is due after so much time."""
        now = time.monotonic()
        if now - self.__dict__.setdefault("since", now - self.secs_between_batches) >= self.secs_between_batches:
            self.__dict__["since"] = now
            self.process_batches()


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
