"""Plans of SQL as golden text: what is read once, left out early, and moved once."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock as ps
from penstock.compiler.describe import describe
from penstock.graph.expr import to_text
from penstock.graph.nodes import Select, Where
from penstock.graph.picture.text import as_text
from tests.compiler.test_describe import check_golden, without_lines

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


MADE_OF_SEVERAL = {
    "top of a window": """
        SELECT window_start, auction, n FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS rn
            FROM (SELECT window_start, window_end, auction, count(*) AS n
                  FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
                  GROUP BY window_start, window_end, auction))
        WHERE rn <= 3""",
    "total": "SELECT count(*) AS n FROM bids",
    "over": "SELECT auction, sum(price) OVER (PARTITION BY auction ORDER BY ts ROWS 2 PRECEDING) AS s FROM bids",
    "sets": "SELECT auction FROM bids INTERSECT SELECT price FROM bids",
    "sessions": "SELECT * FROM TABLE(SESSION(TABLE bids PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '1' MINUTE))",
    "grouping sets": "SELECT auction, price, count(*) AS n FROM bids GROUP BY CUBE (auction, price)",
    "standing": "CREATE STANDING QUERY q AS SELECT auction, count(*) AS n FROM bids WHERE auction = 1 GROUP BY auction WHEN n > 2 WITH SNAPSHOT UNTIL n > 9 INTO seen",
    "exists": "SELECT price FROM bids b WHERE EXISTS (SELECT 1 FROM bids c WHERE c.auction = b.price)",
}


@pytest.mark.parametrize("name", MADE_OF_SEVERAL)
def test_every_step_of_a_statement_has_a_line_of_its_text(name: str) -> None:
    bids = ps.Flow("bids").source("bids", ps.items([], "auction bigint, price bigint, ts timestamp"), event_time="ts")
    flow = ps.sql_flow(MADE_OF_SEVERAL[name], {"bids": bids, "seen": ps.console()})
    assert {n.line.partition(":")[0] for n in flow.graph.nodes if not n.name.startswith("bids")} == {"sql"}


TABLES = "".join(line + "\n" for line in STATEMENTS.splitlines() if line.startswith("CREATE TABLE"))
PLANS = {
    "pushed": "SELECT p.name, a.title FROM auctions a JOIN people p ON a.seller = p.id WHERE a.category = 10 AND p.state = 'OR'",
    "two-phase": "SELECT category, count(*) AS n, avg(id) AS mean, sum(DISTINCT seller) AS s FROM auctions WHERE id > 3 GROUP BY category",
    "shared": """
        CREATE VIEW counts AS SELECT seller, count(*) AS n FROM auctions WHERE category > 3 GROUP BY seller;
        CREATE TABLE c (seller BIGINT, n BIGINT, PRIMARY KEY (seller) NOT ENFORCED) WITH ('connector' = 'print');
        CREATE TABLE d (n BIGINT, many BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
        INSERT INTO c SELECT seller, n FROM counts;
        INSERT INTO d SELECT n, count(*) FROM counts GROUP BY n""",
    "one-shuffle": """
        SELECT x.seller, x.n, y.most FROM (SELECT seller, count(*) AS n FROM auctions GROUP BY seller) x
        JOIN (SELECT seller, max(id) AS most FROM auctions WHERE category > 3 GROUP BY seller) y ON x.seller = y.seller""",
}
"""Queries whose plans show what is optimised: conditions and columns at the source, parts before the shuffle, subplans that are shared, keys that stay."""
SHUFFLES = {"pushed": 1, "two-phase": 1, "shared": 2, "one-shuffle": 2}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_the_golden_one(name: str) -> None:
    graph = ps.sql_flow(TABLES + PLANS[name]).graph
    texts = [as_text(without_lines(describe(graph, live=live))) for live in (True, False)]
    check_golden(f"sql-{name}", "\n".join(texts))
    assert texts[0].count("~~ shuffle") == SHUFFLES[name]


def test_importing_penstock_imports_no_parser_of_sql() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, penstock; sys.exit('sqlglot' in sys.modules)"], check=False, timeout=300
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("a.x + 1 = b.x", "the rows of both sides per x"),
        ("a.x + 1 = b.x + 2", "the rows of both sides per computed key (result.join@left-key):"),
        ("a.x < b.x", "the rows of both sides all together, as no equality of both sides finds them:"),
        ("a.x = b.x AND a.x + 1 > b.x", "the rows of both sides per x:"),
    ],
)
def test_what_a_step_keeps_is_said_without_hidden_fields(condition: str, says: str) -> None:
    text = f"SELECT a.x, (SELECT count(*) FROM b i WHERE i.x < a.x) AS n FROM a LEFT JOIN b ON {condition}"
    given = {name: ps.items([], "x bigint") for name in "ab"}
    kept = [step["keeps"] for step in describe(ps.sql_flow(text, given).graph)["steps"] if step["keeps"]]
    assert any(each.startswith(says) for each in kept)
    assert not any("__" in each or "$" in each for each in kept)


def test_what_grouping_sets_keep_is_said_by_the_names_of_their_columns() -> None:
    for text in (
        "SELECT x, y, count(*) AS n FROM a GROUP BY CUBE(x, y)",
        "SELECT max(n) AS m FROM t GROUP BY ROLLUP(x)",
    ):
        text = text.replace("FROM t", "FROM (SELECT x, count(*) AS n FROM a GROUP BY x)")
        flow = ps.sql_flow(text, {"a": ps.items([], "x bigint, y bigint")})
        kept = [step["keeps"] for step in describe(flow.graph)["steps"] if "grouping" in step["keeps"]]
        assert kept
        assert not any("__" in each for each in kept)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (
            "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW",
            "the rows of open frames per x, until event time is 1h past them",
        ),
        ("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "the rows of open frames per x, for ever"),
        ("ROWS UNBOUNDED PRECEDING", "one row of sums per x, for ever"),
    ],
)
def test_over_says_for_how_long_it_keeps(frame: str, says: str) -> None:
    text = f"SELECT sum(x) OVER (PARTITION BY x ORDER BY ts {frame}) AS s FROM a"
    given = ps.Flow("over").source("a", ps.items([], "x bigint, ts timestamp"), event_time="ts")
    (step,) = [s for s in describe(ps.sql_flow(text, {"a": given}).graph)["steps"] if s["kind"] == "over"]
    assert (step["keeps"], step["kept_for_ever"]) == (says, says.endswith("for ever"))
