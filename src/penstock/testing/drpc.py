"""Calls of functions in this process, without a JVM and without a server."""

from __future__ import annotations

from uuid import uuid4

from penstock.errors import CallError, FlowError, UnknownName, nearest
from penstock.graph.composed.compose_drpc import sink_name, source_name
from penstock.testing.driver import Driver, FlowLike, Record


class LocalDRPC:
    """Answers calls of the functions of a topology, each in a batch of its own.

    Args:
        flow: a LinearDRPCTopologyBuilder, a TridentTopology with `new_drpc_stream`, or a graph of one.

    >>> import penstock as ps
    >>> from penstock.testing import LocalDRPC
    >>> top = ps.TridentTopology("demo")
    >>> _ = top.new_drpc_stream("upper").map(lambda tup: tup.args.upper(), "text string")
    >>> LocalDRPC(top).execute("upper", "hello")
    '[["HELLO"]]'
    """

    def __init__(self, flow: FlowLike) -> None:
        self.driver = Driver(flow)
        self._seen: dict[str, int] = {}

    def push(self, source: str, *records: Record) -> None:
        """Sends records to another source of the topology.

        Args:
            source: its name.
            records: the records; they count at the next call, or at `driver.barrier()`.

        Raises:
            UnknownName: the topology has no such source.
        """
        self.driver.push(source, *records)

    def execute(self, function: str, args: str = "") -> str:
        """Calls a function.

        Args:
            function: its name.
            args: its arguments.

        Returns:
            The answer.

        Raises:
            UnknownName: the topology has no such function.
            CallError: the call failed.
        """
        return self.execute_all(function, [args])[0]

    def execute_all(self, function: str, args: list[str]) -> list[str]:
        """Calls a function several times, in one batch.

        Args:
            function: its name.
            args: the arguments of each call.

        Returns:
            The answers, in that order.

        Raises:
            UnknownName: the topology has no such function.
            FlowError: arguments are no text.
            CallError: one of the calls failed.
        """
        known = [s.name.removeprefix("drpc-") for s in self.driver.graph.sources if s.name.startswith("drpc-")]
        if function not in known:
            raise UnknownName(f"expected a function of the topology, got {function!r}; {nearest(function, known)}")
        if wrong := [each for each in args if not isinstance(each, str)]:
            raise FlowError(f"function {function!r}: expected the arguments as text, got {wrong[0]!r}")
        requests = [uuid4().hex for _ in args]
        self.driver.push(source_name(function), *zip(requests, args, strict=True))
        rows = {row[0]: row for row in self.driver.barrier()[sink_name(function)]}
        return [_answer(function, rows.get(request)) for request in requests]


def _answer(function: str, row: object) -> str:
    if not isinstance(row, tuple):
        raise CallError(f"function {function!r} has not answered")
    if row[2] is not None:
        raise CallError(f"function {function!r} failed: {row[2]}")
    return str(row[1])
