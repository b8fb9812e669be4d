"""What a flow needs outside, checked before Spark starts: each connector says how in its own `preflight` module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from penstock.connectors.registry import connector_of
from penstock.errors import SetupError
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, Sink
from penstock.graph.run.master import LOCAL, is_on_one_machine

PATIENCE = 10.0
"""Seconds that a server has to answer."""
Options = Mapping[str, Any]


class Missing(SetupError):
    """A topic or a file that a step reads is not there. What else is missing is looked for all the same, and told with it."""


@dataclass(frozen=True)
class Preflight:
    """What a check may know.

    Attributes:
        step: The step that needs the endpoint.
        options: The options of the endpoint.
        fields: Of a sink, the names of the fields that it writes.
        made: What sinks of the flow make themselves, as the connector's `makes` names it.
        patience: Seconds that a server has to answer.
        master: Where Spark runs the tasks.
    """

    step: str
    options: Options
    fields: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()
    patience: float = PATIENCE
    master: str = LOCAL

    @property
    def is_on_one_machine(self) -> bool:
        """Whether tasks run on this machine, and see its files."""
        return is_on_one_machine(self.master)


@dataclass(frozen=True)
class Submission:
    """What can be known of an endpoint where a job is submitted: its driver runs in a directory of its own, perhaps elsewhere.

    Attributes:
        step: The step that needs the endpoint.
        options: The options of the endpoint.
        made: What sinks of the flow make themselves, as the connector's `makes` names it.
        sent: The files that travel with the flow, by their paths in the bundle; the job finds them by these, from its directory.
        folder: Where the file of the flow is.
        is_new: Whether the directory of the job is empty; an earlier version may have left files there.
    """

    step: str
    options: Options
    made: frozenset[str]
    sent: frozenset[str]
    folder: Path
    is_new: bool = True

    def has(self, path: Path) -> bool:
        """Whether a file travels, or one below a directory.

        >>> submission = Submission("in", {}, frozenset(), frozenset({"data/users.csv"}), Path("/flows"))
        >>> submission.has(Path("data")), submission.has(Path("data/users.csv")), submission.has(Path("users.csv"))
        (True, True, False)
        """
        return any(path == Path(name) or path in Path(name).parents for name in self.sent)


Check = Callable[[Preflight], object]
CheckSent = Callable[[Submission], str]
Makes = Callable[[Options], str]


def check_outside(graph: Graph, master: str = LOCAL) -> None:
    """Looks for what a flow needs outside.

    Args:
        graph: The flow.
        master: Where Spark is to run its tasks.

    Raises:
        SetupError: A server does not answer, or topics and files are missing: all of them, each with the step that needs it and the
            command that mends it.
    """
    made = frozenset(_made(sink.endpoint) for sink in graph.sinks)
    missing: list[str] = []
    for step, endpoint, fields in _endpoints(graph):
        check = _part(endpoint, "check")
        if check is not None:
            try:
                cast("Check", check)(Preflight(step, endpoint.options, fields, made, PATIENCE, master))
            except Missing as error:
                missing.append(str(error))
    if missing:
        raise SetupError("\n".join(missing))


def check_sent(graph: Graph, sent: frozenset[str], folder: Path, *, is_new: bool = True) -> list[str]:
    """Looks at what the job of a flow needs, as far as that is known where it is submitted.

    Args:
        graph: The flow.
        sent: The files that travel with it, by their paths in the bundle.
        folder: Where the file of the flow is.
        is_new: Whether the job is new, and its directory empty.

    Returns:
        What the job will hardly find, each as a sentence.

    Raises:
        SetupError: The job cannot find what a step reads.
    """
    made = frozenset(_made(sink.endpoint) for sink in graph.sinks)
    checks = [(step, endpoint, _part(endpoint, "check_sent")) for step, endpoint, _ in _endpoints(graph)]
    found = [
        cast("CheckSent", check)(Submission(step, endpoint.options, made, sent, folder, is_new))
        for step, endpoint, check in checks
        if check is not None
    ]
    return [each for each in found if each]


def packages_of(graph: Graph) -> dict[str, str]:
    """The packages that the connectors of a flow import, each with the extra of Penstock that installs it."""
    able = [endpoint.capabilities for _, endpoint, _ in _endpoints(graph)]
    return {each.package: each.extra for each in able if each.package}


def _part(endpoint: Endpoint, part: str) -> object | None:
    found = connector_of(endpoint, part)
    return None if found is None else found.part(part)


def _made(endpoint: Endpoint) -> str:
    makes = _part(endpoint, "makes")
    return cast("Makes", makes)(endpoint.options) if makes is not None else ""


def _endpoints(graph: Graph) -> Iterator[tuple[str, Endpoint, tuple[str, ...]]]:
    """Each endpoint with its step and, of a sink, the fields that it writes."""
    for node in (*graph.nodes, *(n for b in graph.bootstraps for n in b.nodes)):
        is_fed = isinstance(node, Sink) and bool(node.inputs) and node.name in graph.by_name
        fields = graph.output(node.inputs[0]).schema.names if is_fed else ()
        for endpoint in (getattr(node, "endpoint", None), getattr(node, "table", None)):
            if isinstance(endpoint, Endpoint):
                yield node.name, endpoint, tuple(fields)


def start_hint(address: str, command: str) -> str:
    """A hint for a server on this machine, as the end of a message."""
    local = any(host in address for host in ("localhost", "127.0.0.1", "[::1]"))
    return f". For one to develop with: {command}" if local else ""
