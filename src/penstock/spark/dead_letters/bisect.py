"""Finds the records that a batch cannot take, by trying parts of it.

Most failures name their record. One that kills the Python worker, or breaks a native expression, does not: then the batch is tried
in halves, and halves of halves, over the state it starts from and without showing anything, until the records are found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.graph.nodes import Port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NUMBER = "__number"
MOST = 20
"""Records that are looked for in one batch; if there are more, it is the flow that is broken."""

Row = tuple[Port, int]
Frames = dict[Port, "DataFrame"]


class TooMany(Exception):
    """More records break the batch than are looked for, or none does by itself."""


@dataclass
class Bisection:
    """The search in one batch. `attempt` returns what goes wrong with some frames, or None when all is well."""

    frames: Frames
    attempt: Callable[[Frames], Exception | None]

    def __post_init__(self) -> None:
        self.numbered = {
            port: frame.selectExpr("*", f"monotonically_increasing_id() as {NUMBER}").persist()
            for port, frame in self.frames.items()
        }
        self.causes: dict[Row, Exception] = {}

    def run(self) -> dict[Row, Exception]:
        """The records that break the batch, each with what it does."""
        rows = [(p, int(r[0])) for p, f in self.numbered.items() for r in f.select(NUMBER).collect()]
        if self.attempt(self.only([])) is not None:
            raise TooMany
        self._search(rows)
        if not self.causes or self.attempt(self.without(list(self.causes))) is not None:
            raise TooMany
        return self.causes

    def _search(self, rows: list[Row]) -> None:
        error = self.attempt(self.only(rows))
        if error is None:
            return
        if len(rows) == 1:
            self.causes[rows[0]] = error
            if len(self.causes) > MOST:
                raise TooMany
            return
        half = len(rows) // 2
        self._search(rows[:half])
        self._search(rows[half:])

    def only(self, rows: list[Row]) -> Frames:
        """The frames with these records alone; of a run of records the ends are enough to say."""
        return {port: f.where(_among(_numbers(rows, port))).drop(NUMBER) for port, f in self.numbered.items()}

    def without(self, rows: list[Row]) -> Frames:
        """The frames without these records."""
        made = {}
        for port, frame in self.numbered.items():
            numbers = ", ".join(map(str, _numbers(rows, port)))
            made[port] = (frame.where(f"{NUMBER} not in ({numbers})") if numbers else frame).drop(NUMBER)
        return made

    def values(self, row: Row) -> tuple[Any, ...]:
        """The values of a record."""
        port, number = row
        found = self.numbered[port].where(f"{NUMBER} = {number}").drop(NUMBER).collect()
        return tuple(found[0])

    def close(self) -> None:
        """Lets go of the frames."""
        for frame in self.numbered.values():
            frame.unpersist()


def _numbers(rows: list[Row], port: Port) -> list[int]:
    return sorted(n for p, n in rows if p == port)


def _among(numbers: list[int]) -> str:
    return f"{NUMBER} between {numbers[0]} and {numbers[-1]}" if numbers else "false"
