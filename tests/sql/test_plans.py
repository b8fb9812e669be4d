"""Plans of SQL as golden text: what is read once, left out early, and moved once."""

from __future__ import annotations

import subprocess
import sys

import penstock as ps
from penstock.graph.expr import to_text
from penstock.graph.nodes import Select, Where
from tests.compiler.test_describe import check_golden

STATEMENTS = """
CREATE TABLE auctions (id BIGINT, seller BIGINT, category INT, title STRING, notes STRING) WITH ('connector' = 'rate');
CREATE TABLE people (id BIGINT, name STRING, state STRING, email STRING) WITH ('connector' = 'rate');
CREATE TABLE a (name STRING, id BIGINT) WITH ('connector' = 'print');
CREATE TABLE b (category INT, n BIGINT, most BIGINT, least BIGINT) WITH ('connector' = 'print');
CREATE VIEW dear AS SELECT * FROM auctions WHERE category > 3;
INSERT INTO a SELECT p.name, d.id FROM dear d JOIN people p ON d.seller = p.id WHERE p.state = 'OR' AND d.category = 10;
INSERT INTO b SELECT category, count(*), max(id), min(id) FROM dear GROUP BY category;
"""


def test_columns_and_rows_that_nobody_needs_are_left_out_before_a_join_and_sources_are_read_once() -> None:
    graph = ps.sql_flow(STATEMENTS).graph
    lines = []
    for node in graph.nodes:
        said = ""
        if isinstance(node, Where):
            said = f" {to_text(node.condition)}"
        if isinstance(node, Select):
            said = f" {', '.join(name for name, _ in node.columns)}"
        lines.append(f"{node.name}: {node.kind} <- {', '.join(map(str, node.inputs)) or 'outside'}{said}\n")
    check_golden("sql", "".join(lines))


def test_importing_penstock_imports_no_parser_of_sql() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, penstock; sys.exit('sqlglot' in sys.modules)"], check=False, timeout=60
    )
    assert done.returncode == 0
