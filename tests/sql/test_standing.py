"""Standing queries: one plan for many of them, added and dropped while the flow runs. No JVM."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.errors import SqlError
from penstock.frontends.sql.plan.statements.scripts import script_of
from penstock.frontends.sql.standing.reading import CONSTANTS
from penstock.frontends.sql.text.reader import read_statements
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.endpoints.log import RULE_CHANGES
from penstock.graph.logic.standing import AwaitPlan
from penstock.jobs.sql.files import read_sql_file
from penstock.jobs.sql.query_topic import QueryTopic
from penstock.local.bounded import read_source
from penstock.log import Log
from penstock.testing import BARRIER, Driver, run_local
from tests.command_line import make_app

ORDERS = "who string, amount bigint, ts timestamp"
TOTAL = (
    "CREATE STANDING QUERY {} AS SELECT who, sum(amount) AS total FROM orders WHERE who = '{}' GROUP BY who INTO totals"
)
LARGE = "CREATE STANDING QUERY {} AS SELECT who, amount FROM orders WHERE amount > {} INTO alerts"
TOPIC = "SET 'standing.queries.topic' = 'changes';"


def flow(text: str) -> ps.Flow:
    tables = {"orders": ps.items([], ORDERS), "totals": ps.console(), "alerts": ps.console()}
    return ps.sql_flow(text, tables)


def started(made: ps.Flow) -> Driver:
    """A flow that has read the queries of its own text."""
    driver = Driver(made)
    (own,) = [source for source in made.graph.sources if source.name == "queries"]
    driver.push("queries", *read_source(own))
    return driver


def order(who: str, amount: int) -> tuple[Any, ...]:
    return (who, amount, None)


def change(query: str, text: str | None, op: str = "add") -> dict[str, Any]:
    return dict.fromkeys(RULE_CHANGES.names) | {"rule": query, "op": op, "text": text, "by": "me"}


def test_queries_of_one_shape_share_a_plan() -> None:
    many = flow(";".join(TOTAL.format(f"q{n}", f"u{n}") for n in range(50)))
    few = flow(";".join(TOTAL.format(f"q{n}", f"u{n}") for n in range(2)))
    assert len(many.graph.nodes) == len(few.graph.nodes)
    both = flow(f"{TOTAL.format('a', 'x')};{LARGE.format('b', 5)};{LARGE.format('c', 7)}")
    assert sum("match" in node.name and "@" not in node.name for node in both.graph.nodes) == 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("direct", [False, True], ids=["compiled", "oracle"])
def test_each_query_answers_as_it_does_alone(seed: int, direct: bool) -> None:
    chance = random.Random(seed)
    rows = [order(f"u{chance.randint(0, 4)}", chance.randint(0, 20)) for _ in range(40)]
    given = [x for row in rows for x in ((BARRIER, row) if chance.random() < 0.1 else (row,))]
    wanted = {f"t{n}": TOTAL.format(f"t{n}", f"u{n}") for n in range(4)}
    wanted |= {f"l{n}": LARGE.format(f"l{n}", n * 6) for n in range(3)}
    found = run_local(flow(";".join(wanted.values())), {"orders": given}, oracle=direct)
    for name, statement in wanted.items():
        query, _, sink = statement.partition(" AS ")[2].rpartition(" INTO ")
        alone = run_local(ps.sql_flow(query, {"orders": ps.items([], ORDERS)}), {"orders": rows})["result"]
        last = found.table(sink) if sink == "totals" else None
        mine = [r for r in (last.values() if last is not None else found[sink]) if r.query == name]
        assert sorted(tuple(r)[1:] for r in mine) == sorted(map(tuple, alone)), name


def test_queries_come_and_go_while_the_flow_runs() -> None:
    driver = started(flow(f"{TOPIC}{LARGE.format('first', 10)}"))
    driver.push("orders", order("ann", 11))
    assert driver.barrier()["alerts"] == [("first", "ann", 11)]
    driver.push("queries.topic", change("second", LARGE.format("second", 5)))
    driver.push("orders", order("bob", 7))
    assert driver.barrier()["alerts"][1:] == [("second", "bob", 7)]
    driver.push("queries.topic", change("first", None, "remove"))
    driver.push("orders", order("cid", 50))
    assert driver.barrier()["alerts"][2:] == [("second", "cid", 50)]
    driver.push("queries.topic", change("second", LARGE.format("second", 90)))
    driver.push("orders", order("dan", 60), order("dan", 95))
    assert driver.barrier()["alerts"][3:] == [("second", "dan", 95)]


def test_a_batch_that_is_replayed_uses_the_queries_that_it_used() -> None:
    driver = started(flow(f"{TOPIC}{LARGE.format('first', 10)}"))
    driver.push("queries.topic", change("second", LARGE.format("second", 5)))
    driver.barrier()
    driver.push("orders", order("bob", 7))
    driver.push("queries.topic", change("second", None, "remove"))
    driver.crash()
    assert driver.barrier()["alerts"] == []
    driver.push("orders", order("bob", 8), order("bob", 30))
    driver.crash()
    assert driver.barrier()["alerts"] == [("first", "bob", 30)]


def test_a_change_that_cannot_be_read_is_a_dead_letter_and_one_of_a_new_shape_waits() -> None:
    made = flow(f"{TOPIC}{LARGE.format('first', 10)}")
    made.dead_letters("letters", ps.console())
    driver = started(made)
    other = "CREATE STANDING QUERY x AS SELECT who FROM orders WHERE amount < 3 INTO alerts"
    driver.push("queries.topic", change("x", other), change("y", "nonsense"), change("z", LARGE.format("z", 1)))
    driver.push("orders", order("ann", 2))
    found = driver.barrier()
    assert found["alerts"] == [("z", "ann", 2)]
    causes = [row.cause for row in found["letters"]]
    assert len(causes) == 1
    assert "query y:1:1: expected CREATE STANDING QUERY" in causes[0]


def test_a_query_ends_at_its_moment() -> None:
    import datetime

    noon = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
    events = ps.Flow("f").source("orders", ps.items([], ORDERS), event_time="ts")
    statement = LARGE.format("big", 1).replace(" INTO", " UNTIL '2026-05-01 12:00:00' INTO")
    made = ps.sql_flow(statement, {"orders": events, "alerts": ps.console()})
    rows = [("a", 5, noon - datetime.timedelta(seconds=1)), ("b", 5, noon), ("c", 5, None)]
    assert [r.who for r in run_local(made, {"orders": rows})["alerts"]] == ["a"]


@pytest.mark.parametrize(
    "statement, says",
    [
        ("CREATE STANDING QUERY q AS SELECT who FROM orders", "INTO"),
        (
            "CREATE STANDING QUERY q AS SELECT a.who FROM orders a JOIN orders b ON a.who = b.who INTO alerts",
            "one table or view",
        ),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders EVERY 5 PEARS INTO alerts", "PEAR"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders EVERY 0 MINUTES INTO alerts", "above zero"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders EVERY 5 MINUTES EVERY 6 MINUTES INTO alerts", "one EVERY"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders EVERY 5 MINUTES WHEN who = 'a' INTO alerts", "one trigger"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders WHEN wgo = 'a' INTO alerts", "wgo"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders WHEN count(*) > 3 INTO alerts", "columns of the result"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders WHEN INTO alerts", "a condition after WHEN"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders UNTIL who INTO alerts", "boolean"),
        ("CREATE STANDING QUERY q AS SELECT who FROM orders WITHOUT SNAPSHOT INTO alerts", "SNAPSHOT"),
        (f"{LARGE.format('q', 1)};{LARGE.format('q', 2)}", "there already"),
        (LARGE.format("q", 1).replace(" INTO", " UNTIL 'tomorrow' INTO"), "expected a moment"),
        (LARGE.format("q", 1).replace(" INTO", " UNTIL '2026-01-01' INTO"), "WATERMARK"),
        (LARGE.format("q", 1).replace("alerts", "nowhere"), "nowhere"),
        (LARGE.format("q", 1).replace("who,", "wgo,"), "wgo"),
    ],
)
def test_what_cannot_stand_is_refused_with_its_place(statement: str, says: str) -> None:
    with pytest.raises(SqlError, match=says) as refused:
        flow(statement)
    assert refused.value.line == 1


def test_the_command_keeps_queries_in_a_topic(tmp_path: Path) -> None:
    def penstock(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(make_app(["queries"]), ["queries", *arguments, "--log", str(tmp_path / "log")])
        assert done.exit_code == code, done.output
        return done.output

    assert "big: version 1, added, by me" in penstock("add", "found", LARGE.format("big", 500), "--by", "me")
    assert "there already" in penstock("add", "found", LARGE.format("big", 600), code=2)
    assert "expected CREATE STANDING QUERY" in penstock("add", "found", "SELECT 1 AS x FROM t", code=2)
    (listed,) = json.loads(penstock("list", "found", "--json"))
    assert (listed["query"], listed["text"]) == ("big", LARGE.format("big", 500))
    assert "dropped" in penstock("drop", "found", "big")
    assert json.loads(penstock("list", "found", "--json")) == []


FILE = """
    SET 'standing.queries.topic' = 'changes';
    CREATE TABLE orders (who STRING, amount BIGINT) WITH ('connector' = 'log', 'topic' = 'orders', 'format' = 'json');
    CREATE TABLE alerts (query STRING, who STRING, amount BIGINT) WITH ('connector' = 'print');
    {}
