"""Counts and sums: aggregates so common that they have names of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.frontends.streams.naming import names_step
from penstock.graph.aggregates import Written
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
        """
        return self.aggregate(name, **{into or _field(name): "count(*)"})

    @names_step
    def sum(self, name: str, of: str | Expr, into: str = "") -> Stream:
        """The sum of an expression.

        Args:
            name: the name of the step.
            of: what is summed.
            into: the field of the sum; else it takes the step's name.
        """
        return self.aggregate(name, **{into or _field(name): Call("sum", (as_expr(of),))})

    def aggregate(self, name: str, /, **aggregates: Written) -> Stream:
        """Several aggregates at once."""
        raise NotImplementedError


def _field(name: str) -> str:
    return re.sub(r"\W", "_", name)
