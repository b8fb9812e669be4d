"""nexmark: the queries of Nexmark over the same events, in the same SQL, on Flink and on Penstock.

    PENSTOCK_BENCH_FLINK=path/to/python penstock bench nexmark
    PENSTOCK_BENCH_NEXMARK=q3,q5 ... only some of them

Events are lines of JSON in two files, made from a seed; both engines read them once for each run, two tasks each, in sessions that are warm. Flink runs in streaming mode over
them, with the settings of `benchmarks/nexmark/engines.py`, and its time is the run time of the job by its own account; that of Penstock is a bounded run, with all its planning
but that of the SQL. First each query is answered by both, and the final tables must be equal; q12 goes by processing time, and is measured, but neither compared nor in the mean.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.harness import Bar, Result, folder, spark_session
from benchmarks.nexmark.engines import Data, Flink, Penstock, flink_of
from benchmarks.nexmark.events import write
from benchmarks.nexmark.queries import QUERIES

NAME = "nexmark"
ABOUT = "the queries of Nexmark that Flink runs: the same events and the same SQL on Flink and on Penstock, equal answers, the time of each"
ONLY = "PENSTOCK_BENCH_NEXMARK"
NOT_COMPARED = ("q12",)
GAP = 3
"""Milliseconds from event to event. No two events are ten seconds apart to the millisecond: for Flink they are of one session, for Penstock of two."""


def chosen() -> list[str]:
    """The queries that are asked for.

    Raises:
        ValueError: there is no such query.
    """
    asked = [name for name in os.environ.get(ONLY, "").split(",") if name]
    unknown = [name for name in asked if name not in QUERIES]
    if unknown:
        raise ValueError(f"{ONLY}: expected some of {', '.join(QUERIES)}, got {', '.join(unknown)}")
    return asked or list(QUERIES)


def check(name: str, ours: Penstock, flink: Flink) -> int:
    """How many rows the answer has, which must be the same on both.

    Raises:
        RuntimeError: it is not.
    """
    got, expected = ours.answer(name), flink.answer(name)
    if got != expected:
        more, less = list((got - expected).items())[:3], list((expected - got).items())[:3]
        counts = f"Penstock has {got.total()} rows, Flink {expected.total()}"
        raise RuntimeError(f"{name}: {counts}; only Penstock: {more}; only Flink: {less}")
    return got.total()


@dataclass
class Turn:
    """What one engine has taken for a query."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def measured(name: str, ours: Penstock, flink: Flink | None, rounds: int) -> dict[str, float]:
    """The figures of one query: both engines in turns, the median of each."""
    rows = check(name, ours, flink) if flink and name not in NOT_COMPARED else ours.answer(name).total()
    other = 0 if flink is None else flink.process.pid
    turns = {"penstock": Turn()} | ({} if flink is None else {"flink": Turn()})
    for at in range(rounds + 1):
        take(turns["penstock"], ours.seconds, lambda: ours.cpu(other), name, at > 0)
        if flink is not None:
            take(turns["flink"], flink.seconds, flink.cpu, name, at > 0)
    figures = {f"{name}_{engine}": statistics.median(turn.seconds) for engine, turn in turns.items()}
    figures |= {f"{name}_{engine}_cpu": statistics.median(turn.cpu) for engine, turn in turns.items()}
    if flink is not None:
        figures[f"{name}_speed_up"] = figures[f"{name}_flink"] / figures[f"{name}_penstock"]
    print(f"{name:4} " + "  ".join(f"{k.split('_', 1)[1]} {v:.2f}" for k, v in figures.items()), file=sys.stderr)
    return {f"{name}_rows": rows, **figures}


def take(turn: Turn, run: Callable[[str], float], cpu: Callable[[], float], name: str, counts: bool) -> None:
    """One run, which counts unless it only warms up."""
    before = cpu()
    seconds = run(name)
    if counts:
        turn.seconds.append(seconds)
        turn.cpu.append(cpu() - before)


def bars(figures: dict[str, float]) -> list[Bar]:
    """Faster than Flink in the geometric mean."""
    ups = [v for k, v in figures.items() if k.endswith("_speed_up") and k.split("_")[0] not in NOT_COMPARED]
    return (
        [Bar("Flink's time over Penstock's, geometric mean", statistics.geometric_mean(ups), at_least=1.0)]
        if ups
        else []
    )


def run(quick: bool) -> Result:
    """Every query."""
    many, rounds = (200_000, 1) if quick else (500_000, 3)
    names, spark = chosen(), spark_session()
    figures: dict[str, float] = {"events": many, "load": os.getloadavg()[0]}
    with folder() as directory:
        data = Data(directory, write(directory / "events", many, GAP))
        flink = flink_of(data)
        try:
            for name in names:
                figures |= measured(name, Penstock(spark, data), flink, rounds)
        finally:
            if flink is not None:
                flink.close()
    return Result(NAME, figures, tuple(bars(figures)))
