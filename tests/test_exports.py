"""The public names, and what importing them costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

PUBLIC = """
END Aggregator AsyncFunction BasicBolt Bolt BroadcastProcess CountMetric Expr FailedException Flow LinearDRPCTopologyBuilder Metric PE PartitionedSpout Process ProcessingElement
ReportedFailedException Row RunSpec Schema ShellBolt ShellSpout Spout StatefulBolt StatefulWindowedBolt Stream TaskHook Timer Topology TridentTopology Tuple
WindowedBolt __version__ action aggregate_function ask callback col connector console count_window cumulating every_interval every_records expr files files_schema flow_file fn
function generate global_window items kafka list_of lit map_of one_of pattern pattern_json pattern_reader pattern_text postgres postgres_changes postgres_schema
rate redis_stream retry row_pattern rule rule_topic rules run run_limit sase_text session shed sliding socket_lines sql sql_flow sql_query stdin to topic tumbling value
when write_files write_http write_kafka write_postgres write_redis write_topic
"""


def test_the_public_names() -> None:
    """A name that comes or goes is a promise that changes; change it here too, and in the changelog."""
    assert penstock.__all__ == PUBLIC.split()
    for name in penstock.__all__:
        assert hasattr(penstock, name), name


def test_importing_penstock_loads_nothing_heavy() -> None:
    """No Spark, Arrow, pandas or command line behind `import penstock`."""
    check = "import sys, penstock; print([m for m in ('pyspark','pyarrow','pandas','numpy','typer','rich','yaml','lark') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


HEAVY = "pyspark pyarrow numpy pandas sqlglot fastapi uvicorn starlette psycopg lark confluent_kafka"
LOADED = f"print([m for m in {HEAVY.split()} if m in sys.modules], flush=True)"


def test_no_command_loads_anything_heavy_for_its_help() -> None:
    """All commands are imported for `penstock --help`, one of them for its own."""
    program = f"import sys\nfrom penstock.cli.main import make_app\nmake_app()\n{LOADED}"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_the_processes_of_a_job_load_nothing_heavy_before_the_jvm_starts() -> None:
    """From `penstock submit` to the first output both are waited for, one after the other."""
    program = f"import sys\nfrom penstock.jobs.manager.processes import driver, supervisor\n{LOADED}"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


PYTHON = """
import penstock as ps
flow = ps.Flow("x")
words = flow.source("s", ps.files("in", format="text")).flat_map("split", lambda row: row.value.split(), schema="word string")
words.key_by("word").count("n").sink("o", ps.console())
"""
SQL = "CREATE TABLE s (w STRING) WITH ('connector' = 'filesystem', 'path' = 'in', 'format' = 'json');"
SQL += "CREATE TABLE o (w STRING, n BIGINT) WITH ('connector' = 'print'); INSERT INTO o SELECT w, COUNT(*) FROM s GROUP BY w;"


@pytest.mark.parametrize(("file", "text", "loads"), [("x.py", PYTHON, "[]"), ("x.sql", SQL, "['sqlglot']")])
def test_a_first_start_loads_nothing_heavy_before_the_jvm_starts(
    file: str, text: str, loads: str, tmp_path: Path
) -> None:
    """What the driver needs later it imports while the JVM starts; before that, each import is waited for."""
    (tmp_path / file).write_text(text)
    (tmp_path / "in").mkdir()
    program = f"""
import os, sys
from penstock.cli.main import main
from penstock.spark.jvm import gateway
def launch(*given):
    {LOADED}
    os._exit(0)
gateway.launch = launch
sys.argv = ["penstock", "run", {file!r}]
main()
"""
    own = {**os.environ, "PENSTOCK_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=own, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == [loads], done.stderr


def test_building_a_flow_loads_no_spark() -> None:
    program = """
import sys
import penstock as ps
flow = ps.Flow("x")
flow.source("s", ps.items(["a"], "w string")).where("w1", "w = 'a'").key_by("w").count("n").sink("o", ps.console())
flow.graph
print('pyspark' in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_the_local_runtime_loads_no_spark() -> None:
    program = """
import sys
import penstock as ps
from penstock.testing import run_local
flow = ps.Flow("x")
flow.source("s", ps.items(["a"], "w string")).key_by("w").count("n").sink("o", ps.console())
run_local(flow)
print('pyspark' in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
