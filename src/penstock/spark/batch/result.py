"""What goes into a batch, and what it returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.graph.nodes import Port
from penstock.graph.state.times import Wakes
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.watermarks import BatchTimes
from penstock.live.report import BatchReport
from penstock.spark.lower.context import Reread, Union, refuse_reread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def no_union(ports: tuple[Port, ...]) -> DataFrame | None:
    """There is no quicker way to the union of sources than to add them up."""
    return None


@dataclass(frozen=True)
class BatchInput:
    """What a batch is made of: it goes from the state of version `base` to that of version `batch`.

    Attributes:
        frames: the records of each source.
        times: the times at which it runs.
        union: the union of some sources in one pass, where the host has a quicker way than to add them up.
        dead_letters: dead letters that were found before.
        reread: reads records of dead letters that a source could not read.
    """

    batch: int
    base: int
    frames: Mapping[Port, DataFrame]
    times: BatchTimes
    union: Union = no_union
    dead_letters: tuple[DeadLetter, ...] = ()
    reread: Reread = refuse_reread

    def without(self, frames: Mapping[Port, DataFrame], dead_letters: list[DeadLetter]) -> BatchInput:
        """The same batch without some records, which have become dead letters."""
        return replace(self, frames=frames, union=no_union, dead_letters=tuple(dead_letters))


@dataclass(frozen=True)
class BatchResult:
    """What a batch returns: its report, and when its steps want a batch although no record may come."""

    report: BatchReport
    wakes: Wakes

    @property
    def has_fed(self) -> bool:
        """Whether a loop got records."""
        return any(self.report.fed.values())


@dataclass
class Phases:
    """How long each phase of a batch took."""

    seconds: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.perf_counter

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Times what is done inside."""
        begin = self.clock()
        try:
            yield
        finally:
            self.seconds[phase] = self.clock() - begin
