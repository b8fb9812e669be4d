"""Expressions that look at other events of a match: `first(a).x`, `last(a).x`, `a[1].x`, `a.x`, `count(a)`, `avg(a.x)`, `prev(x)`, and as SQL
writes them `FIRST(a.x, 1)`, `PREV(x, 2)`, `CLASSIFIER()`, `MATCH_NUMBER()`, `RUNNING ...`, `FINAL ...`.

Each look becomes a named input of an ordinary expression, so that what types and evaluates expressions elsewhere does so here.

>>> from penstock.graph.schema import schema_of
>>> from penstock.graph.expr import parse, to_text
>>> made = navigated(parse("n > first(a).n + 1"), schema_of("n int"), ("a", "b"))
>>> to_text(made.expr), [str(look) for look in made.inputs], str(made.type)
('n > (__look0 + 1)', ['first(a.n)'], 'boolean')
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.aggregates.calls import AggregateCall, is_aggregate
from penstock.graph.expr import Alias, Call, Column, Expr, GetField, GetItem, Literal, to_text, type_of_expr
from penstock.graph.expr.rewrite import each_of, rewritten
from penstock.graph.schema import Schema

CLASSIFIER = "__classifier"
"""The hidden field of an event that was taken: the name of its stage."""
NUMBER = "__match_number"
"""The hidden field of an event in the argument of an aggregate: the number of the match."""
_INPUT = "__look"


class Look(enum.Enum):
    """Where an expression looks."""

    FIRST = "first"
    """The first event of a stage, or the one `offset` after it."""
    LAST = "last"
    """The last event of a stage, or the one `offset` before it."""
    AGGREGATE = "aggregate"
    """All events of a stage."""
    MATCH_NUMBER = "match_number"
    """The number of the match in its key, from 1."""


@dataclass(frozen=True, eq=False)
class Navigation:
    """A look at other events of a match, which yields one value; null where there is no such event.

    Args:
        look: where to look.
        type: the type of the value.
        variable: the stage whose events are meant; empty for all of them.
        value: what is computed of the event found, over the fields of one event and `CLASSIFIER`; None for aggregates.
        offset: how many events of the stage further on (FIRST) or back (LAST).
        step: how many events of the match, of any stage, from there: below zero is before.
        aggregate: what is computed of all events.
        final: whether events are meant which are taken later; None where it was not said.
        distinct: whether an aggregate is over different values alone; count(distinct x) is an aggregate of its own.
    """

    look: Look
    type: t.DataType
    variable: str = ""
    value: Expr | None = None
    offset: int = 0
    step: int = 0
    aggregate: Aggregate | None = None
    final: bool | None = None
    distinct: bool = False

    def __str__(self) -> str:
        if self.look is Look.MATCH_NUMBER:
            return "match_number()"
        if self.aggregate is not None:
            return f"{self.aggregate} of {self.variable or 'all'}"
        inner = to_text(self.value) if self.value is not None else ""
        shown = f"{self.variable}.{inner}" if self.variable else inner
        made = f"{self.look.value}({shown}{f', {self.offset}' if self.offset else ''})"
        return made if not self.step else f"{'prev' if self.step < 0 else 'next'}({made}, {abs(self.step)})"


@dataclass(frozen=True, eq=False)
class NavigationExpr:
    """An expression over the fields of an event and what it looks at elsewhere.

    `schema` is that of `expr`: the fields of the event, then one for each of `inputs`.
    """

    expr: Expr
    schema: Schema
    type: t.DataType
    inputs: tuple[Navigation, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it looks at the event alone, so that it can be computed once for a whole batch."""
        return not self.inputs


def value_schema(schema: Schema) -> Schema:
    """The fields over which `Navigation.value` and aggregates are: those of an event, and the name of its stage."""
    return Schema((*schema.fields, t.Field(CLASSIFIER, t.STRING)), internal=True)


