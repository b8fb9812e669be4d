"""What tests may cost: a long run ends with its dearest files, and a test that takes too much processor time fails.

The budget keeps `make test` short. A test that needs more shares what it starts with others, puts its cases into one run, or is marked `slow`
with a cheaper one in its stead.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.cost import Cost, Costs, Meter, left_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_JVM = 20.0
"""Seconds of processor time for a test of the fast tier."""
WITH_JVM = 90.0
"""Seconds of processor time for a test that uses Spark."""
SHOWN = 20
"""How many files a long run shows at its end."""
LONG = 60.0
"""Seconds that make a run long."""
DEAREST = Path(__file__).parent / "dearest.txt"
"""The files that take longest, longest first: started first, they leave no worker alone with a long one at the end."""
TOGETHER = ("tests/kafka", "tests/cluster")
"""Folders whose tests share a server that takes long to start: one worker runs them all."""
SHOWN_ELSEWHERE = "test_a_live_read_gives_what_is_there"
"""Of the contract of sources: what those tests show too that start a source again. Files take it in every run, servers in the slow tier."""
CPU = "processor time"
TIER_BUDGET = "TEST_TIER_BUDGET"
"""The variable with the seconds of processor time that a whole tier may take; `scripts/test` sets it."""

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # how long an example takes says more about the machine than about the example

METER, COSTS = pytest.StashKey[Meter](), pytest.StashKey[Costs]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[METER], config.stash[COSTS] = Meter(), Costs()
    config.pluginmanager.register(Accounts(config.stash[COSTS]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the dearest files first; within a file, and among the others, the order stays."""
    for item in items:
        if item.name == SHOWN_ELSEWHERE and item.nodeid.startswith(("tests/postgres", "tests/redis", "tests/kafka")):
            item.add_marker(pytest.mark.slow)
    order = {name: at for at, name in enumerate(DEAREST.read_text().split())}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, has a worker take all of a folder where that shares a server, else a file."""
    from xdist.scheduler import LoadFileScheduling

    if config.getvalue("dist") != "loadfile":
        return None
    made = LoadFileScheduling(config, log)
    made._split_scope = unit_of
    return made


def unit_of(test: str) -> str:
    """What a worker takes as one: the file of a test, or its folder."""
    file = test.partition("::")[0]
    folder = file.rpartition("/")[0]
    return folder if folder in TOGETHER else file


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes the processor time; a test that used more than it may has failed."""
    report = yield
    cpu = item.config.stash[METER].lap()
    report.user_properties.append((CPU, cpu))
    most = _budget(item)
    if call.when == "call" and report.passed and cpu > most:
        report.outcome = "failed"
        report.longrepr = f"it took {cpu:.0f} s of processor time and may take {most:g}; see 'Tests' in CONTRIBUTING.md"
    return report


def _budget(item: pytest.Item) -> float:
    """The seconds of processor time that a test may take."""
    if item.get_closest_marker("slow") is not None or item.get_closest_marker("cluster") is not None:
        return float("inf")
    return WITHOUT_JVM if item.get_closest_marker("spark") is None else WITH_JVM


INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""The settings by which Spark does not compile a plan to Java, which takes longer than to run it over the few rows of a test."""


@pytest.fixture(scope="session")
def penstock_spark(penstock_spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """The session of all tests. In the tiers of every run it interprets plans, but for what says `compiled`; else it is as in production."""
    if "not slow" in request.config.getoption("markexpr"):
        for name, value in INTERPRETED.items():
            penstock_spark.conf.set(name, value)
    return penstock_spark


@contextmanager
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """Has Spark compile the plans of a block, as it does in production."""
    before = {name: str(spark.conf.get(name)) for name in INTERPRETED}
    for name in INTERPRETED:
        spark.conf.unset(name)
    try:
        yield spark
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.fixture
def compiled_spark(penstock_spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, for a test that is about what Spark computes itself."""
    with compiled(penstock_spark) as spark:
        yield spark


class Accounts:
    """Adds up what tests cost, wherever they ran, and shows it at the end of a long run."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.costs.add(report.nodeid, report.duration, _cpu_of(report))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = self.costs.total
        if total.wall < LONG:
            return
        terminalreporter.section(f"folders of {total.wall:.0f} s, {total.cpu:.0f} s of processor time")
        self._show(terminalreporter, self.costs.by_folder())
        terminalreporter.section("dearest files")
        self._show(terminalreporter, self.costs.by_file()[:SHOWN])
        if budget := os.environ.get(TIER_BUDGET):
            terminalreporter.write_line(left_of(float(budget), total.cpu))

    def _show(self, terminalreporter: pytest.TerminalReporter, costs: Iterable[tuple[str, Cost]]) -> None:
        for name, cost in costs:
            terminalreporter.write_line(f"{cost.wall:7.1f} s {cost.cpu:7.1f} s  {name}")


def _cpu_of(report: pytest.TestReport) -> float:
    return sum(value for name, value in report.user_properties if name == CPU and isinstance(value, float))
