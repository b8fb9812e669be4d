"""Where the labels of lines go, so that none covers another or a box: each on its own line, where there is room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

LETTER, HEIGHT = 6.2, 13.0
_ALONG = (0.5, 0.35, 0.65, 0.2, 0.8, 0.1, 0.9)
"""Where on a piece of its line a label is tried, the first that is free is taken."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rect) -> bool:
        """Whether the two share a point.

        >>> Rect(0, 0, 2, 2).overlaps(Rect(1, 1, 3, 3)), Rect(0, 0, 2, 2).overlaps(Rect(2, 0, 4, 2))
        (True, False)
        """
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def label_rect(at: Point, text: str, anchor: str) -> Rect:
    """The rectangle that a label covers; `at` is the end of its baseline that the anchor names."""
    wide = LETTER * len(text)
    left = at[0] - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return Rect(left, at[1] - HEIGHT + 3, left + wide, at[1] + 3)


def free_spot(points: Sequence[Point], text: str, taken: Sequence[Rect]) -> tuple[Point, str] | None:
    """A spot for a label in the middle of its line, on any of its pieces, that covers nothing that is taken."""
    for at in _candidates(points):
        for anchor in ("middle", "start", "end"):
            shifted = (at[0] + {"middle": 0.0, "start": 6.0, "end": -6.0}[anchor], at[1])
            if not any(label_rect(shifted, text, anchor).overlaps(other) for other in taken):
                return shifted, anchor
    return None


def _candidates(points: Sequence[Point]) -> Iterator[Point]:
    pieces = list(pairwise(points))[::-1]
    for along in _ALONG:
        for (x1, y1), (x2, y2) in pieces:
            yield x1 + (x2 - x1) * along, y1 + (y2 - y1) * along + 4
