"""Where everything of a drawn flow goes: boxes for steps, frames for stages, lines for streams. No SVG here."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.graph.picture.describe import Description
from penstock.graph.picture.labels import LETTER, Rect, free_spot, label_rect
from penstock.graph.picture.layout import Arrow, Box, Rows, lay_out
from penstock.graph.picture.text import move_text, name_text, port_text, settings_text

BOX_HEIGHT = 44.0
PADDING, CAPTION = 14.0, 20.0
IN_STAGE, BETWEEN_STAGES, SIDE = 30.0, 54.0, 30.0
WIDEST = 40

Point = tuple[float, float]


@dataclass
class StepBox:
    """A step as drawn; `x` is its middle, `y` its top."""

    step: Description
    host: str
    box: Box
    name: str
    detail: str
    x: float = 0.0
    y: float = 0.0


@dataclass
class Frame:
    """The steps that run together, and the frame around them if there is one."""

    host: str
    caption: str
    steps: list[StepBox]
    box: Box = field(default_factory=lambda: Box(0, 0))
    exits: dict[tuple[str, str], list[Point]] = field(default_factory=dict)

    @property
    def framed(self) -> bool:
        """Whether a frame is drawn; the box of a lone source, sink or step says enough."""
        return bool(self.caption)


@dataclass
class Line:
    """A stream as drawn: through `points`, with bends where it goes `back`."""

    stream: Description
    points: list[Point]
    label: str
    label_at: Point = (0.0, 0.0)
    anchor: str = "start"
    back: bool = False


@dataclass
class Picture:
    """The whole drawing."""

    frames: list[Frame]
    lines: list[Line]
    width: float
    height: float


def picture(described: Description) -> Picture:
    """The drawing of a description."""
    frames = _frames(described)
    at = {s.step["name"]: f for f in frames for s in f.steps}
    for frame in frames:
        _inside(frame, described["streams"])
    streams = [s for s in described["streams"] if not s["feedback"]]
    crossing = [s for s in streams if at[s["from"]["step"]] is not at[s["to"]]]
    arrows = [_arrow(frames, at, s) for s in crossing]
    rows = lay_out([f.box for f in frames], arrows, SIDE, BETWEEN_STAGES)
    for frame in frames:
        _settle(frame)
    steps = {s.step["name"]: s for f in frames for s in f.steps}
    lines = [_line(steps, at, rows, s, None) for s in streams if at[s["from"]["step"]] is at[s["to"]]]
    lines += [_line(steps, at, rows, s, a) for s, a in zip(crossing, arrows, strict=True)]
    loops = [s for s in described["streams"] if s["feedback"]]
    lines += [_back(steps, at, rows, s, i) for i, s in enumerate(loops)]
    _fan_out(lines, first=True)
    _fan_out(lines, first=False)
    _put_labels(lines, [_rect(s) for f in frames for s in f.steps])
    return Picture(frames, lines, *_extent(rows, lines, len(loops)))


def _frames(described: Description) -> list[Frame]:
    steps = {s["name"]: s for s in described["steps"]}
    stages = described.get("stages")
    if stages is None:
        return [Frame("", "", [_box(s, s["runs"].split("+")[0])]) for s in steps.values()]
    frames = [Frame(s["host"], _caption(s), [_box(steps[n], s["host"]) for n in s["steps"]]) for s in stages]
    return frames + [Frame("lost", "", [_box(s, "lost")]) for s in steps.values() if s["stage"] is None]


def _caption(stage: Description) -> str:
    if stage["host"] not in ("native", "python"):
        return ""
    name = "native" if stage["host"] == "native" else f"Python pass {stage['python_pass']}"
    return f"{name} · state" if stage["state"] else name


def _box(step: Description, host: str) -> StepBox:
    settings = _settings_of(step)
    detail = cut(f"{step['kind']} · {settings}" if settings else step["kind"], WIDEST)
    name = cut(name_text(step["name"]), WIDEST)
    width = max(110.0, 7.6 * len(name) + 28, 6.1 * len(detail) + 28)
    return StepBox(step, host, Box(width, BOX_HEIGHT), name, detail)


def _settings_of(step: Description) -> str:
    """The settings of a step, in the few words that fit into its box."""
    settings = dict(step["settings"])
    if step["kind"] == "bolt":
        settings = {name: settings[name] for name in ("class", "tasks")}
    outside = next((settings[k] for k in ("from", "to", "with") if k in settings), None)
    if outside is not None:
        on = f" on {settings['on']}" if "on" in settings else ""
        where = next((settings[k] for k in ("topic", "topics", "pattern", "table", "path") if settings.get(k)), "")
        topic = str(where).strip("[]").replace("'", "")
        return f"{outside} {topic}".rstrip() + on
    function = str(settings.pop("function", settings.pop("class", ""))).rpartition(":")[2]
    key = [f"by {settings.pop('key')}"] if "key" in settings else []
    named = [] if function in ("", "<lambda>") else [function]
    return ", ".join([*key, *named, settings_text(settings)]).removesuffix(", ")


def cut(text: str, length: int) -> str:
    """A text that is not longer than `length`.

    >>> cut("hello world", 8)
    'hello w…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def _inside(frame: Frame, streams: list[Description]) -> None:
    """Lays out the steps of a frame, and lanes by which streams leave it past the steps below."""
    number = {s.step["name"]: i for i, s in enumerate(frame.steps)}
    boxes = [s.box for s in frame.steps]
    mine = [s for s in streams if s["from"]["step"] in number]
    inner = [s for s in mine if s["to"] in number and not s["feedback"]]
    arrows = [Arrow(number[s["from"]["step"]], number[s["to"]]) for s in inner]
    depth = _depths(len(boxes), arrows)
    leaving = dict.fromkeys((s["from"]["step"], s["from"]["port"]) for s in mine if s not in inner)
    high = [key for key in leaving if depth[number[key[0]]] < max(depth)]
    lanes = [Arrow(number[step], len(boxes) + i) for i, (step, _) in enumerate(high)]
    boxes += [Box(10, 0, row=max(depth) + 1) for _ in high]
    rows = lay_out(boxes, [*arrows, *lanes], SIDE, IN_STAGE)
    height = rows.tops[max(depth)] + rows.heights[max(depth)]
    for key, lane in zip(high, lanes, strict=True):
        frame.exits[key] = _through(lane, rows, (boxes[lane.end].x, height))
    _size(frame, rows.width, height)


