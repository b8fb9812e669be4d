"""Standing queries of a flow that runs as a command: added, of a new shape, dropped, ended, listed, and the flow asked beside it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.log import Log
from tests.command_line import make_app
from tests.e2e.test_run import LOCAL, PENSTOCK, rows, start, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]
FLOW = """
SET 'standing.queries.topic' = 'changes';
CREATE TABLE orders (who STRING, amount BIGINT) WITH ('connector' = 'log', 'topic' = 'orders', 'format' = 'json', 'path' = '{log}');
CREATE TABLE alerts (query STRING, who STRING, amount BIGINT) WITH ('connector' = 'filesystem', 'path' = '{alerts}', 'format' = 'json');
CREATE TABLE totals (query STRING, who STRING, total BIGINT) WITH ('connector' = 'filesystem', 'path' = '{totals}', 'format' = 'json');
CREATE TABLE sums (who STRING, total BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '{sums}', 'format' = 'json');
INSERT INTO sums SELECT who, sum(amount) AS total FROM orders GROUP BY who;
CREATE STANDING QUERY large AS SELECT who, amount FROM orders WHERE amount > 10 INTO alerts;
"""
TOTALS = "CREATE STANDING QUERY {0}s AS SELECT who, sum(amount) AS total FROM orders WHERE who = '{0}' GROUP BY who {1} INTO totals"


class Running:
    """The flow, and what a test does to it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *queries: str) -> None:
        self.folder, self.log = folder, folder / "log"
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PENSTOCK_LOG", str(self.log))
        paths = {name: folder / name for name in ("log", "alerts", "totals", "sums")}
        (folder / "shop.sql").write_text(FLOW.format(**paths))
        with Log(self.log) as log:
            log.create_topic("orders")
            log.create_topic("changes")
        for query in queries:
            self.queries("add", "changes", query)
        self.run()

    def run(self) -> None:
        """Starts the flow, anew or again."""
        self.process = start(PENSTOCK, "run", *LOCAL, "shop.sql", cwd=self.folder)

    def kill(self) -> None:
        """Ends its process with no word."""
        self.process.kill()
        self.process.wait(timeout=300)

    def order(self, who: str, amount: int) -> None:
        with Log(self.log) as log, log.producer() as producer:
            producer.send("orders", json.dumps({"who": who, "amount": amount}).encode()).result()

    def queries(self, *arguments: str) -> str:
        done = CliRunner().invoke(make_app(["queries"]), ["queries", *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    def asked(self, *query: str) -> list[dict[str, Any]]:
        done = CliRunner().invoke(make_app(["sql"]), ["sql", "--flow", "shop", "--json", *query])
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]

    def listed(self) -> dict[str, Any]:
        found = json.loads(self.queries("list", "changes", "--flow", "shop", "--json"))
        return {row["query"]: row for row in found}

    def until(self, sink: str, *wanted: tuple[Any, ...]) -> None:
        def holds() -> bool:
            return set(wanted) <= {tuple(row.values()) for row in rows(self.folder / sink)}

        try:
            until(holds, self.process, 400)
        except AssertionError:
            shown = (self.folder / "stderr.txt").read_text()
            raise AssertionError(f"{sink}: {rows(self.folder / sink)}\n{shown}") from None


@pytest.mark.timeout(1200)
def test_queries_come_go_and_end_while_a_file_of_sql_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Running(tmp_path, monkeypatch)
    try:
        shop.order("ann", 11)
        shop.until("alerts", ("large", "ann", 11))
        shop.queries(
            "add",
            "changes",
            "CREATE STANDING QUERY some AS SELECT who, amount FROM orders WHERE amount > 5 INTO alerts",
        )
        until(lambda: shop.listed().get("some", {}).get("status") == "standing", shop.process, 400)
        shop.order("bob", 7)
        shop.until("alerts", ("some", "bob", 7))
        shop.queries("add", "changes", TOTALS.format("ann", "UNTIL total > 100"))
        until(lambda: shop.listed()["anns"]["status"] == "standing", shop.process, 400)
        shop.queries("drop", "changes", "some")
        until(lambda: "some" not in shop.listed(), shop.process, 400)
        shop.order("ann", 8)
        shop.until("totals", ("anns", "ann", 8))
        shop.order("ann", 200)
        shop.until("totals", ("anns", "ann", 208))
        until(lambda: shop.listed()["anns"]["status"] == "ended", shop.process, 400)
        shop.order("ann", 300)
        shop.until("alerts", ("large", "ann", 300))
        listed = shop.listed()
        (kept,) = [row["table"] for row in shop.asked() if row["table"].startswith("sums")]
        until(
            lambda: shop.asked(f"select total from `{kept}` where who = 'ann'") == [{"total": 519}], shop.process, 400
        )
        shop.process.send_signal(signal.SIGINT)
        assert shop.process.wait(timeout=300) == 0
    finally:
        shop.process.kill()
        shop.process.wait()
    assert listed["anns"]["rows"] == 3
    assert listed["large"]["rows"] == 3
    assert not {("anns", "ann", 508), ("some", "ann", 8)} & {
        tuple(row.values()) for row in [*rows(tmp_path / "totals"), *rows(tmp_path / "alerts")]
    }


OFTEN = "CREATE STANDING QUERY often AS SELECT who, sum(amount) AS total FROM orders WHERE who = 'bob' GROUP BY who EVERY 1 SECOND BY PROCTIME() INTO totals"


@pytest.mark.timeout(1200)
def test_queries_with_triggers_outlive_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query fires once for each turn of its condition, and after each span what has changed, whatever ends the process between."""
    shop = Running(tmp_path, monkeypatch, TOTALS.format("ann", "WHEN total > 100"), OFTEN)
    try:
        shop.order("ann", 90)
        shop.order("bob", 5)
        shop.until("totals", ("often", "bob", 5))
        shop.order("ann", 20)
        shop.until("totals", ("anns", "ann", 110))
        shop.kill()
        shop.order("ann", 5)
        shop.order("bob", 2)
        shop.queries("drop", "changes", "large", "--written")
        shop.run()
        shop.until("totals", ("often", "bob", 7))
        shop.order("ann", -50)
        shop.order("bob", 1)
        shop.until("totals", ("often", "bob", 8))
        shop.order("ann", 60)
        shop.until("totals", ("anns", "ann", 125))
        shop.process.send_signal(signal.SIGINT)
        assert shop.process.wait(timeout=300) == 0
    finally:
        shop.kill()
    totals = [tuple(row.values()) for row in rows(tmp_path / "totals")]
    assert sorted(row for row in totals if row[0] == "anns") == [("anns", "ann", 110), ("anns", "ann", 125)]
    assert sorted(row for row in totals if row[0] == "often") == [("often", "bob", n) for n in (5, 7, 8)]
    alerts = sorted(tuple(row.values()) for row in rows(tmp_path / "alerts"))
    assert alerts == [("large", "ann", 20), ("large", "ann", 90)]
