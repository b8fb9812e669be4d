"""`ShellBolt` and `ShellSpout`: components that are programs of any language."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

from penstock.errors import FlowError, RunError, UnknownName, nearest
from penstock.graph.duration import Span, micros
from penstock.graph.logic.topology.components import Bolt, Component, Spout
from penstock.graph.logic.topology.metrics import CountMetric, amount_of
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.topology.task_ids import TaskIds
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.multilang.codecs import CODECS
from penstock.graph.multilang.emits import OpenEmits, settled
from penstock.graph.multilang.fields import OpenFields, opened, streams_given
from penstock.graph.multilang.pool import POOL, Key
from penstock.graph.multilang.process import FULL, LOG, ShellFailed, ShellProcess, ShellSpec

HEARTBEAT = {"id": "heartbeat", "comp": "__system", "stream": "__heartbeat", "task": -1, "tuple": []}
_LEVELS = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_EVERY = 256
"""Tuples between two looks at what the program has answered."""
_BATCHES = 10
"""A bolt may fail in so many times as many batches in a row as it may be started again within one: spouts emit what failed a few times before they give it up."""
_STEADY = 100
"""After how many answers of a spout the failures before it do not count any more."""
_LONGEST = 10.0
_GRACE = 2.0
"""How long a spout may take to answer that it was activated, in seconds. Storm's own adapter for JavaScript does not answer that at all."""


