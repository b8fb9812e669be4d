"""The times of a batch, for kernels."""

from penstock.graph.times import FOREVER, NEVER, Times, to_micros, to_moment

__all__ = ["FOREVER", "NEVER", "Times", "to_micros", "to_moment"]
