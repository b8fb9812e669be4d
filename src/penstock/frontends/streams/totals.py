"""Counts and sums: aggregates so common that they have names of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from penstock.frontends.streams.naming import names_step
from penstock.graph.expr import Expr, to_sql

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Totals:
    """What streams by key and windows share: both know how to `aggregate`."""

    @names_step
    def count(self, name: str, into: str = "") -> Stream:
        """How many records there are. The field takes the step's name unless `into` says otherwise."""
        return self.aggregate(name, **{into or _field(name): "count(*)"})

    @names_step
    def sum(self, name: str, of: str | Expr, into: str = "") -> Stream:
        """The sum of an expression."""
        return self.aggregate(name, **{into or _field(name): f"sum({of if isinstance(of, str) else to_sql(of)})"})

    def aggregate(self, name: str, /, **aggregates: Any) -> Stream:
        """Several aggregates at once."""
        raise NotImplementedError


def _field(name: str) -> str:
    return re.sub(r"\W", "_", name)
