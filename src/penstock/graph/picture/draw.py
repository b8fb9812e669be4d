"""A description as a picture: SVG, of its own making, the same for the same flow."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise

from penstock.graph.picture.describe import Description
from penstock.graph.picture.geometry import BOX_HEIGHT, Frame, Line, Picture, Point, StepBox, picture
from penstock.graph.picture.text import move_text, port_text, settings_text, title

MARGIN, HEAD, LEGEND = 24, 68, 40

_STYLE = """
.pk-back{fill:#ffffff}
.pk text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2933}
.pk .pk-title{font-size:17px;font-weight:600}
.pk .pk-name{font-size:13px;font-weight:600}
.pk .pk-small,.pk .pk-label{font-size:11px;fill:#52606d}
.pk .pk-label{paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}
.pk rect{stroke-width:1.3}
.pk .pk-source{fill:#e0ecff;stroke:#4c7bd9}
.pk .pk-native{fill:#e0f4e8;stroke:#2f9e62}
.pk .pk-python{fill:#fff2cc;stroke:#c99a16}
.pk .pk-sink{fill:#efe5fb;stroke:#8a5cc9}
.pk .pk-lost{fill:#f1f1f1;stroke:#9aa5b1;stroke-dasharray:4 3}
.pk .pk-frame{fill-opacity:.35;stroke-opacity:.55}
.pk .pk-line{fill:none;stroke:#7b8794;stroke-width:1.6}
.pk .pk-shuffle{stroke:#d1552e;stroke-dasharray:7 4}
.pk .pk-feedback{stroke:#8a5cc9;stroke-dasharray:2 4}
.pk .pk-head{fill:#7b8794}
.pk .pk-shared{fill:#1f2933}
@media (prefers-color-scheme:dark){
.pk-back{fill:#15191e}
.pk text{fill:#e4e9ee}
.pk .pk-small,.pk .pk-label{fill:#a7b4c0}
.pk .pk-label{stroke:#15191e}
.pk .pk-source{fill:#1d3050;stroke:#6d97e8}
.pk .pk-native{fill:#173626;stroke:#4dbd82}
.pk .pk-python{fill:#3d3212;stroke:#dbb23c}
.pk .pk-sink{fill:#32224a;stroke:#a983e0}
.pk .pk-lost{fill:#252a30;stroke:#66727e}
.pk .pk-line{stroke:#8794a1}
.pk .pk-shuffle{stroke:#f0835e}
.pk .pk-feedback{stroke:#a983e0}
.pk .pk-head{fill:#8794a1}
.pk .pk-shared{fill:#e4e9ee}
}
""".strip()

_HOSTS = {"source": "source", "native": "native (JVM)", "python": "Python", "sink": "sink", "lost": "left out"}


def as_svg(described: Description) -> str:
    """The picture of a description (of a graph, or of a plan), as an SVG document."""
    drawn = picture(described)
    head = title(described)
    name, _, rest = head.partition(": ")
    keys = list(_legend(drawn))
    wide = max(drawn.width, 9.5 * len(name), 6.0 * len(rest), sum(map(_key_width, keys))) + 2 * MARGIN
    high = drawn.height + HEAD + LEGEND + 2 * MARGIN
    left = (wide - drawn.width) / 2
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pk" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" role="img">',
        f"<title>{_safe(head)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="pk-back" width="{wide:.0f}" height="{high:.0f}" rx="8"/>',
        f'<text class="pk-title" x="{MARGIN}" y="{MARGIN + 10}">{_safe(name)}</text>',
        f'<text class="pk-small" x="{MARGIN}" y="{MARGIN + 30}">{_safe(rest)}</text>',
        f'<g transform="translate({left:.1f} {MARGIN + HEAD})">',
        *(_frame(f) for f in drawn.frames if f.framed),
        *(_line(one) for one in drawn.lines),
        *(_step(s) for f in drawn.frames for s in f.steps),
        *(_label(one) for one in drawn.lines if one.label),
        "</g>",
        *_keys(keys, high - MARGIN),
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def _safe(text: object) -> str:
    """A text as XML takes it; signs that XML does not allow become question marks."""
    kept = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in str(text))
    return escape(kept, quote=True)


def _frame(frame: Frame) -> str:
    box = frame.box
    left = box.x - box.width / 2
    return (
        f'<g><rect class="pk-frame pk-{frame.host}" x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="12"/>'
        f'<text class="pk-small" x="{left + 12:.1f}" y="{box.y + 17:.1f}">{_safe(frame.caption)}</text></g>'
    )


def _step(step: StepBox) -> str:
    left = step.x - step.box.width / 2
    return (
        f"<g><title>{_safe(_about(step.step))}</title>"
        f'<rect class="pk-{step.host}" x="{left:.1f}" y="{step.y:.1f}" width="{step.box.width:.1f}" '
        f'height="{BOX_HEIGHT:.0f}" rx="7"/>'
        f'<text class="pk-name" text-anchor="middle" x="{step.x:.1f}" y="{step.y + 19:.1f}">{_safe(step.name)}</text>'
        f'<text class="pk-small" text-anchor="middle" x="{step.x:.1f}" y="{step.y + 35:.1f}">{_safe(step.detail)}</text>'
        "</g>"
    )


def _about(step: Description) -> str:
    """The tooltip of a step: all that is known of it."""
    lines = [f"{step['name']}: {step['kind']}, runs {step['runs']}"]
    lines += [settings_text(step["settings"])] if step["settings"] else []
    lines += [f"-> {'' if o['port'] == 'out' else o['port'] + ': '}{o['schema']}" for o in step["outputs"]]
    return "\n".join([*lines, step["line"]]).rstrip()


def _line(line: Line) -> str:
    stream = line.stream
    shuffle = stream.get("shuffle", stream["grouping"])
    look = "pk-line pk-feedback" if line.back else "pk-line pk-shuffle" if shuffle else "pk-line"
    path = _bent(line.points) if line.back else _curved(line.points)
    (x, y), (x0, y0) = line.points[-1], line.points[0]
    about = f"{port_text(stream['from'])} to {stream['to']}: {stream['schema']}"
    dot = f'<circle class="pk-shared" cx="{x0:.1f}" cy="{y0 + 3:.1f}" r="4"/>' if stream.get("shared") else ""
    head = f'<path class="pk-head" d="M{x:.1f} {y:.1f}l-4.5 -8h9z"/>'
    kept = "\nshared: computed once, read by several stages" if stream.get("shared") else ""
    moved = f"\n{move_text(shuffle)}" if shuffle else ""
    return f'<g><title>{_safe(about + moved + kept)}</title><path class="{look}" d="{path}"/>{head}{dot}</g>'


def _curved(points: list[Point]) -> str:
    """A line that leaves and enters each point straight down."""
    (x, y), *_ = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for (x1, y1), (x2, y2) in pairwise([*points[:-1], (points[-1][0], points[-1][1] - 6)]):
        middle = (y1 + y2) / 2
        straight = abs(x1 - x2) < 0.5
        parts.append(
            f"L{x2:.1f} {y2:.1f}" if straight else f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
        )
    return "".join(parts)


def _bent(points: list[Point], radius: float = 8) -> str:
    """A line of straight pieces with round corners."""
    (x, y), *_ = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        into, out_of = _short_of(corner, before, radius), _short_of(corner, after, radius)
        parts.append(f"L{into[0]:.1f} {into[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {out_of[0]:.1f} {out_of[1]:.1f}")
    return "".join([*parts, f"L{points[-1][0]:.1f} {points[-1][1] - 6:.1f}"])


def _short_of(corner: Point, other: Point, radius: float) -> Point:
    (x, y), (ox, oy) = corner, other
    length = max(abs(ox - x), abs(oy - y), 0.001)
    part = min(radius, length / 2) / length
    return x + (ox - x) * part, y + (oy - y) * part


def _label(line: Line) -> str:
    x, y = line.label_at
    return f'<text class="pk-label" text-anchor="{line.anchor}" x="{x:.1f}" y="{y:.1f}">{_safe(line.label)}</text>'


def _legend(drawn: Picture) -> Iterator[tuple[str, str]]:
    """What the colours and strokes of this picture mean: only those that it has."""
    seen = {s.host for f in drawn.frames for s in f.steps}
    yield from ((host, text) for host, text in _HOSTS.items() if host in seen)
    if any(one.stream.get("shuffle", one.stream["grouping"]) for one in drawn.lines):
        yield "shuffle", "shuffle"
    if any(one.stream.get("shared") for one in drawn.lines):
        yield "shared", "shared stream"
    if any(one.back for one in drawn.lines):
        yield "feedback", "feedback"


def _key_width(key: tuple[str, str]) -> float:
    return 46 + 6.2 * len(key[1])


def _keys(keys: list[tuple[str, str]], y: float) -> Iterator[str]:
    x = float(MARGIN)
    for key in keys:
        name, text = key
        if name in _HOSTS:
            mark = f'<rect class="pk-{name}" x="{x:.1f}" y="{y - 10:.1f}" width="18" height="12" rx="3"/>'
        elif name == "shared":
            mark = f'<circle class="pk-shared" cx="{x + 9:.1f}" cy="{y - 4:.1f}" r="4"/>'
        else:
            mark = f'<path class="pk-line pk-{name}" d="M{x:.1f} {y - 4:.1f}h22"/>'
        yield f'{mark}<text class="pk-small" x="{x + 27:.1f}" y="{y:.1f}">{_safe(text)}</text>'
        x += _key_width(key)
