"""How tasks report what they counted. Workers import this with every task, so it imports little."""

from __future__ import annotations

from pyspark.accumulators import AccumulatorParam

from penstock.kernels.counts import PassCounts


class CountsParam(AccumulatorParam[PassCounts]):
    """Adds up what tasks report."""

    def zero(self, value: PassCounts) -> PassCounts:
        """Nothing yet."""
        return PassCounts()

    def addInPlace(self, value1: PassCounts, value2: PassCounts) -> PassCounts:  # noqa: N802 - Spark's name
        """Two reports together."""
        return value1.add(value2)
