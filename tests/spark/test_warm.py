"""Warming up beside a run: nothing is imported there for the first time."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from penstock.spark.jvm.session import session
from penstock.spark.jvm.warm import _run_job
spark = session("warm")
before = set(sys.modules)
_run_job(spark)
print("imported:", sorted(set(sys.modules) - before))
spark.stop()
"""


@pytest.mark.spark
def test_warming_up_imports_nothing_in_the_driver() -> None:
    """It runs in a thread beside the run: modules that import each other would be seen half made."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "imported: []" in done.stdout
