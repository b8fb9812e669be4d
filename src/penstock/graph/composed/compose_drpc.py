"""Functions that are called from outside: requests come in through the log, and answers leave through it when their batch is committed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from penstock.errors import FlowError
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line
from penstock.graph.endpoints.log import topic, write_topic
from penstock.graph.ids import child
from penstock.graph.logic.trident.keyed import Answers
from penstock.graph.logic.trident.operations import Picked
from penstock.graph.nodes import DEAD_LETTER, OnError, Port, Sink, Source
from penstock.graph.nodes.batch import KeyedBatch
from penstock.graph.schema import schema_of

REQUEST = "drpc_request"
"""The field that carries the id of a request."""
REQUESTS = schema_of(f"{REQUEST} string, args string")
FAILURES = schema_of(f"{REQUEST} string, error string")
ANSWERS = schema_of(f"{REQUEST} string, result string, error string")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def checked_function(function: object) -> str:
    """The name of a function, which is part of the names of its topics.

    Raises:
        FlowError: it is none.
    """
    if not isinstance(function, str) or not _NAME.fullmatch(function):
        raise FlowError(
            f"expected the name of a function, 1 to 100 letters, digits, '-', '_' and '.', got {function!r} ({user_line()})"
        )
    return function


def request_topic(function: str) -> str:
    """The topic of the requests of a function."""
    return f"drpc.{checked_function(function)}.requests"


def answer_topic(function: str) -> str:
    """The topic of the answers of a function."""
    return f"drpc.{checked_function(function)}.answers"


def source_name(function: str) -> str:
    """The step that reads the requests of a function."""
    return f"drpc-{function}"


def sink_name(function: str) -> str:
    """The step that writes the answers of a function."""
    return f"drpc-{function}-answers"


def requests_source(builder: GraphBuilder, function: str, path: str | Path = "") -> Port:
    """The requests of a function, as a source. What is no request is put aside: nobody waits for it, and others must not."""
    read = topic(request_topic(function), REQUESTS, path=path or None)
    able = replace(read.capabilities, is_immediate=True)
    endpoint = replace(read, options={**read.options, "create": True}, capabilities=able)
    return builder.add(Source(source_name(function), (), endpoint, on_error=OnError(DEAD_LETTER)))


def add_answers(
    builder: GraphBuilder,
    function: str,
    path: str | Path,
    requests: Port,
    results: Port,
    failures: tuple[Port, ...],
    *,
    whole: bool,
) -> None:
    """The answers of a function, and their sink.

    Args:
        builder: the graph.
        function: the name of the function.
        path: the directory of the log.
        requests: the requests.
        results: the tuples of the results, whose first field is the request.
        failures: the requests that failed, each with its error.
        whole: whether the answer is all tuples, as JSON; else it is the second field of the first.
    """
    name, schema = child(sink_name(function), "joined"), builder.output(results).schema
    request = schema.names[0]
    logic = Answers(Picked.of(schema.names, schema.names[1:]), whole)
    others = (requests, *failures)
    keys = tuple((builder.output(port).schema.names[0],) for port in others)
    joined = KeyedBatch(
        name, (results, *others), (request,), logic=logic, schemas=(("out", ANSWERS),), other_keys=keys
    )  # fmt: skip
    made = builder.add(joined)
    builder.add(Sink(sink_name(function), (made,), write_topic(answer_topic(function), key=REQUEST, path=path or None)))
