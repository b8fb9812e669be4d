"""Counts and sums: aggregates so common that they have names of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.frontends.streams.naming import names_step
from penstock.graph.aggregates.calls import Written
from penstock.graph.expr import Call, Expr, as_expr

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Totals:
    """What streams by key and windows share: both know how to `aggregate`."""

    @names_step
    def count(self, name: str, into: str = "") -> Stream:
        """How many records there are.

        Args:
            name: the name of the step.
            into: the field of the number; else it takes the step's name.

        Returns:
            The counts: a table by key, or a record for each key and window.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "b", "a"], "word string"))
        >>> words.key_by("word").count("n").sink("out", ps.console())
        >>> run_local(words.flow).table("out")["a"]
        Row(word='a', n=2)
        """
        return self.aggregate(name, **{into or _field(name): "count(*)"})

    @names_step
    def sum(self, name: str, of: str | Expr, into: str = "") -> Stream:
        """The sum of an expression.

        Args:
            name: the name of the step.
            of: what is summed.
            into: the field of the sum; else it takes the step's name.

        Returns:
            The sums: a table by key, or a record for each key and window.

        Raises:
            ExpressionError: the expression is no number.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> sales = ps.Flow("demo").source("sales", ps.items([("ada", 2), ("ada", 3)], "user string, n int"))
        >>> sales.key_by("user").sum("total", "n").sink("out", ps.console())
        >>> run_local(sales.flow)["out"]
        [Row(user='ada', total=5)]
        """
        return self.aggregate(name, **{into or _field(name): Call("sum", (as_expr(of),))})

    def aggregate(self, name: str, /, **aggregates: Written) -> Stream:
        """Several aggregates at once."""
        raise NotImplementedError


def _field(name: str) -> str:
    return re.sub(r"\W", "_", name)
