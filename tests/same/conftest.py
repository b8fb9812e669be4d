"""One suite, four runtimes, one answer: each case runs on the oracle, locally, on Spark bounded and on Spark live.

The oracle reads the graph as it was written, in one batch; the others run the compiled plan. Local and live runs are cut into batches at
random, and at the same places. Between two batches of a local run what its steps keep goes into state files and comes back from them, so
that what one host has kept is what another goes on with.

A live run takes seconds, so in every test run only the cases that are marked `live` have one: at least one for each step and each way it keeps
state. The others run live in the slow tier, and in every run on the oracle, locally in batches, and on Spark bounded. What Spark runs bounded it compiles,
as in production; in the tiers of every run it interprets the rest.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.testing import Driver, Results, run_local, run_spark
from tests.conftest import compiled
from tests.hosts import through_files

RUNTIMES = ["oracle", "local", "bounded", "live"]
WITHOUT_JVM = ("oracle", "local")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts runs on Spark that are not for every test run into the slow tier: live ones without a mark, and those of parameters that a mark leaves out."""
    for item in items:
        if isinstance(item, pytest.Function) and "same" in item.fixturenames and not _runs_now(item):
            item.add_marker(pytest.mark.slow)


def _runs_now(item: pytest.Function) -> bool:
    """Whether a case runs in every test run. The mark may name which of several parameters does so live."""
    runtime = item.callspec.params.get("same")
    mark = item.get_closest_marker(str(runtime)) if runtime in ("bounded", "live") else None
    if mark is None:
        return runtime != "live"
    return not mark.args or any(name in item.callspec.id for name in mark.args)


@dataclass
class Case:
    """A runtime to put cases to. `check` compares, order aside, and running totals by their last row per key."""

    runtime: str
    seed: str
    spark: Callable[[], Any]

    def run(
        self,
        flow: Any,
        inputs: Mapping[str, Iterable[Any]],
        tables: Mapping[str, Iterable[Any]] | None = None,
        cuts: Mapping[str, list[int]] | None = None,
    ) -> Results:
        """What the runtime answers. `cuts` says after which records local and live batches end; else it is rolled."""
        lists = {n: list(rows) for n, rows in inputs.items()}
        if self.runtime == "oracle" or (self.in_process and len(lists) < len(flow.graph.sources)):
            return self.run_local(flow, lists, tables)
        cuts = cuts or {n: self._cuts(len(rows)) for n, rows in lists.items()}
        if self.in_process:
            return run_cut(flow, lists, cuts, tables)
        if self.runtime == "bounded":
            with compiled(self.spark()) as spark:
                return run_spark(flow, spark, lists, tables=tables)
        return run_spark(flow, self.spark(), lists, tables=tables, cuts=cuts, parallelism=self._tasks())

    @property
    def in_process(self) -> bool:
        """Whether the runtime needs no JVM."""
        return self.runtime in WITHOUT_JVM

    def run_local(self, flow: Any, *given: Any, write: bool = False) -> Results:
        """Runs a flow in this process, over lists that may hold marks."""
        return run_local(flow, *given, oracle=self.runtime == "oracle", write=write)

    def _tasks(self) -> int:
        """Of keyed steps: a number that is a power of two, or one that is not."""
        return random.Random(self.seed).choice((2, 3))

    def _cuts(self, length: int) -> list[int]:
        rolled = random.Random(f"{self.seed.partition('[')[0]}-{length}")
        return sorted(rolled.randint(0, length) for _ in range(rolled.randint(1, 3)))

    def check(
        self,
        flow: Any,
        inputs: Mapping[str, Iterable[Any]],
        expected: Mapping[str, Iterable[Any]],
        tables: Mapping[str, Iterable[Any]] | None = None,
        cuts: Mapping[str, list[int]] | None = None,
    ) -> None:
        """Runs the case and compares what each sink got."""
        results = self.run(flow, inputs, tables, cuts)
        for sink, rows in expected.items():
            got = self._rows(flow, results, sink)
            wanted = Counter(map(_plain, rows))
            assert Counter(map(_plain, got)) == wanted, f"{sink} on {self.runtime}"

    def _rows(self, flow: Any, results: Results, sink: str) -> Iterable[Any]:
        graph = flow.graph
        if graph.output(graph.node(sink).inputs[0]).updates is None:
            return results[sink]
        return results.table(sink).values()


def run_cut(
    flow: Any,
    inputs: Mapping[str, list[Any]],
    cuts: Mapping[str, list[int]],
    tables: Mapping[str, Iterable[Any]] | None = None,
    *,
    oracle: bool = False,
) -> Results:
    """A flow in this process, in batches that end after the records that the cuts name."""
    driver = Driver(flow, tables, oracle=oracle)
    for at in range(max((len(c) for c in cuts.values()), default=0) + 1):
        for source, records in inputs.items():
            bounds = [0, *cuts[source], len(records)]
            driver.push(source, *(records[bounds[at] : bounds[at + 1]] if at + 1 < len(bounds) else ()))
        driver.barrier(waiting=True)
        if not oracle:
            through_files(driver.run)
    results = driver.barrier(end=True)
    driver.close()
    return results


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
