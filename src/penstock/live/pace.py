"""How much a batch takes: as much as the flow gets through in the time that a batch should last.

A run starts slowly: its first batch is small, so that something is seen soon however slow a step is, and the next ones grow as fast as the
time they take allows. Where all steps are Spark's own a row takes microseconds whatever is in it, and the first batch may be large. A slow
sink makes batches long, so the next ones take less; the backlog after an outage comes in pieces instead of at once. Sources that adapt read
the number from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.live.report import BatchReport
from penstock.storage import open_storage

FIRST = 1_000
"""What the first batch of a run takes at most, of each source."""
FIRST_NATIVE = 250_000
"""The same where no code of the user's runs: about a second's work."""
LEAST = 500
GROWTH = 16
"""How many times larger than the one before a batch may be. From the first to a million rows it takes three batches."""
CAUTIOUS = 2
"""The same for the second batch: the time of the first is mostly that of Spark's warming up, and says little."""


@dataclass
class Pace:
    """The pace of a run.

    Attributes:
        seconds: how long a batch should last.
        most: a bound on the rows of a batch, of each source, that is never passed.
        first: how many rows the first batch takes at most, of each source.
        rows: how many rows each source may take for the next batch.
    """

    folder: Path
    sources: tuple[str, ...]
    seconds: float = 2.0
    most: int | None = None
    first: int = FIRST
    rows: dict[str, int] = field(default_factory=dict)
    _overhead: float | None = None
    """The time of a batch that has next to nothing to do: the shortest so far, but for the first."""
    _has_warmed: bool = False

    def begin(self) -> None:
        """Before anything is known, the first batch takes little."""
        for source in self.sources:
            self._set(source, self.first)

    def learn(self, report: BatchReport) -> None:
        """Takes in how long a batch took. One that was neither full nor too long says nothing."""
        if not report.rows_in or not report.total:
            return
        is_first, self._has_warmed = not self._has_warmed, True
        if not is_first:
            self._overhead = min(report.total, report.total if self._overhead is None else self._overhead)
        for source in self.sources:
            full = report.sources.get(source, 0) >= 0.9 * self.rows[source]
            if full or report.total > self.seconds:
                self._set(source, self._next(self.rows[source], report.total, is_first=is_first, full=full))

    def _next(self, before: int, total: float, *, is_first: bool, full: bool) -> int:
        """What fits into the time, between half and many times of what it was."""
        if is_first:
            return before * CAUTIOUS if full else before
        if total > self.seconds:
            return max(before // 2, int(before * self.seconds / total))
        spare = min(self._overhead or 0.0, 0.5 * self.seconds)
        fits = before * (self.seconds - spare) / max(total - spare, 0.001)
        return max(before, min(GROWTH * before, int(fits)))

    def _set(self, source: str, rows: int) -> None:
        """Notes the number for a source, between its bounds."""
        bounded = max(LEAST, rows) if self.most is None else min(max(LEAST, rows), self.most)
        if self.rows.get(source) != bounded:
            open_storage(self.folder / source).write("pace", str(bounded).encode())
            self.rows[source] = bounded
