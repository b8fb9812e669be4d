"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

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
