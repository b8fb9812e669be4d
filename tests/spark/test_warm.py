"""Warming up beside a run: nothing is imported there for the first time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import tempfile
from pathlib import Path
from penstock.spark.jvm.session import session
from penstock.spark.jvm.warm import _run_job, _run_query
spark = session("warm")
before = set(sys.modules)
_run_job(spark)
print("imported:", sorted(set(sys.modules) - before))
def paths(batches):
    import pyarrow as pa
    for _ in batches: pass
    import pyspark
    yield pa.RecordBatch.from_pydict({"path": [pyspark.__file__]})
print("archives:", sum(".zip" in row.path for row in spark.range(2).mapInArrow(paths, "path string").collect()))
_run_query(spark)
print("left:", len(spark.streams.active), [p.name for p in Path(tempfile.gettempdir()).glob("penstock-rehearsal-*")])
spark.stop()
"""


@pytest.mark.spark
def test_warming_up_imports_nothing_in_the_driver_and_a_rehearsal_leaves_nothing(tmp_path: Path) -> None:
    """It runs in a thread beside the run: modules that import each other would be seen half made."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    assert "imported: []" in done.stdout
    assert "left: 0 []" in done.stdout
    assert "archives: 0" in done.stdout, "workers import compiled modules"
