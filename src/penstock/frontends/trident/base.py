"""What every stream of a Trident topology knows, and how it adds steps to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line
from penstock.graph.composed.compose_drpc import FAILURES, REQUEST
from penstock.graph.expr import lit
from penstock.graph.ids import child
from penstock.graph.logic.topology.components import Bolt as BoltLogic
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.logic.trident import rows
from penstock.graph.logic.trident.aggregators import Extreme, aggregator_of, is_aggregator
from penstock.graph.logic.trident.bolts import PartitionRows
from penstock.graph.logic.trident.keyed import FAILED, AggregatorCall, KeyedBatchLogic, PerRequest
from penstock.graph.logic.trident.operations import Picked
from penstock.graph.nodes import OUT, Bolt, FlatMap, Node, Port, WithColumns
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.batch import KeyedBatch
from penstock.graph.nodes.exchange import Grouping
from penstock.graph.nodes.topology import check_tasks
from penstock.graph.schema import Form, Schema, schema_of
from penstock.graph.types import Field

if TYPE_CHECKING:
    from penstock.frontends.trident.topology import TridentTopology

SCOPE = REQUEST
"""The field that every tuple of a function carries unseen: the call it belongs to."""
Fields = str | Sequence[str]
"""Names of fields: one, several with commas, or a list."""


def fields_of(given: Fields) -> tuple[str, ...]:
    """The names, as a tuple.

    >>> fields_of("a, b"), fields_of(("a",))
    (('a', 'b'), ('a',))
    """
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return tuple(given)


def check_hint(tasks: object) -> None:
    """Refuses a number of partitions that cannot be.

    Raises:
        FlowError: it is none.
    """
    try:
        check_tasks(tasks)
    except FlowError as error:
        raise FlowError(f"parallelism_hint ({user_line()}): {error}") from None


@dataclass(frozen=True)
class Segment:
    """The steps since tuples were last dealt out to partitions, which all run in the partition a tuple is in."""

    tasks: int = 1
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaseStream:
    """A stream: its port, the call that its tuples carry, the kinds of its spouts, and its partitions, where it has any."""

    topology: TridentTopology
    port: Port
    scope: tuple[str, ...] = ()
    spouts: frozenset[str] = frozenset()
    requests: str = ""
    segment: Segment | None = None

    @property
    def builder(self) -> GraphBuilder:
        """Where steps are added."""
        return self.topology.builder

    @property
    def schema(self) -> Schema:
        """All fields, with the call."""
        return self.builder.output(self.port).schema

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of its tuples."""
        return tuple(name for name in self.schema.names if name not in self.scope)

    def _at(self, port: Port, segment: Segment | None = None) -> Self:
        """The stream at another port, which stems from this one."""
        return replace(self, port=port, segment=segment)

    def _of_kinds(self, kinds: frozenset[str]) -> Self:
        """The stream with the kinds of spouts that feed it."""
        return replace(self, spouts=kinds)

    def _picked(self, given: Fields) -> Picked:
        """Some of its fields; none stands for all."""
        names = fields_of(given) or self.fields
        self._only(names)
        return Picked.of(self.schema.names, names)

    def _whole(self) -> Picked:
        """All of its fields."""
        return Picked.of(self.schema.names, self.fields)

    def _only(self, names: tuple[str, ...]) -> Schema:
        """The schema of some of its fields; an error says which stream has not got them, and where that is written."""
        try:
            return self.schema.only(names)
        except SchemaError as error:
            raise SchemaError(f"stream {str(self.port)!r} ({user_line()}): {error}") from None

    def _appended(self, new: Form) -> Schema:
        """Its fields, and new ones after them."""
        try:
            return Schema((*self.schema.fields, *schema_of(new).fields))
        except SchemaError as error:
            raise SchemaError(f"stream {str(self.port)!r} ({user_line()}): {error}") from None

    def _scoped(self, *fields: Field) -> Schema:
        """The schema of the call, where tuples carry one, and of fields."""
        carried = self.schema.only(self.scope).fields if self.scope else ()
        return Schema((*carried, *fields))

    def _renamed(self, own: Sequence[Field], names: Sequence[str], what: str) -> Schema:
        """The schema of fields, under other names, if there are any."""
        if names and len(names) != len(own):
            raise FlowError(
                f"{what} ({user_line()}): expected {len(own)} names of fields, got {len(names)}: {list(names)}"
            )
        return self._scoped(*(replace(f, name=n) for f, n in zip(own, names or [f.name for f in own], strict=True)))

    def _call(self, fields: Fields, aggregator: object) -> AggregatorCall:
        """An aggregator over some of its fields."""
        made = aggregator_of(aggregator)
        return AggregatorCall(made, self._picked(fields))

    # Steps.

    def _rows(self, kind: str, step: rows.RowStep, schema: Schema, name: str) -> Self:
        """A step that looks at one tuple at a time: in its partition, where it is in one."""
        called = self.topology._named(kind, name)
        guarded = rows.PerRequest(step) if self.scope else step
        if self.segment is not None:
            return self._bolt(called, PartitionRows(self._outputs(schema), guarded), Grouping("local_or_shuffle"))
        sides = ((FAILED, FAILURES),) if self.scope else ()
        port = self.builder.add(FlatMap(called, (self.port,), guarded, schema, sides))
        return self._at(self._noted(port))

    def _outputs(self, schema: Schema) -> Schema | dict[str, Schema]:
        return {DEFAULT: schema, FAILED: FAILURES} if self.scope else schema

    def _noted(self, port: Port) -> Port:
        """A step of a function: the calls on which it fails are answered so."""
        if self.scope:
            self.topology.functions[self.requests].failures.append(Port(port.step, FAILED))
        return port

    def _bolt(self, name: str, logic: BoltLogic, grouping: Grouping, tasks: int | None = None) -> Self:
        """A step by partition. Without a number it stays in the partitions that are there."""
        before = Segment(tasks) if tasks is not None else self.segment or Segment()
        origin = ((self.port.step, DEFAULT),)
        node = Bolt(name, (self.port,), logic, (grouping,), origin, parallelism=before.tasks)
        port = self.builder.add(node)
        if isinstance(logic, PartitionRows) and logic.step is not None:
            self._noted(port)
        return self._at(Port(name), Segment(before.tasks, (*before.steps, name)))

    def _with_all(self, name: str) -> Port:
        """The stream with a key that all tuples share."""
        return self.builder.add(WithColumns(child(name, "all"), (self.port,), ((ALL, lit(0)),), hidden=True))

    def _keyed_batch(
        self,
        name: str,
        logic: KeyedBatchLogic,
        schema: Schema,
        keys: tuple[str, ...],
        others: tuple[tuple[Port, tuple[str, ...]], ...] = (),
    ) -> Port:
        """A step over the tuples of each key in a batch; of a call, where tuples carry one."""
        port = self.port if keys else self._with_all(name)
        outputs: tuple[tuple[str, Schema], ...] = ((OUT, schema),)
        if self.scope:
            logic, outputs = PerRequest(logic), (*outputs, (FAILED, FAILURES))
        node: Node = KeyedBatch(
            name,
            (port, *(p for p, _ in others)),
            keys or (ALL,),
            logic=logic,
            schemas=outputs,
            other_keys=tuple(k for _, k in others),
        )
        return self._noted(self.builder.add(node))


def aggregation(fields: object, aggregator: object, new: Form | None) -> tuple[Fields, object, Form | None]:
    """The input fields, the aggregator and the new fields of an aggregate. As in Trident the input fields may be left out; the others move up then.

    >>> from penstock import trident
    >>> aggregation(trident.Count, "n bigint", None)[0], aggregation("a", trident.Sum, "n bigint")[0]
    ((), 'a')
    """
    if new is None and is_aggregator(fields):
        return (), fields, aggregator  # type: ignore[return-value]  # out_schema looks at what is in its place
    return fields, aggregator, new  # type: ignore[return-value]  # fields_of looks at it


def out_schema(aggregator: object, fields: Form | None, stream: BaseStream) -> Schema:
    """The fields that an aggregator makes: as the user says, or those of the stream where it picks a whole tuple."""
    if isinstance(aggregator, Extreme):
        return stream.schema.only(stream.fields)
    if fields is None:
        raise FlowError(f"expected the fields of the result, such as 'n bigint', got none ({user_line()})")
    return schema_of(fields)
