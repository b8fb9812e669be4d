"""Which expressions Arrow computes by columns with Spark's meaning, so that a step over them may run next to the Python steps it stands between.

>>> from penstock.graph.expr.parse import parse
>>> from penstock.graph.schema import schema_of
>>> is_columnar(parse("n + 1 > 2 and name is not null"), schema_of("n int, name string"))
True
>>> is_columnar(parse("price > 2"), schema_of("price double"))
False
"""

from __future__ import annotations

from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr
from penstock.graph.expr.infer import resolve
from penstock.graph.expr.model import Expr
from penstock.graph.schema import Schema

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
ARITHMETIC = frozenset(("+", "-", "*"))
LOGIC = frozenset(("and", "or", "not"))
NULLS = frozenset(("isnull", "isnotnull"))
COMPARED = frozenset((*t.INTEGERS, t.BOOLEAN, t.STRING, t.BINARY, t.DATE))
"""Types whose values Arrow compares as Spark does. It does not with floats, of which NaN is special."""
NUMBERS = frozenset((t.DOUBLE, t.TIMESTAMP))
"""Types whose values compare alike where each is a number, or a moment."""


def is_columnar(expr: Expr, schema: Schema) -> bool:
    """Whether Arrow computes an expression over the fields of a schema as Spark does."""
    return has_columns(resolve(expr, schema))


def has_columns(node: TypedExpr, *, numbers: bool = False) -> bool:
    """Whether Arrow computes a typed expression as Spark does.

    Of the casts only those between whole numbers; all others have rules of Spark's own. With `numbers` it is known that every float is a
    number: then floats compare alike too.
    """
    if node.kind == "column":
        return True
    if node.kind == "literal":
        return node.type in COMPARED or (numbers and node.type in NUMBERS)
    if not all(has_columns(arg, numbers=numbers) for arg in node.args):
        return False
    kinds = {arg.type for arg in node.args}
    if node.kind == "cast":
        return kinds <= set(t.INTEGERS) and node.type in (*t.INTEGERS, *(NUMBERS if numbers else ())) and not node.value
    return node.kind == "call" and _is_known(node, kinds, COMPARED | NUMBERS if numbers else COMPARED)


def _is_known(node: TypedExpr, kinds: set[t.DataType], compared: frozenset[t.DataType]) -> bool:
    if node.value in COMPARISONS:
        return len(kinds) == 1 and kinds <= compared
    if node.value in ARITHMETIC:
        return kinds == {node.type} and node.type in t.INTEGERS
    return node.value in NULLS or (node.value in LOGIC and kinds == {t.BOOLEAN})
