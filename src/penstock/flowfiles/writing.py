"""A flow written into a file: the calls that made it, as entries of `steps`.

>>> import penstock as ps
>>> flow = ps.Flow("hello")
>>> flow.source("words", ps.items(["a"], "word string")).where("some", "word <> 'b'").sink("out", ps.console())
>>> print(write_flow(flow), end="")
flow: hello
steps:
- name: words
  source:
    items:
      rows: [a]
      schema: word string
- {name: some, from: words, where: word <> 'b'}
- {name: out, from: some, sink: console}
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import FlowError, PenstockError
from penstock.flowfiles import vocabulary as v
from penstock.flowfiles.flux_writing import comparable, dumped, write_topology
from penstock.flowfiles.reading import read_flow
from penstock.flowfiles.references import is_reference, reference_to, referenced
from penstock.flowfiles.yaml_text import read_yaml
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.keyed import KeyedStream
from penstock.frontends.streams.naming import StepCall
from penstock.frontends.streams.over import OverStream
from penstock.frontends.streams.stream import Stream
from penstock.frontends.streams.windows import WindowedStream
from penstock.frontends.topology.topology import Topology
from penstock.graph.compose import KeyedInput
from penstock.graph.duration import shown
from penstock.graph.endpoints.secrets import Secret
from penstock.graph.expr import Expr
from penstock.graph.expr.python import PythonCall
from penstock.graph.expr.rewrite import each_of
from penstock.graph.expr.text import to_text
from penstock.graph.nodes import Endpoint, Port, Windows
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.policy import OnError
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.graph.spelling import spelling_of

_TEXT_IS_EXPRESSION = frozenset({"str", "Written", "Condition", "Selected", "On", "Key", "Types"})
_SCALARS = (bool, int, float, str, bytes, datetime.date, datetime.datetime, type(None))
_MICROSECOND = datetime.timedelta(microseconds=1)


def write_flow(flow: object) -> str:
    """The text of a file that makes an equal flow.

    Args:
        flow: a `Flow`, or a `Topology`, which is written as a Flux file.

    Raises:
        FlowError: it is none, or holds what no file can hold: a lambda, an object of the user's, a password.
    """
    if isinstance(flow, Topology):
        return write_topology(flow)
    if not isinstance(flow, Flow):
        raise FlowError(f"export writes a ps.Flow or a ps.Topology, got {type(flow).__name__}")
    writer = _FlowWriter(flow)
    if not writer.calls and len(flow.builder):
        raise FlowError(
            f"export of {flow.name!r}: expected steps made by calls of ps.Flow and its streams, got a flow of SQL; "
            "its text is a flow file already: `penstock run FILE.sql` runs it"
        )
    text = dumped(writer.entries())
    _check_equal(flow, text)
    return text


class _FlowWriter:
    """Turns calls into entries."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.calls = flow._recording.calls
        self.refs = {c.result.port: c.name for c in self.calls if isinstance(c.result, Stream) and c.name}
        self.owners = {c.result.port.step: c.name for c in self.calls if isinstance(c.result, Stream) and c.name}
        self.step = ""
        self.functions = {f.name: f for f in flow.builder.functions.values()}

    def entries(self) -> dict[str, Any]:
        """The whole file."""
        builder = self.flow.builder
        made: dict[str, Any] = {"flow": builder.name}
        if builder.delivery:
            made["delivery"] = builder.delivery
        if builder.on_error is not None:
            made["on_error"] = self._policy(builder.on_error)
        steps: dict[int, dict[str, Any]] = {}
        for number, call in enumerate(self.calls):
            if call.method in v.SETTINGS:
                self._setting(call, steps)
            else:
                steps[number] = self._entry(call)
        if self.functions:
            made["functions"] = [self._scalar_function(f) for f in self.functions.values()]
        return {**made, "steps": list(steps.values())}

    def _entry(self, call: StepCall) -> dict[str, Any]:
        self.step = call.name or call.method
        made: dict[str, Any] = {"name": call.name} if call.name else {}
        made |= self._receiver(call.receiver)
        owner = type(call.receiver)
        skipped = 1 if call.method in v.UNNAMED else 2
        bound = inspect.signature(getattr(owner, call.method)).bind(
            None, *[""] * (skipped - 1), *call.args, **call.kwargs
        )
        given = dict(list(bound.arguments.items())[skipped:])
        return made | {call.method: self.arguments(v.step(call.method, owner), given)}

    def _receiver(self, receiver: object) -> dict[str, Any]:
        if isinstance(receiver, Stream):
            return {"from": self._stream(receiver)}
        if isinstance(receiver, KeyedStream):
            return self._receiver(receiver.source) | (
                {} if receiver.keys == (ALL,) else {"key_by": self._keys(receiver)}
            )
        if isinstance(receiver, WindowedStream):
            return self._receiver(receiver.keyed) | {"window": self._windows(receiver.windows)}
        if isinstance(receiver, OverStream):
            keys = {"key_by": self._keys(receiver.keyed)} if receiver.keyed.keys else {}
            return self._receiver(receiver.source) | keys | {"over": self._over(receiver)}
        return {}

    def _over(self, over: OverStream) -> Any:
        given = {"by": ", ".join(map(str, over.by)), "rows": over.rows, "within": over.within}
        given["order"] = "arrival" if over.arrival else None
        return {k: self.value(v, frozenset()) for k, v in given.items() if v not in (None, "")} or None

    def _keys(self, keyed: KeyedStream | KeyedInput) -> Any:
        named = {name: self._expression(expr, _TEXT_IS_EXPRESSION) for name, expr in keyed.computed}
        fields = [k for k in keyed.keys if k not in named]
        if named:
            return {**({"fields": fields} if fields else {}), **named}
        return fields[0] if len(fields) == 1 else fields

    def _windows(self, windows: Windows) -> Any:
        usual = {"accumulate": True, "mode": "append", "clock": "event"}
        given: dict[str, Any] = {"spec": windows.spec}
        given |= {"lateness": shown(windows.lateness)} if windows.lateness else {}
        given |= {"early": windows.early} if windows.early is not None else {}
        given |= {key: getattr(windows, key) for key, default in usual.items() if getattr(windows, key) != default}
        return self.arguments(v.view("window"), given)

    def _stream(self, stream: Stream) -> str:
        port: Port = stream.port
        if port in self.refs:
            return self.refs[port]
        owner = self.owners.get(port.step) or next((c.name for c in self.calls if c.name == port.step), None)
        if stream.flow is not self.flow or owner is None:
            raise self._error(
                f"reads {port}, which is no step of this flow's own; what a query of SQL makes has no entry in a flow file"
            )
        return f"{owner}.{port.name}"

    def _setting(self, call: StepCall, steps: dict[int, dict[str, Any]]) -> None:
        receiver = call.receiver
        assert isinstance(receiver, Stream)
        name = self.owners.get(receiver.port.step)
        value = next(iter([*call.args, *call.kwargs.values()]))
        entry = next(e for e in steps.values() if e.get("name") == name)
        entry[call.method] = self._policy(value) if call.method == "on_error" else value

    def _policy(self, given: object) -> Any:
        if not isinstance(given, OnError) or not given.retries:
            return given.action if isinstance(given, OnError) else given
        return {"retry": {"times": given.retries, "backoff": shown(given.backoff), "then": given.action}}

    def _scalar_function(self, function: Any) -> str:
        found = f"{function.function.__module__}:{function.function.__qualname__}"
        if not is_reference(found) or referenced(found) is not function:
            raise self._error(f"calls the function {function.name!r}, which is no name of a module")
        return found

    def arguments(self, made: v.Vocable, given: Mapping[str, object]) -> Any:
        """The arguments of a call, as short as the file allows."""
        written: dict[str, Any] = {}
        for name, value in given.items():
            parameter = next(p for p in made.parameters if p.name == name)
            if parameter.is_named:
                assert isinstance(value, Mapping)
                written |= {k: self.value(each, parameter.words) for k, each in value.items()}
            else:
                written[name] = self.value(value, parameter.words)
        return self._short(made, written)

    def _short(self, made: v.Vocable, written: dict[str, Any]) -> Any:
        if not written:
            return None
        first = made.parameters[0]
        value = written.get(first.name)
        if len(written) > 1 or value is None or first.is_named:
            return written
        if isinstance(value, Mapping):
            return value if len(value) == 1 and next(iter(value)) in v.functions_for(first.words) else written
        return value

    def value(self, value: object, words: frozenset[str]) -> Any:
        """A value as plain YAML."""
        if isinstance(value, Expr):
            return self._expression(value, words)
        if isinstance(value, Stream):
            return self._stream(value)
        if spelling_of(value) is not None:
            return self._spelled(value)
        if isinstance(value, OnError):
            return self._policy(value)
        if isinstance(value, Secret):
            raise self._error("holds a password; a file that others read must not")
        if isinstance(value, _SCALARS):
            return value
        return self._other(value, words)

    def _other(self, value: object, words: frozenset[str]) -> Any:
        if isinstance(value, Schema | Path):
            return str(value)
        if isinstance(value, datetime.timedelta):
            return shown(value // _MICROSECOND)
        if isinstance(value, Mapping):
            return {k: self.value(each, words) for k, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(each, words) for each in value]
        return self._reference(value)

    def _expression(self, value: Expr, words: frozenset[str]) -> Any:
        try:
            text = to_text(value)
            self._take_functions(value)
        except PenstockError as error:
            raise self._error(str(error)) from None
        return text if words & _TEXT_IS_EXPRESSION else {"expr": text}

    def _take_functions(self, value: Expr) -> None:
        """Functions that an expression holds itself are functions of the flow in a file."""
        for part in each_of(value):
            if (
                isinstance(part, PythonCall)
                and self.functions.setdefault(part.function.name, part.function) is not part.function
            ):
                raise self._error(f"calls a second function named {part.function.name!r}")

    def _spelled(self, value: object) -> Any:
        spelling = spelling_of(value)
        assert spelling is not None
        made = v.functions()[spelling.function][1]
        given = dict(spelling.arguments)
        if isinstance(value, Endpoint) and spelling.function == "items":
            given["rows"] = [self._row(row, value.schema) for row in value.options["rows"]]
        _check_url(given, self)
        written = self.arguments(made, given)
        return spelling.function if written is None and spelling.function == "console" else {spelling.function: written}

    def _row(self, row: object, schema: Schema | None) -> Any:
        if dataclasses.is_dataclass(row) and not isinstance(row, type):
            return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
        if (
            isinstance(row, list | dict)
            and schema is not None
            and len(schema.names) == 1
            and not isinstance(row, Row | dict)
        ):
            return {schema.names[0]: row}
        return row

    def _reference(self, value: object) -> Any:
        found = reference_to(value)
        if found is not None:
            return found
        kind = reference_to(type(value))
        if kind is not None and not inspect.isroutine(value) and not _state(value):
            return {kind: None}
        raise self._error(
            f"holds {value!r}, which no file can name; use a function or class of a module (module:name), or an expression as text"
        )

    def _error(self, message: str) -> FlowError:
        return FlowError(f"export of {self.flow.name!r}: step {self.step!r} {message}")


def _state(value: object) -> bool:
    return bool(getattr(value, "__dict__", None)) or isinstance(value, type)


def _check_url(given: Mapping[str, object], writer: _FlowWriter) -> None:
    url = given.get("url")
    if isinstance(url, str) and urlsplit(url).password:
        raise writer._error(
            "has an address with a password; leave it to the environment, a file that others read must not hold it"
        )


def _check_equal(flow: Flow, text: str) -> None:
    """What is written is read again: a flow that was made in another way as well must not lose anything."""
    if comparable(read_flow(read_yaml(text, "export")).graph) != comparable(flow.graph):
        raise FlowError(f"export of {flow.name!r}: some of its steps were not made by calls of ps.Flow and its streams")
