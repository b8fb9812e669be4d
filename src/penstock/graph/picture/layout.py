"""A small layered layout: boxes in rows, each below all it depends on, with lanes for lines that cross rows.

Made for pictures of flows, but it knows nothing of them: sizes and arrows in, positions out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS = 8


@dataclass
class Box:
    """A box to lay out; `x` is its middle, `y` its top. `row` may be given to pin it to a row."""

    width: float
    height: float
    row: int = -1
    x: float = 0.0
    y: float = 0.0


@dataclass
class Arrow:
    """From one box to another, by number. `out_at` and `in_at` say how far from the boxes' middles it ends.

    `lanes` are filled by the layout: where it crosses a row that is neither its first nor its last.
    """

    start: int
    end: int
    out_at: float = 0.0
    in_at: float = 0.0
    lanes: list[Box] = field(default_factory=list)


@dataclass(frozen=True)
class Rows:
    """What a layout returns besides the positions: the top and the height of each row, and the size of it all."""

    tops: tuple[float, ...]
    heights: tuple[float, ...]
    width: float
    height: float


def lay_out(boxes: Sequence[Box], arrows: Sequence[Arrow], gap: float, between: float, lane: float = 14) -> Rows:
    """Lays out boxes and lanes: `gap` apart in a row, rows `between` apart. Boxes come sources first."""
    _assign_rows(boxes, arrows)
    links = _links(boxes, arrows, lane)
    rows = _ordered(boxes, arrows, links)
    _spread(rows, links, gap)
    return _stack(rows, between)


def _assign_rows(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
    """Each box one row below the lowest it depends on; those that depend on nothing just above their first reader."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for arrow in arrows:
        before.setdefault(arrow.end, []).append(arrow.start)
        after.setdefault(arrow.start, []).append(arrow.end)
    for at, box in enumerate(boxes):
        if box.row < 0:
            box.row = max((boxes[b].row + 1 for b in before.get(at, ())), default=0)
    for at, box in enumerate(boxes):
        if at not in before and at in after:
            box.row = max(0, min(boxes[a].row for a in after[at]) - 1)


@dataclass(frozen=True)
class _Link:
    """A piece of an arrow between two neighbouring rows."""

    upper: Box
    lower: Box
    upper_at: float
    lower_at: float

    @property
    def ends(self) -> tuple[tuple[Box, float], tuple[Box, float]]:
        """Each end: the box, and how far along its width the line meets it, from -1/2 to 1/2."""
        upper, lower = self.upper, self.lower
        return (upper, self.upper_at / (upper.width + 1)), (lower, self.lower_at / (lower.width + 1))


class _Links:
    """All pieces, to be found by the box above or below."""

    def __init__(self, links: list[_Link]) -> None:
        self.all = links
        self.into: dict[int, list[_Link]] = {}
        self.out_of: dict[int, list[_Link]] = {}
        for link in links:
            self.into.setdefault(id(link.lower), []).append(link)
            self.out_of.setdefault(id(link.upper), []).append(link)


def _links(boxes: Sequence[Box], arrows: Sequence[Arrow], lane: float) -> _Links:
    links: list[_Link] = []
    for arrow in arrows:
        start, end = boxes[arrow.start], boxes[arrow.end]
        arrow.lanes = [Box(lane, 0, row) for row in range(start.row + 1, end.row)]
        ends = [arrow.out_at, *[0.0] * len(arrow.lanes), arrow.in_at]
        chain = list(zip([start, *arrow.lanes, end], ends, strict=True))
        links += [_Link(a, b, a_at, b_at) for (a, a_at), (b, b_at) in pairwise(chain)]
    return _Links(links)


def _ordered(boxes: Sequence[Box], arrows: Sequence[Arrow], links: _Links) -> list[list[Box]]:
    """The rows, each in an order that lets few arrows cross."""
    everything = [*boxes, *(lane for arrow in arrows for lane in arrow.lanes)]
    rows: list[list[Box]] = [[] for _ in range(1 + max(b.row for b in everything))]
    for box in everything:
        rows[box.row].append(box)
    best, fewest = [list(r) for r in rows], _crossings(rows, links)
    for sweep in range(_SWEEPS):
        _sweep(rows, links, down=sweep % 2 == 0)
        found = _crossings(rows, links)
        if found < fewest:
            best, fewest = [list(r) for r in rows], found
    return best


def _sweep(rows: list[list[Box]], links: _Links, *, down: bool) -> None:
    """Sorts each row by the middle of its neighbours in the row just passed."""
    at = {id(b): i for row in rows for i, b in enumerate(row)}
    for row in rows if down else reversed(rows):
        means = {id(b): _mean(_near(b, links, at, down=down) or [at[id(b)]]) for b in row}
        row.sort(key=lambda b: means[id(b)])
        at |= {id(b): i for i, b in enumerate(row)}


def _near(box: Box, links: _Links, at: dict[int, int], *, down: bool) -> list[float]:
    """Where a box's lines end in the row just passed."""
    found = links.into if down else links.out_of
    ends = (link.ends[0 if down else 1] for link in found.get(id(box), ()))
    return [at[id(other)] + part for other, part in ends]


def _crossings(rows: list[list[Box]], links: _Links) -> int:
    at = {id(b): i for row in rows for i, b in enumerate(row)}
    by_row: dict[int, list[tuple[float, float]]] = {}
    for link in links.all:
        (upper, out_at), (lower, in_at) = link.ends
        by_row.setdefault(upper.row, []).append((at[id(upper)] + out_at, at[id(lower)] + in_at))
    return sum((a - c) * (b - d) < 0 for ends in by_row.values() for i, (a, b) in enumerate(ends) for c, d in ends[:i])


def _spread(rows: list[list[Box]], links: _Links, gap: float) -> None:
    """Moves boxes towards the middle of their neighbours, as far as the order and the gaps allow."""
    for row in rows:
        _settle(row, [0.0] * len(row), gap)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            _settle(row, [_wanted(box, links, down=down) for box in row], gap)
    left = min(b.x - b.width / 2 for row in rows for b in row)
    for box in (b for row in rows for b in row):
        box.x -= left


def _wanted(box: Box, links: _Links, *, down: bool) -> float:
    """Where a box would stand if it were alone: straight below (or above) what it is linked with."""
    if down:
        near = [k.upper.x + k.upper_at - k.lower_at for k in links.into.get(id(box), ())]
    else:
        near = [k.lower.x + k.lower_at - k.upper_at for k in links.out_of.get(id(box), ())]
    return _mean(near) if near else box.x


def _settle(row: list[Box], wanted: list[float], gap: float) -> None:
    """The positions nearest to the wanted ones that keep order and gaps: neighbours that would clash share their shift."""
    offset = 0.0
    blocks: list[list[float]] = []
    offsets: list[float] = []
    for i, box in enumerate(row):
        if i:
            offset += row[i - 1].width / 2 + gap + box.width / 2
        offsets.append(offset)
        blocks.append([wanted[i] - offset])
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    shifts = [_mean(block) for block in blocks for _ in block]
    for box, shift, off in zip(row, shifts, offsets, strict=True):
        box.x = shift + off


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _stack(rows: list[list[Box]], between: float) -> Rows:
    heights = tuple(max((b.height for b in row), default=0) for row in rows)
    tops: list[float] = []
    top = 0.0
    for row, height in zip(rows, heights, strict=True):
        tops.append(top)
        for box in row:
            box.y = top
        top += height + between
    width = max(b.x + b.width / 2 for row in rows for b in row)
    return Rows(tuple(tops), heights, width, top - between)
