"""The oracle: a graph read as it was written, record by record, without the compiler.

It is slow and plain on purpose. Tests compare the compiled plan with it, in this process and on Spark.
"""

from __future__ import annotations

from penstock.compiler.rewrites.call_functions import called
from penstock.compiler.rewrites.carry_changes import carried
from penstock.compiler.rewrites.finish_aggregates import finished
from penstock.graph.graph import Graph
from penstock.local.program import Program, working


def direct(graph: Graph) -> Program:
    """Every step of the graph as it stands, one record at a time; tables travel as signed rows here too."""
    whole = carried(called(finished(graph)))
    return Program(whole, working(whole, whole.ordered), chunk=1)
