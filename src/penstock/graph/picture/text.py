"""A description as text: a header with the totals, then a block for each stage with its steps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from penstock.graph.picture.describe import Description


def as_text(described: Description, width: int = 100, *, modes: bool = False) -> str:
    """A description (of a graph, or of a plan) for people to read; with `modes` append-only streams and functions that vary are marked too."""
    writer = _Writer(described, width, modes)
    return "\n".join(writer.lines()).rstrip() + "\n"


_PLACED = {"": "", "apart": ", in workers of its own", "alone": ", alone in its executor"}


def port_text(port: Description) -> str:
    """A stream's address as users write it.

    >>> port_text({"step": "split", "port": "out"}), port_text({"step": "split", "port": "bad"})
    ('split', 'split.bad')
    """
    return port["step"] if port["port"] == "out" else f"{port['step']}.{port['port']}"


def name_text(step: str) -> str:
    """The name under which people know a step: their own, also for the loop that a bolt has into itself.

    >>> name_text("count"), name_text("count.again.words")
    ('count', 'count (again: words)')
    """
    bolt, loop, path = step.partition(".again.")
    return f"{bolt} (again: {path})" if loop else step


def title(described: Description) -> str:
    """The flow's name, its mode and its totals, in one line."""
    name, totals = described["flow"], described.get("totals")
    if totals is None:
        return f"{name}: {_many(len(described['steps']), 'step')}"
    counts = [_many(totals["shuffles"], "shuffle"), _many(totals["python_passes"], "Python pass")]
    if totals["shared_streams"]:
        counts.append(_many(totals["shared_streams"], "shared stream"))
    counts.append("keeps state" if totals["state"] else "no state")
    head = f"{_many(totals['steps'], 'step')} in {_many(totals['stages'], 'stage')}"
    return f"{name} ({described['mode']}): {head}; {', '.join(counts)}"


def stage_title(stage: Description) -> str:
    """What a stage is, in a few words.

    >>> stage_title({"host": "python", "python_pass": 1, "state": True, "placed": "apart"})
    'Python pass 1, with state, in workers of its own'
    """
    name = f"Python pass {stage['python_pass']}" if stage["host"] == "python" else str(stage["host"])
    return name + (", with state" if stage["state"] else "") + _PLACED[stage.get("placed", "")]


def shuffle_text(stage: Description) -> str:
    """How records move before a stage."""
    return move_text(stage["shuffle"]) + (", combined first" if stage["combined_first"] else "")


def move_text(how: str) -> str:
    """How records move, in words: a shuffle, or a grouping of a topology.

    >>> move_text("by word"), move_text("evenly"), move_text("fields(word)")
    ('shuffle by word', 'shuffle evenly', 'grouping fields(word)')
    """
    return f"shuffle {how}" if how.startswith("by ") or how == "evenly" else f"grouping {how}"


def settings_text(settings: dict[str, Any]) -> str:
    """The settings of a step, in one line.

    >>> settings_text({"from": "rate", "rows_per_second": 10})
    'from rate, rows_per_second=10'
    """
    return ", ".join(f"{k} {v}" if k in ("from", "to", "with", "fed by") else f"{k}={v}" for k, v in settings.items())


