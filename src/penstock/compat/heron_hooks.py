"""The hooks of heronpy: `context.add_task_hook(...)` of a class that derives from `ITaskHook`."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.graph.logic.topology.metrics import TaskHook
from penstock.graph.logic.topology.task_context import TaskContext


class EmitInfo(NamedTuple):
    """An emit."""

    values: Any
    stream_id: str
    task_id: int
    out_tasks: Any


class SpoutAckInfo(NamedTuple):
    """A message that is acked. How long it took is not known: acks come with batches."""

    message_id: Any
    spout_task_id: int
    complete_latency_ms: Any


class SpoutFailInfo(NamedTuple):
    """A message that failed."""

    message_id: Any
    spout_task_id: int
    fail_latency_ms: Any


class BoltExecuteInfo(NamedTuple):
    """A tuple that a bolt has processed."""

    heron_tuple: Any
    executing_task_id: int
    execute_latency_ms: Any


class BoltAckInfo(NamedTuple):
    """A tuple that a bolt has acked."""

    heron_tuple: Any
    acking_task_id: int
    process_latency_ms: Any


class BoltFailInfo(NamedTuple):
    """A tuple that a bolt has failed."""

    heron_tuple: Any
    failing_task_id: int
    fail_latency_ms: Any


class ITaskHook:
    """The base of a hook; each method does nothing until a class defines it."""

    def prepare(self, conf: Any, context: Any) -> None:
        """Called when it is added."""

    def clean_up(self) -> None:
        """Called when the task ends."""

    def emit(self, emit_info: EmitInfo) -> None:
        """Called for each emit of a bolt."""

    def spout_ack(self, spout_ack_info: SpoutAckInfo) -> None:
        """Called when a message is acked."""

    def spout_fail(self, spout_fail_info: SpoutFailInfo) -> None:
        """Called when a message failed."""

    def bolt_execute(self, bolt_execute_info: BoltExecuteInfo) -> None:
        """Called after `process`."""

    def bolt_ack(self, bolt_ack_info: BoltAckInfo) -> None:
        """Called when a tuple is acked."""

    def bolt_fail(self, bolt_fail_info: BoltFailInfo) -> None:
        """Called when a tuple is failed."""


class HeronHook(TaskHook):
    """A hook of heronpy's as one of Penstock's."""

    def __init__(self, hook: ITaskHook, context: Any) -> None:
        self.hook, self.given = hook, context

    def prepare(self, context: TaskContext) -> None:
        """It is added."""
        self.task = context.task_id if context.layout.components else context.task
        self.is_bolt = bool(context.layout.components and context.sources())
        self.hook.prepare(dict(context.config), self.given)

    def executed(self, tup: Any, seconds: float) -> None:
        """A tuple was processed."""
        self.hook.bolt_execute(BoltExecuteInfo(tup, self.task, seconds * 1000))

    def emitted(self, record: object, stream: str) -> None:
        """A tuple was emitted."""
        self.hook.emit(EmitInfo(list(record) if isinstance(record, tuple) else [record], stream, self.task, None))

    def acked(self, tup: Any) -> None:
        """A tuple of a bolt, or a message of a spout, is acked."""
        if self.is_bolt:
            self.hook.bolt_ack(BoltAckInfo(tup, self.task, None))
        else:
            self.hook.spout_ack(SpoutAckInfo(tup, self.task, None))

    def failed(self, tup: Any) -> None:
        """A tuple of a bolt, or a message of a spout, failed."""
        if self.is_bolt:
            self.hook.bolt_fail(BoltFailInfo(tup, self.task, None))
        else:
            self.hook.spout_fail(SpoutFailInfo(tup, self.task, None))

    def cleanup(self) -> None:
        """The task ends."""
        self.hook.clean_up()
