"""The query of the bench `patterns` in Flink's SQL. Run with a Python that has `apache-flink`, which needs other versions of packages than Penstock.

    python match_recognize.py EVENTS RESULT plain|filtered|read ROUNDS

EVENTS is a folder of CSV files (key, kind, time), RESULT a folder that is written. The query runs once to warm up and ROUNDS times more; the least
seconds are printed.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]  # another environment

EVENTS = """
CREATE TABLE events (k STRING, kind STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
FOUND = """
CREATE TABLE found (k STRING, a TIMESTAMP(3), b TIMESTAMP(3), c TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
MATCH = """
INSERT INTO found SELECT k, at_a, at_b, at_c FROM {events} MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts
  MEASURES A.ts AS at_a, B.ts AS at_b, C.ts AS at_c
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X*? B Y*? C) WITHIN INTERVAL '10' MINUTE
  DEFINE A AS A.kind = 'a', B AS B.kind = 'b', C AS C.kind = 'c'
)
"""
FILTERED = "(SELECT * FROM events WHERE kind IN ('a', 'b', 'c'))"
READ = """
INSERT INTO found SELECT k, CAST(ts AS TIMESTAMP(3)), CAST(ts AS TIMESTAMP(3)), CAST(ts AS TIMESTAMP(3)) FROM events WHERE kind = 'none'
"""


def main(events: str, result: str, way: str, rounds: str) -> None:
    """Runs the query and prints how long it took."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "2")
    tables.execute_sql(EVENTS.format(path=events))
    tables.execute_sql(FOUND.format(path=result))
    query = READ if way == "read" else MATCH.format(events=FILTERED if way == "filtered" else "events")
    seconds = [_seconds(tables, query, result) for _ in range(int(rounds) + 1)]
    print(min(seconds[1:]))


def _seconds(tables: Any, query: str, result: str) -> float:
    shutil.rmtree(result, ignore_errors=True)
    began = time.perf_counter()
    tables.execute_sql(query).wait()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(*sys.argv[1:5])