def argument_schema(fields: Iterable[t.Field]) -> Schema:
    """The fields over which the arguments of aggregates are: those of an event, the name of its stage, and the number of the match."""
    return Schema((*fields, t.Field(CLASSIFIER, t.STRING), t.Field(NUMBER, t.BIGINT)), internal=True)


def asks_for_number(look: Navigation) -> bool:
    """Whether a look asks for the number of the match."""
    return look.look is Look.MATCH_NUMBER or (look.aggregate is not None and NUMBER in look.aggregate.reads)


def navigated(
    written: Expr, schema: Schema, variables: Collection[str], own: str = "", *, distinct: bool = False
) -> NavigationExpr:
    """An expression with its looks at other events taken out as inputs.

    Args:
        written: the expression as it was read.
        schema: the fields of an event.
        variables: the names of stages, and of unions of them.
        own: the stage whose condition it is; `own.x` is the field of the event that is asked about.
        distinct: whether DISTINCT may stand in any aggregate, and not in count alone.

    Raises:
        ExpressionError: it cannot be typed, or looks where nothing is.
    """
    reader = _Reader(schema, variables, own, distinct)
    expr = reader.read(written.expr if isinstance(written, Alias) else written)
    fields = tuple(t.Field(f"{_INPUT}{at}", look.type) for at, look in enumerate(reader.inputs))
    whole = Schema((*schema.fields, *fields), internal=True) if fields else schema
    return NavigationExpr(expr, whole, type_of_expr(expr, whole), tuple(reader.inputs))


def need_condition(
    what: str, written: Expr, schema: Schema, variables: Collection[str], own: str = ""
) -> NavigationExpr:
    """A condition with its looks taken out; refuses what is not true or false."""
    made = navigated(written, schema, variables, own)
    if made.type not in (t.BOOLEAN, t.NULL):
        raise ExpressionError(f"{what}: a condition is true or false, got {to_text(written)}, which is {made.type}")
    return made


