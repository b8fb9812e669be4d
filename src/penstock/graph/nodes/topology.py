"""Bolts: the user's own classes, fed by groupings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from penstock.errors import FlowError, SchemaError, nearest
from penstock.graph import types as t
from penstock.graph.ids import child
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.topology.bolts import StatefulBolt, WindowedBolt
from penstock.graph.logic.topology.components import Bolt as BoltLogic
from penstock.graph.logic.topology.components import Component, check_component, streams_of
from penstock.graph.logic.topology.config import TICK, seconds_of
from penstock.graph.logic.topology.task_context import TopologyLayout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes.base import OUT, Inputs, Node, Output, Settings, label
from penstock.graph.nodes.exchange import Grouping
from penstock.graph.nodes.keyed import MOST_TASKS
from penstock.graph.schema import Schema

SEQUENCE = t.Field("__seq", t.BIGINT)
"""The number of a spout's tuple, so that its order outlives files and partitions."""
TASK = t.Field("__task", t.INT)
"""The task a tuple is meant for, where its producer decides that."""
SOURCE = t.Field("__from", t.INT)
"""The number of the task a tuple comes from, where its producer has several."""
ROOTS = t.Field("__roots", t.BINARY)
"""The roots a tuple stems from, eight bytes each."""
NOTHING = Schema((t.Field("__nothing", t.BOOLEAN),), internal=True)
"""The output of a bolt that emits nothing."""


@dataclass(frozen=True)
class Bolt(Node):
    """A component of a topology. `groupings` and `origins` (component, stream) have one entry for each input.

    A bolt runs as `parallelism` tasks. What a task keeps in its instance is saved with each batch.
    """

    logic: BoltLogic
    groupings: tuple[Grouping, ...]
    origins: tuple[tuple[str, str], ...] = ()
    peers: tuple[tuple[str, int], ...] = ()
    layout: TopologyLayout = field(default_factory=TopologyLayout)
    config: tuple[tuple[str, Any], ...] = ()
    looped: tuple[int, ...] = ()
    """The inputs that a loop brings, straight from its beginning: their messages were held open on the way."""
    feeds: tuple[tuple[str, int], ...] = ()
    """The outputs that go into loops, with the number of these."""
    unrooted: tuple[str, ...] = ()
    """The outputs whose roots nobody reads, so that they carry none."""
    kind: ClassVar[str] = "bolt"
    python: ClassVar[bool] = True
    noun: ClassVar[str] = "bolt"

    @property
    def keyed(self) -> bool:  # type: ignore[override]  # a bolt's class decides
        """Whether its tasks keep state: their attributes, tuples that they hold, or when they are to be ticked."""
        return (
            bool(self.logic.stateful)
            or not self.logic.auto_ack
            or self.tick is not None
            or isinstance(self.logic, StatefulBolt)
        )

    @property
    def stores(self) -> dict[str, str]:
        """What its tasks keep, and the entries of those with a key-value state."""
        kept = [self.name] if self.keyed else []
        return dict.fromkeys([*kept, *([self.entries] if isinstance(self.logic, StatefulBolt) else [])], "values")

    @property
    def entries(self) -> str:
        """The store of the key-value state of its tasks."""
        return child(self.name, "state")

    @property
    def timed(self) -> bool:  # type: ignore[override]  # a bolt's class decides
        """Whether its tasks have work when time moves: ticks, and windows by time."""
        return self.tick is not None or isinstance(self.logic, WindowedBolt)

    @property
    def tick(self) -> float | None:
        """How often its tasks get a tick tuple, in seconds; None when they get none."""
        return seconds_of(dict(self.config), TICK)

    @property
    def tasks(self) -> int:
        """How many tasks it runs as."""
        return self.parallelism or 1

    def resolve(self, given: Inputs) -> Self:
        """An instance of the user's class."""
        return replace(self, logic=check_component(self.name, self.logic, BoltLogic, self.line))

    def check(self, given: Inputs) -> None:
        """It reads something, in a way that fits the streams."""
        check_function(self.name, type(self.logic).process, self.line, arguments=2)
        check_tasks(self.parallelism)
        if not given:
            raise FlowError(f"{self.where} reads nothing; subscribe it to a stream, such as .shuffle('lines')")
        for number, (grouping, stream) in enumerate(zip(self.groupings, given, strict=True)):
            self._check_grouping(number, grouping, stream.schema)
        if isinstance(self.logic, WindowedBolt):
            self._check_windows(self.logic, given)

    def _check_windows(self, logic: WindowedBolt, given: Inputs) -> None:
        logic.check_windows()
        for number, stream in enumerate(given):
            known, field = visible(stream.schema).names, logic.timestamp_field
            if field is not None and field not in known:
                raise SchemaError(
                    f"timestamp_field: {self._stream(number)} has no field {field!r}; {nearest(field, known)}"
                )

    def _check_grouping(self, number: int, grouping: Grouping, schema: Schema) -> None:
        of = self._stream(number)
        if grouping.kind == "direct" and TASK.name not in schema:
            raise FlowError(
                f"direct grouping needs a direct stream, and {of} is not one; say direct = ({self._origin(number)[1]!r},) "
                f"in its class, and emit(..., task=n)"
            )
        if TASK.name in schema and not grouping.by_column:
            raise _direct(of)
        check_grouping(grouping, of, schema)

    def _origin(self, number: int) -> tuple[str, str]:
        port = self.inputs[number]
        return self.origins[number] if self.origins else (port.step, DEFAULT if port.name == OUT else port.name)

    def _stream(self, number: int) -> str:
        component, stream = self._origin(number)
        return f"stream {stream!r} of {component!r}"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The streams that its class declares; root ids go on where an input carries them."""
        rooted = any(ROOTS.name in stream.schema for stream in given)
        made = component_outputs(self.logic, rooted, *noted_source(self.tasks, bool(self.feeds)))
        return tuple(replace(o, schema=without_roots(o.schema)) if o.name in self.unrooted else o for o in made)

    def stays_with(self, producer: Node) -> bool:
        """Whether tuples need not move: each task of the producer hands them to its own twin here."""
        alone = len(self.inputs) == 1 and self.groupings[0].kind == "local_or_shuffle"
        return alone and isinstance(producer, Bolt) and producer.tasks == self.tasks

    def settings(self) -> Settings:
        """The class, its tasks and how each input reaches them."""
        names = self.origins or tuple((str(p), "") for p in self.inputs)
        routes = {_origin(*o): str(g) for o, g in zip(names, self.groupings, strict=True)}
        return {"class": label(self.logic), "tasks": self.tasks, **routes}


def _origin(component: str, stream: str) -> str:
    return component if stream in ("", "default") else f"{component}.{stream}"


@dataclass(frozen=True)
class Route(Node):
    """Chooses the task of the next bolt for each tuple, where only Python can: it runs with the tuple's producer."""

    grouping: Grouping
    tasks: int
    origin: tuple[str, str]
    looped: bool = False
    bolt: str = ""
    layout: TopologyLayout = field(default_factory=TopologyLayout)
    kind: ClassVar[str] = "route"
    python: ClassVar[bool] = True
    noun: ClassVar[str] = "bolt"

    def check(self, given: Inputs) -> None:
        """The grouping fits the stream."""
        of = f"stream {self.origin[1]!r} of {self.origin[0]!r}"
        if TASK.name in given[0].schema:
            raise _direct(of)
        check_grouping(self.grouping, of, given[0].schema)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The stream, and the task of each tuple."""
        return (Output(with_hidden(given[0].schema, TASK)),)

    def settings(self) -> Settings:
        """The grouping and the number of tasks."""
        return {"grouping": str(self.grouping), "tasks": self.tasks}


@dataclass(frozen=True)
class ExternalStep(Node):
    """A step that runs elsewhere; only its outputs are known."""

    known: tuple[Output, ...] = field(default=())
    kind: ClassVar[str] = "external"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What is known."""
        return self.known


