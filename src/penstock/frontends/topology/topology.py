"""A topology as the user writes it: spouts, bolts and sinks by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import FlowError, NameTaken, SchemaError
from penstock.frontends.topology.build import build_graph
from penstock.frontends.topology.declare import (
    BoltDeclaration,
    DeadLettersDeclaration,
    Declared,
    SinkDeclaration,
    SpoutDeclaration,
    Subscription,
)
from penstock.graph.binding import naming
from penstock.graph.caller import user_line
from penstock.graph.graph import Graph
from penstock.graph.ids import checked_name, is_name
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.topology.components import Bolt, Component, Spout, check_component, streams_of
from penstock.graph.logic.topology.config import checked_config
from penstock.graph.logic.topology.partitioned import PartitionedSpout, as_partitioned
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Endpoint, Grouping, OnError, on_error_of
from penstock.graph.nodes.policy import Policy
from penstock.graph.nodes.topology import check_tasks
from penstock.graph.schema import Schema

_SYSTEM = "__"
"""With which names of the system's own begin."""


class Topology:
    """A topology under construction; `topology.graph` is the immutable graph it stands for.

    Args:
        name: the name of the topology: its state, metrics and ledgers go by it.
        config: settings for all components, by Storm's names, such as `{"topology.message.timeout.secs": 60}`.
        on_error: what happens to a record that cannot be read and to a tuple that a bolt fails on: 'fail', 'dead_letter', 'skip', or `ps.retry(...)`.

    Raises:
        FlowError: the name has other signs than letters, digits, '-', '_' and '.', or a setting has a value that cannot be meant.

    >>> import penstock as ps
    >>> class Split(ps.Bolt):
    ...     outputs = "word string"
    ...     def process(self, tup):
    ...         return tup.line.split()
    >>> top = ps.Topology("words")
    >>> top.spout("lines", ps.items(["a b", "b"], "line string"))
    >>> _ = top.bolt("split", Split(), parallelism=2).shuffle("lines")
    >>> top.sink("out", ps.console(), from_="split")
    >>> [n.name for n in top.graph.nodes]
    ['lines', 'split', 'out']
    """

    def __init__(self, name: str, config: Mapping[str, Any] | None = None, *, on_error: Policy | None = None) -> None:
        self.name = _checked(name, "a topology")
        self.config = checked_config(config or {})
        self.on_error = _policy(on_error)
        self._declared: dict[str, Declared] = {}

    @property
    def graph(self) -> Graph:
        """The graph as it stands: every name is looked up now, and the whole is checked."""
        return build_graph(self.name, self._declared, self.config, self.on_error)

    def spout(
        self,
        name: str,
        spout: Spout | type[Spout] | PartitionedSpout | type[PartitionedSpout] | Endpoint,
        parallelism: int = 1,
        *,
        limit: int | None = None,
        config: Mapping[str, Any] | None = None,
        on_error: Policy | None = None,
    ) -> None:
        """Where tuples come from. All tasks of a `Spout` run in the driver, in turn; those of a `PartitionedSpout` read in the executors.

        Args:
            name: the name of the component.
            spout: a Spout or PartitionedSpout of yours, a class or an instance, or an endpoint such as `ps.files(...)`.
            parallelism: as how many tasks it runs.
            limit: ends the spout after so many tuples.
            config: settings of the component, over those of its class and of the topology.
            on_error: what happens to a record of an endpoint that cannot be read, or to a tuple of your Spout that does not fit its stream: 'fail',
                'dead_letter' or 'skip'; else as the topology says. What `next_tuple` raises ends the run, whatever it says.

        Raises:
            NameTaken: the topology has a component of that name.
            SchemaError: the spout or the endpoint does not say what it emits.
            FlowError: it is neither, or the number of tasks is not one.

        >>> import penstock as ps
        >>> ps.Topology("demo").spout("lines", ps.items(["a b"], "line string"))
        """
        line, tasks = user_line(), _tasks(name, parallelism)
        policy = _policy(on_error)
        if isinstance(spout, Endpoint):
            streams = {DEFAULT: _endpoint_schema(name, spout)}
            self._add(SpoutDeclaration(name, spout, tasks, streams, limit, line, on_error=policy))
            return
        made = self._checked_spout(name, spout, limit, line)
        streams = _streams(name, made, line)
        if not streams:
            raise SchemaError(
                f"spout {name!r} ({line}) must say what it emits: outputs = 'sentence string' in its class"
            )
        self._add(SpoutDeclaration(name, made, tasks, streams, limit, line, _config(name, made, config, line), policy))

    @staticmethod
    def _checked_spout(
        name: str,
        given: Spout | type[Spout] | PartitionedSpout | type[PartitionedSpout],
        limit: int | None,
        line: str,
    ) -> Spout | PartitionedSpout:
        made: Spout | PartitionedSpout = as_partitioned(name, given, limit, line) or check_component(
            name, given, Spout, line
        )
        return made

    def bolt(
        self,
        name: str,
        bolt: Bolt | type[Bolt],
        parallelism: int = 1,
        *,
        config: Mapping[str, Any] | None = None,
        on_error: Policy | None = None,
    ) -> BoltDeclaration:
        """A step of yours. What it reads is said on what this returns: `.shuffle("lines")`.

        Args:
            name: the name of the component.
            bolt: a Bolt of yours, a class or an instance.
            parallelism: as how many tasks it runs.
            config: settings of the component, over those of its class and of the topology.
            on_error: what happens to a tuple that it fails on: 'fail', 'dead_letter', 'skip', or `ps.retry(...)`; else as the topology says.

        Returns:
            The bolt, for its groupings.

        Raises:
            NameTaken: the topology has a component of that name.
            FlowError: it is no bolt, the number of tasks is not one, or there is no such policy.

        >>> import penstock as ps
        >>> class Same(ps.Bolt):
        ...     outputs = "line string"
        ...     def process(self, tup):
        ...         yield tup.line
        >>> ps.Topology("demo").bolt("same", Same, parallelism=2).shuffle("lines").tasks
        2
        """
        line, tasks = user_line(), _tasks(name, parallelism)
        made: Bolt = check_component(name, bolt, Bolt, line)
        check_function(name, type(made).process, line, arguments=2)
        settings = _config(name, made, config, line)
        streams = _streams(name, made, line)
        declared = BoltDeclaration(name, made, tasks, streams, line, config=settings, on_error=_policy(on_error))
        self._add(declared)
        return declared

    def sink(self, name: str, endpoint: Endpoint, from_: str, *, stream: str = DEFAULT) -> None:
        """Where the tuples of a stream go.

        Args:
            name: the name of the component.
            endpoint: what is written, such as `ps.write_files(...)`.
            from_: the component whose tuples they are.
            stream: which of its streams.

        Raises:
            NameTaken: the topology has a component of that name.
            FlowError: the endpoint is none.

        >>> import penstock as ps
        >>> ps.Topology("demo").sink("out", ps.console(), from_="lines")
        """
        line = user_line()
        if not isinstance(endpoint, Endpoint):
            raise FlowError(f"sink {name!r} ({line}) needs an endpoint such as ps.console(), got {endpoint!r}")
        reads = Subscription(from_, stream, Grouping("local_or_shuffle"), line=line)
        self._add(SinkDeclaration(name, endpoint, reads, line))

    def dead_letters(self, name: str, endpoint: Endpoint) -> None:
        """Where the tuples go that components put aside. Without it they are kept beside the topology's state: `penstock dlq list`.

        Args:
            name: the name of the sink.
            endpoint: where dead letters are written.

        Raises:
            NameTaken: the topology has a component of that name.
            FlowError: the endpoint is none.

        >>> import penstock as ps
        >>> ps.Topology("demo", on_error="dead_letter").dead_letters("bad", ps.write_files("bad", "json"))
        """
        line = user_line()
        if not isinstance(endpoint, Endpoint):
            raise FlowError(f"sink {name!r} ({line}) needs an endpoint such as ps.console(), got {endpoint!r}")
        self._add(DeadLettersDeclaration(name, endpoint, line))

    def _add(self, declared: Declared) -> None:
        name = _checked(declared.name, "a component")
        if name in self._declared:
            raise NameTaken(
                f"component {name!r} ({declared.line}) must have a name of its own; the one made at "
                f"{self._declared[name].line} has it. Names are what errors, metrics and state use"
            )
        self._declared[name] = declared

    def __repr__(self) -> str:
        return f"Topology({self.name!r}, {len(self._declared)} components)"


