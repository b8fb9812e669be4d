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