def route_name(bolt: str, component: str, stream: str) -> str:
    """The name of the route from a stream to a bolt."""
    return child(bolt, "from", *((component,) if stream == DEFAULT else (component, stream)))


def noted_source(tasks: int, wanted: bool) -> list[t.Field]:
    """The field with the task of each tuple, where there are several tasks and nothing but the tuple can tell them apart."""
    return [SOURCE] if wanted and tasks > 1 else []


def component_outputs(logic: Component, rooted: bool, *beside: t.Field) -> tuple[Output, ...]:
    """The streams of a spout or bolt, with what they carry beside their fields.

    Args:
        logic: the user's instance.
        rooted: whether its tuples carry root ids.
        beside: what every stream carries beside.
    """
    roots = [ROOTS] if rooted else []
    made = [
        Output(
            with_hidden(schema, *beside, *([TASK] if stream in logic.direct else []), *roots),
            OUT if stream == DEFAULT else stream,
        )
        for stream, schema in streams_of(logic).items()
    ]
    return tuple(made) or (Output(NOTHING),)


def check_grouping(grouping: Grouping, of: str, schema: Schema) -> None:
    """Refuses to group by fields that are not there, or that have no hash."""
    try:
        kinds = [schema.field(f).type for f in grouping.fields]
    except SchemaError as error:
        raise SchemaError(f"{of}: {error}") from None
    if any(isinstance(k, t.Map) for k in kinds):
        raise SchemaError("a map has no hash, so tuples cannot be grouped by one; pick a part of it")


def check_tasks(tasks: object) -> None:
    """Refuses a number of tasks that a component cannot run as."""
    if tasks is not None and (isinstance(tasks, bool) or not isinstance(tasks, int) or not 1 <= tasks <= MOST_TASKS):
        raise FlowError(f"it runs as 1 to {MOST_TASKS:,} tasks, got parallelism={tasks!r}")


def _direct(of: str) -> FlowError:
    return FlowError(f"{of} is direct, its producer names the task; subscribe with .direct(...)")


def with_hidden(schema: Schema, *fields: t.Field) -> Schema:
    """A schema with fields of Penstock's own after those of the user."""
    new = tuple(f for f in fields if f.name not in schema.names)
    return Schema(schema.fields + new, internal=True) if new else schema


def without_roots(schema: Schema) -> Schema:
    """A schema without root ids."""
    kept = tuple(f for f in schema.fields if f.name != ROOTS.name)
    return replace(schema, fields=kept) if len(kept) < len(schema.fields) else schema


def visible(schema: Schema) -> Schema:
    """A schema without the fields of Penstock's own."""
    kept = tuple(f for f in schema.fields if not f.name.startswith("__"))
    return schema if len(kept) == len(schema.fields) else Schema(kept)
