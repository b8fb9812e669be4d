"""Steps that look at one record and stay native: other fields, fewer records, a record for each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from penstock.errors import FlowError
from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.compose import dropped, renamed, star
from penstock.graph.expr import Alias, Expr, as_expr, name_of
from penstock.graph.nodes import Explode, Select, Where, WithColumns
from penstock.graph.nodes.stateless import Columns

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Projecting:
    """What a stream can do with expressions."""

    @names_step
    def select(self, name: str, /, *columns: str | Expr, **named: str | Expr) -> Stream:
        """New records of expressions: `select("pick", "word", n="count + 1")`. Stays native.

        A field that is only renamed stays what it is: event time, or the key of running totals.

        Args:
            name: the name of the step.
            columns: expressions that have a name, and "*" for all fields; what stands in `named` replaces a field of "*".
            named: expressions by the name of the field each fills.

        Returns:
            The stream of the new records.

        Raises:
            ExpressionError: an expression cannot be read or typed.
            SchemaError: a field is not there, or the key of running totals is lost.
            FlowError: the name of the step is a field, so it was probably left out.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "bb"], "word string"))
        >>> words.select("sizes", "word", n=ps.fn.length(ps.col("word"))).sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a', n=1), Row(word='bb', n=2)]
        """
        stream = cast("Stream", self)
        written = self._written(columns, dict(columns_of_names(named)))
        if name in stream.schema and name not in dict(written):
            raise FlowError(
                f"select takes the step's name first; {name!r} is a field. Write select('a-name', {name!r}, ...)"
            )
        return stream._add(Select(name, (stream.port,), written, line=user_line()))

    def _written(self, columns: tuple[str | Expr, ...], named: dict[str, Expr]) -> Columns:
        """The expressions in order; one that has the name of a field of "*" replaces it."""
        stream = cast("Stream", self)
        made: list[tuple[str, Expr]] = []
        for given in columns:
            if isinstance(given, str) and given.strip() == "*":
                made += [(n, named.pop(n, e)) for n, e in star(stream.schema)]
            else:
                made.append((name_of(as_expr(given)), _bare(as_expr(given))))
        return (*made, *named.items())

    @names_step
    def drop(self, name: str, *fields: str) -> Stream:
        """The records without some fields. Stays native.

        Args:
            name: the name of the step.
            fields: the fields to leave out.

        Returns:
            The stream without the fields.

        Raises:
            SchemaError: a field is not there, none is left, or the key of running totals is lost.

        >>> import penstock as ps
        >>> users = ps.Flow("demo").source("users", ps.items([], "name string, secret string"))
        >>> users.drop("public", "secret")
        Stream('public': name string)
        """
        stream = cast("Stream", self)
        return stream._add(Select(name, (stream.port,), dropped(stream.schema, fields), line=user_line()))

    @names_step
    def rename(self, name: str, /, **names: str) -> Stream:
        """The records with some fields under another name: `rename("plain", user="customer")` calls `user` `customer`. Stays native.

        Event time and the keys of running totals go along.

        Args:
            name: the name of the step.
            names: the new name of each field that gets one.

        Returns:
            The stream with the new names.

        Raises:
            SchemaError: a field is not there, or two would have the same name.

        >>> import penstock as ps
        >>> users = ps.Flow("demo").source("users", ps.items([], "user string, n int"))
        >>> users.rename("plain", user="customer")
        Stream('plain': customer string, n int)
        """
        stream = cast("Stream", self)
        return stream._add(Select(name, (stream.port,), renamed(stream.schema, names), line=user_line()))

    @names_step
    def with_columns(self, name: str, /, **named: str | Expr) -> Stream:
        """The record with fields added or replaced by expressions. Stays native.

        Args:
            name: the name of the step.
            named: expressions by the name of the field each fills.

        Returns:
            The stream of the wider records.

        Raises:
            ExpressionError: an expression cannot be read or typed.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> sales = ps.Flow("demo").source("sales", ps.items([(2, 3.0)], "n int, price double"))
        >>> sales.with_columns("totals", total="n * price").sink("out", ps.console())
        >>> run_local(sales.flow)["out"]
        [Row(n=2, price=3.0, total=6.0)]
        """
        stream = cast("Stream", self)
        return stream._add(WithColumns(name, (stream.port,), columns_of_names(named), line=user_line()))

    @names_step
    def where(self, name: str, condition: str | Expr | None = None) -> Stream:
        """The records for which an expression is true. Stays native.

        Args:
            name: the name of the step.
            condition: an expression that is true or false.

        Returns:
            The stream of the records that pass; null is not true.

        Raises:
            ExpressionError: it is not.
            FlowError: there is no condition.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> ages = ps.Flow("demo").source("ages", ps.items([17, 18], "age int"))
        >>> ages.where("adults", "age >= 18").sink("out", ps.console())
        >>> run_local(ages.flow)["out"]
        [Row(age=18)]
        """
        stream = cast("Stream", self)
        if condition is None:
            raise FlowError(f"where ({user_line()}) takes a name and a condition: where('adults', 'age >= 18')")
        return stream._add(Where(name, (stream.port,), as_expr(condition), line=user_line()))

    @names_step
    def explode(self, name: str, into: str, items: str | Expr) -> Stream:
        """One record for each item of a list; the other fields are repeated. Stays native.

        Args:
            name: the name of the step.
            into: the field of the item.
            items: an expression that is a list.

        Returns:
            The stream of the items; an empty list and a null emit nothing.

        Raises:
            ExpressionError: it is not.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> lines = ps.Flow("demo").source("lines", ps.items(["to be"], "line string"))
        >>> lines.explode("words", into="word", items="split(line, ' ')").sink("out", ps.console())
        >>> run_local(lines.flow)["out"]
        [Row(line='to be', word='to'), Row(line='to be', word='be')]
        """
        stream = cast("Stream", self)
        return stream._add(Explode(name, (stream.port,), into, as_expr(items), line=user_line()))


def columns_of_names(named: Mapping[str, str | Expr]) -> Columns:
    """Expressions by the name of the field each fills, from what the user wrote."""
    return tuple((n, _bare(as_expr(e))) for n, e in named.items())


def _bare(written: Expr) -> Expr:
    return written.expr if isinstance(written, Alias) else written
