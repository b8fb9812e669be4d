"""Python functions in expressions: typed, called for each record, or for Arrow arrays of them.

A function stands in the expression itself, not in a table beside it, so it travels wherever the expression does.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from penstock.errors import ExpressionError, SchemaError
from penstock.graph import types as t
from penstock.graph.expr.build import as_expr
from penstock.graph.expr.functions import AGGREGATES, FUNCTIONS
from penstock.graph.expr.model import Expr, operand
from penstock.graph.expr.parse import KEYWORDS
from penstock.graph.schema import optional_of, type_of

Body = Callable[..., object]


@dataclass(frozen=True)
class ScalarFunction:
    """A Python function that may stand in expressions; `ps.function` makes one.

    Calling it with expressions makes an expression: `score("a", "b + 1")`. `function` is the plain function.
    """

    name: str
    function: Body
    takes: tuple[t.DataType, ...]
    returns: t.DataType
    least: int
    """As many arguments as must be there; the others have defaults."""
    vectorized: bool = False
    null_on_null: bool = False
    nullable: bool = True
    """Whether it may return None."""
    deterministic: bool = False
    """Whether it is known to answer the same for the same arguments, as functions of ours are."""

    def __call__(self, *arguments: object) -> PythonCall:
        """The call as an expression. A text is an expression, as in `select`; anything else is a constant."""
        given = tuple(as_expr(a) if isinstance(a, str | Expr) else operand(a) for a in arguments)
        return PythonCall(self, given)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.takes))}) -> {self.returns}"


@dataclass(frozen=True, eq=False)
class PythonCall(Expr):
    """A call of a Python function."""

    function: ScalarFunction
    args: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


@overload
def function(body: Body, /) -> ScalarFunction: ...


@overload
def function(
    *,
    vectorized: bool = False,
    null_on_null: bool = False,
    takes: Sequence[object] | None = None,
    returns: object = None,
    name: str = "",
) -> Callable[[Body], ScalarFunction]: ...


def function(
    body: Body | None = None,
    /,
    *,
    vectorized: bool = False,
    null_on_null: bool = False,
    takes: Sequence[object] | None = None,
    returns: object = None,
    name: str = "",
) -> ScalarFunction | Callable[[Body], ScalarFunction]:
    """A Python function for expressions, as a decorator: of one record, or of Arrow arrays.

    Its types are those of its annotations, or what `takes` and `returns` say. The same arguments must give the same result: a batch may run
    again, and a row of a table that goes is computed once more to be taken back.

    Args:
        body: the function.
        vectorized: whether it takes and returns `pyarrow` arrays of one length, instead of single values.
        null_on_null: whether the result is null as soon as an argument is, without a call; else the function gets None.
        takes: the types of the arguments, such as ("bigint", float).
        returns: the type of the result.
        name: the name in expression text; else that of the function.

    Returns:
        The function as expressions call it; called with expressions it makes one. Its `function` is the plain one.

    Raises:
        ExpressionError: a type is not said, or the name is that of a built-in function.

    >>> import penstock as ps
    >>> @ps.function
    ... def score(a: int, b: float) -> float:
    ...     return a * b
    >>> flow = ps.Flow("scores", functions=[score])
    >>> rows = flow.source("rows", ps.items([(2, 1.5)], "n int, price double"))
    >>> rows.where("high", "score(n, price) > 0.5").select("scored", s=score("n", "price / 2"))
    Stream('scored': s double)
    >>> score.function(2, 1.5)
    3.0
    """

    def made(given: Body) -> ScalarFunction:
        return _made(given, name, vectorized, null_on_null, takes, returns)

    return made if body is None else made(body)


def _made(
    body: Body, name: str, vectorized: bool, null_on_null: bool, takes: Sequence[object] | None, returns: object
) -> ScalarFunction:
    if not callable(body):
        raise ExpressionError(f"ps.function takes a function, got {body!r}")
    own = checked_name(name or getattr(body, "__name__", ""))
    hints = hints_of(body)
    wanted = parameters_of(own, body)
    kinds = takes_of(own, [p.name for p in wanted], hints) if takes is None else tuple(_kind(own, k) for k in takes)
    given = hints.get("return", _UNSAID) if returns is None else returns
    if given is _UNSAID:
        raise ExpressionError(
            f"function {own!r} must say what it returns: def {own}(...) -> float, or returns='double'"
        )
    inner = optional_of(given)[0]
    nullable = vectorized or returns is not None or type(None) in typing.get_args(given)
    least = sum(p.default is inspect.Parameter.empty for p in wanted)
    return ScalarFunction(
        own, body, kinds, _kind(own, inner), min(least, len(kinds)), vectorized, null_on_null, nullable
    )


_UNSAID = object()


def hints_of(body: Body) -> Mapping[str, object]:
    """The annotations of a function, as far as they can be resolved."""
    try:
        return typing.get_type_hints(body)
    except Exception:  # an annotation that cannot be resolved tells nothing
        return {}


def checked_name(name: str) -> str:
    """The name of a function in expressions; refuses that of a built-in one."""
    plain = name.lower()
    if not name.isidentifier() or plain in KEYWORDS:
        raise ExpressionError(f"a function in expressions needs a name, got {name!r}; say name='score'")
    if plain in FUNCTIONS or plain in AGGREGATES:
        raise ExpressionError(f"{name!r} is a built-in function; say name='another name'")
    return plain


def parameters_of(name: str, body: Body) -> list[inspect.Parameter]:
    """The parameters of a function that are given by position."""
    known = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = list(inspect.signature(body).parameters.values())
    odd = next((p for p in found if p.kind not in known and p.default is inspect.Parameter.empty), None)
    if odd is not None and odd.kind is inspect.Parameter.KEYWORD_ONLY:
        raise ExpressionError(f"function {name!r}: arguments are given by position; {odd.name!r} is not")
    return [p for p in found if p.kind in known]


def takes_of(name: str, parameters: Iterable[str], hints: Mapping[str, object]) -> tuple[t.DataType, ...]:
    """The types of arguments, as annotations say."""
    made = []
    for each in parameters:
        if each not in hints:
            raise ExpressionError(
                f"function {name!r} must say the type of {each!r}: def {name}({each}: int), or takes=('bigint', ...)"
            )
        made.append(_kind(name, optional_of(hints[each])[0]))
    return tuple(made)


def result_kind(name: str, hints: Mapping[str, object]) -> t.DataType:
    """The type of a result, as an annotation says."""
    if "return" not in hints:
        raise ExpressionError(f"aggregate {name!r} must say what it returns: def result(self, so_far) -> float")
    return _kind(name, optional_of(hints["return"])[0])


def _kind(name: str, hint: object) -> t.DataType:
    try:
        return type_of(hint)
    except SchemaError as error:
        raise ExpressionError(f"function {name!r}: {error}; say takes=(...) and returns=...") from None
