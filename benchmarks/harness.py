"""What the benchmarks share: bars, results, and fair timing.

A bench is a module with `NAME`, `ABOUT` and `run(quick) -> Result`. It compares two ways of doing one thing in one
process, both warm, in turns; only ratios are judged, since seconds belong to the machine.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Bar:
    """A figure that must not be below or above a bound."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it holds.

        >>> Bar("ratio", 0.97, at_least=0.95).ok, Bar("seconds", 1.2, at_most=1.0).ok
        (True, False)
        """
        low = self.at_least is None or self.value >= self.at_least
        return low and (self.at_most is None or self.value <= self.at_most)

    def as_dict(self) -> dict[str, Any]:
        """The bar as plain values."""
        bound = {"at_least": self.at_least} if self.at_least is not None else {"at_most": self.at_most}
        return {"name": self.name, "value": round(self.value, 4), **bound, "ok": self.ok}


def versions() -> dict[str, str]:
    """What was measured with what."""
    packages = {name: importlib.metadata.version(name) for name in ("penstock", "pyspark", "pyarrow")}
    return {**packages, "python": platform.python_version(), "machine": platform.machine()}


@dataclass(frozen=True)
class Result:
    """What a bench found."""

    bench: str
    figures: Mapping[str, float]
    bars: tuple[Bar, ...]
    versions: Mapping[str, str] = field(default_factory=versions)

    @property
    def ok(self) -> bool:
        """Whether all bars hold."""
        return all(bar.ok for bar in self.bars)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain values, ready for JSON."""
        figures = {name: round(value, 4) for name, value in self.figures.items()}
        bars = [bar.as_dict() for bar in self.bars]
        return {"bench": self.bench, "versions": dict(self.versions), "figures": figures, "bars": bars}


def alternate(runs: Mapping[str, Callable[[], Any]], rounds: int, warm: int = 1) -> dict[str, list[float]]:
    """The seconds of each run, in turns: A B A B. The first rounds only warm up."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for at in range(warm + rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            if at >= warm:
                taken[name].append(time.perf_counter() - began)
    return taken


def medians(taken: Mapping[str, list[float]]) -> dict[str, float]:
    """The middle of each list."""
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def best(taken: Mapping[str, list[float]]) -> dict[str, float]:
    """The least of each list: what the code can do when the machine leaves it alone."""
    return {name: min(seconds) for name, seconds in taken.items()}


def paired_ratio(taken: Mapping[str, list[float]], over: str, under: str) -> float:
    """The median of the ratios within each round: noise that lasts longer than a round falls out.

    >>> paired_ratio({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 3.0]}, over="a", under="b")
    1.0
    """
    return statistics.median(a / b for a, b in zip(taken[over], taken[under], strict=True))


def spark_session() -> SparkSession:
    """The session that both sides of a comparison use."""
    from penstock.spark.jvm.session import session

    return session("penstock-bench", settings={"spark.sql.streaming.numRecentProgressUpdates": "1000"})


def jvm_seconds(spark: SparkSession) -> Callable[[], float]:
    """The processor time of the JVM so far: what others do on the machine does not count."""
    stat = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/stat")  # type: ignore[union-attr]
    ticks = os.sysconf("SC_CLK_TCK")
    return lambda: sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) / ticks


def tree_seconds(root: int, without: int = 0) -> float:
    """The processor time of a process and all below it so far, but for one of them: what others do on the machine does not count."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(file.parent.name)] = int(fields[1])
        spent[int(file.parent.name)] = sum(map(int, fields[11:15]))
    return sum(many for pid, many in spent.items() if _is_below(pid, root, without, parents)) / os.sysconf("SC_CLK_TCK")


def _is_below(pid: int, root: int, without: int, parents: Mapping[int, int]) -> bool:
    while pid not in (root, without, 0):
        pid = parents.get(pid, 0)
    return pid == root


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder."""
    made = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def text_lines(spark: SparkSession, directory: Path, lines: int) -> str:
    """A folder of text files with so many lines of ten words, out of some thousand words."""
    words = ", ".join(f"concat('w', pmod(hash(id, {i}), 5000))" for i in range(10))
    spark.range(0, lines, 1, 8).selectExpr(f"concat_ws(' ', {words}) as value").write.text(str(directory / "lines"))
    return str(directory / "lines")


def batch_seconds(query: Any, skip: int) -> list[float]:
    """The time of each batch of a streaming query, by Spark's own account, without the first ones."""
    reported = [p for p in query.recentProgress if "addBatch" in p["durationMs"]]
    return [p["durationMs"]["triggerExecution"] / 1000 for p in reported[skip:]]
