"""The test kit: run a flow on lists, in this process, with a clock the test moves; or the same on a real Spark."""

from penstock.testing.driver import BARRIER, CRASH, Driver, Results, run_local
from penstock.testing.drpc import LocalDRPC
from penstock.testing.explanation import Explanation
from penstock.testing.patterns import explain_match
from penstock.testing.row_patterns import RowExplanation, explain_rows
from penstock.testing.spark import run_spark
from penstock.testing.topologies import TrackedTopology, complete_topology

__all__ = [
    "BARRIER",
    "CRASH",
    "Driver",
    "Explanation",
    "LocalDRPC",
    "Results",
    "RowExplanation",
    "TrackedTopology",
    "complete_topology",
    "explain_match",
    "explain_rows",
    "run_local",
    "run_spark",
]
