"""Python aggregates in expressions: a class over arguments, called by name as built-in aggregates are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr.build import as_expr
from penstock.graph.expr.model import Call, Expr, operand
from penstock.graph.expr.python import checked_name, hints_of, parameters_of, result_kind, takes_of

_METHODS = ("accumulate", "merge", "result")


@dataclass(frozen=True)
class AggregateFunction:
    """A Python aggregate that may stand in expressions; `ps.aggregate_function` makes one.

    Calling it with expressions makes an expression: `weighted("price", "n")`. `body` is the instance of the user's class.
    """

    name: str
    body: Any
    takes: tuple[t.DataType, ...]
    returns: t.DataType
    least: int
    """As many arguments as must be there; the others have defaults."""
    vectorized: bool = False

    @property
    def retracts(self) -> bool:
        """Whether it can take a row back."""
        return callable(getattr(self.body, "retract", None))

    def __call__(self, *arguments: object) -> AggregateFunctionCall:
        """The call as an expression. A text is an expression, as in `select`; anything else is a constant."""
        given = tuple(as_expr(a) if isinstance(a, str | Expr) else operand(a) for a in arguments)
        return AggregateFunctionCall(self.name, given, function=self)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.takes))}) -> {self.returns}"


@dataclass(frozen=True, eq=False)
class AggregateFunctionCall(Call):
    """A call of a Python aggregate."""

    function: AggregateFunction | None = None


@overload
def aggregate_function(body: type, /) -> AggregateFunction: ...


@overload
def aggregate_function(*, vectorized: bool = False, name: str = "") -> Callable[[type], AggregateFunction]: ...


def aggregate_function(
    body: type | None = None, /, *, vectorized: bool = False, name: str = ""
) -> AggregateFunction | Callable[[type], AggregateFunction]:
    """A Python class as an aggregate for expressions and SQL, as a decorator.

    The class has `accumulate(self, so_far, *values)`, which returns what stands after a row; `merge(self, one, other)`; and `result(self, so_far)`.
    It may have `init(self)`, which returns what stands before the first row (else None), and `retract(self, so_far, *values)`, which takes a row back:
    without it the rows of a table that changes are kept, and added again. Types are those of the annotations of `accumulate` and `result`.

    Args:
        body: the class.
        vectorized: whether `accumulate` and `retract` take `pyarrow` arrays of several rows instead of single values.
        name: the name in expression text; else that of the class, in lower case.

    Returns:
        The aggregate as expressions call it; called with expressions it makes one.

    Raises:
        ExpressionError: a method or a type is missing, or the name is that of a built-in function.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> @ps.aggregate_function
    ... class Weighted:
    ...     def init(self):
    ...         return (0.0, 0)
    ...     def accumulate(self, so_far, price: float, n: int):
    ...         return so_far[0] + price * n, so_far[1] + n
    ...     def merge(self, one, other):
    ...         return one[0] + other[0], one[1] + other[1]
    ...     def result(self, so_far) -> float:
    ...         return so_far[0] / so_far[1]
    >>> flow = ps.Flow("demo", functions=[Weighted])
    >>> rows = flow.source("rows", ps.items([("x", 2.0, 1), ("x", 4.0, 3)], "k string, price double, n int"))
    >>> rows.key_by("k").aggregate("mean", mean="weighted(price, n)").sink("out", ps.console())
    >>> run_local(flow)["out"]
    [Row(k='x', mean=3.5)]
    """

    def made(given: type) -> AggregateFunction:
        return _made(given, name, vectorized)

    return made if body is None else made(body)


def _made(body: type, name: str, vectorized: bool) -> AggregateFunction:
    if not isinstance(body, type):
        raise ExpressionError(f"ps.aggregate_function takes a class, got {body!r}")
    own = checked_name(name or body.__name__)
    lacking = next((each for each in _METHODS if not callable(getattr(body, each, None))), None)
    if lacking is not None:
        raise ExpressionError(f"aggregate {own!r}: class {body.__qualname__} must define {lacking}")
    try:
        instance = body()
    except TypeError as error:
        raise ExpressionError(f"aggregate {own!r} is made without arguments: {error}") from None
    wanted = parameters_of(own, instance.accumulate)[1:]
    kinds = takes_of(own, [p.name for p in wanted], hints_of(instance.accumulate))
    least = sum(p.default is inspect.Parameter.empty for p in wanted)
    is_vectorized = vectorized or bool(getattr(body, "vectorized", False))
    return AggregateFunction(own, instance, kinds, result_kind(own, hints_of(instance.result)), least, is_vectorized)