"""
NAMES = "CREATE STANDING QUERY {} AS SELECT who, amount FROM orders WHERE who = '{}' INTO alerts"


def test_a_file_plans_the_shapes_that_come_by_its_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_LOG", str(tmp_path / "log"))
    path = tmp_path / "flow.sql"
    path.write_text(FILE.format(f"{LARGE.format('first', 10)};"))
    file = read_sql_file(path)
    assert file.revised() is None
    with Log(tmp_path / "log") as log:
        topic = QueryTopic(log, "changes")
        topic.put(LARGE.format("second", 20), "me")
        assert file.revised() is None
        topic.put(NAMES.format("anns", "ann"), "me")
        topic.put(NAMES.format("wrong", "x").replace("who,", "wgo,"), "me")
        topic.put(NAMES.format("none", "x").replace("alerts", "nowhere"), "me")
        topic.put(NAMES.format("few", "x").replace("who, amount", "who"), "me")
    revised = file.revised()
    assert revised is not None
    assert revised.revised() is None
    assert sorted(bool(why) for why in revised.script.shapes.values()) == [False, False, True, True, True]
    refused = revised.refused("changes")
    assert sorted(refused) == ["few", "none", "wrong"]
    assert refused["wrong"].startswith("query wrong:1:39: no column 'wgo'; did you mean 'who'")
    matches = [n.name for n in revised.flow.graph.nodes if n.name.endswith(".match")]
    assert {n.name for n in file.flow.graph.nodes if n.name.endswith(".match")} < set(matches)
    assert [sink.name for sink in revised.flow.graph.sinks] == ["alerts"]


def test_a_query_waits_for_its_plan() -> None:
    def row(*values: Any) -> tuple[Any, ...]:
        return values

    changes = [
        row("a", "add", "known", [], None, None, 0),
        row("b", "add", "new", [], None, None, 0),
        row("c", "add", "new", [], None, None, 0),
    ]
    committed = None
    for shapes, given, wanted in (
        ({"known"}, changes, ["a"]),
        ({"known", "new"}, [row("c", "drop", None, [], None, None, None)], ["b", "c"]),
    ):
        made = ps.Flow("f")
        source = made.source("changes", ps.items([], str(CONSTANTS)))
        source.key_by("query").process("wait", AwaitPlan(frozenset(shapes)), str(CONSTANTS)).sink("out", ps.console())
        driver = Driver(made)
        if committed is not None:
            driver.run.committed.states, driver.run.committed.timers = committed
            driver.run.crash()
        driver.push("changes", *given)
        driver.barrier()
        driver.clock.advance(120 if committed is None else 3600)
        found = driver.barrier()["out"]
        assert sorted(r.query for r in found) == wanted
        committed = driver.run.committed.states, driver.run.committed.timers


def test_a_query_of_a_new_shape_begins_when_the_flow_goes_on_with_its_plan() -> None:
    """As on Spark: the flow ends after a batch, and another graph goes on from what it has kept."""
    text = f"{TOPIC}{TOTAL.format('anns', 'ann')};"
    first, more = started(flow(text)), LARGE.format("big", 10)
    first.push("queries.topic", change("big", more))
    first.push("orders", order("ann", 20))
    assert first.barrier()["totals"] == [("anns", "ann", 20)]
    orders = {"orders": ps.items([], ORDERS), "totals": ps.console(), "alerts": ps.console()}
    script = script_of(text, orders, ps.Flow("sql"))
    script.topic_queries = lambda topic: (SqlText(more),)
    script.run(read_statements(script.text))
    second = Driver(script.flow)
    assert {node.name for node in first.graph.nodes} < {node.name for node in second.graph.nodes}
    assert [source.name for source in first.graph.sources] == [source.name for source in second.graph.sources]
    second.run.committed = replace(first.run.committed, results={})
    second.run.crash()
    second.clock.advance(3600)
    second.barrier()
    second.push("orders", order("bob", 30), order("ann", 1))
    found = second.barrier()
    assert found["alerts"] == [("big", "bob", 30)]
    assert found["totals"] == [("anns", "ann", 21)]
