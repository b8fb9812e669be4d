"""Files in an object store: written by the tasks of Spark through the storage, once, whatever happens to driver, tasks and network."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import Batch, SinkContext
from penstock.connectors.files.manifests import Manifests
from penstock.connectors.files.sink import FilesSink
from penstock.connectors.files.store import check_conditions
from penstock.errors import DeliveryError, PenstockError, RunError, StepError
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.spark.run import run_bounded, run_live
from penstock.storage import MemoryStorage, Storage, names_under, storage_at
from penstock.testing import run_local
from penstock.testing.stores import StoreServer
from tests.connectors.takeover import check_takeover
from tests.connectors.test_takeover import AROUND
from tests.storage.conftest import s3, s3_store  # noqa: F401 - fixtures
from tests.storage.proxy import at_random, fault_proxy

pytestmark = pytest.mark.spark


@pytest.fixture
def out(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: F811
    """A URL with nothing under it, which workers can open that have no keys: the session may have been started before the server."""
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    return f"{s3}/{uuid.uuid4().hex}"


def shown(url: str) -> dict[str, bytes]:
    """The files that whoever lists the folder sees."""
    storage = storage_at(url)
    return {name: storage.read(name) for name in names_under(storage, "") if not name.startswith("_")}


ROWS: list[Any] = [(1, 'a "quoted", ü'), (2, None), (3, ""), (4, "a\\b")]


@pytest.mark.parametrize("form", ["json", "csv", "text", "parquet"])
def test_the_files_are_those_that_spark_writes(penstock_spark: Any, out: str, tmp_path: Path, form: str) -> None:
    schema = "s string" if form == "text" else "n bigint, s string"
    rows = [(r[1],) for r in ROWS] if form == "text" else ROWS
    for path in (out, str(tmp_path / "out")):
        flow = ps.Flow("same")
        flow.source("in", ps.items(rows, schema)).sink("out", ps.write_files(path, form))
        for _ in range(2 if form == "json" else 1):
            run_bounded(flow.graph, penstock_spark)
    written = sorted(b"".join(p.read_bytes() for p in (tmp_path / "out").glob("out-*")).splitlines())
    if form != "parquet":
        assert sorted(set(b"".join(shown(out).values()).splitlines())) == sorted(set(written))
    got = run_local(_reading(out, form, schema))["out"]
    assert sorted(map(repr, got)) == sorted(map(repr, run_local(_reading(str(tmp_path / "out"), form, schema))["out"]))
    assert len(got) == len(rows)


def _reading(path: str, form: str, schema: str) -> ps.Flow:
    flow = ps.Flow("read")
    flow.source("in", ps.files(path, form, schema if form != "text" else None)).sink("out", ps.console())
    return flow


def test_a_batch_by_value_that_runs_again_replaces_its_own_files(penstock_spark: Any, out: str) -> None:
    options = {"path": out, "format": "json", "partition_by": ("a", "b")}
    for batch, rows in [(0, 4), (1, 6), (1, 2), (2, 0)]:
        frame = penstock_spark.range(rows).selectExpr("id", "id % 3 as a", "if(id = 1, null, 'x y/z') as b")
        FilesSink().stage(frame, Batch(batch, "out", options)).commit()
    found = {n.rpartition("/")[0]: c.count(b"\n") for n, c in shown(out).items() if "out-00000001-" in n}
    assert found == {"a=0/b=x y%2Fz": 1, "a=1/b=__HIVE_DEFAULT_PARTITION__": 1}
    assert sum(content.count(b"\n") for content in shown(out).values()) == 6
    assert [name for name in names_under(storage_at(out), "_penstock/") if "part-" in name] == []


def test_what_a_failed_attempt_of_a_task_has_written_does_not_count(penstock_spark: Any, out: str) -> None:
    """The first attempt writes its file and fails after it."""
    batch = Batch(0, "out", {"path": out, "format": "json"}, delivery="exactly_once", lineage="life", fingerprint="f")
    sink = FilesSink()
    sink.open(SinkContext("out", "flow", batch.options, schema_of("id bigint"), "life", delivery="exactly_once"))
    staged = sink.stage(penstock_spark.range(10).repartition(2), batch)
    storage_at(out).write(f"{staged.folder}/part-of-a-failed-attempt.json", b'{"id":99}\n')  # type: ignore[attr-defined]
    staged.commit()
    assert b"99" not in b"".join(shown(out).values())
    assert sum(content.count(b"\n") for content in shown(out).values()) == 10
    assert [name for name in names_under(storage_at(out), "_penstock/") if "part-" in name] == []


def test_a_live_flow_writes_each_batch_once(penstock_spark: Any, out: str, tmp_path: Path) -> None:
    flow = ps.Flow("live")
    source = flow.source("in", ps.items([(n,) for n in range(60)], "n bigint", batches=3))
    source.sink("out", ps.write_files(out, "json"), delivery="exactly_once")
    for _ in range(2):
        run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "checkpoint", mode="once")).wait(pause=0.02)
    lines = b"".join(shown(out).values()).splitlines()
    assert sorted(lines) == sorted(f'{{"n":{n}}}'.encode() for n in range(60))


def test_a_driver_that_died_after_its_manifest_is_finished_by_the_next(penstock_spark: Any, out: str) -> None:
    batch = Batch(0, "out", {"path": out, "format": "json"}, delivery="exactly_once", lineage="life", fingerprint="f")
    context = SinkContext("out", "flow", batch.options, schema_of("id bigint"), "life", delivery="exactly_once")
    first = FilesSink()
    first.open(context)
    staged = first.stage(penstock_spark.range(5), batch)
    settle = Manifests.settle
    try:
        Manifests.settle = lambda self, manifest: None  # type: ignore[method-assign]
        staged._commit_once()  # type: ignore[attr-defined]
    finally:
        Manifests.settle = settle  # type: ignore[method-assign]
    assert shown(out) == {}
    entry = FilesSink().open(context)
    assert entry is not None
    assert entry.batch == 0
    assert sum(content.count(b"\n") for content in shown(out).values()) == 5
    with pytest.raises(DeliveryError):
        first.stage(penstock_spark.range(5), replace(batch, id=1, fingerprint="g")).commit()


def test_batches_over_a_bad_network_arrive_once(
    penstock_spark: Any,
    out: str,
    s3_store: StoreServer,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Driver and workers reach the store through a proxy that loses requests and answers."""
    with fault_proxy(s3_store.server.port) as proxy:
        proxy.choose = at_random(0.1, 17)
        with monkeypatch.context() as changed:
            changed.setenv("AWS_ENDPOINT_URL", proxy.url)
            options = {"path": out, "format": "parquet"}
            batch = Batch(0, "out", options, delivery="exactly_once", lineage="life", fingerprint="0")
            sink = FilesSink()
            sink.open(SinkContext("out", "flow", options, schema_of("id bigint"), "life", delivery="exactly_once"))
            for number in range(4):
                frame = penstock_spark.range(number * 10, number * 10 + 10).repartition(2)
                sink.stage(frame, replace(batch, id=number, fingerprint=str(number))).commit()
        assert proxy.faults > 3
    got = run_local(_reading(out, "parquet", "id bigint"))["out"]
    assert sorted(r.id for r in got) == list(range(40))


