"""Keys of numbers that are not exact, and of rows: grouped, joined and partitioned by plain values that stand for them."""

from __future__ import annotations

from penstock.graph import types as t
from penstock.graph.expr import Call, Cast, Expr, GetField, lit


def stand_ins(value: Expr, kind: t.DataType) -> tuple[Expr, ...]:
    """Plain values that are equal exactly where a value is equal to another, as Spark compares them: not-a-number is equal to itself, and -0.0 to 0.0.

    Args:
        value: the value.
        kind: its type.

    Returns:
        The values that stand for it, one where it is a number; none where there are no such values: of arrays and maps.

    >>> from penstock.graph.expr import as_expr, to_text
    >>> [to_text(each) for each in stand_ins(as_expr("x"), t.DOUBLE)]
    ['CAST(x + 0.0D AS string)']
    """
    if kind in (t.FLOAT, t.DOUBLE):
        return (Cast(Call("+", (value if kind == t.DOUBLE else Cast(value, t.DOUBLE), lit(0.0))), t.STRING),)
    if isinstance(kind, t.Struct):
        parts = [stand_ins(GetField(value, field.name), field.type) for field in kind.fields]
        known = (Call("isnull", (value,)),)
        return () if not all(parts) else (*known, *(each for part in parts for each in part))
    return () if isinstance(kind, t.Array | t.Map) else (value,)


def plain_keys(value: Expr, kind: t.DataType) -> tuple[Expr, ...]:
    """A value that is a key: itself where it is plain, or what stands for it; itself where nothing does, which the step refuses."""
    plain = kind not in (t.FLOAT, t.DOUBLE) and not isinstance(kind, t.Struct | t.Array | t.Map)
    return (value,) if plain else stand_ins(value, kind) or (value,)
