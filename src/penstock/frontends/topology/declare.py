"""What is declared before a topology becomes a graph: components by name, and their subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import FlowError
from penstock.graph.caller import user_line
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.topology.choosers import as_chooser
from penstock.graph.logic.topology.components import Bolt, Spout
from penstock.graph.logic.topology.partitioned import PartitionedSpout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Endpoint, Grouping, OnError
from penstock.graph.nodes.exchange import Chooser
from penstock.graph.schema import Schema


@dataclass(frozen=True)
class Subscription:
    """A stream that a bolt or a sink wants: whose, which, how it is dealt out, and whether it closes a loop."""

    component: str
    stream: str
    grouping: Grouping
    feedback: bool = False
    line: str = ""


@dataclass(frozen=True)
class SpoutDeclaration:
    """A spout: the user's instance, or an endpoint. A partitioned one becomes two components in the graph."""

    name: str
    spout: Spout | PartitionedSpout | Endpoint
    tasks: int
    streams: dict[str, Schema]
    limit: int | None = None
    line: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    on_error: OnError | None = None


@dataclass
class BoltDeclaration:
    """A bolt under construction, as `Topology.bolt` returns it. Each method subscribes it to a stream of a component and returns the bolt.

    Components may be declared in any order: names are looked up when the graph is asked for.

    >>> import penstock as ps
    >>> class Same(ps.Bolt):
    ...     outputs = "line string"
    ...     def process(self, tup):
    ...         yield tup.line
    >>> bolt = ps.Topology("demo").bolt("same", Same).shuffle("one").fields("two", "line")
    >>> [f"{s.component}: {s.grouping}" for s in bolt.inputs]
    ['one: shuffle', 'two: fields(line)']
    """

    name: str
    bolt: Bolt
    tasks: int
    streams: dict[str, Schema]
    line: str = ""
    inputs: list[Subscription] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    on_error: OnError | None = None

    def shuffle(self, component: str, *, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """Tuples in turn to every task: each emitter deals its own round.

        Args:
            component: the component whose tuples they are.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already.
        """
        return self._to(Grouping("shuffle"), component, stream, feedback)

    def fields(self, component: str, *fields: str, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """Equal values of the fields to equal tasks.

        Args:
            component: the component whose tuples they are.
            fields: the fields of the stream.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already, or there is no field.
        """
        return self._to(Grouping("fields", self._some("fields", fields)), component, stream, feedback)

    def partial_key(
        self, component: str, *fields: str, stream: str = DEFAULT, feedback: bool = False
    ) -> BoltDeclaration:
        """Equal values to one of two tasks, the one with less to do: for keys of very different weight.

        Args:
            component: the component whose tuples they are.
            fields: the fields of the stream.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already, or there is no field.
        """
        return self._to(Grouping("partial_key", self._some("partial_key", fields)), component, stream, feedback)

    def all(self, component: str, *, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """Each tuple to every task.

        Args:
            component: the component whose tuples they are.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already.
        """
        return self._to(Grouping("all"), component, stream, feedback)

    def global_(self, component: str, *, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """Every tuple to task 0.

        Args:
            component: the component whose tuples they are.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already.
        """
        return self._to(Grouping("global"), component, stream, feedback)

    def none(self, component: str, *, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """Any task, as good as at random.

        Args:
            component: the component whose tuples they are.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already.
        """
        return self._to(Grouping("none"), component, stream, feedback)

    def direct(self, component: str, *, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """The task that the producer names: `self.emit(record, task=3)`. The stream must be declared direct.

        Args:
            component: the component whose tuples they are.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already.
        """
        return self._to(Grouping("direct"), component, stream, feedback)

    def local_or_shuffle(self, component: str, *, stream: str = DEFAULT, feedback: bool = False) -> BoltDeclaration:
        """From task to task of the same number without a move, when both have as many tasks; a shuffle otherwise.

        Args:
            component: the component whose tuples they are.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already.
        """
        return self._to(Grouping("local_or_shuffle"), component, stream, feedback)

    def custom(
        self, component: str, chooser: Chooser | Callable[..., object], *, stream: str = DEFAULT, feedback: bool = False
    ) -> BoltDeclaration:
        """Your own choice.

        Args:
            component: the component whose tuples they are.
            chooser: a function `choose(values)` that returns a task or a list of tasks, or an object with such a method. An object may have
                `prepare(context, stream, tasks)`, which is called before the first tuple. One of Storm's has `choose_tasks(task_id, values)`, and
                gets and returns ids of tasks.
            stream: which of its streams.
            feedback: whether it closes a loop.

        Returns:
            The bolt.

        Raises:
            FlowError: the bolt reads that stream already, or the chooser does not take one argument.
        """
        made = as_chooser(chooser() if isinstance(chooser, type) else chooser)
        check_function(self.name, getattr(made, "choose", made), user_line())
        return self._to(Grouping("custom", chooser=made), component, stream, feedback)

    def _some(self, what: str, fields: tuple[str, ...]) -> tuple[str, ...]:
        if not fields:
            raise FlowError(f"bolt {self.name!r} ({user_line()}): {what} needs at least one field, such as 'word'")
        return fields

    def _to(self, grouping: Grouping, component: str, stream: str, feedback: bool) -> BoltDeclaration:
        if any((s.component, s.stream) == (component, stream) for s in self.inputs):
            raise FlowError(
                f"bolt {self.name!r} ({user_line()}) has subscribed to stream {stream!r} of {component!r} already; "
                f"one grouping says how its tuples are dealt out"
            )
        self.inputs.append(Subscription(component, stream, grouping, feedback, user_line()))
        return self


@dataclass(frozen=True)
class SinkDeclaration:
    """A sink: an endpoint and the stream that goes there."""

    name: str
    endpoint: Endpoint
    reads: Subscription
    line: str = ""


@dataclass(frozen=True)
class DeadLettersDeclaration:
    """Where dead letters go."""

    name: str
    endpoint: Endpoint
    line: str = ""


Declared = SpoutDeclaration | BoltDeclaration | SinkDeclaration | DeadLettersDeclaration
