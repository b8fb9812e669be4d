"""Sketches: a few kilobytes that stand for any number of values. Those of Spark, in its binary form, by the package `datasketches`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

BITS = 12
"""A sketch of distinct values has 2 to this many buckets: about 1.6 % off. As in the native part."""


def _library() -> ModuleType:
    import datasketches  # type: ignore[import-untyped,unused-ignore]  # an extra, which has no types

    made: ModuleType = datasketches
    return made


def distinct_of(value: object) -> bytes | None:
    """A sketch of one value, for counting distinct ones."""
    if value is None:
        return None
    sketch = _library().hll_sketch(BITS)
    sketch.update(value)
    return bytes(sketch.serialize_compact())


def distinct_together(one: bytes, other: bytes) -> bytes:
    """A sketch of the values of both."""
    library = _library()
    union = library.hll_union(BITS)
    for each in (one, other):
        union.update(library.hll_sketch.deserialize(each))
    return bytes(union.get_result().serialize_compact())


def how_many(sketch: bytes | None) -> int:
    """About how many distinct values there were."""
    return 0 if sketch is None else round(_library().hll_sketch.deserialize(sketch).get_estimate())


def values_of(value: float | None) -> bytes | None:
    """A sketch of one number, for percentiles."""
    if value is None:
        return None
    sketch = _library().kll_doubles_sketch()
    sketch.update(float(value))
    return bytes(sketch.serialize())


def values_together(one: bytes, other: bytes) -> bytes:
    """A sketch of the numbers of both."""
    kind = _library().kll_doubles_sketch
    both = kind.deserialize(one)
    both.merge(kind.deserialize(other))
    return bytes(both.serialize())


def quantile(sketch: bytes | None, at: float) -> float | None:
    """About the number at a fraction of the way through the sorted numbers."""
    if sketch is None:
        return None
    kept = _library().kll_doubles_sketch.deserialize(sketch)
    return None if kept.is_empty() else float(kept.get_quantile(at))
