"""Linear DRPC: a function as a chain of bolts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import FlowError
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line, written_at
from penstock.graph.compose import picked_fields
from penstock.graph.composed.compose_drpc import FAILURES, REQUEST, add_answers, checked_function, requests_source
from penstock.graph.expr import col
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.logic.topology.components import Bolt as BoltLogic
from penstock.graph.logic.topology.components import check_component, streams_of
from penstock.graph.logic.topology.coordinated import REQUESTS, coordinated
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.logic.trident.keyed import FAILED
from penstock.graph.nodes import DEAD_LETTER, Bolt, Port, Route
from penstock.graph.nodes.exchange import Chooser, Grouping


@dataclass
class LinearBolt:
    """A bolt of a function under construction, as `LinearDRPCTopologyBuilder.add_bolt` returns it. Each method says how tuples reach its tasks.

    >>> import penstock as ps
    >>> class Exclaim(ps.Bolt):
    ...     outputs = "request string, result string"
    ...     def process(self, tup):
    ...         yield tup[0], tup[1] + "!"
    >>> ps.LinearDRPCTopologyBuilder("exclaim").add_bolt(Exclaim, 2).shuffle_grouping().tasks
    2
    """

    name: str
    bolt: BoltLogic
    tasks: int
    line: str
    grouping: Grouping = field(default_factory=lambda: Grouping("shuffle"))

    def shuffle_grouping(self) -> LinearBolt:
        """Tuples in turn to every task, which is so where nothing is said.

        Returns:
            The bolt.
        """
        return self._by(Grouping("shuffle"))

    def fields_grouping(self, *fields: str) -> LinearBolt:
        """Equal values of the fields to equal tasks.

        Args:
            fields: the fields of the bolt before it.

        Returns:
            The bolt.

        Raises:
            FlowError: there is no field.
        """
        if not fields:
            raise FlowError(f"bolt {self.name!r} ({self.line}): expected at least one field to group by, got none")
        return self._by(Grouping("fields", fields))

    def all_grouping(self) -> LinearBolt:
        """Each tuple to every task.

        Returns:
            The bolt.
        """
        return self._by(Grouping("all"))

    def global_grouping(self) -> LinearBolt:
        """Every tuple to task 0.

        Returns:
            The bolt.
        """
        return self._by(Grouping("global"))

    def none_grouping(self) -> LinearBolt:
        """Any task, as good as at random.

        Returns:
            The bolt.
        """
        return self._by(Grouping("none"))

    def custom_grouping(self, chooser: Chooser | Callable[..., object]) -> LinearBolt:
        """Your own choice, as `BoltDeclaration.custom` takes it.

        Args:
            chooser: returns a task or a list of tasks.

        Returns:
            The bolt.
        """
        return self._by(Grouping("custom", chooser=chooser() if isinstance(chooser, type) else chooser))

    def _by(self, grouping: Grouping) -> LinearBolt:
        self.grouping = grouping
        return self


class LinearDRPCTopologyBuilder:
    """A function as a chain of bolts: the first gets (request, args), each passes the request on as its first field, and the second field of what the last one emits is the answer.

    A bolt that defines `finished_id(self, request)` is notified when all tuples of a request have been there; it may emit or return records then. Of the first bolt the tasks that had
    a tuple of the request are notified, of the last the one to which `fields_grouping("request")` brings it, of the others all. Where a bolt raises, the
    request is answered with the error.

    Args:
        function: the name of the function.
        path: the directory of the log through which calls come; else `PENSTOCK_LOG`, or .penstock/log.

    Raises:
        FlowError: the name is not one.

    >>> import penstock as ps
    >>> from penstock.testing import LocalDRPC
    >>> class Exclaim(ps.Bolt):
    ...     outputs = "request string, result string"
    ...     def process(self, tup):
    ...         yield tup[0], tup[1] + "!"
    >>> builder = ps.LinearDRPCTopologyBuilder("exclaim")
    >>> _ = builder.add_bolt(Exclaim, 2)
    >>> LocalDRPC(builder).execute("exclaim", "hello")
    'hello!'
    """

    def __init__(self, function: str, *, path: str | Path = "") -> None:
        self.function, self.path = checked_function(function), path
        self.name = self.function
        self._line = user_line()
        self._bolts: list[LinearBolt] = []

    def add_bolt(self, bolt: BoltLogic | type[BoltLogic], parallelism: int = 1, *, name: str = "") -> LinearBolt:
        """One more bolt, which reads the one before it.

        Args:
            bolt: a Bolt of yours, a class or an instance.
            parallelism: as how many tasks it runs.
            name: its name; else bolt0, bolt1 and so on.

        Returns:
            The bolt, for its grouping.

        Raises:
            FlowError: it is no bolt.

        >>> import penstock as ps
        >>> class Same(ps.Bolt):
        ...     outputs = "request string, result string"
        ...     def process(self, tup):
        ...         yield tup.values
        >>> ps.LinearDRPCTopologyBuilder("same").add_bolt(Same, 3).fields_grouping("request").tasks
        3
        """
        called, line = name or f"bolt{len(self._bolts)}", user_line()
        made: BoltLogic = check_component(called, bolt, BoltLogic, line)
        self._bolts.append(LinearBolt(called, made, parallelism, line))
        return self._bolts[-1]

    @property
    def graph(self) -> Graph:
        """The graph of the function."""
        if not self._bolts:
            raise FlowError(f"function {self.function!r}: expected a bolt, got none; builder.add_bolt(...) first")
        with written_at(self._line):
            return self._built()

    def _built(self) -> Graph:
        builder = GraphBuilder(self.function, on_error=DEAD_LETTER)
        requests = requests_source(builder, self.function, self.path)
        columns = {"request": col(REQUEST), "args": col("args")}
        port = builder.add(picked_fields(child(requests.step, "arguments"), requests, columns, self._bolts[0].line))
        failures: list[Port] = []
        for bolt in self._bolts:
            failures.append(Port(bolt.name, FAILED))
            port = self._added(builder, bolt, port, requests)
        self._check_last()
        add_answers(builder, self.function, self.path, requests, port, tuple(failures), whole=False)
        return builder.graph()

    def _added(self, builder: GraphBuilder, bolt: LinearBolt, port: Port, requests: Port) -> Port:
        """A bolt over the one before it, and over all requests."""
        origin = (port.step, DEFAULT)
        if bolt.grouping.kind == "custom":
            route = Route(child(bolt.name, "from"), (port,), bolt.grouping, bolt.tasks, origin, line=bolt.line)
            port = builder.add(route)
        is_first, is_last = bolt is self._bolts[0], bolt is self._bolts[-1]
        logic = coordinated(bolt.name, bolt.bolt, FAILURES, notes=is_first and not is_last)
        peers = tuple((each.name, each.tasks) for each in self._bolts)
        notices = Grouping("fields", (REQUEST,)) if is_last else Grouping("all")
        streams = [(port, bolt.grouping, origin), (requests, notices, (REQUESTS, DEFAULT))]
        ports, groupings, origins = zip(*streams[: 1 if is_first and not is_last else 2], strict=True)
        node = Bolt(bolt.name, ports, logic, groupings, origins, peers, parallelism=bolt.tasks, line=bolt.line)
        builder.add(node)
        return Port(bolt.name)

    def _check_last(self) -> None:
        last = self._bolts[-1]
        streams = streams_of(last.bolt)
        if DEFAULT not in streams or len(streams[DEFAULT].names) < 2:
            raise FlowError(
                f"bolt {last.name!r} ({last.line}): expected the request and the result as outputs of the last bolt, such as "
                f"'request string, result string', got {last.bolt.outputs!r}"
            )

    def __repr__(self) -> str:
        return f"LinearDRPCTopologyBuilder({self.function!r}, {len(self._bolts)} bolts)"
