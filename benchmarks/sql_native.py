"""Flows in SQL against the same flows in the streams API, and how long statements take to plan.

    penstock bench sql-native

Word count, a count per minute and key, and a join with a static table before a windowed count, each written twice; both run bounded on Spark in turns, and their
answers must be equal. Planning needs no JVM: a statement set of 50 queries, in this process and, with all imports, in a new one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

NAME = "sql-native"
ABOUT = "word count, windowed count and a join with ads, in SQL and in the streams API; planning 50 queries"
EVENTS = "ad bigint, kind string, ts timestamp"
ADS = "ad bigint, campaign bigint"
QUERIES = 50
Made = Callable[[str, Any], Graph]


def words_in_sql(path: str, sink: Any) -> Graph:
    """Word count in SQL."""
    text = "INSERT INTO out SELECT word, count(*) AS n FROM words WHERE char_length(word) > 3 GROUP BY word"
    return ps.sql_flow(text, {"words": ps.files(f"{path}/words", "parquet", "word string"), "out": sink}).graph


def words_in_python(path: str, sink: Any) -> Graph:
    """The same in the streams API."""
    words = ps.Flow("words").source("words", ps.files(f"{path}/words", "parquet", "word string"))
    words.where("long", "length(word) > 3").key_by("word").count("n").sink("out", sink)
    return words.flow.graph


WINDOWED = """
CREATE TABLE events (ad BIGINT, kind STRING, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{path}/events', 'format' = 'parquet');
INSERT INTO out SELECT ad, window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE kind = 'view' GROUP BY ad, window_start, window_end
"""


def windows_in_sql(path: str, sink: Any) -> Graph:
    """A count per ad and minute in SQL."""
    return ps.sql_flow(WINDOWED.format(path=path), {"out": sink}).graph


def events(path: str) -> Any:
    """The events with their time."""
    flow = ps.Flow("events")
    return flow.source("events", ps.files(f"{path}/events", "parquet", EVENTS), event_time="ts", lateness="10s")


def windows_in_python(path: str, sink: Any) -> Graph:
    """The same in the streams API."""
    seen = events(path).where("views", "kind = 'view'").key_by("ad").window(ps.tumbling("1m")).count("n")
    seen.select("shown", "ad", "window_start", "n").sink("out", sink)
    made: Graph = seen.flow.graph
    return made


JOINED = """
INSERT INTO out SELECT a.campaign, count(*) AS n FROM views AS e JOIN ads AS a ON e.ad = a.ad WHERE e.kind = 'view' GROUP BY a.campaign
"""


def join_in_sql(path: str, sink: Any) -> Graph:
    """Views per campaign: a join of two tables, in SQL."""
    tables = {
        "views": ps.files(f"{path}/events", "parquet", EVENTS),
        "ads": ps.files(f"{path}/ads", "parquet", ADS),
        "out": sink,
    }
    return ps.sql_flow(JOINED, tables).graph


def join_in_python(path: str, sink: Any) -> Graph:
    """The same in the streams API."""
    flow = ps.Flow("join")
    views = flow.source("views", ps.files(f"{path}/events", "parquet", EVENTS)).where("seen", "kind = 'view'")
    ads = flow.source("ads", ps.files(f"{path}/ads", "parquet", ADS))
    views.join("joined", ads, on="ad").key_by("campaign").count("n").sink("out", sink)
    return flow.graph


FLOWS: dict[str, tuple[Made, Made]] = {
    "words": (words_in_sql, words_in_python),
    "windows": (windows_in_sql, windows_in_python),
    "join": (join_in_sql, join_in_python),
}


def planning_in_a_new_process() -> float:
    """The processor time of a new Python that plans a statement set, with all that it must import and without a JVM."""
    code = "import time; from benchmarks.sql_native import planning_seconds; planning_seconds(); print(time.process_time())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def planning_seconds() -> float:
    """How long a statement set of 50 queries takes to plan."""
    endpoints = {
        "bids": ps.items([], "auction bigint, bidder bigint, price double, ts timestamp"),
        "people": ps.items([], "id bigint, name string"),
    }
    text = "BEGIN STATEMENT SET;\n" + "\n".join(_statement(at) for at in range(QUERIES)) + "\nEND;"
    sinks = {f"out{at}": ps.console() for at in range(QUERIES)}
    began = time.perf_counter()
    ps.sql_flow(text, endpoints | sinks)
    return time.perf_counter() - began


def _statement(at: int) -> str:
    kinds = (
        f"SELECT auction, price * {at} AS p FROM bids WHERE price > {at}",
        f"SELECT auction, count(*) AS n, max(price) AS m FROM bids WHERE bidder <> {at} GROUP BY auction HAVING count(*) > 1",
        f"SELECT b.auction, p.name FROM bids AS b JOIN people AS p ON b.bidder = p.id WHERE b.price > {at}",
        f"SELECT id, name FROM people WHERE id IN (SELECT bidder FROM bids WHERE price > {at})",
        f"SELECT n, count(*) AS c FROM (SELECT auction, count(*) + {at} AS n FROM bids GROUP BY auction) AS t GROUP BY n",
    )
    return f"INSERT INTO out{at} {kinds[at % len(kinds)]};"


def _data(spark: Any, directory: str, many: int) -> str:
    from pyspark.sql import functions as f

    numbers = spark.range(many).repartition(4)
    numbers.select(f.concat(f.lit("word"), (f.col("id") * 7919 % 5000).cast("string")).alias("word")).write.parquet(
        f"{directory}/words"
    )
    stamp = (f.lit(1_767_225_600) + f.col("id") / 2000).cast("timestamp").alias("ts")
    kind = f.when(f.col("id") % 3 == 0, "click").otherwise("view").alias("kind")
    numbers.select((f.col("id") * 31 % 1000).alias("ad"), kind, stamp).write.parquet(f"{directory}/events")
    spark.range(1000).select(f.col("id").alias("ad"), (f.col("id") % 100).alias("campaign")).write.parquet(
        f"{directory}/ads"
    )
    return directory


def _rows(graph_of: Made, path: str, spark: Any) -> list[tuple[Any, ...]]:
    """The rows of a flow, in order."""
    from penstock.spark.run import run_bounded

    found: list[Any] = []
    run_bounded(graph_of(path, ps.callback(lambda rows, batch: found.extend(map(tuple, rows)))), spark)
    return sorted(found, key=repr)


def run(quick: bool) -> Result:
    """Measures both ways in turns."""
    from penstock.spark.run import run_bounded

    many, rounds = (300_000, 3) if quick else (20_000_000, 7)
    spark, bars, figures = spark_session(), list[Bar](), dict[str, float]()
    planned, anew = min(planning_seconds() for _ in range(3)), min(planning_in_a_new_process() for _ in range(3))
    with folder() as directory:
        path = _data(spark, str(directory), many)
        for name, (in_sql, in_python) in FLOWS.items():
            assert _rows(in_sql, path, spark) == _rows(in_python, path, spark), (
                f"{name}: SQL and streams answer differently"
            )
            made = {"sql": in_sql(path, nothing()), "streams": in_python(path, nothing())}
            taken = alternate({way: lambda g=g: run_bounded(g, spark) for way, g in made.items()}, rounds, warm=2)  # type: ignore[misc]  # one for each
            figures |= {f"{name}_{way}_seconds": seconds for way, seconds in medians(taken).items()}
            bars.append(
                Bar(f"{name}: throughput over the streams API", paired_ratio(taken, "streams", "sql"), at_least=0.95)
            )
    bars.append(Bar(f"seconds to plan {QUERIES} queries, in a new process", anew, at_most=1.0))
    planning = {"planning_seconds": planned, "planning_in_a_new_process_cpu_seconds": anew}
    return Result(NAME, {"records": many, **planning, **figures}, tuple(bars))
