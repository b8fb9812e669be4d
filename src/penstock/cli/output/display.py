"""Where progress is shown: live in a terminal, line by line elsewhere, or nowhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Literal, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from penstock.cli.output.progress import Tally, plain_line, summary, view
from penstock.live.report import BatchReport

Progress = Literal["auto", "plain", "none"]


class Extra(Protocol):
    """What a command shows beside the progress."""

    def picture(self) -> RenderableType:
        """For a terminal."""

    def line(self) -> str:
        """For a plain line; empty when there is nothing to say."""


class Display:
    """Shows nothing; the base of those that do. `tell` takes the phases of a launch, a call takes a report."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *error: object) -> None:
        """Leaves the terminal as it was."""

    def tell(self, phase: str) -> None:
        """Says what is going on."""

    def __call__(self, report: BatchReport) -> None:
        """Takes in one batch."""
        self.tally.add(report)

    def show_batch(self, under_way: str) -> None:
        """Takes what is known of the batch under way, about once a second; empty between batches."""

    def force(self) -> None:
        """Puts the terminal in order at once: the program is about to end."""


class PlainDisplay(Display):
    """One line per batch, at most one a second, and always the last; of a batch that lasts, one every ten seconds."""

    patience = 10.0

    def __init__(
        self,
        tally: Tally,
        stream: IO[str] | None = None,
        extra: Extra | None = None,
        *,
        pause: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(tally)
        self.stream, self.extra, self.pause, self.clock = stream or sys.stderr, extra, pause, clock
        self.waiting = False
        self.shown_at = float("-inf")
        self.said_at = clock()
        self.lock = threading.Lock()

    def __exit__(self, *error: object) -> None:
        """Shows the last batch, if it waits, and sums up."""
        self._flush()
        if self.tally.batches or not any(error):
            self._write(summary(self.tally))

    def tell(self, phase: str) -> None:
        """A line for each phase."""
        self._write(f"{self.tally.graph.name}: {phase}")

    def __call__(self, report: BatchReport) -> None:
        """Shows the batch, or keeps it back when the last line is not a second old."""
        super().__call__(report)
        self.waiting = True
        if self.clock() - self.shown_at >= self.pause:
            self._flush()

    def show_batch(self, under_way: str) -> None:
        """A line, if nothing has been said for a while."""
        if under_way and self.clock() - self.said_at >= self.patience:
            self._write(f"{self.tally.graph.name} {under_way}")

    def _flush(self) -> None:
        if self.waiting:
            self.waiting, self.shown_at = False, self.clock()
            extra = self.extra.line() if self.extra else ""
            self._write(f"{plain_line(self.tally)}{f'  {extra}' if extra else ''}")

    def _write(self, line: str) -> None:
        self.said_at = self.clock()
        with self.lock:
            self.stream.write(f"{line}\n")
            self.stream.flush()


class LiveDisplay(Display):
    """A display that redraws itself. What the flow prints meanwhile appears above it."""

    def __init__(self, tally: Tally, console: Console, extra: Extra | None = None) -> None:
        super().__init__(tally)
        self.extra = extra
        self.note = self.under_way = ""
        self.spinner: Spinner | None = Spinner("dots", f"{tally.graph.name}: starting")
        self.live = Live(console=console, get_renderable=self._picture, refresh_per_second=4)

    def __enter__(self) -> LiveDisplay:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leaves the last picture in the terminal, with a line that sums up."""
        self.spinner = None
        self.live.stop()
        if self.tally.batches or not any(error):
            self.live.console.print(summary(self.tally), highlight=False)

    def tell(self, phase: str) -> None:
        """The spinner says it; once the flow runs, the headline does."""
        if phase.startswith("running"):
            self.spinner = None
            self.tally.began = time.time()
        elif self.spinner is not None:
            self.spinner.update(text=f"{self.tally.graph.name}: {phase}")
        else:
            self.note = phase

    def show_batch(self, under_way: str) -> None:
        """A line below the others, until the batch is done."""
        self.under_way = under_way

    def force(self) -> None:
        """Gives the cursor back."""
        self.live.console.show_cursor(True)

    def _picture(self) -> RenderableType:
        if self.spinner is not None:
            return self.spinner
        shown = view(self.tally, time.time(), self.note, self.under_way)
        return Group(shown, self.extra.picture()) if self.extra and self.tally.batches else shown


def display_for(
    tally: Tally, progress: Progress = "auto", *, extra: Extra | None = None, lines_to: IO[str] | None = None
) -> Display:
    """The display that fits: live when both outputs are a terminal, else plain lines; none when asked."""
    if progress == "none":
        return Display(tally)
    if progress == "auto" and _is_terminal(sys.stdout) and _is_terminal(sys.stderr):
        console = Console()
        if console.is_terminal and not console.is_dumb_terminal:
            return LiveDisplay(tally, console, extra)
    return PlainDisplay(tally, lines_to, extra)


def _is_terminal(stream: object) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())
