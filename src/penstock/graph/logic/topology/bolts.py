"""Bolts with more to them: those that ack by themselves, those with a key-value state, and those that take windows of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.errors import FlowError, nearest
from penstock.graph.duration import micros
from penstock.graph.logic.topology.components import Bolt, streams_of
from penstock.graph.logic.topology.tuples import Tuple


class BasicBolt(Bolt):
    """A bolt that needs no word about acks: every emit is anchored to the tuple at hand, which is acked when `process` returns.

    It fails a tuple by raising `ps.FailedException`.

    >>> import penstock as ps
    >>> class Parse(ps.BasicBolt):
    ...     outputs = "n int"
    ...     def process(self, tup):
    ...         if not tup.text.isdigit():
    ...             raise ps.FailedException(f"no number: {tup.text}")
    ...         yield int(tup.text)
    """


class KeyValueState(MutableMapping[Any, Any]):
    """The state of a `StatefulBolt`: a mapping, saved key by key, of any size.

    Changes count from the next commit on, which is the end of the batch, or `commit`; `rollback` takes back those since then. What a batch has
    committed is durable when the batch is.

    >>> state = KeyValueState({})
    >>> state["a"] = state.get("a", 0) + 1
    >>> state.commit()
    >>> state.put("a", 5)
    >>> state.rollback()
    >>> dict(state)
    {'a': 1}
    """

    def __init__(self, values: MutableMapping[Any, Any]) -> None:
        self.values_kept = values
        self._changes: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if key not in self._changes:
            return self.values_kept[key]
        if self._changes[key] is _GONE:
            raise KeyError(key)
        return self._changes[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._changes[key] = value

    def __delitem__(self, key: Any) -> None:
        self[key]
        self._changes[key] = _GONE

    def __iter__(self) -> Iterator[Any]:
        kept = [key for key in self.values_kept if self._changes.get(key) is not _GONE]
        return iter([*kept, *(k for k, v in self._changes.items() if v is not _GONE and k not in self.values_kept)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key.

        Args:
            key: the key.
            value: the value.
        """
        self[key] = value

    def delete(self, key: Any) -> Any:
        """Forgets a key.

        Args:
            key: the key.

        Returns:
            What was kept for it; None where nothing was.
        """
        return self.pop(key, None)

    @property
    def is_changed(self) -> bool:
        """Whether there are changes since the last commit."""
        return bool(self._changes)

    def commit(self) -> None:
        """Makes all changes count: a later rollback does not take them back."""
        for key, value in self._changes.items():
            if value is not _GONE:
                self.values_kept[key] = value
            elif key in self.values_kept:
                del self.values_kept[key]
        self._changes = {}

    def rollback(self) -> None:
        """Takes back all changes since the last commit."""
        self._changes = {}


_GONE = object()
"""What stands for a key that is deleted."""


class StatefulBolt(Bolt):
    """A bolt with a key-value state that is committed with each batch.

    `init_state` comes after `prepare`, with the state of the last committed batch. At the end of a batch `pre_prepare`
    and `pre_commit` are called with the number of the batch, and the state is committed with it. When a batch fails `pre_rollback` is called, and
    what it changed is taken back; it runs again, as it does after a crash, from the state before it.

    >>> import penstock as ps
    >>> class Count(ps.StatefulBolt):
    ...     outputs = "word string, n bigint"
    ...     def init_state(self, state):
    ...         self._counts = state
    ...     def process(self, tup):
    ...         self._counts[tup.word] = self._counts.get(tup.word, 0) + 1
    ...         yield tup.word, self._counts[tup.word]
    """

    def init_state(self, state: KeyValueState) -> None:
        """Called once for each instance, after `prepare`. You must define it.

        Args:
            state: the state of this task; keep it in an attribute whose name begins with an underscore.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def pre_prepare(self, txid: int) -> None:
        """Called when a batch ends, before its state is prepared.

        Args:
            txid: the number of the batch.
        """

    def pre_commit(self, txid: int) -> None:
        """Called when a batch ends, before its state is committed.

        Args:
            txid: the number of the batch.
        """

    def pre_rollback(self) -> None:
        """Called when a batch fails in this task's worker, before its changes are taken back; a process that is killed does not get there."""


@dataclass(frozen=True)
class TupleWindow:
    """A window of tuples: all of them, and what has changed since the last activation.

    Attributes:
        tuples: the tuples in the window, oldest first.
        new: those that came since the last activation.
        expired: those that have left since the last activation.
        start: where the window begins, in seconds since 1970; None for windows by count.
        end: where it ends, in seconds since 1970.
    """

    tuples: Sequence[Any]
    new: Sequence[Any]
    expired: Sequence[Any]
    start: float | None = None
    end: float | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tuples)

    def __len__(self) -> int:
        return len(self.tuples)


@dataclass(frozen=True)
class TupleSpan:
    """How long a window is, or how far it slides: a number of tuples, or a number of seconds.

    >>> TupleSpan.of("length", 10), TupleSpan.of("length", "1m").seconds
    (TupleSpan(count=10, seconds=None), 60.0)
    """

    count: int | None = None
    seconds: float | None = None

    @staticmethod
    def of(what: str, given: object) -> TupleSpan:
        """A span as the user wrote it: an int counts tuples, a text such as '10s' is a duration."""
        if isinstance(given, int) and not isinstance(given, bool) and given > 0:
            return TupleSpan(count=given)
        if isinstance(given, str):
            return TupleSpan(seconds=micros(given, what) / 1_000_000)
        raise FlowError(f"{what}: expected a number of tuples (10) or a duration ('10s'), got {given!r}")


