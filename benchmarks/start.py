"""From the command to the first output of a small live flow, against a hand-written PySpark script that does the same."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.harness import Bar, Result, folder, paired_ratio

NAME = "start"
ABOUT = "from `penstock run` to the first output of a small live flow, against a foreachBatch script"
PATIENCE = 300.0

FLOW = """\
from pathlib import Path
import penstock as ps

def note(rows, batch):
    Path({marker!r}).touch()

flow = ps.Flow("start")
lines = flow.source("lines", ps.files({lines!r}, format="text"))
words = lines.flat_map("split", lambda row: row.value.split(), schema="word string")
words.key_by("word").count("n").sink("out", ps.callback(note))
"""

SCRIPT = """\
import threading
from pathlib import Path
import pyarrow as pa
from pyspark.sql import SparkSession

def split(batches):
    for batch in batches:
        yield pa.record_batch([pa.array([w for line in batch.column(0).to_pylist() for w in line.split()], pa.string())], ["word"])

def each(frame, number):
    rows = frame.mapInArrow(split, "word string").groupBy("word").count().collect()
    if rows:
        Path({marker!r}).touch()

spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
lines = spark.readStream.format("text").load({lines!r})
query = lines.writeStream.foreachBatch(each).option("checkpointLocation", {checkpoint!r}).start()
query.awaitTermination()
"""


def first_output(command: list[str], directory: Path, marker: Path) -> float:
    """Starts a program, waits for its first output, and ends it; returns the seconds from start to output."""
    marker.unlink(missing_ok=True)
    with (directory / "log.txt").open("ab") as log:
        began = time.perf_counter()
        own = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=own)
        try:
            _wait(process, marker)
            return time.perf_counter() - began
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def _wait(process: subprocess.Popen[bytes], marker: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not marker.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"no output: the program ended with {process.poll()}, or took over {PATIENCE:.0f} s")
        time.sleep(0.01)


def run(quick: bool) -> Result:
    rounds = 2 if quick else 5
    with folder() as directory:
        sides = {"by_hand": by_hand, "penstock": penstock}
        taken: dict[str, list[float]] = {name: [] for name in sides}
        for at in range(rounds + 1):
            for name, side in sides.items():
                seconds = side(directory, at)
                taken[name] += [seconds] if at else []
    figures = {f"{name}_seconds": statistics.median(seconds) for name, seconds in taken.items()}
    ratio = paired_ratio(taken, over="penstock", under="by_hand")
    soon = Bar("seconds to the first output", figures["penstock_seconds"], at_most=9.0)
    return Result(NAME, {"rounds": rounds, **figures}, (Bar("over a hand-written script", ratio, at_most=1.3), soon))


def penstock(directory: Path, at: int) -> float:
    """`penstock run` on the flow."""
    file, marker = program(FLOW, directory, f"flow{at}")
    command = [sys.executable, "-m", "penstock.cli.main", "run", "--progress", "none", str(file)]
    return first_output(command, file.parent, marker)


def by_hand(directory: Path, at: int) -> float:
    """The script."""
    file, marker = program(SCRIPT, directory, f"hand{at}")
    return first_output([sys.executable, str(file)], file.parent, marker)


def program(text: str, directory: Path, name: str) -> tuple[Path, Path]:
    """A program in a directory of its own, with input beside it; and the file that its first output makes."""
    own = directory / name
    (own / "lines").mkdir(parents=True)
    (own / "lines" / "a.txt").write_text("to be or not to be\n" * 10)
    file, marker = own / f"{name}.py", own / "marker"
    file.write_text(text.format(marker=str(marker), lines=str(own / "lines"), checkpoint=str(own / "checkpoint")))
    return file, marker
