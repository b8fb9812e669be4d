"""A topology written as a Flux file: classes by name, endpoints by the calls that made them, streams with their groupings.

>>> import penstock as ps
>>> from penstock.flowfiles.flux_shell import LogInfoBolt
>>> top = ps.Topology("words")
>>> top.spout("lines", ps.items(["a b"], "line string"))
>>> _ = top.bolt("log", LogInfoBolt(), 2).shuffle("lines")
>>> print(write_topology(top), end="")
name: words
spouts:
- id: lines
  className: penstock:items
  constructorArgs:
    rows: [a b]
    schema: line string
bolts:
- {id: log, className: 'penstock.flowfiles.flux_shell:LogInfoBolt', parallelism: 2}
streams:
- from: lines
  to: log
  grouping: {type: SHUFFLE}
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import FlowError, PenstockError
from penstock.flowfiles.flux import read_flux
from penstock.flowfiles.references import reference_to
from penstock.flowfiles.yaml_text import read_yaml
from penstock.frontends.topology.declare import (
    BoltDeclaration,
    DeadLettersDeclaration,
    SinkDeclaration,
    SpoutDeclaration,
    Subscription,
)
from penstock.frontends.topology.topology import Topology
from penstock.graph.graph import Graph
from penstock.graph.logic.topology.components import Component
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Endpoint
from penstock.graph.picture.describe import describe_graph
from penstock.graph.spelling import spelling_of

_PLAIN = (bool, int, float, str, datetime.date, datetime.datetime, type(None))


def write_topology(top: Topology) -> str:
    """The text of a Flux file that makes an equal topology.

    Args:
        top: the topology.

    Raises:
        FlowError: it holds what no Flux file can hold: a lambda, an object with attributes, a loop, a policy for bad tuples, a grouping that Flux does not have.
    """
    declared = top._declared.values()
    if top.on_error is not None or any(isinstance(each, DeadLettersDeclaration) for each in declared):
        raise FlowError(
            f"export of {top.name!r}: it says what becomes of bad tuples, for which Flux has no word; leave out on_error and dead_letters"
        )
    entries: dict[str, Any] = {"name": top.name}
    if top.config:
        entries["config"] = _plain("the topology", dict(top.config))
    entries["spouts"] = [_component(d) for d in declared if isinstance(d, SpoutDeclaration)]
    entries["bolts"] = [_component(d) for d in declared if isinstance(d, BoltDeclaration | SinkDeclaration)]
    entries["streams"] = [each for d in declared for each in _streams(d)]
    text = dumped(entries)
    _check_equal(top, text)
    return text


def _component(declared: SpoutDeclaration | BoltDeclaration | SinkDeclaration) -> dict[str, Any]:
    if isinstance(declared, SinkDeclaration):
        return {"id": declared.name, **_object(declared.name, declared.endpoint)}
    if declared.on_error is not None:
        raise _error(declared.name, "has an on_error, for which Flux has no word; leave it out")
    made = declared.spout if isinstance(declared, SpoutDeclaration) else declared.bolt
    if isinstance(declared, SpoutDeclaration) and declared.limit is not None:
        raise _error(declared.name, "has a limit, for which Flux has no word; end the spout in its class")
    entry = {"id": declared.name, **_object(declared.name, made)}
    entry |= {"parallelism": declared.tasks} if declared.tasks > 1 else {}
    of_class = dict(made.config) if isinstance(made, Component) else {}
    own = {key: value for key, value in declared.config.items() if (key, value) not in of_class.items()}
    return entry | ({"config": _plain(declared.name, own)} if own else {})


def _object(name: str, made: object) -> dict[str, Any]:
    """The class of an object, and the arguments that make it."""
    spelling = spelling_of(made) if isinstance(made, Endpoint) else None
    if spelling is not None:
        return _made(f"penstock:{spelling.function}", _plain(name, dict(spelling.arguments)))
    kind = reference_to(type(made))
    if kind is not None and dataclasses.is_dataclass(made):
        shown = {f.name: getattr(made, f.name) for f in dataclasses.fields(made) if f.init and f.name[:1] != "_"}
        return _made(kind, _plain(name, shown))
    if kind is None or vars(made):
        raise _error(
            name,
            f"holds {made!r}, which no file can make again; use a class of a module, without arguments or as a dataclass",
        )
    return _made(kind, {})


def _made(name: str, arguments: Any) -> dict[str, Any]:
    return {"className": name, **({"constructorArgs": arguments} if arguments else {})}


def _streams(declared: object) -> Iterator[dict[str, Any]]:
    if isinstance(declared, SinkDeclaration):
        yield _stream(declared.name, declared.reads)
    elif isinstance(declared, BoltDeclaration):
        yield from (_stream(declared.name, each) for each in declared.inputs)


def _stream(reader: str, wanted: Subscription) -> dict[str, Any]:
    kind = wanted.grouping.kind
    if kind == "partial_key" or wanted.feedback:
        raise _error(
            reader,
            f"reads {wanted.component!r} by {'a loop' if wanted.feedback else 'partial_key'}, which Flux does not have",
        )
    grouping: dict[str, Any] = {"type": kind.upper()}
    if wanted.stream != DEFAULT:
        grouping["streamId"] = wanted.stream
    if wanted.grouping.fields:
        grouping["args"] = list(wanted.grouping.fields)
    if kind == "custom":
        grouping["customClass"] = _object(reader, wanted.grouping.chooser)
    return {"from": wanted.component, "to": reader, "grouping": grouping}


def _plain(name: str, value: Any) -> Any:
    """A value as YAML has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(name, each) for key, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(name, each) for each in value]
    if isinstance(value, _PLAIN):
        return value
    raise _error(name, f"holds {value!r}, which no file can hold")


def _error(name: str, message: str) -> FlowError:
    return FlowError(f"export: component {name!r} {message}")


def _check_equal(top: Topology, text: str) -> None:
    """What is written is read again: it must not lose anything."""
    try:
        again = read_flux(read_yaml(text, "export", lenient=True))
    except PenstockError as error:
        raise FlowError(f"export of {top.name!r}: what it would write cannot be read again: {error}") from error
    if comparable(again.graph) != comparable(top.graph):
        raise FlowError(f"export of {top.name!r}: some of its components were changed after they were made")


def comparable(graph: Graph) -> Any:
    """What a graph says of itself, without the lines of the files that made it."""
    described = describe_graph(graph)
    for step in described["steps"]:
        step.pop("line")
    return described


def dumped(entries: dict[str, Any]) -> str:
    """Entries as YAML."""
    import yaml

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # without types
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(
        entries, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=116, default_flow_style=None
    )
    return text