class _Reader:
    """Takes the looks out of one expression."""

    def __init__(self, schema: Schema, variables: Collection[str], own: str, distinct: bool) -> None:
        self.distinct = distinct
        self.schema = schema
        self.values = value_schema(schema)
        self.variables = variables
        self.own = own
        self.inputs: list[Navigation] = []
        self.shapes: dict[object, int] = {}

    def read(self, written: Expr) -> Expr:
        """The expression with an input in the place of every look."""
        for node in each_of(written):
            if isinstance(node, GetField) and isinstance(node.expr, Column):
                self.check_owner(node.expr.name)
        return rewritten(written, self.swap)

    def check_owner(self, name: str) -> None:
        """What a field is taken of is a stage, or a field of the event."""
        if name != self.own and name not in self.variables and name not in self.schema:
            raise ExpressionError(f"no stage or field {name!r}; {nearest(name, [*self.variables, *self.schema.names])}")

    def swap(self, node: Expr) -> Expr | None:
        """The input that replaces a look; None for anything else."""
        if isinstance(node, GetField) and self.is_own(node.expr):
            return Column(node.name)
        look = self.look(node)
        return None if look is None else self.input(node, look)

    def is_own(self, node: Expr) -> bool:
        """Whether a node is the stage whose condition this is, which need not be one whose events are taken."""
        return isinstance(node, Column) and bool(self.own) and node.name == self.own

    def is_variable(self, node: Expr) -> bool:
        """Whether a node names a stage."""
        return isinstance(node, Column) and node.name in self.variables

    def input(self, node: Expr, look: Navigation) -> Column:
        """The named input of a look; equal ones share it."""
        at = self.shapes.setdefault(node.shape(), len(self.inputs))
        if at == len(self.inputs):
            self.inputs.append(look)
        return Column(f"{_INPUT}{at}")

    def look(self, node: Expr) -> Navigation | None:
        """The look that a node is, if it is one."""
        if isinstance(node, Call):
            return self.called(node)
        if isinstance(node, GetField):
            return self.of_event(node.expr, node.name)
        return None

    def of_event(self, event: Expr, field: str) -> Navigation | None:
        """A field of an event that stands for itself: a.x, a[1].x, first(a).x."""
        found = self.event(event)
        return None if found is None else self.valued(found, Column(field))

    def event(self, node: Expr) -> Navigation | None:
        """The event that a, a[1], first(a, 1) or last(a) names, without a value yet."""
        if isinstance(node, Column) and self.is_variable(node):
            return Navigation(Look.LAST, t.NULL, node.name)
        if isinstance(node, GetItem) and isinstance(node.expr, Column) and self.is_variable(node.expr):
            return self.item(node.expr.name, node)
        if isinstance(node, Call) and node.name in ("first", "last") and node.args:
            stage = node.args[0]
            if isinstance(stage, Column) and self.is_variable(stage):
                return Navigation(Look(node.name), t.NULL, stage.name, offset=self.whole(node, 0))
        return None

    def item(self, variable: str, node: GetItem) -> Navigation:
        """The event of a stage by its number: from 0, or from the end below zero."""
        at = _number(node.key)
        if at is None:
            raise ExpressionError(
                f"{to_text(node)}: an event of a stage has a number from 0, or below zero from the last"
            )
        if at < 0:
            return Navigation(Look.LAST, t.NULL, variable, offset=-at - 1)
        return Navigation(Look.FIRST, t.NULL, variable, offset=at)

    def valued(self, found: Navigation, value: Expr) -> Navigation:
        """The event with what is computed of it."""
        plain = rewritten(value, self.classified)
        return replace(found, value=plain, type=type_of_expr(plain, self.values))

    def classified(self, node: Expr) -> Expr | None:
        """CLASSIFIER() as the hidden field of an event."""
        return Column(CLASSIFIER) if isinstance(node, Call) and node.name == "classifier" else None

    def numbered(self, node: Expr) -> Expr | None:
        """MATCH_NUMBER() as the hidden field of an event."""
        return Column(NUMBER) if isinstance(node, Call) and node.name == "match_number" and not node.args else None

    def called(self, node: Call) -> Navigation | None:
        """A look that is written as a call."""
        name = node.name
        if name in ("running", "final"):
            return self.meant(node)
        if name in ("prev", "next"):
            return self.stepped(node)
        if name in ("first", "last"):
            return self.found(node)
        if name == "classifier":
            return self.classifier(node)
        if name == "match_number":
            return Navigation(Look.MATCH_NUMBER, t.BIGINT)
        return self.aggregated(node) if is_aggregate(node) else None

    def meant(self, node: Call) -> Navigation:
        """RUNNING and FINAL before a look."""
        inner = self.look(node.args[0]) if len(node.args) == 1 else None
        if inner is None:
            raise ExpressionError(f"{to_text(node)}: {node.name.upper()} goes before first, last or an aggregate")
        return replace(inner, final=node.name == "final")

    def stepped(self, node: Call) -> Navigation:
        """prev(x), next(x, 2), and around first or last."""
        if not node.args:
            raise ExpressionError(f"{node.name} takes a value, such as {node.name}(x) or {node.name}(x, 2)")
        inner = self.look(node.args[0])
        if inner is None or inner.value is None:
            inner = self.found(Call("last", (node.args[0],)))
        many = self.whole(node, 1)
        return replace(inner, step=inner.step + (many if node.name == "next" else -many))

    def found(self, node: Call) -> Navigation:
        """first(a.x), last(a.x + a.y, 1), first(a) as a record, first(x) over all stages."""
        if not node.args:
            raise ExpressionError(
                f"{node.name} takes a stage or a field of it, such as {node.name}(a.x) or {node.name}(a).x"
            )
        event = self.event(node)
        if event is not None:
            return self.valued(event, Call("struct", tuple(Column(f.name) for f in self.schema.fields)))
        variable, (value,) = self.one_stage(node, node.args[:1])
        return self.valued(Navigation(Look(node.name), t.NULL, variable, offset=self.whole(node, 0)), value)

    def classifier(self, node: Call) -> Navigation:
        """CLASSIFIER(), and CLASSIFIER(u) of a union."""
        variable = ""
        if node.args:
            if not self.is_variable(node.args[0]):
                raise ExpressionError(
                    f"{to_text(node)}: classifier takes a stage; {nearest(to_text(node.args[0]), self.variables)}"
                )
            variable = to_text(node.args[0])
        return Navigation(Look.LAST, t.STRING, variable, Column(CLASSIFIER))

    def aggregated(self, node: Call) -> Navigation:
        """count(a), count(a.*), sum(a.x * 2), count(*)."""
        if len(node.args) == 1 and node.name == "count" and not node.distinct:
            stage = node.args[0]
            if isinstance(stage, GetField) and stage.name == "*":
                stage = stage.expr
            if isinstance(stage, Column) and self.is_variable(stage):
                over = AggregateCall("count", replace(node, args=(), star=True)).over(self.values)
                return Navigation(Look.AGGREGATE, over.type, stage.name, aggregate=over)
        extra = () if node.condition is None else (node.condition,)
        variable, plain = self.one_stage(node, (*node.args, *extra))
        plain = tuple(rewritten(each, self.numbered) for each in plain)
        args, condition = (plain[:-1], plain[-1]) if extra else (plain, None)
        distinct = self.distinct and node.distinct and node.name != "count"
        call = replace(node, args=args, condition=condition, distinct=node.distinct and not distinct)
        over = AggregateCall(node.name, call).over(argument_schema(self.schema.fields))
        return Navigation(Look.AGGREGATE, over.type, variable, aggregate=over, distinct=distinct)

    def one_stage(self, node: Call, args: Iterable[Expr]) -> tuple[str, tuple[Expr, ...]]:
        """The only stage that arguments name, and the arguments as expressions over one event of it."""
        args = tuple(args)
        named = [self.named_stage(each) for arg in args for each in each_of(arg)]
        names = sorted({name for name in named if name is not None})
        plain = [to_text(each) for arg in args for each in _alone(arg, lambda e: self.named_stage(e) is not None)]
        if len(names) > 1 or (names and plain):
            raise ExpressionError(
                f"{to_text(node)}: its argument is over the events of one stage, got {', '.join([*names, *plain])}"
            )
        made = tuple(rewritten(arg, self.unprefixed) for arg in args)
        return (names[0] if names else ""), made

    def named_stage(self, node: Expr) -> str | None:
        """The stage that a field or a classifier is of, where it names one."""
        if isinstance(node, GetField) and isinstance(node.expr, Column) and self.is_variable(node.expr):
            return node.expr.name
        if isinstance(node, Call) and node.name == "classifier" and node.args:
            stage = node.args[0]
            return stage.name if isinstance(stage, Column) and self.is_variable(stage) else None
        return None

    def unprefixed(self, node: Expr) -> Expr | None:
        """a.x as x; classifier(...) as the hidden field."""
        if isinstance(node, GetField) and self.is_variable(node.expr):
            return Column(node.name)
        return self.classified(node)

    def whole(self, node: Call, missing: int) -> int:
        """The number after the value, zero or above."""
        if len(node.args) < 2:
            return missing
        at = _number(node.args[1])
        if at is None or at < 0 or len(node.args) > 2:
            raise ExpressionError(
                f"{to_text(node)}: the second argument is a whole number from 0, got {to_text(node.args[1])}"
            )
        return at


def _alone(node: Expr, is_named: Callable[[Expr], bool]) -> list[Expr]:
    """The fields and classifiers of an expression that name no stage."""
    plain = node.plain()
    if is_named(plain):
        return []
    if isinstance(plain, Column) or (isinstance(plain, Call) and plain.name == "classifier"):
        return [plain]
    return [each for child in plain.children() for each in _alone(child, is_named)]


def _number(node: Expr) -> int | None:
    plain = node.plain()
    if isinstance(plain, Call) and plain.name == "negative":
        inner = _number(plain.args[0])
        return None if inner is None else -inner
    return plain.value if isinstance(plain, Literal) and type(plain.value) is int else None
