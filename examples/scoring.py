"""Python functions in expressions: one of a record, one of Arrow arrays, and native steps around them.

penstock run examples/scoring.py --once
"""

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps

VISITS = [("ada", 9, 3.0, 1.0), ("bob", 1, 60.0, 2.0), ("eve", 4, 2.0, None), ("ada", 3, 4.0, 0.5)]


@ps.function(null_on_null=True)
def score(clicks: int, seconds: float) -> float:
    """Clicks per second."""
    return clicks / max(seconds, 1.0)


@ps.function(vectorized=True, takes=("double", "double"), returns="double")
def weighted(value: pa.DoubleArray, weight: pa.DoubleArray) -> pa.DoubleArray:
    """The value by its weight; a missing weight counts as one."""
    return pc.multiply(value, pc.fill_null(weight, 1.0))


flow = ps.Flow("scoring", functions=[score, weighted])
visits = flow.source("visits", ps.items(VISITS, "user string, clicks int, seconds double, weight double"))
good = visits.where("good", "score(clicks, seconds) > 0.1")
good.key_by("user").aggregate(
    "totals",
    total="round(sum(weighted(score(clicks, seconds), weight)), 2)",
    share="count(*) filter (where weight is not null) / count(*)",
).sink("out", ps.console())

if __name__ == "__main__":
    ps.run(flow)
