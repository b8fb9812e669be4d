"""What is kept for each key by a function (`fold`, `update_state`), or until a trigger fires (`trigger`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.duration import Span, checked_span
from penstock.graph.expr import Expr, as_expr
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.process import StateUpdate
from penstock.graph.nodes import Fold, Trigger
from penstock.graph.nodes.window import EVENT
from penstock.graph.schema import Form, schema_of

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream

V = TypeVar("V")


class Folding:
    """The functional forms of a stream by key."""

    @names_step
    def fold(
        self, name: str, init: V, function: Callable[..., V | tuple[object, ...] | dict[str, object]], schema: Form
    ) -> Stream:
        """A running value per key. At the end of a batch each key that changed emits a record: the key fields and the value's.

        Args:
            name: the name of the step.
            init: the value before the first record.
            function: `function(so_far, row)` returns the next value.
            schema: what the value looks like: with one field it is a bare value, with several it comes as a row and may be returned as
                a tuple or a dict.

        Returns:
            A table by key.

        Raises:
            SchemaError: a field of the value is a key.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items([("a", "x"), ("a", "y")], "k string, word string"))
        >>> words.key_by("k").fold("joined", "", lambda so_far, row: so_far + row.word, "text string").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(k='a', text='xy')]
        """
        keyed = cast("KeyedStream", self)
        settings = {"init": init, "function": function, "schema": schema_of(schema)}
        return keyed._add(name, lambda port: Fold(name, (port,), keyed.keys, line=user_line(), **settings))  # type: ignore[arg-type]

    @names_step
    def update_state(
        self,
        name: str,
        function: Callable[..., tuple[object, Iterable[object]]],
        schema: Form,
        *,
        side: Mapping[str, Form] | None = None,
    ) -> Stream:
        """Any Python object per key.

        Args:
            name: the name of the step.
            function: `function(row, state)` returns what to keep and the records that come out. `state` is None before the first record
                of a key, and whenever the function returns None for it: the key is forgotten then.
            schema: the fields of the records.
            side: further outputs by name, filled with `ps.to(name, record)`.

        Returns:
            The stream of the records that the function returns.

        Raises:
            FlowError: the function does not take two arguments, or holds what cannot travel to a worker.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> def step(row, state):
        ...     seen = (state or 0) + 1
        ...     return seen, [(row.word, seen)]
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "a"], "word string"))
        >>> words.key_by("word").update_state("numbered", step, "word string, nth int").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a', nth=1), Row(word='a', nth=2)]
        """
        check_function(name, function, user_line(), arguments=2)
        return cast("KeyedStream", self).process(name, StateUpdate(function), schema, side=side)

    @names_step
    def trigger(
        self,
        name: str,
        *,
        every: Span | None = None,
        when: str | Expr | None = None,
        until: str | Expr | None = None,
        whole: bool = False,
        clock: str = EVENT,
        settings: Stream | None = None,
    ) -> Stream:
        """Has each key wait until a trigger fires, and then emit what has changed of its rows since it last fired.

        A key fires every so often, at the multiples of a span of time, or in the batch in which a condition turns true of one of its rows while
        it was true of none. Without `every` and `when` changes are emitted at once. When the input is over, every key fires that waits for a time.

        Args:
            name: the name of the step.
            every: how often a key fires.
            when: a condition on a row.
            until: a condition on a row that ends its key for good: the key fires once more, unless it waits for `when`, and is then left out.
                `.side("ended")` has the keys that have ended, with `ended_at`.
            whole: True emits all rows of the key at each firing, as records.
            clock: by which time `every` goes: "event" or "processing". A key without changes fires too where `whole` is asked for.
            settings: a stream that says of each key when it is there: the key, and `op` (add, drop or end); it may have `every bigint`, in
                microseconds, and `until timestamp`, the event time at which the key ends. Keys that it does not name are left out.

        Returns:
            Records where records come in or `whole` is asked for, else the table.

        Raises:
            FlowError: there are both `every` and `when`, or a span is none.
            ExpressionError: a condition is none.

        >>> import penstock as ps
        >>> from penstock.testing import BARRIER, run_local
        >>> orders = ps.Flow("demo").source("orders", ps.items([], "who string, amount bigint"))
        >>> totals = orders.key_by("who").aggregate("sums", amount="sum(amount)")
        >>> totals.key_by("who").trigger("large", when="amount > 10", whole=True).sink("out", ps.console())
        >>> run_local(orders.flow, {"orders": [("ann", 7), BARRIER, ("ann", 5), BARRIER, ("ann", 1)]})["out"]
        [Row(who='ann', amount=12)]
        """
        keyed = cast("KeyedStream", self)
        further = () if settings is None else (settings.port,)
        return keyed._add(
            name,
            lambda port: Trigger(
                name,
                (port, *further),
                keyed.keys,
                every=None if every is None else checked_span(every, "every", least=1),
                when=None if when is None else as_expr(when),
                until=None if until is None else as_expr(until),
                whole=whole,
                clock=clock,
                line=user_line(),
            ),
        )
