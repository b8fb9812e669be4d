"""Labels in pictures: topic names on boxes, loops with the user's name, groupings in every renderer, and none over another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.describe import describe
from penstock.graph.picture.describe import describe_graph
from penstock.graph.picture.draw import as_svg
from penstock.graph.picture.geometry import BOX_HEIGHT, Picture, picture
from penstock.graph.picture.labels import Rect, label_rect
from penstock.graph.picture.text import as_text


class Count(ps.Bolt):
    outputs = "word string"

    def process(self, tup: Any) -> Iterator[Any]:
        yield from ()


def covered(drawn: Picture) -> list[Rect]:
    boxes = [
        Rect(s.x - s.box.width / 2, s.y, s.x + s.box.width / 2, s.y + BOX_HEIGHT) for f in drawn.frames for s in f.steps
    ]
    return boxes + [label_rect(one.label_at, one.label, one.anchor) for one in drawn.lines if one.label]


def topology(count: int) -> ps.Topology:
    """A bolt that many spouts feed, each grouped by a field of a longer name."""
    made = ps.Topology("wide")
    for n in range(count):
        made.spout(f"words{n}", ps.items([], f"word{'x' * n} string"))
    bolt = made.bolt("count", Count, parallelism=2)
    for n in range(count):
        bolt.fields(f"words{n}", f"word{'x' * n}")
    made.sink("out", ps.console(), "count")
    return made


@pytest.mark.parametrize("count", [2, 3, 5, 8, 12])
def test_labels_at_many_inputs_cover_nothing(count: int) -> None:
    for described in (describe(topology(count).graph), describe_graph(topology(count).graph)):
        drawn = picture(described)
        assert sum(bool(one.label) for one in drawn.lines) >= count
        assert [(a, b) for a, b in combinations(covered(drawn), 2) if a.overlaps(b)] == []
        assert as_svg(described)


def test_boxes_show_the_topic_or_the_table() -> None:
    flow = ps.Flow("named")
    flow.source("in", ps.topic("orders", "n bigint", path="x")).sink("back", ps.write_topic("paid", path="x"))
    flow.source("k", ps.kafka("clicks", "n bigint")).sink("pg", ps.write_postgres("postgresql://h/d", "totals"))
    details = {s.name: s.detail for f in picture(describe(flow.graph)).frames for s in f.steps}
    assert details["in"] == "source · log orders"
    assert details["back"] == "sink · write_log paid"
    assert details["k"] == "source · kafka clicks"
    assert details["pg"] == "sink · write_postgres totals"


def test_groupings_stand_in_the_text_too() -> None:
    for described in (describe(topology(2).graph), describe_graph(topology(2).graph)):
        assert "<- words0 (grouping fields(word)), words1 (grouping fields(wordx))" in " ".join(
            as_text(described, 300).split()
        )
