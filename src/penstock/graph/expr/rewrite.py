"""Expressions with some of their nodes replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from penstock.graph.expr.model import Expr

Swap = Callable[[Expr], Expr | None]


def rewritten(expr: Expr, swap: Swap) -> Expr:
    """An expression with nodes replaced, from the outside in.

    Args:
        expr: the expression.
        swap: returns what replaces a node, or None to look inside it.

    >>> from penstock.graph.expr import Column, parse, to_text
    >>> to_text(rewritten(parse("a + b * 2"), lambda e: Column("c") if isinstance(e, Column) and e.name == "b" else None))
    'a + (c * 2)'
    """
    plain = expr.plain()
    swapped = swap(plain)
    if swapped is not None:
        return swapped
    fields = {f.name: getattr(plain, f.name) for f in dataclasses.fields(plain)}  # type: ignore[arg-type]  # every node is one
    made = {name: _rewritten(part, swap) for name, part in fields.items()}
    return plain if all(made[n] is fields[n] for n in made) else type(plain)(**made)


def _rewritten(part: object, swap: Swap) -> object:
    if isinstance(part, Expr):
        return rewritten(part, swap)
    if isinstance(part, tuple):
        made = tuple(_rewritten(each, swap) for each in part)
        return part if all(a is b for a, b in zip(made, part, strict=True)) else made
    return part


def each_of(expr: Expr) -> Iterator[Expr]:
    """The node and all nodes inside it."""
    plain = expr.plain()
    yield plain
    for child in plain.children():
        yield from each_of(child)
