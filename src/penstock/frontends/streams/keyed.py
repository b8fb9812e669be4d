"""Streams by key: the steps that keep something for each key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from penstock.frontends.streams.folding import Folding
from penstock.frontends.streams.matches.matching import KeyedMatching
from penstock.frontends.streams.matches.row_patterns import KeyedRowMatching
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.ordering import KeyedOrdering
from penstock.frontends.streams.rules import KeyedRuling
from penstock.frontends.streams.totals import Totals
from penstock.frontends.streams.windows import Windowing
from penstock.graph.aggregates.calls import Written, calls_of
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line
from penstock.graph.compose import KeyedInput, add_aggregate
from penstock.graph.logic.process import Process as ProcessLogic
from penstock.graph.logic.topology.elements import ProcessingElement
from penstock.graph.nodes import Node, Port, Process, Reduce
from penstock.graph.nodes.stateless import Columns
from penstock.graph.schema import Form, form_of, forms_of

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


PER_KEY = (
    "aggregate", "count", "distinct", "fold", "match", "match_rows", "over", "patterns", "process", "reduce", "rules", "sort", "sum", "top", "trigger", "update_state", "window",
)  # fmt: skip
"""The steps of a stream by key, for hints."""
BEFORE_KEY = ("branch", "filter", "flat_map", "map", "select", "sink", "where")


@dataclass(frozen=True)
class KeyedStream(Totals, Windowing, KeyedOrdering, Folding, KeyedRuling, KeyedRowMatching, KeyedMatching):
    """A stream seen by key, as `Stream.key_by` returns it. Its aggregates are running totals: whenever a key's total changes, it is emitted again.

    >>> import penstock as ps
    >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
    >>> words.key_by("word").count("n")
    Stream('n': word string, n bigint, a table by word)
    """

    source: Stream
    keys: tuple[str, ...]
    computed: Columns = ()

    @names_step
    def aggregate(self, name: str, /, **aggregates: Written) -> Stream:
        """Several aggregates at once: `aggregate("stats", n="count(*)", top="max(score)")`.

        Args:
            name: the name of the step.
            aggregates: by the name of the field each fills: an expression, or your own `ps.Aggregator`.

        Returns:
            A table by key.

        Raises:
            ExpressionError: one is not an aggregate, or does not fit the fields.
            SchemaError: a field has the name of a key.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> scores = ps.Flow("demo").source("scores", ps.items([("ada", 3), ("ada", 5)], "user string, score int"))
        >>> scores.key_by("user").aggregate("stats", n="count(*)", top="max(score)").sink("out", ps.console())
        >>> run_local(scores.flow)["out"]
        [Row(user='ada', n=2, top=5)]
        """
        return self._stream(add_aggregate(self._builder, name, self._input, calls_of(aggregates)))

    @names_step
    def reduce(self, name: str, function: Callable[..., object]) -> Stream:
        """Folds the records of a key into one, two at a time.

        Args:
            name: the name of the step.
            function: `function(one, other)` returns a record; it must not depend on how they are paired.

        Returns:
            A table by key: the record that stands for all of its key.

        Raises:
            FlowError: the function does not take two arguments, or holds what cannot travel to a worker.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> scores = ps.Flow("demo").source("scores", ps.items([("ada", 3), ("ada", 5)], "user string, score int"))
        >>> best = scores.key_by("user").reduce("best", lambda one, other: max(one, other, key=lambda row: row.score))
        >>> best.sink("out", ps.console())
        >>> run_local(scores.flow)["out"]
        [Row(user='ada', score=5)]
        """
        return self._add(name, lambda port: Reduce(name, (port,), self.keys, function=function, line=user_line()))

    @names_step
    def process(
        self,
        name: str,
        logic: ProcessLogic | type[ProcessLogic] | ProcessingElement | type[ProcessingElement],
        schema: Form | None = None,
        *,
        side: Mapping[str, Form] | None = None,
    ) -> Stream:
        """A class of your own with state per key; see `penstock.Process` and `penstock.ProcessingElement`.

        Args:
            name: the name of the step.
            logic: the class, or an instance.
            schema: the fields of the records it emits; else the return annotation of `on_event` says.
            side: further outputs by name, filled with `ps.to(name, record)`.

        Returns:
            The stream of the records that the class emits.

        Raises:
            FlowError: the class lacks `on_event`, or cannot be made without arguments.
            SchemaError: nothing says what it emits.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> class Numbered(ps.Process):
        ...     seen = ps.value(int, default=0)
        ...     def on_event(self, row):
        ...         self.seen += 1
        ...         yield row.word, self.seen
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "b", "a"], "word string"))
        >>> words.key_by("word").process("numbered", Numbered, "word string, nth int").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a', nth=1), Row(word='b', nth=1), Row(word='a', nth=2)]
        """

        def made(port: Port) -> Node:
            settings = {"schema": form_of(schema), "sides": forms_of(side), "line": user_line()}
            return Process(name, (port,), self.keys, logic=logic, **settings)  # type: ignore[arg-type]  # a class becomes an instance

        return self._add(name, made)

    def __getattr__(self, name: str) -> NoReturn:
        hint = f"; {name} it before key_by" if name in BEFORE_KEY else ""
        raise AttributeError(f"a stream by key has no {name!r}{hint}; it has {', '.join(PER_KEY)}")

    def __repr__(self) -> str:
        return f"{self.source!r} by {', '.join(self.keys)}"

    @property
    def _builder(self) -> GraphBuilder:
        return self.source.flow.builder

    @property
    def _input(self) -> KeyedInput:
        return KeyedInput(self.source.port, self.keys, self.computed)

    def _stream(self, port: Port) -> Stream:
        return self.source._at(port)

    def _add(self, name: str, made: Callable[[Port], Node]) -> Stream:
        """A keyed step over the stream with its computed keys."""
        return self._stream(self._builder.add(made(self._input.stream(self._builder, name))))
