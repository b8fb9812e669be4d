"""A flow under test: records in, rows out, a clock that stands still until you move it, crashes on demand."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from penstock.connectors.local import LocalSink, write_locally
from penstock.errors import UnknownName, nearest
from penstock.graph.bootstrap import bootstrap_graph
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import OPERATION
from penstock.graph.row import Row
from penstock.kernels.topology.spout import reliable_spouts
from penstock.local.bounded import read_source, read_table
from penstock.local.clock import Clock
from penstock.local.net_table import NetTable
from penstock.local.oracle import direct
from penstock.local.program import CHUNK, compiled
from penstock.local.run import CommittedState, LocalRun
from penstock.local.spouts import SpoutHost, run_spouts

Record: TypeAlias = object
"""A record of a user may be anything that fits the schema."""
Records = Mapping[str, Iterable[Record]]
"""Records by the name of a source or of a join."""


class FlowLike(Protocol):
    """What can be run: a Flow, a Topology, or whatever else builds a graph."""

    @property
    def graph(self) -> Graph:
        """The graph of its steps."""


class Results(dict[str, list[Any]]):
    """The rows that each sink has got, by the name of the sink: a dict. A name that is no sink of the flow raises UnknownName.

    Args:
        graph: the graph of the flow.
        rows: the rows by sink.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items(["a"], "word string")).sink("out", ps.console())
    >>> run_local(flow)["out"]
    [Row(word='a')]
    """

    def __init__(self, graph: Graph, rows: Mapping[str, list[Row]]) -> None:
        super().__init__({sink: _net(graph, sink, found) for sink, found in rows.items()})
        self.graph = graph

    def __missing__(self, sink: str) -> list[Row]:
        raise UnknownName(f"flow {self.graph.name!r} has no sink {sink!r}; {nearest(sink, self)}")

    def table(self, sink: str) -> dict[Any, Any]:
        """The row of each key as it stands at the end, for a sink that gets a table by key.

        Args:
            sink: the name of the sink.

        Returns:
            Rows by key; a key of several fields is a tuple. Keys that were removed are not there.

        Raises:
            UnknownName: the flow has no such sink, or it gets independent records.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> flow.source("words", ps.items(["a", "a"], "word string")).key_by("word").count("n").sink("out", ps.console())
        >>> run_local(flow).table("out")
        {'a': Row(word='a', n=2)}
        """
        self[sink]
        keys = self.graph.output(self.graph.node(sink).inputs[0]).updates
        if keys is None:
            raise UnknownName(f"sink {sink!r} gets records, not running totals; look at results[{sink!r}]")
        made: dict[Any, Any] = {}
        for row in self[sink]:
            key = tuple(row[k] for k in keys)
            made[key[0] if len(key) == 1 else key] = row
        return made


def _net(graph: Graph, sink: str, rows: list[Any]) -> list[Any]:
    """The rows of a sink; of a table from which rows may go those that are there at the end."""
    if not rows or not isinstance(rows[-1], Row) or rows[-1].names[-1] not in (OPERATION, COUNT):
        return list(rows)
    made = NetTable.of(graph, sink)
    made.take(rows)
    return made.rows()


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
    """Runs a flow in this process, step by step, as production runs it: the compiled plan, with the same kernels.

    Its clock starts at the last full minute, so that what goes by multiples of processing time (windows by processing time,
    `ps.every_interval`) falls the same in every run.

    Args:
        flow: a Flow, a Topology or a graph.
        tables: rows for the tables of joins, by the name of the join; other tables are read as the flow says.
        oracle: reads the graph as it was written, record by record, without the compiler. Slow; for comparisons.

    Raises:
        CaptureError: a function could not travel to a worker of Spark.

    >>> import penstock as ps
    >>> from penstock.testing import Driver
    >>> flow = ps.Flow("shout")
    >>> flow.source("words", ps.items([], "word string")).map("up", lambda r: r.word.upper()).sink("out", ps.console())
    >>> driver = Driver(flow)
    >>> driver.push("words", "hello", "you")
    >>> driver.barrier()["out"]
    [Row(word='HELLO'), Row(word='YOU')]
    """

    def __init__(self, flow: FlowLike | Graph, tables: Records | None = None, *, oracle: bool = False) -> None:
        self.graph: Graph = flow if isinstance(flow, Graph) else flow.graph
        self.clock = Clock(time.time() // 60 * 60)
        self.given = dict(tables or {})
        self.program = direct if oracle else compiled
        self.run = self._run(self.graph, self._bootstrapped())

    def _run(self, graph: Graph, committed: CommittedState | None = None) -> LocalRun:
        return LocalRun(graph, self._table, self.clock, committed, self.program)

    def _bootstrapped(self) -> CommittedState | None:
        """What the flow's bootstraps leave in its steps; None when it has none."""
        if not self.graph.bootstraps:
            return None
        past = self._run(bootstrap_graph(self.graph))
        for source in past.graph.sources:
            past.push(source.name, *read_source(source))
        past.history()
        past.close()
        made = past.committed
        return CommittedState(states=made.states, tables=made.tables, timers=made.timers)

    def _table(self, endpoint: Endpoint) -> Iterable[Record]:
        """The rows of a static table: those the test gave for a join, else those of the endpoint."""
        for node in self.graph.nodes:
            if getattr(node, "table", None) is endpoint and node.name in self.given:
                return self.given[node.name]
        return read_table(endpoint)

    def push(self, source: str, *records: Record) -> None:
        """Sends records in, in order; they go through the steps at once, up to those that wait for the end of a batch.

        Args:
            source: the name of a source of the flow.
            records: dicts, tuples, dataclasses, or bare values where the schema has one field.

        Raises:
            UnknownName: the flow has no such source.
            StepError: a step failed on a record; it names the step, the record and its position.
        """
        self.run.push(source, *records)

    def barrier(self, *, end: bool = False, waiting: bool = False) -> Results:
        """Ends a batch.

        Args:
            end: the input is over, so that all time has passed.
            waiting: more records wait, so that the next batch is theirs. Without it the input is quiet, and windows and timers up to
                the time that was reached end at once, as in a live run.

        Returns:
            All rows that have been committed so far.

        Raises:
            StepError: a step failed when time moved on.
        """
        self.run.barrier(end=end, waiting=waiting)
        return self.results()

    def results(self) -> Results:
        """All rows that have been committed so far.

        Returns:
            The rows by sink.
        """
        made: dict[str, list[Row]] = {s.name: [] for s in self.graph.sinks}
        return Results(self.graph, made | self.run.committed.results)

    def crash(self) -> None:
        """Kills the flow and starts it again: it goes back to the last barrier, and the records since then are replayed."""
        self.run.crash()

    def write(self) -> None:
        """Writes the rows of each sink to its endpoint, where that needs no JVM.

        Raises:
            Impossible: an endpoint can only be written by Spark.
        """
        results = self.results()
        for node in self.graph.sinks:
            output = self.graph.output(node.inputs[0])
            sink = LocalSink(self.graph.name, node.name, node.endpoint, output.schema, output.updates)
            write_locally(sink, results[node.name])

    def close(self) -> None:
        """Ends the flow."""
        self.run.close()


