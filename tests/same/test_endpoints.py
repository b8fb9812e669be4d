"""Endpoints that need no JVM: what one runtime writes, every runtime reads."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import SinkConnector
from penstock.connectors.postgres.changes import Changes
from penstock.errors import PenstockError, RunError, StepError
from penstock.graph.run import RunSpec
from penstock.log import Log
from penstock.spark.run import run_bounded, run_live
from penstock.testing import run_local
from tests.postgres import conftest as servers
from tests.same.conftest import Case

postgres, url, db = servers.postgres, servers.url, servers.db

EVERY_TYPE = (
    "n bigint, s string, x double, f float, b boolean, at timestamp, day date, d decimal(10,2), raw binary, "
    "list array<int>, sizes map<string, bigint>, both struct<a: int, b: string>"
)
AT = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=datetime.UTC)
ROWS: list[Any] = [
    (1, 'a "quoted" ü\n', 0.1, 1.5, True, AT, AT.date(), Decimal("3.50"), b"\x00\xff", [1, None], {"k": 2}, (1, "x")),
    (2, None, 1e20, None, None, None, None, None, None, None, None, None),
    (3, "", -0.0, 3.0, False, AT.replace(microsecond=0), AT.date(), Decimal("-0.05"), b"", [], {}, (None, None)),
]
WRITTEN = [
    '{"n":1,"s":"a \\"quoted\\" ü\\n","x":0.1,"f":1.5,"b":true,"at":"2024-05-06T07:08:09.123Z","day":"2024-05-06","d":3.50,'
    '"raw":"AP8=","list":[1,null],"sizes":{"k":2},"both":{"a":1,"b":"x"}}',
    '{"n":2,"s":null,"x":1.0E20,"f":null,"b":null,"at":null,"day":null,"d":null,"raw":null,"list":null,"sizes":null,"both":null}',
    '{"n":3,"s":"","x":-0.0,"f":3.0,"b":false,"at":"2024-05-06T07:08:09.000Z","day":"2024-05-06","d":-0.05,"raw":"","list":[],'
    '"sizes":{},"both":{"a":null,"b":null}}',
]


def run(same: Case, flow: ps.Flow, folder: Path) -> None:
    """Runs a flow on its own endpoints."""
    if same.in_process:
        same.run_local(flow, write=True)
    elif same.runtime == "bounded":
        run_bounded(flow.graph, same.spark())
    else:
        checkpoint = folder / f"checkpoint-{flow.graph.name}"
        run_live(flow.graph, same.spark(), RunSpec(checkpoint=checkpoint, mode="once")).wait(pause=0.02)


def copied(same: Case, source: Any, folder: Path, sink: Any = None) -> list[Any]:
    """What a source gives on a runtime, or goes to a sink."""
    got: list[Any] = []
    flow = ps.Flow("copy")
    flow.source("in", source).sink("out", sink or ps.callback(lambda rows, batch: got.extend(rows)))
    run(same, flow, folder)
    return got


@pytest.mark.live
def test_json_in_a_topic_is_the_same_byte_by_byte_on_every_runtime(same: Case, tmp_path: Path) -> None:
    copied(same, ps.items(ROWS, EVERY_TYPE), tmp_path, ps.write_topic("t", key="n", path=tmp_path / "log"))
    with Log(tmp_path / "log") as log:
        found = log.read("t", 0, 0)
    assert sorted((r.value or b"").decode() for r in found) == sorted(WRITTEN)
    assert sorted(r.key or b"" for r in found) == [b"1", b"2", b"3"]


@pytest.mark.live
def test_a_topic_is_read_as_it_was_written(same: Case, tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        log.create_topic("t", 3)
        with log.producer() as producer:
            for at, text in enumerate(WRITTEN):
                producer.send_many("t", [text.encode()], partition=at)
    topic = ps.topic("t", EVERY_TYPE, path=tmp_path / "log")
    got = [(r.n, r.s, r.at, r.d, r.sizes) for r in copied(same, topic, tmp_path)]
    assert sorted(got, key=repr) == sorted([(r[0], r[1], r[5], r[7], r[10]) for r in ROWS], key=repr)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", [0, 1, 2, 3]),
        ("latest", []),
        ({0: 3}, [3]),
        (datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC), []),
    ],
)
def test_a_bounded_run_reads_a_topic_from_its_start(tmp_path: Path, start: Any, expected: list[int]) -> None:
    with Log(tmp_path / "log") as log:
        log.create_topic("t")
        with log.producer() as producer:
            producer.send_many("t", [json.dumps({"n": i}).encode() for i in range(4)])
    flow = ps.Flow("start")
    flow.source("in", ps.topic("t", "n bigint", path=tmp_path / "log", start=start)).sink("out", ps.console())
    assert [r.n for r in run_local(flow)["out"]] == expected


def test_raw_and_text_topics_and_their_bad_records(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        log.create_topic("t")
        with log.producer() as producer:
            producer.send_many("t", [b"fine", b"\xff", None], [b"k", b"k", b"k"])
    flow = ps.Flow("forms")
    flow.source("raw", ps.topic("t", path=tmp_path / "log")).sink("raw-out", ps.console())
    kept = flow.source("text", ps.topic("t", format="text", path=tmp_path / "log"), on_error="skip")
    kept.sink("text-out", ps.console())
    made = run_local(flow)
    assert [(r.partition, r.offset, r.key, r.value) for r in made["raw-out"]] == [
        (0, 0, b"k", b"fine"), (0, 1, b"k", b"\xff"), (0, 2, b"k", None),
    ]  # fmt: skip
    assert [r.value for r in made["text-out"]] == ["fine", None]
    flow = ps.Flow("strict")
    flow.source("in", ps.topic("t", format="text", path=tmp_path / "log")).sink("out", ps.console())
    with pytest.raises(StepError, match="the value is not UTF-8") as caught:
        run_local(flow)
    assert caught.value.failure.position == "topic t, partition 0, offset 1"


def test_a_missing_topic_is_named(tmp_path: Path) -> None:
    flow = ps.Flow("missing")
    flow.source("in", ps.topic("nowhere", "n bigint", path=tmp_path / "log")).sink("out", ps.console())
    with pytest.raises(RunError, match=r"source 'in'.*nowhere"):
        run_local(flow)


@pytest.mark.parametrize("form", ["parquet", "json"])
@pytest.mark.live("parquet")
def test_files_that_one_run_writes_the_next_one_reads(same: Case, tmp_path: Path, form: str) -> None:
    copied(same, ps.items(ROWS, EVERY_TYPE), tmp_path, ps.write_files(tmp_path / "out", form))
    got = copied(same, ps.files(tmp_path / "out", form, EVERY_TYPE), tmp_path / "again")
    assert sorted([(r.n, r.s, r.x, r.at, r.raw, r.d) for r in got], key=repr) == sorted(
        [(r[0], r[1], r[2], r[5], r[8], r[7]) for r in ROWS], key=repr
    )


@pytest.mark.parametrize(("form", "schema"), [("csv", "n bigint, s string"), ("text", "value string")])
@pytest.mark.live("csv")
def test_csv_and_text_files(same: Case, tmp_path: Path, form: str, schema: str) -> None:
    rows: list[Any] = [(1, "a,b"), (2, "plain")] if form == "csv" else [("a b",), ("c",)]
    copied(same, ps.items(rows, schema), tmp_path, ps.write_files(tmp_path / "out", form))
    got = copied(same, ps.files(tmp_path / "out", form, schema if form == "csv" else None), tmp_path / "again")
    assert sorted(map(tuple, got)) == rows


def test_a_local_run_replaces_what_the_last_one_wrote(tmp_path: Path) -> None:
    for rows in ([("a",), ("b",)], [("c",)]):
        flow = ps.Flow("twice")
        flow.source("in", ps.items(rows, "s string")).sink("out", ps.write_files(tmp_path / "out", "json"))
        run_local(flow, write=True)
    assert [p.read_text() for p in (tmp_path / "out").iterdir()] == ['{"s":"c"}\n']


def test_nothing_is_written_unless_the_test_says_so(tmp_path: Path) -> None:
    flow = ps.Flow("careful")
    flow.source("in", ps.items(["a"], "s string")).sink("out", ps.write_files(tmp_path / "out", "json"))
    assert run_local(flow)["out"] == [("a",)]
    assert not (tmp_path / "out").exists()


@pytest.mark.live
def test_the_changes_of_a_table_are_the_same_on_every_runtime(
    same: Case, url: str, db: servers.Database, tmp_path: Path
) -> None:
    """Rows, operations, old keys and the order of commits; and the table that they make."""
    db.execute("create table items (id bigint primary key, word text, price numeric(10, 2), tags text[])")
    slot = f"same_{db.info.dbname}"
    source = ps.postgres_changes(url, "items", slot=slot, schema=ps.postgres_schema(url, "items"))
    assert source.schema is not None
    Changes({k: v for k, v in source.options.items() if v is not None}, source.schema, "in").prepare()
    db.execute("insert into items values (1, 'a', 0.10, '{x,NULL}'), (2, 'ü', null, null), (3, 'c', 3, '{}')")
    db.execute("update items set word = 'A' where id = 1")
    db.execute("begin; update items set id = 20 where id = 2; insert into items values (4, 'd', 4, null); commit")
    db.execute("begin; insert into items values (9, 'never', 9, null); rollback")
    db.execute("delete from items where id = 3")
    got: list[Any] = []
    totals: list[Any] = []
    flow = ps.Flow("changes")
    changes = flow.source("in", source)
    changes.sink("out", ps.callback(lambda rows, batch: got.extend(rows)))
    rows = changes.select("ops", "id", "word", op="if(op = 'update', 'update_after', op)")
    rows.as_table("items", "id").aggregate("totals", n="count(*)", last="max(word)").sink(
        "sum", ps.callback(lambda r, b: totals.extend(r))
    )
    run(same, flow, tmp_path)
    assert [(r.op, r.id, r.word, r.price, r.tags, r.old and r.old["id"]) for r in got] == [
        ("insert", 1, "a", Decimal("0.10"), ["x", None], None),
        ("insert", 2, "ü", None, None, None),
        ("insert", 3, "c", Decimal("3.00"), [], None),
        ("update", 1, "A", Decimal("0.10"), ["x", None], None),
        ("update", 20, "ü", None, None, 2),
        ("insert", 4, "d", Decimal("4.00"), None, None),
        ("delete", 3, None, None, None, 3),
    ]
    commits = [r.lsn for r in got]
    assert commits == sorted(commits)
    assert [commits.count(lsn) for lsn in dict.fromkeys(commits)] == [3, 1, 2, 1]
    assert all(r.committed_at.tzinfo is not None for r in got)
    assert (totals[-1].n, totals[-1].last) == (4, "ü")


@pytest.mark.live
def test_standard_input_is_read_to_its_end(same: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\n two\r\nhalf a line"))
    assert [r.value for r in copied(same, ps.stdin(), tmp_path)] == ["one", "", " two\r", "half a line"]


def test_what_needs_spark_is_refused_by_name() -> None:
    flow = ps.Flow("own")
    flow.source("in", ps.items(["a"], "s string")).sink("out", ps.connector(SinkConnector()))
    with pytest.raises(PenstockError, match=r"sink 'out': SinkConnector cannot be written without Spark; .*a RowSink"):
        run_local(flow, write=True)
