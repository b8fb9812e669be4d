"""`penstock demo`: trending hashtags over generated posts, live in your terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.flows.run import Screen, checked_progress, watched
from penstock.cli.options import option, run_options
from penstock.cli.output.display import Progress
from penstock.cli.output.failure import handled
from penstock.cli.tools.demo_console import demo_console
from penstock.demo.feed import PostFeed
from penstock.demo.trending import FADES, Score, posts_topic, trending
from penstock.graph.run import RunSpec
from penstock.jobs.signals import leaving_on_sigterm
from penstock.temporary import temporary_directory

SHOWN = 10


class Top:
    """The hashtags with the highest scores; the demo's callback fills it and the display draws it."""

    def __init__(self) -> None:
        self.scores: dict[str, Score] = {}
        self.before: list[str] = []

    def __call__(self, rows: Iterable[Any], batch: object) -> None:
        """Takes the scores that changed in a batch."""
        self.before = [s.tag for s in self.first()]
        self.scores |= {row.tag: Score(*row) for row in rows}

    def first(self, most: int = SHOWN) -> list[Score]:
        """The highest, each faded to the present."""
        now = max((s.second for s in self.scores.values()), default=0.0)
        faded = [s._replace(score=s.score * math.exp2((s.second - now) / FADES)) for s in self.scores.values()]
        return sorted(faded, key=lambda s: -s.score)[:most]

    def picture(self) -> RenderableType:
        """A table with bars, and an arrow beside those that rose or fell."""
        table = Table(box=None, pad_edge=False, header_style="dim")
        for title, justify in (
            ("", "right"),
            ("trending", "left"),
            ("", "left"),
            ("score", "right"),
            ("mentions", "right"),
        ):
            table.add_column(title, justify=justify)  # type: ignore[arg-type]  # the two words above
        shown = self.first()
        for at, score in enumerate(shown):
            bar = Text("█" * max(1, round(30 * score.score / shown[0].score)), "cyan" if at else "bold cyan")
            table.add_row(
                self._moved(at, score.tag), f"#{score.tag}", bar, f"{score.score:,.0f}", f"{score.mentions:,}"
            )
        return table

    def _moved(self, at: int, tag: str) -> Text:
        was = self.before.index(tag) if tag in self.before else SHOWN
        return Text("▲", "green") if was > at else Text("▼", "red") if was < at else Text(" ")

    def line(self) -> str:
        """The first few on one line."""
        return "trending " + " ".join(f"#{s.tag} {s.score:,.0f}" for s in self.first(5)) if self.scores else ""


@run_options("demo", "duration", "interval", "master")
def demo(
    rate: Annotated[int, option(min=1, help="Posts a second.")] = 2000,
    output: Annotated[
        Path | None, option(help="Where the scores go, as JSON.", show_default="a temporary folder")
    ] = None,
    progress: Annotated[str, option(help="auto, plain or none.")] = "auto",
    console: Annotated[
        bool, option("--console/--plain", help="As a job, in the console of a server; or in this terminal.")
    ] = False,
    port: Annotated[
        int, option(min=0, max=65535, help="The port of the console.", show_default="8880 or a free one")
    ] = 0,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
    **options: object,
) -> None:
    """Run a live demo: posts go into the log, and trending hashtags come out. Ctrl-C stops it."""
    with handled(debug=debug), leaving_on_sigterm(), temporary_directory("demo") as folder:
        chosen = options | {"interval": options["interval"] or "1s"}
        if console:
            demo_console(folder, rate, RunSpec.of(**chosen), port)
        else:
            spec = RunSpec.of(**chosen | {"checkpoint": folder / "checkpoint"})
            _run(folder, output, rate, spec, checked_progress(progress))


def _run(folder: Path, output: Path | None, rate: int, spec: RunSpec, progress: Progress) -> None:
    top = Top()
    flow = trending(posts_topic(folder / "log"), top, output or folder / "scores")
    ends = f"for {spec.duration:g} s" if spec.duration is not None else "Ctrl-C stops it"
    typer.echo(f"{flow.name}: {rate:,} posts a second; {ends}")
    with PostFeed(folder / "log", rate):
        watched(flow, spec, Screen(progress, extra=top, lines_to=sys.stdout))