class ShellComponent(Component):
    """What programs as spouts and as bolts have in common: how they are started, watched, and understood."""

    _spec: ShellSpec
    _streams: dict[str, OpenFields]
    _shell: ShellProcess | None = None
    _template: Any = None
    _failures: int = 0

    def __init__(  # noqa: PLR0913 - options by name
        self,
        command: Sequence[str],
        outputs: Any = None,
        *,
        direct: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        timeout: Span = "30s",
        restarts: int = 3,
        backoff: Span = "100ms",
        serializer: str = "json",
    ) -> None:
        if isinstance(command, str) or not command or not all(isinstance(part, str) for part in command):
            raise FlowError(
                f"{type(self).__name__}: expected the program and its arguments as a list, such as ['python3', 'split.py'], got {command!r}"
            )
        if serializer not in CODECS:
            raise FlowError(
                f"{type(self).__name__}: expected a serializer, json or msgpack, got {serializer!r}; {nearest(serializer, CODECS)}"
            )
        self._streams = streams_given(outputs)
        self.outputs = {name: fields.schema for name, fields in self._streams.items()} or None
        self.direct = tuple(direct)
        self.config = dict(config or {})
        self._spec = ShellSpec(
            tuple(command),
            tuple(sorted((env or {}).items())),
            str(cwd),
            timeout=micros(timeout, "timeout") / 1e6,
            restarts=restarts,
            backoff=micros(backoff, "backoff") / 1e6,
            serializer=serializer,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        vars(made).update({k: deepcopy(v, memo) for k, v in vars(self).items() if k not in ("_shell", "_template")})
        made._template = self
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({' '.join(self._spec.command)})"

    @property
    def _key(self) -> Key:
        context = self._context
        assert context is not None
        return id(self._template), context.topology, context.component, context.task

    def _open(self, context: TaskContext) -> None:
        self._context = context
        self._metrics: dict[str, CountMetric] = {}
        self._shell = POOL.take(self._key)

    def _running_shell(self) -> ShellProcess:
        if self._shell is None:
            assert self._context is not None
            self._shell = ShellProcess(self._spec, self._context)
        return self._shell

    def _lost(self, error: ShellFailed) -> None:
        """A program failed: the next use starts another, after a pause that grows."""
        LOG.warning("%s", error)
        if self._shell is not None:
            self._shell.kill()
        self._shell = None
        self._failures += 1
        if self._failures > self._spec.restarts:
            raise RunError(f"{self!r} failed {self._failures} times in a row; the last time: {error}")
        self._check_batches(error)
        if self._collector is not None:
            self.report_error(str(error))
        time.sleep(min(self._spec.backoff * 2 ** (self._failures - 1), _LONGEST))

    def _check_batches(self, error: ShellFailed) -> None:
        """Counts the batches in which a program failed, where it works batch by batch."""

    def _handle(self, message: Any) -> bool:
        """Does what a message says; true for a `sync`."""
        if not isinstance(message, dict) or "command" not in message:
            raise ShellFailed(f"{self!r}: expected a message with a command, got {str(message)[:200]!r}")
        command = message["command"]
        if command == "emit":
            self._emitted(message)
        elif command == "log":
            self._log(message)
        elif command == "error":
            self.report_error(str(message.get("msg", "")))
        elif command == "metrics":
            self._measured(message)
        elif command != "sync":
            self._run_command(command, message)
        return bool(command == "sync")

    def _run_command(self, command: str, message: dict[str, Any]) -> None:
        raise ShellFailed(f"{self!r}: expected emit, log, error, metrics or sync, got the command {command!r}")

    def _emitted(self, message: dict[str, Any]) -> None:
        raise NotImplementedError

    def _log(self, message: dict[str, Any]) -> None:
        level = message.get("level", 2)
        LOG.log(_LEVELS[level] if level in range(5) else logging.INFO, "%s: %s", self, message.get("msg", ""))

    def _measured(self, message: dict[str, Any]) -> None:
        """A metric of the program's own: numbers are added up under its name."""
        name, params = str(message.get("name", "")), message.get("params")
        assert self._context is not None
        if name not in self._metrics:
            self._metrics[name] = CountMetric()
            self._context.register_metric(name, self._metrics[name])
        self._metrics[name].increment(amount_of(params))

    def _record(self, message: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
        stream = message.get("stream") or DEFAULT
        if stream not in self._streams:
            raise UnknownName(f"{self!r} emits to a stream {stream!r}; {nearest(stream, self._streams)}")
        return stream, self._streams[stream].record(message.get("tuple") or ())

    @staticmethod
    def _named_task(message: dict[str, Any]) -> int | None:
        """The task that an emit names. 0 is none, as in Storm, whose ids begin with 1: programs with typed messages send it where they name no task."""
        return message.get("task") or None

    def _answer(self, message: dict[str, Any], ids: TaskIds) -> None:
        """The ids of the tasks that get a tuple, for programs that ask."""
        if message.get("need_task_ids") is not False:
            self._running_shell().send(ids.look())

    def close(self) -> None:
        """The program waits for the next batch where the host has one, and ends otherwise."""
        if self._shell is not None:
            shell, self._shell = self._shell, None
            POOL.put(self._key, self._template, shell)


class ShellBolt(ShellComponent, Bolt):
    """A bolt that is a program of any language, which speaks Storm's multilang protocol over its standard input and output.

    Each task has a process of its own, which stays over batches. Tuples are acked, failed and anchored as the program says. A program that ends or hangs
    is started again; what it had not acked is failed, so that its spout replays it, or sent again where it has no root.

    Args:
        command: the program and its arguments, as a list; no shell reads it.
        outputs: the fields that it emits: a schema, a list of names (a field without a type holds any JSON value), or a dict of them by stream.
        linger: how long the end of a batch waits for tuples that the program has read and not acked.
        options: `direct` (the streams of which the program names the task), `config` (settings over those of the topology), `env` and `cwd` (the
            environment and directory it runs in), `timeout` (how long it may give no sign of life), `restarts` (how often it is started again in a
            row) and `backoff` (the pause before that, which doubles), `serializer` (json or msgpack).

    Raises:
        FlowError: the command is not a list of texts, or an option is not one.
        SchemaError: the outputs cannot be read.

    >>> import penstock as ps
    >>> ps.ShellBolt(["node", "split.js"], "word string", timeout="10s")
    ShellBolt(node split.js)
    """

    auto_ack = False
    auto_anchor = False

    def __init__(self, command: Sequence[str], outputs: Any = None, *, linger: Span = "1s", **options: Any) -> None:
        super().__init__(command, outputs, **options)
        self._linger = micros(linger, "linger") / 1e6
        self.held: dict[str, Any] = {}
        self.held_by = ""
        self.failed_batches = 0
        self._has_failed = False
        self._sent: dict[str, Any] = {}
        self._unsent: list[Any] = []

    def prepare(self, context: TaskContext) -> None:
        """Finds the program of the task, if it runs already.

        Args:
            context: the component, the number of the task, and the topology around it.
        """
        self._open(context)
        self._sent, self._unsent, self._has_failed = {}, [], False
        self._emits = OpenEmits()

    def restored(self) -> None:
        """Tuples that another process held are failed: it will not ack them any more."""
        if self.held and (self._shell is None or self._shell.token != self.held_by):
            self._give_up()

    def _give_up(self) -> None:
        for tup in self.held.values():
            super().fail(tup)
        self.held = {}

    def process(self, tup: Any) -> None:
        """Writes the tuple to the program; what it answers is read by and by, and at the end of the batch.

        Args:
            tup: the tuple.

        Raises:
            RunError: the program failed too often in a row.
        """
        self._unsent.append(tup)
        self._tried(self._send)

    def _send(self) -> None:
        while self._unsent:
            shell = self._running_shell()
            number, tup = shell.next_id(), self._unsent[0]
            self._sent[number] = tup
            del self._unsent[0]
            values = [opened(v) for v in tup]
            shell.send({"id": number, "comp": tup.component, "stream": tup.stream, "task": tup._task, "tuple": values})
            if len(self._sent) % _EVERY == 0 or shell.backlog > FULL:
                self._exchange(shell)

    def _exchange(self, shell: ShellProcess) -> None:
        """Writes and reads. What was emitted for a tuple waits for its ack: none of it shall leave the task when the program ends between both."""
        shell.turn(0)
        self._drain(shell, settled(shell.received))
        while shell.backlog > FULL:
            shell.turn(1.0)
            self._drain(shell, settled(shell.received))

    def _drain(self, shell: ShellProcess, many: int | None = None) -> int:
        """Does what the program has said so far, or the first so many messages of it; returns how often it said `sync`."""
        syncs, given = 0, shell.received
        for _ in range(len(given) if many is None else many):
            syncs += self._handle(given.popleft())
        return syncs

    def end_batch(self, batch: int) -> None:
        """Waits until the program has read all tuples, and takes what it emitted.

        Args:
            batch: the id of the batch.

        Raises:
            RunError: the program failed too often in a row.
        """
        if self._sent or self.held:
            self._finish_batch()
        if not self._has_failed:
            self.failed_batches = 0
        self._has_failed = False

    def _finish_batch(self) -> None:
        self._tried(self._finish)
        self.held |= {number: tup for number, tup in self._sent.items() if tup._roots is not None}
        self.held_by = self._shell.token if self.held and self._shell is not None else ""
        self._sent = {}
        self._emits = OpenEmits()
        self._failures = 0

    def _finish(self) -> None:
        self._send()
        shell = self._running_shell()
        shell.send(HEARTBEAT)
        syncs = 0
        while not syncs:
            shell.turn(1.0)
            syncs += self._drain(shell)
        until = time.monotonic() + (0.0 if shell.holds else self._linger)
        while self._sent and (left := until - time.monotonic()) > 0:
            shell.turn(left)
            self._drain(shell)
        shell.holds = bool(self._sent)

    def _tried(self, work: Callable[[], None]) -> None:
        """Does something with the program; starts it again when it fails, and does it again."""
        while True:
            try:
                work()
                return
            except ShellFailed as error:
                self._failed(error)

    def _check_batches(self, error: ShellFailed) -> None:
        """A program that fails in one batch after the other ends the run, however far it gets in each: it would be started again for ever."""
        self.failed_batches += not self._has_failed
        self._has_failed = True
        if self.failed_batches > _BATCHES * self._spec.restarts:
            raise RunError(f"{self!r} failed in {self.failed_batches} batches in a row; the last time: {error}")

    def _failed(self, error: ShellFailed) -> None:
        """After a failure: tuples with roots are failed, so that their spouts replay them; the others go to the new process. What was emitted for them alone is forgotten."""
        self._lost(error)
        if self._collector is not None:
            self._emits.forget(self._sent.keys() | self.held.keys(), self._collector)
        self._give_up()
        for tup in self._sent.values():
            if tup._roots is not None:
                super().fail(tup)
        self._unsent = [tup for tup in self._sent.values() if tup._roots is None] + self._unsent
        self._sent = {}

    def _emitted(self, message: dict[str, Any]) -> None:
        stream, record = self._record(message)
        given = message.get("anchors") or ()
        named = [str(each) for each in ([given] if isinstance(given, str | int) else given)]
        anchors = [tup for each in named if (tup := self._tuple(each)) is not None]
        if (task := self._named_task(message)) is not None:
            self.emit_direct(task, record, stream, anchors=anchors)
        else:
            self._answer(message, self.emit(record, stream, anchors=anchors))
        if anchors and self._collector is not None:
            self._emits.add(named, stream, self._collector.last(stream))

    def _tuple(self, key: str) -> Any:
        return self._sent[key] if key in self._sent else self.held.get(key)

    def _run_command(self, command: str, message: dict[str, Any]) -> None:
        if command not in ("ack", "fail"):
            super()._run_command(command, message)
        number = str(message.get("id"))
        tup = self._sent.pop(number, None)
        tup = self.held.pop(number, None) if tup is None else tup
        if tup is None:
            return
        self._failures = 0
        self._emits.by_tuple.pop(number, None)
        if tup._roots is not None:
            super().ack(tup) if command == "ack" else super().fail(tup)


class ShellSpout(ShellComponent, Spout):
    """A spout that is a program of any language, which speaks Storm's multilang protocol over its standard input and output.

    Args:
        command: the program and its arguments, as a list; no shell reads it.
        outputs: the fields that it emits: a schema, a list of names (a field without a type holds any JSON value), or a dict of them by stream.
        reliable: whether it emits with ids, and gets acks and fails.
        options: `direct`, `config`, `env`, `cwd`, `timeout`, `restarts`, `backoff` and `serializer`, as of a `ShellBolt`.

    Raises:
        FlowError: the command is not a list of texts, or an option is not one.
        SchemaError: the outputs cannot be read.

    >>> import penstock as ps
    >>> ps.ShellSpout(["ruby", "numbers.rb"], "n bigint")
    ShellSpout(ruby numbers.rb)
    """

    endless = True
    reliable = True
    _answers: int = 0

    def __init__(self, command: Sequence[str], outputs: Any = None, *, reliable: bool = True, **options: Any) -> None:
        super().__init__(command, outputs, **options)
        self.reliable = reliable

    def open(self, context: TaskContext) -> None:
        """Finds the program of the task; it is started when it is first asked.

        Args:
            context: the component, the number of the task, and the topology around it.
        """
        self._open(context)

    def next_tuple(self) -> None:
        """Asks the program for the next tuples."""
        self._asked({"command": "next"})

    def ack(self, id: object) -> None:
        """Tells the program that a message is done; one that is started again gets it too.

        Args:
            id: the id with which the program emitted it.

        Raises:
            RunError: the program failed too often in a row.
            UnknownName: it emits to a stream that there is not.
        """
        self._deliver({"command": "ack", "id": id})

    def fail(self, id: object) -> None:
        """Tells the program that a message failed; one that is started again gets it too.

        Args:
            id: the id with which the program emitted it.

        Raises:
            RunError: the program failed too often in a row.
            UnknownName: it emits to a stream that there is not.
        """
        self._deliver({"command": "fail", "id": id})

    def activate(self) -> None:
        """Tells the program that it will be asked."""
        self._asked({"command": "activate"}, _GRACE)

    def deactivate(self) -> None:
        """Tells the program that it will not be asked for a while."""
        if self._shell is not None:
            self._asked({"command": "deactivate"}, _GRACE)

    def _deliver(self, message: dict[str, Any]) -> None:
        """A command that must not be lost: where the program has failed the next one gets it."""
        while not self._asked(message):
            pass

    def _asked(self, message: dict[str, Any], grace: float = math.inf) -> bool:
        """One command and its answer, or none when the grace is over. False where the program failed; the next call starts it again."""
        try:
            shell = self._running_shell()
            shell.send(message)
            until = time.monotonic() + grace
            while not self._synced(shell) and time.monotonic() < until:
                shell.turn(min(1.0, grace))
            self._answers += 1
            if self._answers >= _STEADY:
                self._failures = 0
        except ShellFailed as error:
            self._answers = 0
            self._lost(error)
            return False
        return True

    def _synced(self, shell: ShellProcess) -> bool:
        while shell.received:
            if self._handle(shell.received.popleft()):
                return True
        return False

    def _emitted(self, message: dict[str, Any]) -> None:
        stream, record = self._record(message)
        number = message.get("id") if self.reliable else None
        if (task := self._named_task(message)) is not None:
            self.emit_direct(task, record, stream, id=number)
            return
        self._answer(message, self.emit(record, stream, id=number))