def _depths(count: int, arrows: list[Arrow]) -> list[int]:
    depth = [0] * count
    for arrow in sorted(arrows, key=lambda a: a.end):
        depth[arrow.end] = max(depth[arrow.end], depth[arrow.start] + 1)
    return depth


def _through(arrow: Arrow, rows: Rows, end: Point) -> list[Point]:
    points = [(x.x, y) for x in arrow.lanes for y in (rows.tops[x.row], rows.tops[x.row] + rows.heights[x.row])]
    return [*points, end]


def _size(frame: Frame, width: float, height: float) -> None:
    """The size of a frame, and the steps inside it as shifts from its middle and its top."""
    around, above = (2 * PADDING, CAPTION + PADDING) if frame.framed else (0.0, 0.0)
    entry = frame.steps[0].box.x - width / 2
    caption = 2 * (6.0 * len(frame.caption) + 20 - entry) if frame.framed else 0.0
    frame.box.width = max(width + around, caption)
    frame.box.height = height + above + around / 2
    for step in frame.steps:
        step.x, step.y = step.box.x - width / 2, step.box.y + above
    frame.exits = {k: [(x - width / 2, y + above) for x, y in points] for k, points in frame.exits.items()}


def _arrow(frames: list[Frame], at: dict[str, Frame], stream: Description) -> Arrow:
    start, end = at[stream["from"]["step"]], at[stream["to"]]
    inside = start.exits.get((stream["from"]["step"], stream["from"]["port"]))
    out_at = inside[-1][0] if inside else _step(start, stream["from"]["step"]).x
    numbers = {id(f): i for i, f in enumerate(frames)}
    return Arrow(numbers[id(start)], numbers[id(end)], out_at, _step(end, stream["to"]).x)


def _step(frame: Frame, name: str) -> StepBox:
    return next(s for s in frame.steps if s.step["name"] == name)


def _settle(frame: Frame) -> None:
    """From shifts inside the frame to positions in the picture."""
    for step in frame.steps:
        step.x, step.y = step.x + frame.box.x, step.y + frame.box.y
    frame.exits = {k: [(x + frame.box.x, y + frame.box.y) for x, y in points] for k, points in frame.exits.items()}


def _line(
    steps: dict[str, StepBox], at: dict[str, Frame], rows: Rows, stream: Description, arrow: Arrow | None
) -> Line:
    end = steps[stream["to"]]
    if arrow is None:
        start = steps[stream["from"]["step"]]
        return Line(stream, [(start.x, start.y + BOX_HEIGHT), (end.x, end.y)], _label(stream))
    frame = at[stream["to"]]
    points = [*_leave(steps, at, rows, stream), *_through(arrow, rows, (end.x, frame.box.y - 4)), (end.x, end.y)]
    return Line(stream, points, _label(stream))