LINES = b'{"n": 1, "s": "a"}\r\n\n{"n": null}\n'


def reading(spark: Any, url: str, form: str, schema: str, runtime: str, folder: Path, **options: Any) -> list[Any]:
    """The rows of a URL on a runtime."""
    got: list[Any] = []
    flow = ps.Flow("read")
    given = schema if form != "text" else None
    flow.source("in", ps.files(url, form, given, **options)).sink("out", ps.callback(lambda rows, _: got.extend(rows)))
    if runtime == "local":
        return sorted(map(repr, map(tuple, run_local(flow)["out"])))
    if runtime == "bounded":
        run_bounded(flow.graph, spark)
    else:
        run_live(flow.graph, spark, RunSpec(checkpoint=folder / "checkpoint", mode="once")).wait(pause=0.02)
    return sorted(map(repr, map(tuple, got)))


@pytest.mark.parametrize("runtime", ["local", "bounded", "live"])
def test_every_format_is_read_the_same_everywhere(penstock_spark: Any, out: str, tmp_path: Path, runtime: str) -> None:
    storage = storage_at(out)
    storage.write("json/day=2026-05-01/a.json", LINES)
    storage.write("json/day=2026-05-02/b.json", b'{"n": 3, "s": "\xc3\xbc"}')
    storage.write("csv/a.csv", b'n,s\n1,"a,b"\n2,\n')
    storage.write("text/a.txt", b"one\r\n\ntwo")
    storage.write("text/_hidden.txt", b"no")
    written = ps.Flow("write")
    written.source("in", ps.items([(1, "x", 5), (2, None, 6)], "n bigint, s string, k int")).sink(
        "out", ps.write_files(f"{out}/parquet", partition_by="k")
    )
    run_local(written, write=True)

    def got(url: str, form: str, schema: str) -> list[Any]:
        return reading(penstock_spark, url, form, schema, runtime, tmp_path / form)

    assert got(f"{out}/json", "json", "n bigint, s string, day date") == [
        "(1, 'a', datetime.date(2026, 5, 1))", "(3, 'ü', datetime.date(2026, 5, 2))", "(None, None, datetime.date(2026, 5, 1))",
    ]  # fmt: skip
    assert got(f"{out}/c*/*.csv", "csv", "n bigint, s string") == ["(1, 'a,b')", "(2, None)"]
    assert got(f"{out}/text", "text", "") == ["('',)", "('one',)", "('two',)"]
    assert got(f"{out}/parquet", "parquet", "n bigint, s string, k int") == ["(1, 'x', 5)", "(2, None, 6)"]


