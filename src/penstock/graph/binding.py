"""Binding: a step over the streams it reads, checked, with the outputs that follow; errors name the step and the user's line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import FlowError, NotYet, UnknownName, nearest
from penstock.graph.endpoints.checks import check_sink, check_source
from penstock.graph.ids import owner_of
from penstock.graph.nodes import Inputs, Node, Output, Port, Sink, Source

N = TypeVar("N", bound=Node)


def bind(node: N, given: Inputs) -> N:
    """A step over the streams it reads.

    Args:
        node: the step; whatever outputs it holds already must be those that it derives.
        given: its inputs, in the order of its ports.

    Returns:
        The step with the settings and outputs that follow from its inputs.

    Raises:
        FlowError: it does not fit them. The message names the step and the user's line.
    """
    with blaming(node):
        made = node.bound(given)
        if isinstance(made, Source):
            check_source(made)
        if isinstance(made, Sink):
            check_sink(made)
        if node.outputs and node.outputs != made.outputs:
            raise FlowError(f"its outputs must be what it derives, {shown(made.outputs)}, got {shown(node.outputs)}")
    return made


def shown(outputs: tuple[Output, ...]) -> str:
    """Outputs as errors show them."""
    return "; ".join(f"{o.name} ({o.schema})" for o in outputs) or "none"


def inputs_of(node: Node, known: Mapping[str, Node]) -> Inputs:
    """The streams at the ports of a step, of which each must be there."""
    return tuple(stream_at(node, port, known) for port in node.inputs)


def stream_at(node: Node, port: Port, known: Mapping[str, Node]) -> Output:
    """The stream at a port that a step reads.

    Raises:
        UnknownName: there is no such step, or it has no such output; with the nearest names.
    """
    if port.step not in known:
        raise UnknownName(
            f"{node.where} reads {port.step!r}, which is no step of this flow; {nearest(port.step, known)}"
        )
    outputs = {o.name: o for o in known[port.step].outputs}
    if port.name not in outputs:
        raise UnknownName(f"{node.where} reads stream {port.name!r} of {port.step!r}; {nearest(port.name, outputs)}")
    return outputs[port.name]


@dataclass(frozen=True)
class naming:  # noqa: N801 - it is used as a statement
    """Whatever is wrong inside, the error names the step and the line, which is only looked for then.

    A class of its own, not a generator: `contextlib` would stand between Penstock and the user's line on the call stack.
    """

    noun: str
    name: str
    line: Callable[[], str]

    def __enter__(self) -> None:
        """Nothing to do yet."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FlowError | NotYet):
            text = blamed(str(error), self.noun, self.name, self.line())
            if text != str(error):
                raise type(error)(text) from None


@dataclass(frozen=True)
class naming_call:  # noqa: N801 - it is used as a statement
    """Whatever is wrong inside, the error names the call, which makes no step, and the line."""

    call: str
    line: Callable[[], str]

    def __enter__(self) -> None:
        """Nothing to do yet."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FlowError | NotYet):
            raise type(error)(f"{self.call} ({self.line()}): {error}") from None


def blaming(node: Node) -> naming:
    """Whatever is wrong inside, the error names the step and the user's line."""
    return naming(node.noun, owner_of(node.name), lambda: node.line)


def blamed(text: str, noun: str, name: str, line: str) -> str:
    """An error's text with the step and the line in it, if they are not yet.

    >>> blamed("no field 'wrod'", "step", "pick", "count.py:3")
    "step 'pick' (count.py:3): no field 'wrod'"
    """
    step = f"{noun} {name!r}"
    where = f"{step} ({line})" if line else step
    if where in text or (line and f"({line})" in text):
        return text
    if step in text:
        return text.replace(step, where, 1)
    return f"{where}: {text}"