def _checked(name: object, what: str) -> str:
    if isinstance(name, str) and name.startswith(_SYSTEM):
        raise FlowError(
            f"{what}: expected a name that does not begin with {_SYSTEM!r}, which is for the system, got {name!r}"
        )
    return checked_name(name, what, "topology.bolt('split', Split())")


def _policy(given: Policy | None) -> OnError | None:
    return None if given is None else on_error_of(given)


def _tasks(name: str, parallelism: int) -> int:
    with naming("component", name, user_line):
        check_tasks(parallelism)
    return parallelism


def _config(name: str, component: Component, config: Mapping[str, Any] | None, line: str) -> dict[str, Any]:
    try:
        return {**checked_config(component.config), **checked_config(config or {})}
    except FlowError as error:
        raise FlowError(f"component {name!r} ({line}): {error}") from None


def _endpoint_schema(name: str, endpoint: Endpoint) -> Schema:
    if endpoint.schema is None:
        raise SchemaError(f"spout {name!r} ({user_line()}): this endpoint has no schema of its own; give it schema=...")
    return endpoint.schema


def _streams(name: str, component: Component, line: str) -> dict[str, Schema]:
    try:
        streams = streams_of(component)
    except SchemaError as error:
        raise SchemaError(f"component {name!r} ({line}): {error}") from None
    wrong = next((s for s in streams if not is_name(s) or s == "out" or s.startswith(_SYSTEM)), None)
    if wrong is not None:
        raise FlowError(
            f"component {name!r} ({line}): a stream is named with letters, digits, '-', '_' and '.', no '__' first, got {wrong!r}. "
            f"The stream that is meant when none is named is {DEFAULT!r}"
        )
    unknown = [s for s in component.direct if s not in streams]
    if unknown:
        raise FlowError(
            f"component {name!r} ({line}): direct lists streams of its outputs ({', '.join(streams) or 'none'}), such as "
            f"direct = ({DEFAULT!r},), got {component.direct!r}"
        )
    return streams
