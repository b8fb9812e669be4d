"""The conditions of a pattern of operators over the fields of a stream: typed, and parted into what an event alone decides and what looks at others."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ExpressionError, FlowError, UnknownName, nearest
from penstock.graph import types as t
from penstock.graph.expr import Call, Column, Expr, Literal, to_text
from penstock.graph.expr.rewrite import each_of
from penstock.graph.patterns.conditions import Look, NavigationExpr, navigated, need_condition
from penstock.graph.patterns.operators import (
    EveryDistinct,
    Filter,
    Interval,
    OperatorPattern,
    While,
    Within,
    filters_of,
    has_recurring_timer,
    waits_for_events,
    walk,
)
from penstock.graph.schema import Schema

NUMBERS = (*t.INTEGERS, t.FLOAT, t.DOUBLE)


@dataclass(frozen=True, eq=False)
class FilterCondition:
    """When an event passes a filter: it is of its type, `plain` holds for it alone, and `rest` for it and what was tagged. None holds always."""

    type: Expr | None
    plain: Expr | None
    rest: NavigationExpr | None


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a condition that must all hold.

    >>> from penstock.graph.expr import parse
    >>> [to_text(each) for each in conjuncts(parse("a > 1 and (b or c) and d"))]
    ['a > 1', 'b OR c', 'd']
    """
    made, waiting = [], [condition]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call) and each.name == "and":
            waiting += reversed(each.args)
        else:
            made.append(each)
    return made


def together(parts: list[Expr]) -> Expr | None:
    """The condition that all of some hold; None where there are none. Its tree is flat, however many there are."""
    while len(parts) > 1:
        parts = [
            Call("and", tuple(parts[at : at + 2])) if at + 1 < len(parts) else parts[at]
            for at in range(0, len(parts), 2)
        ]
    return parts[0] if parts else None


def filter_condition(each: Filter, pattern: OperatorPattern, schema: Schema) -> FilterCondition:
    """The condition of a filter over the fields of a stream.

    Raises:
        UnknownName: nothing says what makes a record an event of its type.
        ExpressionError: it cannot be typed, or is not true or false.
    """
    kind = type_condition(each.type, pattern)
    parts = [] if each.condition is None else conjuncts(each.condition)
    looks = [_checked(each, part, pattern, schema) for part in parts]
    plain = [look.expr for look in looks if look.is_plain]
    rest = [part for part, look in zip(parts, looks, strict=True) if not look.is_plain]
    whole = together(rest)
    return FilterCondition(kind, together(plain), None if whole is None else _checked(each, whole, pattern, schema))


def relevance(pattern: OperatorPattern, schema: Schema) -> Expr | None:
    """What holds for every event that can make a difference to a pattern; None where all can, or where it is not sure.

    Of conditions only those count that cannot fail on an event of another type: comparisons of fields and constants.
    """
    if not waits_for_events(pattern.root) or has_recurring_timer(pattern.root):
        return None
    made: list[Expr] = []
    for each in filters_of(pattern.root):
        found = filter_condition(each, pattern, schema)
        plain = [] if found.plain is None else [part for part in conjuncts(found.plain) if _is_safe(part)]
        own = together([*([] if found.type is None else [found.type]), *plain])
        if own is None:
            return None
        made.append(own)
    unique = list({repr(each.shape()): each for each in made}.values())
    return _either(unique) if all(map(_is_safe, unique)) else None


_SAFE = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "isnull", "isnotnull", "in"))


def _is_safe(expr: Expr) -> bool:
    """Whether an expression has a value for every event: it computes nothing, and changes no type."""
    return all(
        isinstance(each, Column | Literal) or (isinstance(each, Call) and each.name in _SAFE) for each in each_of(expr)
    )


def _either(parts: list[Expr]) -> Expr | None:
    while len(parts) > 1:
        parts = [
            Call("or", tuple(parts[at : at + 2])) if at + 1 < len(parts) else parts[at]
            for at in range(0, len(parts), 2)
        ]
    return parts[0] if parts else None


def _checked(each: Filter, part: Expr, pattern: OperatorPattern, schema: Schema) -> NavigationExpr:
    made = need_condition(f"the condition of {each.tag or each.type}", part, schema, pattern.tags, each.tag)
    _refuse_rows(made, part)
    return made


def type_condition(name: str, pattern: OperatorPattern) -> Expr | None:
    """What makes a record an event of a type; None where there is but one type, which all records are of."""
    types = dict(pattern.types)
    if name in types:
        return types[name]
    names = {each.type for each in filters_of(pattern.root)}
    if not types and len(names) == 1:
        return None
    if not types:
        raise UnknownName(
            f"the pattern has the event types {', '.join(sorted(names))}, and nothing says which records are of which: say "
            f"types='kind' if a field names the type, or types={{{name!r}: \"kind = 'x'\"}}"
        )
    raise UnknownName(f"no event type {name!r}; {nearest(name, types)}")


def _refuse_rows(made: NavigationExpr, written: Expr) -> None:
    for look in made.inputs:
        if look.look is Look.MATCH_NUMBER or look.step:
            raise ExpressionError(f"{to_text(written)}: {look} belongs to row patterns; name a tag and its field here")


def over_match(written: Expr, schema: Schema, pattern: OperatorPattern, also: tuple[str, ...] = ()) -> NavigationExpr:
    """An expression over what a pattern has tagged, and fields that all events of a match share.

    Raises:
        ExpressionError: it cannot be typed, or names a field without its tag.
    """
    made = navigated(written, schema, pattern.tags)
    _refuse_rows(made, written)
    own = [c.name for c in each_of(made.expr) if isinstance(c, Column) and c.name in schema and c.name not in also]
    if own:
        first = pattern.tags[0] if pattern.tags else "a"
        raise ExpressionError(f"{to_text(written)}: say of which event {own[0]!r} is, such as {first}.{own[0]}")
    return made


def check_conditions(pattern: OperatorPattern, schema: Schema) -> None:
    """Refuses conditions, keys and spans that do not fit the fields of a stream.

    Raises:
        FlowError: one does not fit.
    """
    for name, condition in pattern.types:
        need_condition(f"the type {name}", condition, schema, ())
    for each in walk(pattern.root):
        if isinstance(each, Filter):
            filter_condition(each, pattern, schema)
        elif isinstance(each, EveryDistinct):
            for key in each.keys:
                over_match(key, schema, pattern)
        elif isinstance(each, While):
            _check_while(each, pattern, schema)
        elif isinstance(each, Interval | Within) and isinstance(each.span, Expr):
            _check_span(each.span, pattern, schema)


def _check_while(each: While, pattern: OperatorPattern, schema: Schema) -> None:
    made = over_match(each.condition, schema, pattern)
    if made.type not in (t.BOOLEAN, t.NULL):
        raise ExpressionError(f"while needs a condition, got {to_text(each.condition)}, which is {made.type}")


def _check_span(span: Expr, pattern: OperatorPattern, schema: Schema) -> None:
    made = over_match(span, schema, pattern)
    if made.type not in NUMBERS and not isinstance(made.type, t.Decimal):
        raise FlowError(f"a span of time is a number of seconds, got {to_text(span)}, which is {made.type}")
