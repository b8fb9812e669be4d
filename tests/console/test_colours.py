"""The colours of charts can be told apart by those who see red, green or blue badly, on light and on dark; those of health have signs beside them."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from penstock.web import FOLDER

Rgb = tuple[float, float, float]
SEEN: dict[str, tuple[Rgb, Rgb, Rgb]] = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""What is seen of linear red, green and blue, after Machado, Oliveira and Fernandes (2009)."""
TOGETHER = {
    "phases of a batch": ("blue", "green", "pink", "orange", "sky", "grey"),
    "records that are lost": ("red", "orange", "blue", "pink", "sky"),
    "rows in and out": ("blue", "green"),
    "cores": ("red", "grey"),
    "streams": ("sky", "orange", "pink"),
}
APART = 11.0
"""A difference (CIE 1976) that is seen side by side; 2.3 is the least."""


def palettes() -> list[dict[str, str]]:
    """The colours of charts on light, on dark by the system, and on dark by choice."""
    css = (FOLDER / "style.css").read_text()
    lines = [line for line in css.splitlines() if "--c-blue:" in line]
    return [dict(re.findall(r"--c-(\w+): (#\w{6})", line)) for line in lines]


def lab(colour: str, seen: tuple[Rgb, Rgb, Rgb]) -> Rgb:
    """A colour as it is seen, in the space of CIE L*a*b*."""
    given = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in given]
    r, g, b = (min(max(sum(k * c for k, c in zip(row, linear, strict=True)), 0.0), 1.0) for row in seen)
    x, y, z = (
        0.4124 * r + 0.3576 * g + 0.1805 * b,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        0.0193 * r + 0.1192 * g + 0.9505 * b,
    )
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x / 0.9505, y, z / 1.089))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize("chart", TOGETHER)
def test_colours_of_one_chart_are_told_apart(chart: str, eyes: str) -> None:
    assert len(palettes()) == 3
    for palette in palettes():
        for one, other in combinations(TOGETHER[chart], 2):
            a, b = (lab(palette[name], SEEN[eyes]) for name in (one, other))
            apart = sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5
            assert apart >= APART, f"{one} and {other} are {apart:.1f} apart for eyes that see {eyes}"