def _leave(steps: dict[str, StepBox], at: dict[str, Frame], rows: Rows, stream: Description) -> list[Point]:
    """From a step to the gap below its row, past the steps that stand below it."""
    start = steps[stream["from"]["step"]]
    frame = at[stream["from"]["step"]]
    points = [(start.x, start.y + BOX_HEIGHT), *frame.exits.get((stream["from"]["step"], stream["from"]["port"]), [])]
    return [*points, (points[-1][0], rows.tops[frame.box.row] + rows.heights[frame.box.row])]


def _back(steps: dict[str, StepBox], at: dict[str, Frame], rows: Rows, stream: Description, number: int) -> Line:
    """A loop: below its last step, up at the right side, and in from above at its first."""
    points = _leave(steps, at, rows, stream)
    end = steps[stream["to"]]
    side = rows.width + SIDE + 12 * number
    low, high = points[-1][1] + 12 + 5 * number, rows.tops[at[stream["to"]].box.row] - 16 - 5 * number
    points += [(points[-1][0], low), (side, low), (side, high), (end.x, high), (end.x, end.y)]
    return Line(stream, points, _label(stream), back=True)


def _label(stream: Description) -> str:
    port = stream["from"]["port"]
    shuffle = stream.get("shuffle", stream["grouping"])
    loop = f"loop {name_text(stream['to'])}" if stream["feedback"] else ""
    parts = [loop, "" if port == "out" else port, move_text(shuffle) if shuffle else ""]
    return cut(" · ".join(filter(None, parts)), WIDEST)


def _fan_out(lines: list[Line], *, first: bool) -> None:
    """Draws apart the ends of lines that meet at one box, in the order in which they come."""
    meeting: dict[str, dict[str, list[Line]]] = {}
    for line in lines:
        step = line.stream["from"]["step"] if first else line.stream["to"]
        own = port_text(line.stream["from"]) if first else str(id(line))
        meeting.setdefault(step, {}).setdefault(own, []).append(line)
    for groups in meeting.values():
        ordered = sorted(groups.values(), key=lambda group: _towards(group[0], first))
        for i, group in enumerate(ordered):
            for line in group:
                _shift(line, 22 * (i - (len(ordered) - 1) / 2), first=first)


def _towards(line: Line, first: bool) -> float:
    """Where a line comes from (or goes to) before it meets the box."""
    points = line.points if first else line.points[::-1]
    return next((x for x, _ in points if abs(x - points[0][0]) > 1), points[0][0])


def _shift(line: Line, by: float, *, first: bool) -> None:
    """Moves the end of a line sideways, with the straight piece that leads to it."""
    end, near = (0, 1) if first else (-1, -2)
    straight = len(line.points) > 3 and abs(line.points[near][0] - line.points[end][0]) < 0.5
    for i in (end, near) if straight else (end,):
        x, y = line.points[i]
        line.points[i] = (x + by, y)


def _rect(step: StepBox) -> Rect:
    return Rect(step.x - step.box.width / 2, step.y, step.x + step.box.width / 2, step.y + BOX_HEIGHT)


def _put_labels(lines: list[Line], boxes: list[Rect]) -> None:
    """Beside the arrow's head where there is room, else on the line; none covers a box or another label."""
    taken = list(boxes)
    for line in sorted((one for one in lines if one.label), key=lambda one: len(one.label)):
        at, anchor = _beside_head(line)
        if any(label_rect(at, line.label, anchor).overlaps(other) for other in taken):
            at, anchor = _on_line(line, taken)
        line.label_at, line.anchor = at, anchor
        taken.append(label_rect(at, line.label, anchor))


def _beside_head(line: Line) -> tuple[Point, str]:
    (x1, _), (x2, y2) = line.points[-3:-1] if len(line.points) > 2 else line.points[-2:]
    if line.back:
        return (line.points[-1][0] + 8, line.points[-1][1] - 3), "start"
    if x1 > x2 + 1 and x2 - 8 > LETTER * len(line.label):
        return (x2 - 8, y2 - 8), "end"
    return (x2 + 8, y2 - 8), "start"


def _on_line(line: Line, taken: list[Rect]) -> tuple[Point, str]:
    """A free spot on the line; where it has none, the label is cut until there is one."""
    while True:
        found = free_spot(line.points, line.label, taken)
        if found is not None or len(line.label) <= 3:
            return found or _beside_head(line)
        line.label = cut(line.label, max(3, len(line.label) - 4))


def _extent(rows: Rows, lines: list[Line], loops: int) -> Point:
    right = max((line.label_at[0] + LETTER * len(line.label) for line in lines if line.label), default=0.0)
    side = rows.width + (SIDE + 12 * loops if loops else 0)
    low = max((y for line in lines if line.back for _, y in line.points), default=0.0)
    return max(side, right), max(rows.height, low)
