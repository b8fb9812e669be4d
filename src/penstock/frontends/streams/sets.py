"""Set operations over whole rows, and look-ups in a table that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.frontends.streams.joins import Joining, On, settings_of
from penstock.frontends.streams.naming import names_step
from penstock.graph.compose import add_join
from penstock.graph.expr import Expr, as_expr
from penstock.graph.nodes import LookupJoin
from penstock.graph.nodes.relational.sets import EXCEPT, INTERSECT
from penstock.graph.relational.sets import add_distinct_rows, add_set_operation

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Comparing(Joining):
    """What compares the rows of a stream as a whole, with each other or with those of another."""

    @names_step
    def distinct_rows(self, name: str) -> Stream:
        """Each different row once: SQL's SELECT DISTINCT. Of a table a row stays as long as it is there at all.

        Args:
            name: the name of the step.

        Returns:
            The stream, or the table, without doubles.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items([("a", 1.5), ("a", 1.5), ("a", 2.5)], "word string, x double"))
        >>> words.distinct_rows("once").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a', x=1.5), Row(word='a', x=2.5)]
        """
        stream = cast("Stream", self)
        return stream._at(add_distinct_rows(stream.flow.builder, name, stream.port))

    @names_step
    def intersect(self, name: str, other: Stream, *, every: bool = False) -> Stream:
        """The rows that are in both: SQL's INTERSECT.

        Args:
            name: the name of the step.
            other: a stream or table with the same fields.
            every: True has a row as often as the side that has fewer of it: INTERSECT ALL.

        Returns:
            Records where both sides are records, else a table.

        Raises:
            FlowError: the other is no stream of this flow.
            SchemaError: the fields differ.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> one, other = (flow.source(n, ps.items(n, "letter string")) for n in ("abc", "bcd"))
        >>> one.intersect("both", other).sink("out", ps.console())
        >>> sorted(run_local(flow)["out"])
        [Row(letter='b'), Row(letter='c')]
        """
        return self._compared(name, other, INTERSECT, every)

    @names_step
    def subtract(self, name: str, other: Stream, *, every: bool = False) -> Stream:
        """The rows that are in this one and not in the other: SQL's EXCEPT.

        Args:
            name: the name of the step.
            other: a stream or table with the same fields.
            every: True takes each row away as often as the other has it: EXCEPT ALL.

        Returns:
            A table: a row goes when it comes on the other side.

        Raises:
            FlowError: the other is no stream of this flow.
            SchemaError: the fields differ.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> one, other = (flow.source(n, ps.items(n, "letter string")) for n in ("abc", "bcd"))
        >>> one.subtract("rest", other).sink("out", ps.console())
        >>> run_local(flow)["out"]
        [Row(letter='a')]
        """
        return self._compared(name, other, EXCEPT, every)

    def _compared(self, name: str, other: Stream, operation: str, every: bool) -> Stream:
        stream = cast("Stream", self)
        stream._need_stream(other, f"{operation} is with a stream")
        return stream._at(add_set_operation(stream.flow.builder, name, stream.port, other.port, operation, every=every))

    @names_step
    def lookup_join(
        self,
        name: str,
        other: Stream,
        on: On,
        *,
        how: str = "inner",
        prefix: str = "",
        condition: str | Expr | None = None,
    ) -> Stream:
        """Each row with what the other stream holds for its key now; what changes there later changes nothing of it.

        The changes of a batch on the other side come before the rows of that batch. It is SQL's join FOR SYSTEM_TIME AS OF processing time.

        Args:
            name: the name of the step.
            other: a table, or a stream of which all records are kept.
            on: a field, a list of fields, or pairs such as `{"id": "order_id"}`.
            how: "inner" or "left".
            prefix: is put before the fields of the other stream.
            condition: what a pair must meet beside its key.

        Returns:
            Records where this stream has records, else a table.

        Raises:
            FlowError: `how` is another kind, or the other is no stream of this flow.
            SchemaError: a key is not there, or a field would appear twice.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> orders = flow.source("orders", ps.items([], "id int, currency string"))
        >>> rates = flow.source("rates", ps.items([], "op string, currency string, rate double")).as_table("now", "currency")
        >>> orders.lookup_join("priced", rates, "currency").sink("out", ps.console())
        >>> run_local(flow, {"orders": [(1, "EUR"), (2, "USD")], "rates": [("insert", "EUR", 1.5)]})["out"]
        [Row(id=1, currency='EUR', rate=1.5)]
        """
        stream = cast("Stream", self)
        stream._need_stream(other, "a look-up is in a stream")
        met = None if condition is None else as_expr(condition)
        join = LookupJoin(**settings_of(name, stream, other, on, how, prefix), condition=met)
        return stream._at(add_join(stream.flow.builder, join))
