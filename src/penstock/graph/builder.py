"""The one way to build a graph: steps by name with their inputs, each checked as it is added.

Every front end calls a `GraphBuilder`. What a step means is in its node, what several steps make together is in
`penstock.graph.compose`; a front end only turns what the user wrote into calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import is_

from penstock.errors import FlowError, LoopError, NameTaken, nearest
from penstock.graph.binding import bind, inputs_of, naming
from penstock.graph.bootstrap import Bootstrap
from penstock.graph.caller import user_line
from penstock.graph.endpoints.delivery import DELIVERIES
from penstock.graph.expr import Expr, ScalarFunction
from penstock.graph.expr.registry import PythonFunction, registry_of, with_functions
from penstock.graph.graph import Graph
from penstock.graph.ids import checked_name, is_derived, is_id, owner_of
from penstock.graph.node_expressions import with_expressions
from penstock.graph.nodes import DEAD_LETTER, OUT, Feedback, Node, Output, Port, Sink, Source, on_error_of
from penstock.graph.nodes.keyed import check_parallelism
from penstock.graph.nodes.policy import Policy
from penstock.graph.schema import Schema


class GraphBuilder:
    """A graph under construction.

    Args:
        name: the name of the flow.
        delivery: the delivery guarantee of the sinks that ask for none.
        on_error: what steps do with a record they fail on, where they have no policy of their own.
        functions: the Python functions that expressions may call by name.

    Raises:
        FlowError: the name or a policy is not one.
        ExpressionError: one of the functions is none, or two have one name.

    >>> from penstock.graph.endpoints.basic import console, items
    >>> from penstock.graph.expr import as_expr
    >>> from penstock.graph.nodes import Where
    >>> builder = GraphBuilder("some")
    >>> rows = builder.add(Source("rows", (), items([1, 5], "n bigint")))
    >>> large = builder.add(Where("large", (rows,), as_expr("n > 3")))
    >>> str(builder.output(large).schema)
    'n bigint'
    >>> builder.add(Where("wrong", (rows,), as_expr("m > 3"), line="a.py:7"))
    Traceback (most recent call last):
    penstock.errors.ExpressionError: step 'wrong' (a.py:7): no column 'm'; there are: 'n'
    """

    def __init__(
        self,
        name: str,
        *,
        delivery: str = "",
        on_error: Policy | None = None,
        functions: Iterable[PythonFunction] = (),
    ) -> None:
        self.name = checked_name(name, "a flow")
        if delivery and delivery not in DELIVERIES:
            raise FlowError(f"flow {name!r}: no delivery {delivery!r}; {nearest(str(delivery), DELIVERIES)}")
        self.delivery = delivery
        self.on_error = None if on_error is None else on_error_of(on_error)
        self.functions = registry_of(functions)
        self._nodes: dict[str, Node] = {}
        self._bootstraps: dict[str, Bootstrap] = {}
        self._built: tuple[list[object], Graph] | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The steps so far, in the order they were added."""
        return tuple(self._nodes.values())

    def node(self, port: Port) -> Node:
        """The step that emits a stream."""
        return self._nodes[port.step]

    def output(self, port: Port) -> Output:
        """What is known of the stream at a port."""
        return self._nodes[port.step].output(port.name)

    def add(self, node: Node) -> Port:
        """Adds a step over streams that are there.

        Args:
            node: the step; its outputs are worked out. Without a line it gets the user's.

        Returns:
            The port of its first output.

        Raises:
            NameTaken: another step has its name.
            FlowError: it does not fit what it reads; the message names the step and the line.
        """
        located = node if node.line else replace(node, line=user_line())
        self._check_name(located)
        located = with_expressions(self._delivered(located), self.meant)
        try:
            self._nodes[located.name] = bind(located, inputs_of(located, self._nodes))
        except Exception:
            self._forget_children(located.name)
            raise
        first = next(iter(self._nodes[located.name].outputs), None)
        return Port(located.name, first.name if first else OUT)

    def restore(self, nodes: Iterable[Node]) -> None:
        """Takes the graph back to steps that it had: those that were added since are gone, and their names are free."""
        self._nodes = {node.name: node for node in nodes}

    def replace(self, node: Node) -> None:
        """Puts a step in the place of one of the same name, of which others may know: it reads or emits more than that.

        Raises:
            FlowError: it does not fit what it reads.
        """
        before = self._nodes[node.name]
        located = replace(node, line=before.line, outputs=())
        self._nodes[node.name] = bind(located, inputs_of(located, self._nodes))

    @property
    def scalar_functions(self) -> tuple[ScalarFunction, ...]:
        """The Python functions that are over one record."""
        return tuple(each for each in self.functions.values() if isinstance(each, ScalarFunction))

    def meant(self, expr: Expr) -> Expr:
        """An expression with calls of the flow's functions instead of their names."""
        return with_functions(expr, self.functions) if self.functions else expr

    def _forget_children(self, step: str) -> None:
        """Takes back the steps that were made for one that is refused."""
        made_for_it = [n for n in self._nodes if is_derived(n) and owner_of(n) == step]
        for name in made_for_it:
            del self._nodes[name]

    def add_in_any_order(self, nodes: Iterable[Node]) -> None:
        """Adds steps that may read each other before they are added, as the components of a topology do."""
        named = {n.name: n for n in self._nodes.values()}
        for node in nodes:
            self._check_name(node, named)
            named[node.name] = with_expressions(self._delivered(node), self.meant)
        self._nodes = {n.name: n for n in Graph(self.name, tuple(named.values())).nodes}

    def _check_name(self, node: Node, known: dict[str, Node] | None = None) -> None:
        if not is_id(node.name):
            checked_name(node.name)
        first = (self._nodes if known is None else known).get(node.name)
        if first is not None:
            raise NameTaken(
                f"{node.where} must have a name of its own; the step made at {first.line} has it. "
                f"Names are what errors, metrics and state use"
            )

    def _delivered(self, node: Node) -> Node:
        """A sink that asks for no guarantee gets that of the flow."""
        return replace(node, delivery=self.delivery) if isinstance(node, Sink) and not node.delivery else node

    def set_on_error(self, port: Port, policy: Policy) -> None:
        """Says what the step that emits a stream does with a record it fails on.

        Raises:
            FlowError: the step runs no code that could fail on a record, or is a source.
        """
        node = self._nodes[port.step]
        if isinstance(node, Source):
            raise FlowError(
                f"on_error ({user_line()}) of a source is said where it is made: flow.source({node.name!r}, ..., on_error='dead_letter')"
            )
        if not (node.runs_python or node.keyed or node.has_functions):
            raise FlowError(
                f"on_error ({user_line()}) is for steps that run Python; {node.name!r} is a {node.kind}. For all the rest say "
                f"it of the flow: ps.Flow(name, on_error='dead_letter')"
            )
        self._nodes[node.name] = replace(node, on_error=on_error_of(policy))

    def set_parallelism(self, port: Port, tasks: int) -> None:
        """Says how many tasks the keyed step that emits a stream runs as.

        Raises:
            FlowError: it is not from 1 to 32,768, or the step is not keyed.
        """
        node = self._nodes[port.step]
        with naming(node.noun, node.name, user_line):
            check_parallelism(tasks)
            if not node.keyed:
                raise FlowError(
                    f"only steps by key have a parallelism of their own; for others put .repartition('name', {tasks}) before them"
                )
        self._nodes[node.name] = replace(node, parallelism=tasks)

    def feed(self, loop: Port, stream: Port) -> None:
        """Closes a loop: the records of `stream` come out of `loop`, one round later.

        Raises:
            LoopError: `loop` is not the beginning of a loop, or is fed already.
            SchemaError: the two have different fields.
        """
        node = self._nodes[loop.step]
        if not isinstance(node, Feedback):
            raise LoopError(f"feed ({user_line()}) needs a stream made by flow.feedback(...); {loop} is a {node.kind}")
        with naming(node.noun, node.name, user_line):
            if node.fed_by is not None:
                raise LoopError(f"{node.noun} {node.name!r} is fed already, by {node.fed_by}; union the streams first")
            fed = replace(node, fed_by=stream)
            fed.check_fed(self.output(stream))
        self._nodes[node.name] = fed

    def bootstrap(self, step: str, records: GraphBuilder, port: Port) -> None:
        """Says what a step has seen before the flow's first record.

        Args:
            step: the name of the step; it may be added later.
            records: where the records are made, this flow or another.
            port: the stream of them.

        Raises:
            FlowError: the step has a bootstrap already.
        """
        if step in self._bootstraps:
            raise FlowError(f"step {step!r} has a bootstrap already ({self._bootstraps[step].line}); union the streams")
        self._bootstraps[step] = Bootstrap(step, tuple(records.above(port)), port, user_line())

    def above(self, port: Port) -> list[Node]:
        """The steps that a stream comes from, itself among them, in the order they were added."""
        needed, waiting = set[str](), [port.step]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting += [p.step for p in self._nodes[name].inputs]
        return [n for n in self._nodes.values() if n.name in needed]

    def form_read_by(self, step: str) -> Schema | None:
        """The fields of the first stream that a step reads; None where there is none."""
        inputs = self._nodes[step].inputs if step in self._nodes else ()
        return self.output(inputs[0]).schema if inputs else None

    def graph(self) -> Graph:
        """The graph as it stands, checked as a whole.

        Raises:
            FlowError: it has no steps, a loop is not closed, or a bootstrap does not fit its step.
        """
        parts: list[object] = [self.on_error, *self._nodes.values(), *self._bootstraps.values()]
        if self._built is None or not _are_same(self._built[0], parts):
            nodes = tuple(map(self._settled, self._nodes.values()))
            self._built = parts, Graph(self.name, nodes, tuple(self._bootstraps.values()))
        return self._built[1]

    def _settled(self, node: Node) -> Node:
        """A step with the error policy of the flow, or the usual one of its kind, where it has none itself."""
        if self.on_error is None:
            return node if node.on_error is not None else replace(node, on_error=node.usual_policy)
        if isinstance(node, Source):
            searched = self.on_error.action == DEAD_LETTER
            own = node.on_error is not None
            return replace(node, on_error=node.on_error or self.on_error, searched=searched, by_flow=not own)
        open_to_it = (node.runs_python or node.keyed or node.has_functions) and node.on_error is None
        return replace(node, on_error=self.on_error) if open_to_it else node


def _are_same(some: list[object], others: list[object]) -> bool:
    """Whether two lists hold the same objects: steps are never changed, only replaced."""
    return len(some) == len(others) and all(map(is_, some, others))
