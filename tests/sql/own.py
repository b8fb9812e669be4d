"""Functions that SQL texts of the tests import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps


def shout(text: str) -> str:
    return text.upper() + "!"


@ps.function(vectorized=True, takes=("bigint",), returns="bigint")
def doubled(numbers: pa.Array) -> pa.Array:
    return pc.multiply(numbers, 2)


class Piece(NamedTuple):
    word: str
    length: int


def pieces(text: str) -> Iterator[Piece]:
    for word in text.split():
        yield Piece(word, len(word))


class Weighted:
    """A mean with weights, which can take rows back."""

    def init(self) -> list[float]:
        return [0.0, 0.0]

    def accumulate(self, so_far: list[float], price: float, n: int | None) -> list[float]:
        return [so_far[0] + price * (n or 0), so_far[1] + (n or 0)]

    def retract(self, so_far: list[float], price: float, n: int | None) -> list[float]:
        return [so_far[0] - price * (n or 0), so_far[1] - (n or 0)]

    def merge(self, one: list[float], other: list[float]) -> list[float]:
        return [one[0] + other[0], one[1] + other[1]]

    def result(self, so_far: list[float]) -> float | None:
        return so_far[0] / so_far[1] if so_far[1] else None


class Longest:
    """The longest text, of which no row can be taken back."""

    def accumulate(self, so_far: str | None, text: str | None) -> str | None:
        return self.merge(so_far, text)

    def merge(self, one: str | None, other: str | None) -> str | None:
        known = [text for text in (one, other) if text is not None]
        return max(known, key=lambda text: (len(text), text)) if known else None

    def result(self, so_far: str | None) -> str | None:
        return so_far


@ps.aggregate_function(vectorized=True, name="total")
class ArrowTotal:
    """A sum over Arrow arrays."""

    def init(self) -> int:
        return 0

    def accumulate(self, so_far: int, numbers: int) -> int:
        assert isinstance(numbers, pa.Array)
        return so_far + (pc.sum(numbers).as_py() or 0)

    def merge(self, one: int, other: int) -> int:
        return one + other

    def result(self, so_far: int) -> int:
        return so_far


class NoMerge:
    def accumulate(self, so_far: int, n: int) -> int:
        return n

    def result(self, so_far: int) -> int:
        return so_far