def test_a_live_flow_reads_each_file_once(penstock_spark: Any, out: str, tmp_path: Path) -> None:
    """Also those whose names come before others that were read; a run begins where the last has ended."""
    storage = storage_at(out)
    seen: list[Any] = []
    for names in (["b", "d"], ["a", "c", "e"], []):
        for name in names:
            storage.write(f"{name}.txt", name.encode())
        seen.append(reading(penstock_spark, out, "text", "", "live", tmp_path, files_per_batch=2))
    assert seen == [["('b',)", "('d',)"], ["('a',)", "('c',)", "('e',)"], []]


def test_source_sink_and_checkpoint_are_all_in_a_store(penstock_spark: Any, out: str) -> None:
    """Each run works in a directory of its own, and knows from the store alone which files were read."""
    for names in (["b", "c"], ["a"], []):
        for name in names:
            storage_at(f"{out}/in").write(f"{name}.json", f'{{"s": "{name}"}}'.encode())
        flow = ps.Flow("all")
        source = flow.source("in", ps.files(f"{out}/in", "json", "s string"))
        source.sink("out", ps.write_files(f"{out}/out", "json"), delivery="exactly_once")
        run_live(flow.graph, penstock_spark, RunSpec.of(checkpoint=f"{out}/checkpoint", once=True)).wait(pause=0.02)
    lines = b"".join(shown(f"{out}/out").values()).splitlines()
    assert sorted(lines) == [b'{"s":"a"}', b'{"s":"b"}', b'{"s":"c"}']


def test_a_line_that_is_no_record_is_said_with_its_file_and_number(penstock_spark: Any, out: str) -> None:
    storage_at(out).write("a.json", b'{"n": 1}\n\nno record\n')
    with pytest.raises(StepError) as raised:
        reading(penstock_spark, out, "json", "n bigint", "bounded", Path())
    assert raised.value.failure.position == f"{out}/a.json, line 3"


def test_nothing_to_read_is_refused(penstock_spark: Any, out: str) -> None:
    for runtime in ("local", "bounded"):
        with pytest.raises(PenstockError, match="there is nothing at"):
            reading(penstock_spark, f"{out}/nowhere", "text", "", runtime, Path())


def test_memory_is_refused_on_spark(penstock_spark: Any) -> None:
    with pytest.raises(RunError, match="memory of one process"):
        FilesSink().stage(penstock_spark.range(1), Batch(0, "out", {"path": "memory://a/b", "format": "json"}))


def test_a_store_that_does_not_hold_conditions_is_refused() -> None:
    class Careless(MemoryStorage):
        def put_if_absent(self, name: str, data: Any) -> bool:
            self.write(name, data)
            return True

    careless: Storage = Careless()
    with pytest.raises(DeliveryError, match=r"s3://old cannot hold exactly_once.*If-None-Match"):
        check_conditions(careless, "s3://old")


@pytest.mark.parametrize(("point", "cut"), [AROUND[0], AROUND[1], AROUND[3]])
def test_a_driver_that_was_replaced_while_it_was_paused_writes_nothing(s3: str, point: str, cut: int) -> None:  # noqa: F811
    url = f"{s3}/{uuid.uuid4().hex}"

    def held() -> list[int]:
        return [json.loads(line)["id"] for content in shown(url).values() for line in content.splitlines()]

    check_takeover("stored files", url, point, cut, held)
