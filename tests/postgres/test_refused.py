"""Rows that PostgreSQL refuses: dead letters with what the server says, and the batch arrives without them, once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.errors import FlowError, RunError
from penstock.graph.endpoints.servers import write_postgres
from penstock.graph.run import RunSpec
from penstock.kernels.errors.payload import read_payload
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_bounded, run_live

if TYPE_CHECKING:
    from tests.postgres.conftest import Database

pytestmark = pytest.mark.spark
TABLE = "create table rows (id bigint unique, word varchar(5) check (word <> 'bad'))"
GIVEN = [(1, "a"), (2, "bad"), (3, "c"), (1, "again"), (4, "too long"), (5, "e")]
FEW = [(1, "a"), (2, "bad"), (4, "too long")]


def flow_of(url: str, given: list[Any], **settings: Any) -> ps.Flow:
    flow = ps.Flow("refusing")
    parts = 2 if len(given) == 2 * len(FEW) and given[: len(FEW)] == FEW else 1
    rows = flow.source("rows", ps.items(given, "id bigint, word string", batches=parts))
    rows.sink("out", write_postgres(url, "rows"), **{"on_error": "dead_letter", **settings})
    return flow


def run(flow: ps.Flow, spark: Any, folder: Path) -> list[Any]:
    reports: list[Any] = []
    options = RunSpec(checkpoint=folder, mode="once")
    run_live(flow.graph, spark, options, observers=(reports.append,)).wait(0.02)
    return reports


def there(db: Database) -> list[Any]:
    return db.execute("select id, word from rows order by id").fetchall()


def test_refused_rows_become_letters_and_the_rest_arrives(
    url: str, db: Database, penstock_spark: Any, tmp_path: Path
) -> None:
    db.execute(TABLE)
    (report,) = run(flow_of(url, GIVEN), penstock_spark, tmp_path)
    assert there(db) == [(1, "a"), (3, "c"), (5, "e")]
    letters = list(DeadLetterStore(tmp_path / "dead-letters").dead_letters())
    assert {m["step"] for m in letters} == {"out"}
    reported = {m["record"]: m["cause"] for m in letters}
    assert sorted(reported) == ["Row(id=1, word='again')", "Row(id=2, word='bad')", "Row(id=4, word='too long')"]
    assert "unique" in reported["Row(id=1, word='again')"]
    assert "check constraint" in reported["Row(id=2, word='bad')"]
    assert "too long" in reported["Row(id=4, word='too long')"]
    assert report.balance == {"read": 6, "written": 3, "dead": 3}


def test_refused_rows_go_back_to_the_sink(url: str, db: Database, penstock_spark: Any, tmp_path: Path) -> None:
    db.execute(TABLE)
    run(flow_of(url, FEW), penstock_spark, tmp_path)
    db.execute("alter table rows drop constraint rows_word_check")
    letters = [m for m in DeadLetterStore(tmp_path / "dead-letters").dead_letters() if "bad" in m["record"]]
    Replays(tmp_path / "replay").ask(letters)
    more = [(i, "x") for i in range(6, 9)]
    run(flow_of(url, [*FEW, *more]), penstock_spark, tmp_path)
    assert there(db) == [(1, "a"), (2, "bad"), *more]


def test_a_batch_that_comes_again_has_the_same_letters(
    url: str, db: Database, penstock_spark: Any, tmp_path: Path
) -> None:
    db.execute(TABLE)
    run(flow_of(url, FEW), penstock_spark, tmp_path)
    before = sorted(m["record"] for m in DeadLetterStore(tmp_path / "dead-letters").dead_letters())
    for lost in [*(tmp_path / "spark" / "commits").iterdir(), *(tmp_path / "dead-letters").iterdir()]:
        if lost.is_file() and "metadata" not in lost.name:
            lost.unlink()
    run(flow_of(url, FEW), penstock_spark, tmp_path)
    assert there(db) == [(1, "a")]
    assert sorted(m["record"] for m in DeadLetterStore(tmp_path / "dead-letters").dead_letters()) == before
    assert len(before) == 2


def test_refused_rows_can_be_skipped_and_are_counted(url: str, db: Database, penstock_spark: Any) -> None:
    db.execute(TABLE)
    (report,) = run_bounded(flow_of(url, FEW, on_error="skip").graph, penstock_spark)
    assert there(db) == [(1, "a")]
    assert (report.skipped, report.dead) == ({"out": 2}, {})


def test_a_table_that_refuses_everything_stops_the_flow(
    url: str, db: Database, penstock_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(TABLE)
    monkeypatch.setattr("penstock.spark.dead_letters.row_errors.MOST", 2)
    with pytest.raises(RunError, match="more than 2 rows of one batch"):
        run_bounded(flow_of(url, [(i, "bad") for i in range(6)]).graph, penstock_spark)
    assert there(db) == []


def test_without_a_policy_a_refused_row_stops_the_flow(url: str, db: Database, penstock_spark: Any) -> None:
    db.execute(TABLE)
    with pytest.raises(RunError, match="refuses a row: value too long"):
        run_bounded(flow_of(url, GIVEN, on_error="fail").graph, penstock_spark)


def test_a_letter_holds_the_values(url: str, db: Database, penstock_spark: Any) -> None:
    db.execute(TABLE)
    rows: list[Any] = []
    flow = flow_of(url, FEW)
    flow.dead_letters("dead", ps.callback(lambda got, batch: rows.extend(got)))
    run_bounded(flow.graph, penstock_spark)
    assert sorted(read_payload(r.payload).row for r in rows) == [(2, "bad"), (4, "too long")]


def test_sinks_that_cannot_try_are_refused(url: str) -> None:
    flow = ps.Flow("refused")
    rows = flow.source("rows", ps.items([], "id bigint, word string"))
    with pytest.raises(
        FlowError,
        match="can tell which row they refuse, which are write_http, write_postgres, write_kafka, write_redis, write_topic and write_files with partition_by",
    ):
        rows.sink("out", ps.console(), on_error="dead_letter")
    with pytest.raises(FlowError, match="refused again"):
        rows.sink("out", write_postgres(url, "rows"), on_error=ps.retry(3))


TRIGGER = """create function check_word() returns trigger language plpgsql as
    $$ begin if new.word = 'bad' then raise exception 'no such word'; end if; return new; end $$;
    create trigger checked before insert on rows for each row execute function check_word()"""
LONG = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(200))
"""More than a row of an index takes, also compressed."""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (f"create table rows (id bigint, word text); {TRIGGER}", "no such word"),
        ("create table rows (id bigint, word text, unique (word))", "index row"),
        ("create table rows (id smallint, word text)", "out of range"),
        ("create table rows (id bigint, word text not null)", "null value"),
        (
            "create table all_rows (id bigint, word text); "
            "create view rows as select id, word from all_rows where word <> 'bad' with check option",
            "check option",
        ),
    ],
)
def test_whatever_the_server_says_against_the_values_of_a_row(
    url: str, db: Database, penstock_spark: Any, made: str, said: str
) -> None:
    db.execute(made)
    wrong = {"index row": (2, LONG), "out of range": (70_000, "b"), "null value": (2, None)}.get(said, (2, "bad"))
    rows: list[Any] = []
    flow = flow_of(url, [(1, "a"), wrong, (3, "c")])
    flow.dead_letters("dead", ps.callback(lambda got, batch: rows.extend(got)))
    run_bounded(flow.graph, penstock_spark)
    assert there(db) == [(1, "a"), (3, "c")]
    assert [said in row.cause for row in rows] == [True]
