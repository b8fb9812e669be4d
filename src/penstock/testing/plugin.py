"""The pytest plugin: fixtures that any project with Penstock installed has.

- `run_flow(flow, inputs)` runs a flow in this process.
- `flow_driver(flow)` returns a driver, to push records one by one, move the clock and crash.
- `penstock_spark` is a Spark session shared by the whole test run; no JVM starts unless a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.graph.graph import Graph
    from penstock.testing.driver import Driver, FlowLike, Results


@pytest.fixture
def run_flow() -> Callable[..., Results]:
    """Runs a flow over lists: `run_flow(flow, {"lines": ["a b"]})["out"]`."""
    from penstock.testing.driver import run_local  # every run of pytest loads this module

    return run_local


@pytest.fixture
def flow_driver() -> Iterator[Callable[..., Driver]]:
    """Makes drivers, and closes them when the test ends."""
    from penstock.testing.driver import Driver  # every run of pytest loads this module

    made: list[Driver] = []

    def make(flow: FlowLike | Graph, **options: Any) -> Driver:
        made.append(Driver(flow, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture(scope="session")
def penstock_spark() -> Iterator[SparkSession]:
    """A local Spark session with two cores, for the whole test run."""
    from penstock.spark.jvm.session import session  # it loads pyspark

    spark = session("penstock-tests", "local[2,4]")
    yield spark
    spark.stop()