def run_local(
    flow: FlowLike | Graph,
    inputs: Records | None = None,
    tables: Records | None = None,
    *,
    oracle: bool = False,
    write: bool = False,
) -> Results:
    """Runs a flow in this process until its input is over.

    Args:
        flow: a Flow, a Topology or a graph.
        inputs: records by the name of a source; a list may hold BARRIER and CRASH. A source without a list is read as the
            flow says: items, files, topics of the log and of Kafka, tables of PostgreSQL, streams of Redis, spouts that end.
        tables: rows for the tables of joins, by the name of the join.
        oracle: reads the graph as it was written, without the compiler; see `Driver`.
        write: writes what each sink has got to its endpoint, when the run has ended. Without it nothing is written.

    Returns:
        The rows of each sink.

    Raises:
        UnknownName: `inputs` names no source of the flow.
        Impossible: a source has no end, or needs Spark.
        StepError: a step failed on a record.
        CaptureError: a function could not travel to a worker of Spark.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> flow = ps.Flow("count")
    >>> flow.source("words", ps.items([], "word string")).key_by("word").count("n").sink("out", ps.console())
    >>> run_local(flow, {"words": ["a", "b", "a"]}).table("out")["a"]
    Row(word='a', n=2)
    """
    driver = Driver(flow, tables, oracle=oracle)
    try:
        hosts = [SpoutHost(n) for n in reliable_spouts(driver.graph) if n.name not in (inputs or {})]
        for source, records in _inputs(driver.graph, inputs or {}, {h.node.name for h in hosts}).items():
            _feed(driver, source, records)
        run_spouts(driver.run, hosts)
        results = driver.barrier(end=True)
        for host in hosts:
            host.settle(driver.run)
            host.tasks.close()
        if write:
            driver.write()
        driver.close()
    finally:
        driver.run.abandon()
    return results


def _inputs(graph: Graph, given: Records, hosted: set[str]) -> dict[str, Iterable[Record]]:
    names = [s.name for s in graph.sources]
    for name in given:
        if name not in names:
            raise UnknownName(f"flow {graph.name!r} has no source {name!r}; {nearest(name, names)}")
    read = [s for s in graph.sources if s.name not in hosted]
    return {s.name: given[s.name] if s.name in given else read_source(s) for s in read}


def _feed(driver: Driver, source: str, records: Iterable[Record]) -> None:
    """Sends records in by chunks, which end at marks."""
    chunk: list[Record] = []
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
