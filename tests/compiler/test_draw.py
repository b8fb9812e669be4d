"""The picture of a flow: well-formed, the same each time, nothing on top of anything else."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

import penstock as ps
from penstock.compiler.describe import describe
from penstock.graph.picture.describe import Description, describe_graph
from penstock.graph.picture.draw import as_svg
from penstock.graph.picture.geometry import BOX_HEIGHT, Picture, picture
from penstock.graph.picture.layout import Arrow, Box, lay_out
from tests.compiler.flows import FLOWS, same, start
from tests.compiler.test_compile import flows

SVG = "{http://www.w3.org/2000/svg}"
Area = tuple[float, float, float, float]


def tree(svg: str) -> Any:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [t.text or "" for t in tree(svg).iter(f"{SVG}text")]


def tooltips(svg: str) -> list[str]:
    return [t.text or "" for t in tree(svg).iter(f"{SVG}title")]


def apart(one: Area, other: Area) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def frames(drawn: Picture) -> list[Area]:
    boxes = [f.box for f in drawn.frames]
    return [(b.x - b.width / 2, b.y, b.x + b.width / 2, b.y + b.height) for b in boxes]


def steps(drawn: Picture) -> dict[str, Area]:
    found = [s for f in drawn.frames for s in f.steps]
    return {s.step["name"]: (s.x - s.box.width / 2, s.y, s.x + s.box.width / 2, s.y + BOX_HEIGHT) for s in found}


def check(described: Description) -> None:
    """All that must hold for a picture to be readable."""
    drawn = picture(described)
    boxes = steps(drawn)
    assert set(boxes) == {s["name"] for s in described["steps"]}
    assert all(apart(a, b) for a, b in combinations(frames(drawn), 2)), "stages do not overlap"
    assert all(apart(a, b) for a, b in combinations(boxes.values(), 2)), "steps do not overlap"
    for frame, area in zip(drawn.frames, frames(drawn), strict=True):
        for step in frame.steps:
            left, top, right, low = boxes[step.step["name"]]
            assert area[0] <= left
            assert area[1] <= top
            assert right <= area[2] + 0.01
            assert low <= area[3] + 0.01
    assert len(drawn.lines) == len(described["streams"])
    for line in drawn.lines:
        check_line(line.stream, line.points, boxes)


def check_line(stream: Description, points: list[tuple[float, float]], boxes: dict[str, Area]) -> None:
    start, end = boxes[stream["from"]["step"]], boxes[stream["to"]]
    assert points[0][1] == pytest.approx(start[3]), "a line leaves at the bottom of its step"
    assert points[-1][1] == pytest.approx(end[1]), "and enters at the top of the next"
    for x, y in points[1:-1]:
        inside = [n for n, (left, top, right, low) in boxes.items() if left < x < right and top < y < low]
        assert not inside, f"the line {stream['from']} to {stream['to']} runs over {inside}"
    if not stream["feedback"]:
        assert [y for _, y in points] == sorted(y for _, y in points), "lines go down"


@pytest.mark.parametrize("name", FLOWS)
def test_the_picture_of_each_flow_is_readable(name: str) -> None:
    graph = FLOWS[name]().graph
    for described in (describe(graph), describe(graph, live=False), describe_graph(graph)):
        check(described)
        tree(as_svg(described))


@settings(max_examples=60, deadline=None)
@given(flows())
def test_the_picture_of_any_flow_is_readable(flow: ps.Flow) -> None:
    check(describe(flow.graph))
    check(describe_graph(flow.graph))


@pytest.mark.parametrize("name", ["loop", "side_outputs", "two_sources"])
def test_a_flow_is_drawn_the_same_each_time(name: str) -> None:
    assert as_svg(describe(FLOWS[name]().graph)) == as_svg(describe(FLOWS[name]().graph))


def test_everything_stands_inside_the_picture() -> None:
    svg = as_svg(describe(FLOWS["loop"]().graph))
    root = tree(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    shift = re.search(r"translate\(([\d.]+) ([\d.]+)\)", svg)
    assert shift is not None
    dx, dy = map(float, shift.groups())
    drawn = picture(describe(FLOWS["loop"]().graph))
    for x, y in (p for line in drawn.lines for p in line.points):
        assert 0 <= x + dx <= width
        assert 0 <= y + dy <= height


def test_boxes_take_the_colour_of_their_host() -> None:
    root = tree(as_svg(describe(FLOWS["word_count"]().graph)))
    boxes = {
        g.findall(f"{SVG}text")[0].text: g.find(f"{SVG}rect")
        for g in root.iter(f"{SVG}g")
        if g.find(f"{SVG}title") is not None and g.find(f"{SVG}rect") is not None
    }
    assert {n: b.get("class") for n, b in boxes.items()} == {
        "lines": "pk-source",
        "split": "pk-python",
        "count@parts": "pk-native",
        "count": "pk-python",
        "out": "pk-sink",
    }


def test_stages_have_frames_with_captions() -> None:
    shown = texts(as_svg(describe(FLOWS["word_count"]().graph)))
    assert {"Python pass 1", "native", "Python pass 2 · state"} <= set(shown)


def test_shuffles_are_dashed_and_named() -> None:
    svg = as_svg(describe(FLOWS["word_count"]().graph))
    assert "shuffle by word" in texts(svg)
    assert svg.count('class="pk-line pk-shuffle"') == 2  # the stream, and the legend
    assert "pk-line pk-shuffle" not in as_svg(describe(FLOWS["join"]().graph))


def test_streams_tell_their_schema() -> None:
    assert "split to count@parts: word string\nshuffle by word" in tooltips(
        as_svg(describe(FLOWS["word_count"]().graph))
    )


def test_steps_tell_all_about_themselves() -> None:
    about = next(t for t in tooltips(as_svg(describe(FLOWS["word_count"]().graph))) if t.startswith("count: "))
    assert about.startswith(
        "count: aggregate, runs native+state\nkey=word, count=count(*)\n-> word string, count bigint"
    )
    assert "flows.py:" in about


def test_a_loop_is_drawn_back_to_its_beginning() -> None:
    drawn = picture(describe(FLOWS["loop"]().graph))
    (back,) = [line for line in drawn.lines if line.back]
    boxes = steps(drawn)
    assert max(x for x, _ in back.points) > max(right for _, _, right, _ in boxes.values())
    assert back.points[-1][1] < back.points[0][1]
    assert back.label == "loop again · otherwise"


def test_shared_streams_are_marked() -> None:
    assert "shared stream" in texts(as_svg(describe(FLOWS["shared_streams"]().graph)))
    assert "shared stream" not in texts(as_svg(describe(FLOWS["word_count"]().graph)))


def test_steps_left_out_are_drawn_as_such() -> None:
    assert "left out" in texts(as_svg(describe(FLOWS["left_out"]().graph)))


def test_names_from_outside_cannot_break_the_picture() -> None:
    flow, numbers = start("odd")
    numbers.select("pick", **{"<b>&\"'": "n", "line\nbreak\x00": "k"}).sink("out", ps.console())
    svg = as_svg(describe(flow.graph))
    assert "<b>" not in svg
    assert any("<b>&\"'" in t for t in tooltips(svg))


def test_long_texts_are_cut_in_boxes_and_whole_in_tooltips() -> None:
    flow, numbers = start("long")
    name = "a-name-that-goes-on-and-on-" * 4
    numbers.map(name, same).sink("out", ps.console())
    svg = as_svg(describe(flow.graph))
    assert max(map(len, texts(svg)[2:])) <= 41
    assert any(name in t for t in tooltips(svg))


def test_the_picture_follows_light_and_dark() -> None:
    assert "prefers-color-scheme:dark" in as_svg(describe(FLOWS["join"]().graph))


def test_boxes_that_depend_on_each_other_stand_below_each_other() -> None:
    boxes = [Box(100, 40) for _ in range(4)]
    rows = lay_out(boxes, [Arrow(0, 1), Arrow(1, 3), Arrow(0, 3), Arrow(2, 3)], gap=10, between=20)
    assert [b.row for b in boxes] == [0, 1, 1, 2]
    assert (rows.heights, rows.height) == ((40, 40, 40), 160)


def test_a_line_that_crosses_a_row_has_a_lane_there() -> None:
    boxes = [Box(100, 40) for _ in range(3)]
    long = Arrow(0, 2)
    lay_out(boxes, [Arrow(0, 1), Arrow(1, 2), long], gap=10, between=20)
    (lane,) = long.lanes
    assert lane.row == 1
    assert abs(lane.x - boxes[1].x) >= 50


def test_arrows_do_not_cross_where_they_need_not() -> None:
    boxes = [Box(100, 40) for _ in range(4)]
    lay_out(boxes, [Arrow(0, 3), Arrow(1, 2)], gap=10, between=20)
    assert (boxes[0].x < boxes[1].x) == (boxes[3].x < boxes[2].x)
