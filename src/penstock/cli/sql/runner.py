"""Carries out statements and shows what they return: bounded queries in this process, live ones on Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from penstock.cli.sql.show import change_line, json_line, table_of
from penstock.connectors.local import LocalSink, write_locally
from penstock.connectors.preflight import check_outside
from penstock.connectors.registry import connector_of
from penstock.graph.endpoints.basic import callback
from penstock.graph.graph import Graph
from penstock.graph.nodes import Sink
from penstock.graph.picture.text import as_text
from penstock.graph.run import RunSpec
from penstock.jobs.run import Run, start
from penstock.jobs.sql.answers import Answer, AskLimits, answer, runs_here
from penstock.jobs.sql.session import Asked, Explained, Listed, Outcome, Said, SqlSession, Written
from penstock.jobs.sql.settings import run_options_of
from penstock.local.bounded import run_bounded
from penstock.local.net_table import NetTable
from penstock.temporary import temporary_directory

RESULT = "result"
SHOWN = 1000
"""So many rows are shown of a bounded answer for people."""


@dataclass
class Runner:
    """Carries out the outcomes of a session.

    Args:
        session: the session.
        console: where answers are shown.
        as_json: whether rows are written as lines of JSON.
        limits: how much a bounded query may take.
    """

    session: SqlSession
    console: Console = field(default_factory=Console)
    as_json: bool = False
    limits: AskLimits = field(default_factory=AskLimits)

    def run(self, text: str, origin: str = "") -> None:
        """Carries out the statements of a text.

        Raises:
            SqlError: a statement cannot be read or planned.
            KeyboardInterrupt: the user stopped a query.
        """
        for outcome in self.session.run(text, origin):
            self.show(outcome)

    def show(self, outcome: Outcome) -> None:
        """Carries out one of them."""
        if isinstance(outcome, Said):
            self._say(outcome.text)
        elif isinstance(outcome, Listed):
            self.rows(outcome.names, outcome.rows)
        elif isinstance(outcome, Explained):
            self._explain(outcome)
        elif isinstance(outcome, Asked):
            self._ask(outcome.graph)
        else:
            self._write(outcome)

    def _say(self, text: str) -> None:
        if not self.as_json:
            typer.echo(text, err=True)

    def _explain(self, explained: Explained) -> None:
        if self.as_json:
            typer.echo(json.dumps(explained.described, indent=2))
            return
        typer.echo(as_text(explained.described, modes=True), nl=False)

    def rows(self, names: tuple[str, ...], rows: list[Any], seconds: float | None = None) -> None:
        """Shows rows: all as JSON; for people the first of them."""
        if self.as_json:
            for row in rows:
                typer.echo(json_line(names, row))
            return
        self.console.print(table_of(names, rows, most=SHOWN))
        many = f"{len(rows):,} {_rows(len(rows))}"
        more = f", the first {SHOWN:,} are shown" if len(rows) > SHOWN else ""
        took = "" if seconds is None else f" in {seconds:.2f} s"
        self._say(f"{many}{took}{more}")

    @property
    def mode(self) -> str:
        """What SET says of the mode; empty lets the data decide."""
        return str(run_options_of(self.session.settings).get("mode", ""))

    def _ask(self, graph: Graph) -> None:
        if self.mode in ("", "batch") and runs_here(graph):
            found: Answer = answer(graph, RESULT, self.limits)
            self.rows(found.names, found.rows, found.seconds)
            return
        self._follow(graph)

    def _write(self, written: Written) -> None:
        """INSERT: in this process where all of it can be read and written there, else on Spark until it ends or is stopped."""
        graph = written.graph
        if self.mode in ("", "batch") and runs_here(graph) and _writes_here(graph):
            self._say(write_here(graph))
            return
        with _running(graph, self._spec(), self._say) as run:
            _wait(run)
        self._say(f"{graph.name}: {run.status().rows_in:,} records read")

    def _follow(self, graph: Graph) -> None:
        """A live query: the table is shown again whenever it has changed; Ctrl-C ends the query alone."""
        view = LiveRows(graph)
        watched = _with_sink(graph, view.take)
        if self.as_json:
            view.tell = lambda row: typer.echo(change_line(row))
            with _running(watched, self._spec(), self._say) as run:
                _wait(run)
            return
        with Live(console=self.console, auto_refresh=False, vertical_overflow="ellipsis") as live:
            with _running(watched, self._spec(), self._say) as run:
                while not run.wait(0.25).has_ended:
                    if view.changed.is_set():
                        view.changed.clear()
                        live.update(view.table(self.console.height - 6), refresh=True)
            live.update(view.table(self.console.height - 6), refresh=True)

    def _spec(self) -> RunSpec:
        """How a live query runs: as SET says, with a checkpoint that goes with it."""
        options = run_options_of(self.session.settings)
        return RunSpec.of(**({"mode": "live"} | options))


class LiveRows:
    """The rows of a live query as they stand."""

    def __init__(self, graph: Graph) -> None:
        self.net = NetTable.of(graph, RESULT, most=SHOWN)
        self.names = self.net.stream.schema.names
        self.changed, self.lock = threading.Event(), threading.Lock()
        self.tell: Callable[[Any], None] | None = None

    def take(self, rows: list[Any], batch: object) -> None:
        """Takes the rows of a batch."""
        with self.lock:
            self.net.take(rows)
        if self.tell is not None:
            for row in rows:
                self.tell(row)
        self.changed.set()

    def table(self, most: int) -> Group:
        """The newest rows as a table, below what they are."""
        with self.lock:
            rows, taken = self.net.rows(), self.net.taken
        kind = "records" if self.net.stream.changes is None else "rows"
        title = Text(f"{len(rows):,} {kind}, {taken:,} changes; Ctrl-C stops the query", "dim")
        return Group(title, table_of(self.names, rows[-max(most, 5) :]))


def _with_sink(graph: Graph, take: Callable[..., None]) -> Graph:
    """The graph with a sink in the driver in place of the console."""
    nodes = tuple(
        replace(n, endpoint=callback(take)) if isinstance(n, Sink) and n.name == RESULT else n for n in graph.nodes
    )
    return Graph(graph.name, nodes, graph.bootstraps)


@contextmanager
def _running(graph: Graph, spec: RunSpec, say: Callable[[str], None]) -> Iterator[Run]:
    """A run on Spark that ends with the block; without a checkpoint of its own it begins from scratch, in a directory that goes."""
    with temporary_directory("sql") as folder:
        kept = spec if spec.checkpoint is not None or spec.mode == "batch" else replace(spec, checkpoint=folder)
        say("on Spark; Ctrl-C stops the query")
        run = start(kept, graph)
        try:
            yield run
        finally:
            run.stop()
            _wait(run, interruptible=False)


def _wait(run: Run, *, interruptible: bool = True) -> None:
    while True:
        try:
            if run.wait(0.5).has_ended:
                return
        except KeyboardInterrupt:
            if interruptible:
                raise


def _writes_here(graph: Graph) -> bool:
    return all(connector_of(sink.endpoint, "local_writer") is not None for sink in graph.sinks)


def write_here(graph: Graph) -> str:
    """Runs a flow over bounded data in this process and writes its sinks; returns what was written."""
    check_outside(graph)
    found = run_bounded(graph)
    for node in graph.sinks:
        output = graph.output(node.inputs[0])
        write_locally(LocalSink(graph.name, node.name, node.endpoint, output.schema, output.updates), found[node.name])
    return ", ".join(f"{len(rows):,} {_rows(len(rows))} into {sink}" for sink, rows in found.items())


def _rows(many: int) -> str:
    return "row" if many == 1 else "rows"
