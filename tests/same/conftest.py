"""One suite, four runtimes, one answer: each case runs on the oracle, locally, on Spark bounded and on Spark live.

The oracle reads the graph as it was written; the others run the compiled plan.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.testing import Results, run_local, run_spark

RUNTIMES = ["oracle", "local", "bounded", "live"]
WITHOUT_JVM = ("oracle", "local")


@dataclass
class Case:
    """A runtime to put cases to. `check` compares, order aside, and running totals by their last row per key."""

    runtime: str
    seed: str
    spark: Callable[[], Any]

    def run(
        self, flow: Any, inputs: Mapping[str, Iterable[Any]], tables: Mapping[str, Iterable[Any]] | None = None
    ) -> Results:
        """What the runtime answers."""
        lists = {n: list(rows) for n, rows in inputs.items()}
        if self.in_process:
            return self.run_local(flow, lists, tables)
        cuts = None if self.runtime == "bounded" else {n: self._cuts(len(rows)) for n, rows in lists.items()}
        return run_spark(flow, self.spark(), lists, tables=tables, cuts=cuts)

    @property
    def in_process(self) -> bool:
        """Whether the runtime needs no JVM."""
        return self.runtime in WITHOUT_JVM

    def run_local(self, flow: Any, *given: Any) -> Results:
        """Runs a flow in this process, over lists that may hold marks."""
        return run_local(flow, *given, oracle=self.runtime == "oracle")

    def _cuts(self, length: int) -> list[int]:
        rolled = random.Random(f"{self.seed}-{length}")
        return sorted(rolled.randint(0, length) for _ in range(rolled.randint(1, 3)))

    def check(
        self,
        flow: Any,
        inputs: Mapping[str, Iterable[Any]],
        expected: Mapping[str, Iterable[Any]],
        tables: Mapping[str, Iterable[Any]] | None = None,
    ) -> None:
        """Runs the case and compares what each sink got."""
        results = self.run(flow, inputs, tables)
        for sink, rows in expected.items():
            got = self._rows(flow, results, sink)
            wanted = Counter(map(_plain, rows))
            assert Counter(map(_plain, got)) == wanted, f"{sink} on {self.runtime}"

    def _rows(self, flow: Any, results: Results, sink: str) -> Iterable[Any]:
        graph = flow.graph
        if graph.output(graph.node(sink).inputs[0]).updates is None:
            return results[sink]
        return results.table(sink).values()


def _plain(row: Any) -> Any:
    """A row as something that can be counted and compared across runtimes."""
    return repr(tuple(_value(v) for v in row)) if isinstance(row, tuple) else repr((_value(row),))


def _value(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Mapping):
        return sorted((k, _value(v)) for k, v in value.items())
    return [_value(v) for v in value] if isinstance(value, list | tuple) else value


@pytest.fixture(params=[r if r in WITHOUT_JVM else pytest.param(r, marks=pytest.mark.spark) for r in RUNTIMES])
def same(request: pytest.FixtureRequest) -> Case:
    """The case on each runtime in turn."""
    return Case(request.param, request.node.nodeid, lambda: request.getfixturevalue("penstock_spark"))