def _many(count: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"


class _Writer:
    """Writes one description; knows the width of its columns."""

    def __init__(self, described: Description, width: int, modes: bool = False) -> None:
        self.described, self.width, self.modes = described, width, modes
        self.steps = {s["name"]: s for s in described["steps"]}
        self.names = min(24, max(len(n) for n in self.steps))
        self.readers: dict[tuple[str, str], list[Description]] = {}
        for stream in described["streams"]:
            if self.steps[stream["to"]].get("stage", 0) is not None:
                self.readers.setdefault((stream["from"]["step"], stream["from"]["port"]), []).append(stream)

    def lines(self) -> Iterator[str]:
        """All of it."""
        yield from self._wrapped(title(self.described), 4)
        for warning in self.described.get("warnings", ()):
            yield from self._wrapped(f"! {_warning(warning)}", 2)
        yield ""
        stages = self.described.get("stages")
        if stages is None:
            yield from self._steps(list(self.steps), 2)
            return
        for stage in stages:
            yield from self._stage(stage)
        yield from self._left_out()

    def _stage(self, stage: Description) -> Iterator[str]:
        if stage["shuffle"]:
            yield from self._wrapped(f"     ~~ {shuffle_text(stage)} ~~", 8)
        yield f"{stage['number']:>3}  {stage_title(stage)}"
        yield from self._steps(stage["steps"], 7)
        yield ""

    def _left_out(self) -> Iterator[str]:
        lost = [n for n, s in self.steps.items() if s["stage"] is None]
        if lost:
            yield "  -  left out"
            yield from self._steps(lost, 7)

    def _steps(self, names: list[str], indent: int) -> Iterator[str]:
        for name in names:
            yield from self._step(self.steps[name], indent)

    def _step(self, step: Description, indent: int) -> Iterator[str]:
        under = indent + self.names + 2
        line = f"({step['line']})" if step["line"] else ""
        parts = [
            f"{name_text(step['name']):<{self.names}}",
            self._kind(step),
            settings_text(step["settings"]),
            line,
        ]
        yield from self._wrapped(" " * indent + "  ".join(filter(None, parts)), under + 2)
        if step.get("keeps"):
            yield from self._wrapped(" " * under + f"keeps {step['keeps']}", under + 5)
        if step.get("approximate"):
            yield from self._wrapped(" " * under + f"approximate: {step['approximate']}", under + 5)
        if self.modes and step.get("varying"):
            said = f"not known to answer the same twice: {', '.join(step['varying'])}"
            yield from self._wrapped(" " * under + said, under + 5)
        for drawn in step.get("drawing", ()):
            yield from self._wrapped(" " * under + f"| {drawn}", under + 5)
        for output in step["outputs"]:
            yield from self._wrapped(" " * under + self._output(step, output), under + 5)

    def _kind(self, step: Description) -> str:
        made_by = step.get("made_by")
        kind = f"{step['kind']} for {made_by}" if made_by else str(step["kind"])
        inputs = ", ".join(port_text(p) + self._moved(step["name"], p) for p in step["inputs"])
        return f"{kind} <- {inputs}" if inputs else kind

    def _moved(self, step: str, port: Description) -> str:
        """How the records of a stream are grouped on their way to a step, where the user said so."""
        readers = self.readers.get((port["step"], port["port"]), [])
        grouping = next((s["grouping"] for s in readers if s["to"] == step and not s["feedback"]), "")
        return f" ({move_text(grouping)})" if grouping else ""

    def _output(self, step: Description, output: Description) -> str:
        name = "" if output["port"] == "out" else f"{output['port']}: "
        marks = "".join(f"  [{m}]" for m in self._marks(step["name"], output))
        return f"-> {name}{output['schema']}{marks}"

    def _marks(self, step: str, output: Description) -> Iterator[str]:
        if output["changes"] is not None:
            yield _changes(output["changes"])
        elif self.modes:
            yield "append-only"
        readers = self.readers.get((step, output["port"]), [])
        if any(s.get("shared") for s in readers):
            yield f"shared by {', '.join(s['to'] for s in readers)}"
        loops = [s["to"] for s in readers if s["feedback"]]
        if loops:
            yield f"back to {', '.join(loops)}"
        if not readers:
            yield "unused"

    def _wrapped(self, line: str, under: int) -> list[str]:
        if len(line) <= self.width:
            return [line]
        indent = len(line) - len(line.lstrip())
        return textwrap.wrap(
            line.strip(),
            self.width,
            initial_indent=" " * indent,
            subsequent_indent=" " * under,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _changes(changes: Description) -> str:
    """How a table changes: rows that replace those of their key, or rows that come and go.

    >>> _changes({"key": ["word"], "deletes": False}), _changes({"key": None, "deletes": True})
    ('updates by word', 'rows come and go')
    """
    key = changes["key"]
    if not changes["deletes"]:
        return f"updates by {', '.join(key)}" if key else "updates of one row"
    return f"rows come and go by {', '.join(key)}" if key else "rows come and go"


def _warning(warning: Description) -> str:
    return f"step {warning['step']!r} {warning['text']}" if warning["step"] else str(warning["text"])
