"""JSON made of values: JSON_STRING, JSON_OBJECT, JSON_ARRAY, and their aggregates; and what is asked of JSON with more words."""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.frontends.sql.expr.functions import SPECIAL, FunctionContext
from penstock.frontends.sql.expr.library import LIBRARY
from penstock.frontends.sql.text.json_functions import ABSENT
from penstock.graph.expr import Call, Case, Expr, Literal, PythonCall, lit

_MADE = ("JSON_OBJECT", "JSON_ARRAY", "JSON_OBJECTAGG", "JSON_ARRAYAGG")
"""Functions whose result is JSON, which stands in other JSON as it is."""


def plain_path(path: Expr) -> Expr:
    """A path without the word that says how strict it is: here all are lax."""
    if isinstance(path, Literal) and isinstance(path.value, str):
        return lit(re.sub(r"^\s*(lax|strict)\s+", "", path.value, flags=re.IGNORECASE))
    return path


def _spelled(context: FunctionContext, tree: exp.Expr) -> Expr:
    """A value as JSON; null stays null."""
    value = context.translator.expr(tree)
    while isinstance(tree, exp.Paren):
        tree = tree.this
    is_made = isinstance(tree, exp.Anonymous) and str(tree.this).upper() in _MADE
    return value if is_made else Call("json_string", (value,))


def _piece(context: FunctionContext, before: Expr | None, tree: exp.Expr) -> Expr:
    """A value of an object or list, with what stands before it; null where it is left out."""
    spelled = _spelled(context, tree)
    if not context.tree.meta.get(ABSENT):
        spelled = Call("coalesce", (spelled, lit("null")))
    return spelled if before is None else Call("concat", (before, spelled))


def _in_signs(first: str, inner: Expr, last: str) -> Expr:
    return Call("concat", (lit(first), inner, lit(last)))


def _string(context: FunctionContext) -> Expr:
    if len(context.arguments) != 1:
        raise context.error(f"JSON_STRING takes 1 argument, got {len(context.arguments)}")
    return _spelled(context, context.arguments[0])


def _object(context: FunctionContext) -> Expr:
    given = context.arguments
    if not given:
        return lit("{}")
    pieces = tuple(
        _piece(context, _key(context, key), value) for key, value in zip(given[::2], given[1::2], strict=True)
    )
    return _in_signs("{", Call("concat_ws", (lit(","), *pieces)), "}")


def _key(context: FunctionContext, tree: exp.Expr) -> Expr:
    return Call("concat", (Call("json_string", (context.translator.expr(tree),)), lit(":")))


def _array(context: FunctionContext) -> Expr:
    if not context.arguments:
        return lit("[]")
    pieces = tuple(_piece(context, None, each) for each in context.arguments)
    return _in_signs("[", Call("concat_ws", (lit(","), *pieces)), "]")


def _object_of_group(context: FunctionContext) -> Expr:
    if len(context.arguments) != 2:
        raise context.error("JSON_OBJECTAGG is written JSON_OBJECTAGG(KEY k VALUE v)")
    key, value = context.arguments
    listed = Call("collect_list", (_piece(context, _key(context, key), value),))
    return _in_signs("{", Call("array_join", (listed, lit(","))), "}")


def _array_of_group(context: FunctionContext) -> Expr:
    if len(context.arguments) != 1:
        raise context.error("JSON_ARRAYAGG is written JSON_ARRAYAGG(x)")
    if not context.tree.meta.get(ABSENT):
        raise context.error("JSON_ARRAYAGG leaves nulls out: NULL ON NULL is not supported")
    return Call("json_string", (Call("collect_list", (context.translator.expr(context.arguments[0]),)),))


def _value(context: FunctionContext) -> Expr:
    text, path = _two(context)
    return Call("get_json_object", (text, plain_path(path)))


def _two(context: FunctionContext) -> tuple[Expr, Expr]:
    given = context.values()
    if len(given) != 2:
        raise context.error(f"{context.name.upper()} takes 2 arguments, got {len(given)}")
    return given[0], given[1]


def _exists(context: FunctionContext) -> Expr:
    return Call("isnotnull", (_value(context),))


def _query(context: FunctionContext) -> Expr:
    """What a path finds, if it is an object or a list; perhaps put into a list."""
    if len(context.arguments) == 4:
        return _items(context)
    found = _value(context)
    return Case(((Call("rlike", (found, lit(r"^\s*[\[{]"))), found),))


def _items(context: FunctionContext) -> Expr:
    text, path, *words = context.values()
    return PythonCall(LIBRARY[context.name.lower()], (text, plain_path(path), *words))


SPECIAL.update(
    {
        "json_string": _string,
        "json_object": _object,
        "json_array": _array,
        "json_objectagg": _object_of_group,
        "json_arrayagg": _array_of_group,
        "json_value": _value,
        "json_exists": _exists,
        "json_query": _query,
        "json_items": _items,
    }
)
