"""How tasks report what they counted. Workers import this with every task, so it imports little."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.accumulators import AccumulatorParam


class CountsParam(AccumulatorParam[Any]):
    """Adds up the rows in and out that tasks report."""

    def zero(self, value: Any) -> Any:
        """Nothing yet."""
        return (Counter(), Counter(), [])

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - Spark's name
        """Two reports together."""
        return add_counts(value1, value2)


def add_counts(one: Any, other: Any) -> Any:
    """Rows in and out of two tasks together, and their dead letters; those of a task that ran twice count once."""
    letters = {(made.step, made.number): made for made in (*one[2], *other[2])}
    return (Counter(one[0]) + Counter(other[0]), Counter(one[1]) + Counter(other[1]), list(letters.values()))
