"""Functions that cannot travel to a worker are refused while the flow is built."""

from __future__ import annotations

import functools
import socket
import threading
from typing import Any

import pytest

from penstock.errors import CaptureError, FlowError
from penstock.graph.logic.capture import check_function

LOCK = threading.Lock()


def pretend(name: str) -> Any:
    """An object whose class looks like one of Spark's; Spark itself is not needed to know it."""
    return type(name, (), {"__module__": "pyspark.sql.session"})()


SESSION = pretend("SparkSession")


def check(function: Any, arguments: int = 1) -> None:
    check_function("parse", function, "flow.py:3", arguments)


def takes_two(one: Any, other: Any) -> Any:
    return one


def with_default(row: Any, more: int = 1) -> Any:
    return row


class Callable:
    def __call__(self, row: Any) -> Any:
        return row


@pytest.mark.parametrize(
    "function", [lambda row: row, len, str.lower, with_default, Callable(), functools.partial(takes_two, 1), print]
)
def test_functions_of_one_argument_are_fine(function: Any) -> None:
    check(function)


@pytest.mark.parametrize("given", ["parse", 3, None])
def test_what_is_no_function_is_refused(given: Any) -> None:
    with pytest.raises(FlowError, match=r"step 'parse' \(flow.py:3\) needs a function, got .*"):
        check(given)


@pytest.mark.parametrize("function", [takes_two, lambda: 1])
def test_functions_of_other_arguments_are_refused(function: Any) -> None:
    with pytest.raises(
        FlowError, match=r"step 'parse' \(flow.py:3\) calls its function with 1 argument; .* does not take that"
    ):
        check(function)


def test_a_fold_takes_two_arguments() -> None:
    check(takes_two, arguments=2)
    with pytest.raises(FlowError, match=r"calls its function with 2 arguments"):
        check(lambda one: one, arguments=2)


@pytest.mark.parametrize(
    "name, why",
    [
        ("SparkSession", "the Spark session lives in the driver alone"),
        ("SparkContext", "lives in the driver alone"),
        ("DataFrame", r"join it with stream.join\(...\), or collect it first"),
        ("StreamingQuery", "a query handle lives in the driver alone"),
        ("RDD", "collect it first"),
    ],
)
def test_what_lives_in_the_driver_cannot_be_held(name: str, why: str) -> None:
    spark = pretend(name)
    with pytest.raises(CaptureError, match=rf"step 'parse' \(flow.py:3\): its function uses 'spark', a {name}.*{why}"):
        check(lambda row: spark)


def test_a_session_among_the_globals_is_found() -> None:
    with pytest.raises(CaptureError, match=r"uses 'SESSION', a SparkSession"):
        check(lambda row: SESSION)


def test_a_class_made_from_a_session_is_found() -> None:
    child = type("MySession", (type(SESSION),), {"__module__": "mine"})()
    with pytest.raises(CaptureError, match=r"uses 'child', a MySession"):
        check(lambda row: child)


def test_a_wrapped_function_is_looked_into() -> None:
    spark = pretend("SparkSession")

    def inner(row: Any) -> Any:
        return spark

    @functools.wraps(inner)
    def outer(row: Any) -> Any:
        return inner(row)

    for function in (outer, functools.partial(inner)):
        with pytest.raises(CaptureError, match=r"uses 'spark'"):
            check(function)


def test_locks_files_and_sockets_are_refused() -> None:
    with pytest.raises(
        CaptureError, match=r"uses 'LOCK', a lock, which cannot travel to a worker; make it inside the function"
    ):
        check(lambda row: LOCK)
    with socket.socket() as connection, pytest.raises(CaptureError, match=r"uses 'connection', a socket"):
        check(lambda row: connection)


def test_an_unused_global_does_no_harm() -> None:
    check(lambda row: row)


def test_a_function_that_calls_itself_is_fine() -> None:
    def down(n: int) -> int:
        return n if n < 1 else down(n - 1)

    check(down)


def test_a_name_that_is_not_filled_yet_is_passed_over() -> None:
    def make() -> Any:
        def early(row: Any) -> Any:
            return later

        check(early)
        later = 1
        return later

    assert make() == 1
