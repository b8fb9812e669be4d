"""How much a batch takes in: as much as the flow gets through in the time a batch shall last.

A slow sink makes batches long, so the next ones take less; the backlog after an outage comes in pieces instead of at once. Sources
that can be told read the number from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.spark.live.report import BatchReport
from penstock.state.file import put_safely

FIRST = 100_000
"""What the first batch of a run takes at most, of each source."""
LEAST = 500


@dataclass
class Pace:
    """The pace of a run. `seconds` is how long a batch shall last; `most` is a bound that is never passed."""

    folder: Path
    sources: tuple[str, ...]
    seconds: float = 2.0
    most: int | None = None
    told: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Before anything is known, the first batch takes a fair amount."""
        for source in self.sources:
            self._tell(source, self._bounded(FIRST))

    def learn(self, report: BatchReport) -> None:
        """Takes in how fast a batch was. Small batches say little: their time is mostly Spark's own."""
        if not report.rows_in or not report.total:
            return
        for source in self.sources:
            full = report.sources.get(source, 0) >= 0.9 * self.told[source]
            if full or report.total > self.seconds:
                self._tell(source, self._next(self.told[source], report))

    def _next(self, before: int, report: BatchReport) -> int:
        """What fits into the time, but at most twice and at least half of what it was, so that one odd batch does little."""
        fits = int(before * self.seconds / report.total)
        return self._bounded(max(LEAST, min(2 * before, max(before // 2, fits))))

    def _bounded(self, rows: int) -> int:
        return rows if self.most is None else min(rows, self.most)

    def _tell(self, source: str, rows: int) -> None:
        if self.told.get(source) != rows:
            put_safely(self.folder / source / "pace", [str(rows).encode()])
            self.told[source] = rows