class WindowedBolt(Bolt):
    """A bolt that takes windows of tuples, by count or by time.

    `window` is the length: a number of tuples, or a duration such as "10s"; `slide` is how far it moves on, the whole length unless
    it is said (a tumbling window). With `timestamp_field` time is event time: a tuple counts by when it happened, the watermark is the
    latest time less `lag` (the lowest over the streams that the bolt reads), and a tuple that is later goes to `late_stream`, or is left out.
    A tuple is acked when it leaves its last window; what is emitted is anchored to the tuples of the window.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Total(ps.WindowedBolt):
    ...     outputs = "total bigint"
    ...     window, slide = 3, 2
    ...     def process_window(self, window):
    ...         yield sum(tup.n for tup in window)
    >>> top = ps.Topology("demo")
    >>> top.spout("numbers", ps.items([1, 2, 3, 4], "n int"))
    >>> _ = top.bolt("total", Total).global_("numbers")
    >>> top.sink("out", ps.console(), from_="total")
    >>> run_local(top)["out"]
    [Row(total=3), Row(total=9)]
    """

    window: ClassVar[int | str] = 0
    slide: ClassVar[int | str | None] = None
    timestamp_field: ClassVar[str | None] = None
    """The field with the time of a tuple: a timestamp, or milliseconds since 1970 as a number."""
    lag: ClassVar[str] = "0s"
    """How much later than the latest a tuple may come, by its time."""
    late_stream: ClassVar[str | None] = None
    """The stream of tuples that are too late, one of `outputs`. They have the fields that the tuple had; or the one field `late_tuple`, a struct of them, as in Storm."""
    auto_ack = False

    def check_windows(self) -> None:
        """Refuses windows that cannot be.

        Raises:
            FlowError: `window`, `slide` or `lag` is none, `late_stream` is no stream of the bolt or goes without a time, or there is no `process_window`.
        """
        if type(self).process_window is WindowedBolt.process_window:
            raise FlowError(f"{type(self).__qualname__} must define process_window(self, window)")
        TupleSpan.of("window", self.window)
        TupleSpan.of("slide", self.window if self.slide is None else self.slide)
        micros(self.lag, "lag")
        if self.late_stream is not None and self.timestamp_field is None:
            raise FlowError(
                f"late_stream {self.late_stream!r}: expected a timestamp_field, got none; without one no tuple is late"
            )
        if self.late_stream is not None and self.late_stream not in (known := streams_of(self)):
            raise FlowError(f"late_stream: outputs have no {self.late_stream!r}; {nearest(self.late_stream, known)}")

    def check_messages(self, timeout: float, pending: int | None) -> None:
        """Refuses windows that would hold their tuples longer than messages may be open, as Storm does.

        Args:
            timeout: the message timeout in seconds.
            pending: how many messages of a task of the spout may be open; None for no limit.

        Raises:
            FlowError: length and slide together are longer than the timeout, or more tuples than may be open.
        """
        spans = [
            TupleSpan.of("window", each) for each in (self.window, self.window if self.slide is None else self.slide)
        ]
        seconds, many = sum(s.seconds or 0 for s in spans), sum(s.count or 0 for s in spans)
        remedy = "or take a StatefulWindowedBolt, whose tuples are acked once they are saved"
        if seconds > timeout:
            raise FlowError(
                f"expected a window and slide of at most topology.message.timeout.secs together ({timeout:g} s), got {seconds:g} s: messages would "
                f"fail while a window holds their tuples; raise the timeout, {remedy}"
            )
        if pending is not None and many > pending:
            raise FlowError(
                f"expected a window and slide of at most topology.max.spout.pending tuples together ({pending}), got {many}: a window would wait for "
                f"tuples that may not come; raise the limit, {remedy}"
            )

    def process_window(self, window: TupleWindow) -> Iterable[Any] | None:
        """Called for each window. You must define it.

        Args:
            window: the tuples.

        Returns:
            Any number of records, or None; it may also `emit` them, or be a generator.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def process(self, tup: Tuple) -> Iterable[Any] | None:
        """The windows take the tuples; define `process_window`.

        Args:
            tup: the tuple.

        Returns:
            Nothing.

        Raises:
            FlowError: always.
        """
        raise FlowError("a WindowedBolt gets windows: define process_window(self, window)")


class StatefulWindowedBolt(WindowedBolt, StatefulBolt):
    """A `WindowedBolt` that has a key-value state too, and whose windows may be larger than memory: the tuples are saved page by page.

    A tuple is acked with the batch that saves it; what is emitted is anchored to the tuples of the batch at hand.

    >>> import penstock as ps
    >>> class Running(ps.StatefulWindowedBolt):
    ...     outputs = "total bigint"
    ...     window = 1_000_000
    ...     def init_state(self, state):
    ...         self._state = state
    ...     def process_window(self, window):
    ...         self._state["total"] = self._state.get("total", 0) + sum(tup.n for tup in window)
    ...         yield self._state["total"]
    """

    def check_messages(self, timeout: float, pending: int | None) -> None:
        """Any window will do: its tuples are acked with the batch that saves them.

        Args:
            timeout: the message timeout.
            pending: how many messages may be open.
        """

    in_memory: ClassVar[int] = 100_000
    """How many tuples of its windows a task has in memory; the others are in its state, and come as a window is gone over."""
