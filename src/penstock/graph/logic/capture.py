"""Finds, while a flow is built, what a function holds that cannot travel to a worker."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

from penstock.errors import CaptureError, FlowError

_STAY_HOME = {
    "SparkSession": "the Spark session lives in the driver alone",
    "SparkContext": "the Spark context lives in the driver alone",
    "DataFrame": "a DataFrame is a plan of the driver; join it with stream.join(...), or collect it first",
    "StreamingQuery": "a query handle lives in the driver alone",
    "RDD": "an RDD is a plan of the driver; collect it first",
}


def check_function(step: str, function: object, line: str, arguments: int = 1) -> None:
    """Refuses what is not callable, takes the wrong number of arguments, or holds what must stay in the driver."""
    if not callable(function):
        raise FlowError(f"step {step!r}{_at(line)} needs a function, got {function!r}")
    _check_arguments(step, function, line, arguments)
    for name, held in _held(function):
        _check_held(step, line, name, held)


def _at(line: str) -> str:
    return f" ({line})" if line else ""


def _check_arguments(step: str, function: Callable[..., object], line: str, arguments: int) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        shown = getattr(function, "__qualname__", repr(function))
        raise FlowError(
            f"step {step!r}{_at(line)} calls its function with {arguments} argument{'s' if arguments > 1 else ''}; "
            f"{shown}{signature} does not take that ({error})"
        ) from None


def _held(function: Callable[..., object]) -> Iterator[tuple[str, object]]:
    inner = inspect.unwrap(getattr(function, "func", function))
    code = getattr(inner, "__code__", None)
    if code is None:
        return
    cells = getattr(inner, "__closure__", None) or ()
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet, as in a recursive definition
            continue
    known = getattr(inner, "__globals__", {})
    yield from ((name, known[name]) for name in code.co_names if name in known)


def _check_held(step: str, line: str, name: str, held: object) -> None:
    for kind in type(held).__mro__:
        if kind.__module__.startswith("pyspark") and kind.__name__ in _STAY_HOME:
            raise CaptureError(
                f"step {step!r}{_at(line)}: its function uses {name!r}, a {type(held).__name__}, but it runs on workers: "
                f"{_STAY_HOME[kind.__name__]}"
            )
    if type(held).__name__ in ("lock", "RLock", "TextIOWrapper", "BufferedReader", "BufferedWriter", "socket"):
        raise CaptureError(
            f"step {step!r}{_at(line)}: its function uses {name!r}, a {type(held).__name__}, which cannot travel to a worker; "
            f"make it inside the function, or in on_open of a process step"
        )
