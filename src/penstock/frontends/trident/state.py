"""States of a Trident topology: where they are kept, who updates them, and who asks them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.errors import FlowError
from penstock.frontends.trident.base import Fields, check_hint, fields_of
from penstock.graph.caller import user_line
from penstock.graph.ids import child
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.logic.trident.aggregators import stored_aggregator
from penstock.graph.logic.trident.bolts import UPDATES, GroupUpdates, StatePartition
from penstock.graph.logic.trident.keyed import PersistentAggregate, Query, StateListing
from penstock.graph.logic.trident.operations import Picked
from penstock.graph.logic.trident.queries import QueryFunction, StateUpdater, TupleCollectionGet
from penstock.graph.logic.trident.states import OPAQUE, StateFactory, check_pair
from penstock.graph.nodes import OUT, Bolt, Port
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.batch import KeyedBatch
from penstock.graph.nodes.exchange import Grouping
from penstock.graph.schema import Form, Schema

if TYPE_CHECKING:
    from penstock.frontends.trident.stream import TridentStream
    from penstock.frontends.trident.topology import TridentTopology

log = logging.getLogger("penstock")


@dataclass
class TridentState:
    """A state, as `persistent_aggregate`, `partition_persist` and `new_static_state` return it, for `state_query`.

    Attributes:
        step: the step that keeps it; empty while nobody has asked a static state.
        kind: "transactional", "opaque" or "non_transactional"; what Penstock keeps is opaque: it holds under any replay.
        exactly_once: whether each batch counts once, however often it runs.

    >>> import penstock as ps
    >>> from penstock import trident
    >>> words = ps.TridentTopology("demo").new_stream("words", ps.items(["a"], "word string"))
    >>> counts = words.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint")
    >>> counts.exactly_once, counts.new_values_stream().fields
    (True, ('word', 'n'))
    """

    topology: TridentTopology
    step: str
    kind: str
    exactly_once: bool
    group: tuple[str, ...] = ()
    factory: StateFactory | None = None
    values: TridentStream | None = field(default=None, repr=False)

    def new_values_stream(self) -> TridentStream:
        """The stream of the values as batches change them: the group and the new value.

        Returns:
            The stream.

        Raises:
            FlowError: the state has none: it is only asked, or its updater has no fields.
        """
        if self.values is None:
            raise FlowError(f"expected a state whose updates emit fields ({user_line()}), got one without any")
        return self.values

    def parallelism_hint(self, tasks: int) -> TridentState:
        """As how many partitions the store of a state of yours is written; Penstock's own state follows the run's parallelism.

        Args:
            tasks: how many.

        Returns:
            The same state.

        Raises:
            FlowError: it is no number of tasks.
        """
        check_hint(tasks)
        node = self.topology.builder.node(Port(self.step)) if self.step else None
        if isinstance(node, Bolt) and node.groupings[0].kind != "global":
            self.topology.builder.replace(replace(node, parallelism=tasks))
        return self


def kept_by_penstock(
    stream: TridentStream, group: tuple[str, ...], fields: Fields, aggregator: object, value: Schema, name: str
) -> TridentState:
    """A running aggregate in Penstock's own state."""
    called = stream.topology._named("persistent_aggregate", name)
    logic = PersistentAggregate(stored_aggregator(aggregator), stream._picked(fields), is_total=not group)
    schema = Schema((*(stream.schema.only(group).fields if group else ()), *value.fields))
    port = stream.port if group else stream._with_all(called)
    node = KeyedBatch(called, (port,), group or (ALL,), logic=logic, schemas=((OUT, schema),), persistent=True)
    stream.builder.add(node)
    return _state(stream, called, OPAQUE, group, None, Port(called))


def kept_by_user(
    stream: TridentStream,
    group: tuple[str, ...] | None,
    factory: StateFactory,
    updater: StateUpdater,
    picked: Picked,
    values: Schema | None,
    name: str,
    parallelism: int,
) -> TridentState:
    """A state in a store of the user's, by partition: by group, in one partition without a group, or (None) as tuples are partitioned."""
    checked = check_factory(factory)
    called = stream.topology._named("partition_persist" if group is None else "persistent_aggregate", name)
    logic = StatePartition(
        outputs={} if values is None else {DEFAULT: values}, factory=checked, updater=updater, picked=picked
    )
    grouping = Grouping("fields", group) if group else Grouping("global" if group == () else "local_or_shuffle")
    tasks = stream.segment.tasks if group is None and stream.segment else parallelism
    node = Bolt(called, (stream.port,), logic, (grouping,), ((UPDATES, DEFAULT),), parallelism=tasks)
    stream.builder.add(node)
    return _state(stream, called, checked.kind, group or (), checked, None if values is None else Port(called))


def group_updates(
    stream: TridentStream, group: tuple[str, ...], fields: Fields, aggregator: object
) -> tuple[StateUpdater, Picked]:
    """The updates of a persistent aggregate in a store of the user's, and the fields that they read."""
    names = tuple(dict.fromkeys((*group, *(fields_of(fields) or stream.fields))))
    picked = stream._picked(names)
    wanted = fields_of(fields) or stream.fields
    return GroupUpdates(stored_aggregator(aggregator), Picked.of(names, group), Picked.of(names, wanted)), picked


