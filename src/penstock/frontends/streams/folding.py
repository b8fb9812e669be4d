"""Functions that keep something for each key: `fold` and `update_state`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.process import StateUpdate
from penstock.graph.nodes import Fold
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
