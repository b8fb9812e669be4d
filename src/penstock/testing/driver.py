"""A flow under test: records in, rows out, a clock that stands still until you move it, crashes on demand."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import UnknownName, nearest
from penstock.graph.bootstrap import bootstrap_graph
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint
from penstock.local.clock import Clock
from penstock.local.oracle import direct
from penstock.local.program import CHUNK, compiled
from penstock.local.read import read_endpoint
from penstock.local.run import Committed, LocalRun


class Results(dict[str, list[Any]]):
    """What came out, by sink."""

    def __init__(self, graph: Graph, rows: Mapping[str, list[Any]]) -> None:
        super().__init__(rows)
        self.graph = graph

    def __missing__(self, sink: str) -> list[Any]:
        raise UnknownName(f"flow {self.graph.name!r} has no sink {sink!r}; {nearest(sink, self)}")

    def table(self, sink: str) -> dict[Any, Any]:
        """The last row of each key, for a sink that gets running totals."""
        self[sink]
        output = self.graph.output(self.graph.node(sink).inputs[0])
        keys, removes = output.updates, output.removes
        if keys is None:
            raise UnknownName(f"sink {sink!r} gets records, not running totals; look at results[{sink!r}]")
        made: dict[Any, Any] = {}
        for row in self[sink]:
            key = tuple(row[k] for k in keys)
            made[key[0] if len(key) == 1 else key] = row
        return {key: row for key, row in made.items() if not removes or not row[removes]}


@dataclass(frozen=True)
class _Mark:
    name: str

    def __repr__(self) -> str:
        return self.name


BARRIER = _Mark("BARRIER")
"""In a list of records: a batch ends here."""
CRASH = _Mark("CRASH")
"""In a list of records: the process dies here and is started again."""


class Driver:
    """Runs a flow in this process, step by step.

    Its clock starts at the last full minute, so that what goes by multiples of the clock (windows by the clock,
    `ps.every_interval`) falls the same in every run.

    >>> import penstock as ps
    >>> flow = ps.Flow("shout")
    >>> flow.source("words", ps.items([], "word string")).map("up", lambda r: r.word.upper()).sink("out", ps.console())
    >>> driver = Driver(flow)
    >>> driver.push("words", "hello", "you")
    >>> driver.barrier()["out"]
    [Row(word='HELLO'), Row(word='YOU')]
    """

    def __init__(self, flow: Any, tables: Mapping[str, Iterable[Any]] | None = None, *, oracle: bool = False) -> None:
        self.graph: Graph = flow if isinstance(flow, Graph) else flow.graph
        self.clock = Clock(time.time() // 60 * 60)
        self.given = dict(tables or {})
        self.program = direct if oracle else compiled
        self.run = self._run(self.graph, self._bootstrapped())

    def _run(self, graph: Graph, committed: Committed | None = None) -> LocalRun:
        return LocalRun(graph, self._table, self.clock, committed, self.program)

    def _bootstrapped(self) -> Committed | None:
        """What the flow's bootstraps leave in its steps; None when it has none."""
        if not self.graph.bootstraps:
            return None
        past = self._run(bootstrap_graph(self.graph))
        for source in past.graph.sources:
            past.push(source.name, *read_endpoint(source.endpoint, source.output().schema))
        past.history()
        past.close()
        return Committed(states=past.committed.states, tables=past.committed.tables)

    def _table(self, endpoint: Endpoint) -> Iterable[Any]:
        """The rows of a static table: those the test gave for a join, else those the endpoint names."""
        for node in self.graph.nodes:
            if getattr(node, "table", None) is endpoint and node.name in self.given:
                return self.given[node.name]
        return read_endpoint(endpoint)

    def push(self, source: str, *records: Any) -> None:
        """Sends records in, in order."""
        self.run.push(source, *records)

    def barrier(self, *, end: bool = False, waiting: bool = False) -> Results:
        """Ends a batch, and returns all that has been emitted so far.

        Args:
            end: the input is over: all time has passed.
            waiting: more records wait, so that the next batch is theirs. Without it the input is quiet, and windows and timers up to
                the time that was reached end at once, as in a live run.
        """
        self.run.barrier(end=end, waiting=waiting)
        return self.results()

    def results(self) -> Results:
        """What is committed."""
        made: dict[str, list[Any]] = {s.name: [] for s in self.graph.sinks}
        made |= self.run.committed.results
        return Results(self.graph, made)

    def crash(self) -> None:
        """Kills the flow and starts it again: it goes back to the last barrier, and the sources replay the rest."""
        self.run.crash()

    def close(self) -> None:
        """Ends the flow."""
        self.run.close()


def run_local(
    flow: Any,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    tables: Mapping[str, Iterable[Any]] | None = None,
    *,
    oracle: bool = False,
) -> Results:
    """Runs a flow over lists and gives what came out of each sink.

    A list may hold BARRIER and CRASH. A source without a list is read as the flow says, which needs it to be bounded.

    >>> import penstock as ps
    >>> flow = ps.Flow("count")
    >>> flow.source("words", ps.items([], "word string")).key_by("word").count("n").sink("out", ps.console())
    >>> run_local(flow, {"words": ["a", "b", "a"]}).table("out")["a"]
    Row(word='a', n=2)
    """
    driver = Driver(flow, tables, oracle=oracle)
    for source, records in _inputs(driver.graph, inputs or {}).items():
        _feed(driver, source, records)
    results = driver.barrier(end=True)
    driver.close()
    return results


def _inputs(graph: Graph, given: Mapping[str, Iterable[Any]]) -> dict[str, Iterable[Any]]:
    names = [s.name for s in graph.sources]
    for name in given:
        if name not in names:
            raise UnknownName(f"flow {graph.name!r} has no source {name!r}; {nearest(name, names)}")
    return {
        s.name: given[s.name] if s.name in given else read_endpoint(s.endpoint, s.output().schema)
        for s in graph.sources
    }


def _feed(driver: Driver, source: str, records: Iterable[Any]) -> None:
    """Sends records in by chunks, which end at marks."""
    chunk: list[Any] = []
    for record in records:
        if isinstance(record, _Mark) or len(chunk) == CHUNK:
            driver.push(source, *chunk)
            chunk = []
        if record is BARRIER:
            driver.barrier(waiting=True)
        elif record is CRASH:
            driver.crash()
        else:
            chunk.append(record)
    driver.push(source, *chunk)
