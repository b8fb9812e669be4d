"""The two engines of the bench `nexmark`: each is asked for the answer of a query, and for the time that it takes."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import tree_seconds
from benchmarks.nexmark.events import shown
from benchmarks.nexmark.queries import BEFORE, QUERIES, SINKS, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLINK = "PENSTOCK_BENCH_FLINK"
HOW = f"""Flink is not measured. It needs a Python of its own:
    python -m venv flink && flink/bin/pip install apache-flink==2.3.0
    {FLINK}=flink/bin/python penstock bench nexmark"""
OPTIONS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.local-time-zone": "UTC",
}
"""What Flink's documentation recommends for throughput, and the cores."""
SIDE = 10_000
COUNTED = ("count_char(extra, 'c')", "CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT)")
"""A function that comes with Nexmark in Java, and the same in SQL."""
PLAIN_JOIN = (" FOR SYSTEM_TIME AS OF B.p_time AS S", " AS S")
"""Flink has no more look-ups in files; the side input does not change, so a join means the same."""
Answer = Counter[tuple[Any, ...]]


class Data:
    """Where the events and the side input are, and how tables over them are defined."""

    def __init__(self, directory: Path, events: Path) -> None:
        self.directory, self.events, self.side = directory, events, directory / "side"
        self.side.mkdir()
        (self.side / "side.csv").write_text("".join(f"{key},{key}\n" for key in range(SIDE)))

    def tables(self, side_options: str = "") -> str:
        """The tables."""
        files = "'connector' = 'filesystem', 'path' = '{}', 'format' = '{}'"
        return tables(files.format(self.events, "json"), files.format(self.side, "csv") + side_options)


def sink(name: str, options: str) -> str:
    """The table that a query fills, which keeps nothing; that of q10 is files, one folder for each minute, as published."""
    by = " PARTITIONED BY (dt, hm)" if "'csv'" in options else ""
    return f"CREATE TABLE out_{name} ({SINKS[name]}){by} WITH ({options})"


def insert(name: str) -> str:
    """The statement that runs a query."""
    return f"INSERT INTO out_{name} {QUERIES[name].replace(*COUNTED)}"


class Penstock:
    """Penstock, bounded, in a session that runs already."""

    def __init__(self, spark: SparkSession, data: Data) -> None:
        self.spark, self.data = spark, data

    def cpu(self, without: int) -> float:
        """The processor time of this process and all that it has started, but for another engine."""
        return tree_seconds(os.getpid(), without)

    def answer(self, name: str) -> Answer:
        """The rows that stand at the end."""
        from penstock.local.net_table import NetTable

        found: list[Any] = []
        flow = self._flow(name, "'connector' = 'blackhole'", ps.callback(lambda rows, _: found.extend(rows)))
        self._run(flow)
        net = NetTable.of(flow.graph, f"out_{name}")
        net.take(found)
        return Counter(tuple(map(plain, row)) for row in net.rows())

    def seconds(self, name: str) -> float:
        """The time of one run, planned before."""
        flow = self._flow(name, self._options(name))
        began = time.perf_counter()
        self._run(flow)
        return time.perf_counter() - began

    def _options(self, name: str) -> str:
        if name != "q10":
            return "'connector' = 'blackhole'"
        path = self.data.directory / "penstock-q10"
        shutil.rmtree(path, ignore_errors=True)
        return f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv'"

    def _flow(self, name: str, options: str, endpoint: Any = None) -> ps.Flow:
        parts = [
            self.data.tables(", 'csv.header' = 'false'"),
            BEFORE.get(name, ""),
            sink(name, options) + ";",
            insert(name),
        ]
        return ps.sql_flow("\n".join(parts), {} if endpoint is None else {f"out_{name}": endpoint}, name=name)

    def _run(self, flow: ps.Flow) -> None:
        from penstock.spark.run import run_bounded

        run_bounded(flow.graph, self.spark)


class Flink:
    """Flink, as a process that is asked line by line."""

    def __init__(self, python: str, data: Data) -> None:
        from penstock.spark.jvm.java import use_java

        script = Path(__file__).parent.parent / "flink" / "statements.py"
        command = [python, str(script), *(f"{key}={value}" for key, value in OPTIONS.items())]
        self.data, self.log = data, tempfile.TemporaryFile("w+")  # noqa: SIM115 - it is open as long as the process
        environment = {**os.environ, "JAVA_HOME": str(use_java().home), "PYTHONPATH": ""}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.log, text=True, env=environment)
        self.ask(_split(data.tables()))

    def cpu(self) -> float:
        """The processor time of the process and all that it has started."""
        return tree_seconds(self.process.pid)

    def answer(self, name: str) -> Answer:
        """The rows that stand at the end: those that were added, without those that were taken back."""
        path = self.data.directory / f"flink-{name}"
        self._insert(name, f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json'")
        found: Answer = Counter()
        for change in _changes(path):
            for side, sign in (("before", -1), ("after", 1)):
                if change[side] is not None:
                    found[tuple(map(plain, change[side].values()))] += sign
        shutil.rmtree(path, ignore_errors=True)
        return Counter({row: count for row, count in found.items() if count})

    def seconds(self, name: str) -> float:
        """The run time of the job, by Flink's own account."""
        path = self.data.directory / "flink-q10"
        shutil.rmtree(path, ignore_errors=True)
        files = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv'"
        return float(self._insert(name, files if name == "q10" else "'connector' = 'blackhole'")["seconds"])

    def _insert(self, name: str, options: str) -> dict[str, Any]:
        drop = [f"DROP TABLE IF EXISTS out_{name}", "DROP TEMPORARY VIEW IF EXISTS B"]
        before = _split(BEFORE.get(name, ""))
        return self.ask([*drop, *before, sink(name, options), insert(name).replace(*PLAIN_JOIN)])

    def ask(self, statements: list[str]) -> dict[str, Any]:
        """What Flink says of statements.

        Raises:
            RuntimeError: it cannot run them.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"statements": statements}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                if "error" in answer:
                    raise RuntimeError(f"Flink: {answer['error']}")
                return answer
        self.log.seek(0)
        raise RuntimeError(f"Flink ended:\n{self.log.read()[-2000:]}")

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]


def _changes(path: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(path.glob("part-*")):
        for line in file.open():
            yield json.loads(line, parse_float=decimal.Decimal)


def plain(value: Any) -> Any:
    """A value as both engines show it: moments as texts, decimals as numbers."""
    if isinstance(value, datetime.datetime):
        return shown(value)
    if isinstance(value, decimal.Decimal):
        return value.normalize()
    if isinstance(value, str) and value[4:5] == "-" and value[10:11] == " " and len(value) >= 19:
        return f"{value[:19]}.{value[20:23]:0<3}"
    return value


def flink_of(data: Data) -> Flink | None:
    """Flink, where the environment names a Python that has it."""
    python = os.environ.get(FLINK, "")
    if not python:
        print(HOW, file=sys.stderr)
    return Flink(python, data) if python else None