def _state(
    stream: TridentStream, step: str, kind: str, group: tuple[str, ...], factory: StateFactory | None, port: Port | None
) -> TridentState:
    exactly_once = check_pair(stream.spouts, kind)
    if not exactly_once:
        log.warning(
            "state %r is %s over spouts that are %s: a batch that runs again counts again",
            step,
            kind,
            ", ".join(sorted(stream.spouts)),
        )
    values = None if port is None else replace(stream._at(port), scope=(), requests="")
    return TridentState(stream.topology, step, kind, exactly_once, group, factory, values)


def check_factory(factory: object) -> StateFactory:
    """A state factory, or an error that says what is wrong with it."""
    if not isinstance(factory, StateFactory):
        raise FlowError(
            f"expected a trident.StateFactory(make, kind), or None for a state that Penstock keeps, got {factory!r} ({user_line()})"
        )
    return factory


def query(stream: TridentStream, state: TridentState, fields: Fields, function: object, new: Form) -> TridentStream:
    """The stream with what a state answers to each tuple, as fields after its own."""
    if not isinstance(state, TridentState):
        raise FlowError(
            f"state_query ({user_line()}): expected a state, such as persistent_aggregate returns, got {state!r}"
        )
    asked = _query_function(function)
    output = f"query-{stream.topology._named('query', '').rpartition('-')[2]}"
    schema = stream._appended(new)
    names = fields_of(fields)
    picked = Picked.of(stream.schema.names, stream._only(names).names if names else ())
    made = Query(asked, picked, Picked.of(stream.schema.names, stream.schema.names), output)
    if state.factory is not None:
        _ask_user(stream, state, names, made, schema)
    elif isinstance(asked, TupleCollectionGet):
        return stream._at(Port(_list_penstock(stream, state, made, schema), output))
    else:
        _ask_penstock(stream, state, names, made, schema)
    return stream._at(Port(state.step, output))


def _list_penstock(stream: TridentStream, state: TridentState, asked: Query, schema: Schema) -> str:
    """Asks for all keys: a step of its own has them in one place, from the values as batches change them."""
    name, values, builder = child(state.step, "tuples"), state.new_values_stream(), stream.builder
    port = stream._with_all(child(name, asked.output))
    if name not in [node.name for node in builder.nodes]:
        logic = StateListing(Picked.of(values.schema.names, values.fields), len(state.group), (asked,))
        inputs = (values._with_all(name), port)
        made = (asked.output, schema)
        builder.add(
            KeyedBatch(name, inputs, (ALL,), logic=logic, schemas=(made,), other_keys=((ALL,),), persistent=True)
        )
        return name
    node = builder.node(Port(name))
    assert isinstance(node, KeyedBatch)
    builder.replace(_grown(node, port, (ALL,), asked, schema))
    return name


def _grown(node: KeyedBatch, port: Port, keys: tuple[str, ...], asked: Query, schema: Schema) -> KeyedBatch:
    """A step that answers one more query."""
    assert isinstance(node.logic, PersistentAggregate | StateListing), "these answer queries"
    return replace(
        node,
        inputs=(*node.inputs, port),
        other_keys=(*node.other_keys, keys),
        schemas=(*node.schemas, (asked.output, schema)),
        logic=replace(node.logic, queries=(*node.logic.queries, asked)),
    )


def _ask_penstock(
    stream: TridentStream, state: TridentState, names: tuple[str, ...], asked: Query, schema: Schema
) -> None:
    node = stream.builder.node(Port(state.step))
    assert isinstance(node, KeyedBatch)
    assert isinstance(node.logic, PersistentAggregate)
    if state.group and len(names) != len(state.group):
        raise FlowError(
            f"expected a field for each of the group of the state ({', '.join(state.group)}), got {', '.join(names) or 'none'} ({user_line()})"
        )
    port = stream.port if state.group else stream._with_all(child(state.step, asked.output))
    stream.builder.replace(_grown(node, port, names if state.group else (ALL,), asked, schema))


class _Nothing(StateUpdater):
    """A state that is only asked has no updates."""


def _ask_user(stream: TridentStream, state: TridentState, names: tuple[str, ...], asked: Query, schema: Schema) -> None:
    listed = isinstance(asked.function, TupleCollectionGet)
    grouping = Grouping("all") if listed else Grouping("fields", names) if state.group else Grouping("shuffle")
    if not state.step:
        assert state.factory is not None
        state.step = stream.topology._named("state", "")
        nothing = Picked((), ())
        first = StatePartition(
            outputs={asked.output: schema}, factory=state.factory, updater=_Nothing(), picked=nothing, queries=(asked,)
        )
        stream.builder.add(Bolt(state.step, (stream.port,), first, (grouping,), ((asked.output, DEFAULT),)))
        return
    node = stream.builder.node(Port(state.step))
    assert isinstance(node, Bolt)
    logic = node.logic
    assert isinstance(logic, StatePartition)
    grown = replace(logic, outputs={**logic.outputs, asked.output: schema}, queries=(*logic.queries, asked))
    more = replace(
        node,
        inputs=(*node.inputs, stream.port),
        groupings=(*node.groupings, grouping),
        origins=(*node.origins, (asked.output, DEFAULT)),
        logic=grown,
    )
    stream.builder.replace(more)


def _query_function(given: object) -> QueryFunction:
    made = given() if isinstance(given, type) else given
    if not isinstance(made, QueryFunction):
        raise FlowError(
            f"expected a trident.QueryFunction such as trident.MapGet, a class or an instance, got {given!r} ({user_line()})"
        )
    return made
