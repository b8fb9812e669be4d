"""What a flow needs outside and is not there is found before Spark starts, with the command that mends it; nothing is left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.connectors import preflight
from penstock.connectors.preflight import check_outside
from penstock.errors import SetupError
from penstock.jobs.ports import free_port
from penstock.log import Log
from penstock.testing import run_local
from tests.command_line import make_app


def reading(endpoint: Any) -> ps.Flow:
    flow = ps.Flow("needs")
    flow.source("in", endpoint).sink("out", ps.console())
    return flow


def writing(endpoint: Any) -> ps.Flow:
    flow = ps.Flow("needs")
    flow.source("in", ps.items([(1,)], "n bigint")).sink("out", endpoint)
    return flow


@pytest.fixture
def closed_port() -> int:
    return free_port()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "PATIENCE", 1.0)


def refusal(flow: ps.Flow) -> str:
    with pytest.raises(SetupError) as refused:
        check_outside(flow.graph)
    return str(refused.value)


def test_a_missing_topic_of_the_log_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    said = refusal(reading(ps.topic("orders", "n bigint", path=tmp_path / "log")))
    assert f"penstock topics create orders --log {tmp_path}/log" in said
    assert not (tmp_path / "log").exists()
    with Log(tmp_path / "log") as log:
        log.create_topic("order")
    assert "did you mean 'order'" in refusal(reading(ps.topic("orders", "n bigint", path=tmp_path / "log")))
    check_outside(reading(ps.topic("order", "n bigint", path=tmp_path / "log")).graph)


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    flow, log = ps.Flow("needs"), tmp_path / "log"
    orders = flow.source("orders", ps.topic("orders", "n bigint", path=log))
    refunds = flow.source("refunds", ps.topic("refunds", "n bigint", path=log))
    old = flow.source("old", ps.files(tmp_path / "old.csv", "csv", "n bigint"))
    orders.union("all", refunds, old).sink("out", ps.console())
    lines = refusal(flow).splitlines()
    assert [line.split(" reads ")[0] for line in lines] == ["'orders'", "'refunds'", "'old'"]
    assert f"penstock topics create refunds --log {log}" in lines[1]
    assert not log.exists()


def test_all_topics_of_kafka_that_are_missing_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("penstock.connectors.kafka.preflight.check_cluster", lambda _: ["clicks", "order"])
    said = refusal(reading(ps.kafka(["orders", "clicks", "refunds"], "n bigint", servers="localhost:1")))
    first, second = said.splitlines()
    assert "did you mean 'order'" in first
    assert "penstock kafka topics --create orders --servers localhost:1" in first
    assert "penstock kafka topics --create refunds --servers localhost:1" in second


def test_a_topic_that_the_flow_itself_writes_is_made_by_it(tmp_path: Path) -> None:
    flow = reading(ps.topic("round", "n bigint", path=tmp_path / "log"))
    flow.source("more", ps.items([(1,)], "n bigint")).sink("back", ps.write_topic("round", path=tmp_path / "log"))
    check_outside(flow.graph)


@pytest.mark.parametrize(
    ("endpoint", "change"),
    [
        (
            lambda path: reading(ps.topic("orders", "n bigint", path=path)),
            "ps.kafka('orders', ..., servers='HOST:9092')",
        ),
        (
            lambda path: writing(ps.write_topic("orders", path=path)),
            "ps.write_kafka('orders', ..., servers='HOST:9092')",
        ),
    ],
    ids=["read", "written"],
)
def test_the_embedded_log_is_refused_on_a_cluster_with_the_change_to_kafka(
    tmp_path: Path, endpoint: Any, change: str
) -> None:
    with Log(tmp_path / "log") as log:
        log.create_topic("orders")
    flow = endpoint(tmp_path / "log")
    for master in ("spark://there:7077", "yarn", "k8s://https://there"):
        with pytest.raises(SetupError) as refused:
            check_outside(flow.graph, master)
        assert change in str(refused.value)
        assert master in str(refused.value)
    for master in ("local", "local[4]", "local-cluster[2,1,512]"):
        check_outside(flow.graph, master)


def test_a_run_on_a_cluster_is_refused_before_spark_starts(tmp_path: Path) -> None:
    """However the master is said."""
    (tmp_path / "flow.py").write_text(
        f"import penstock as ps\nflow = ps.Flow('f')\n"
        f"flow.source('in', ps.topic('t', 'n bigint', path={str(tmp_path / 'log')!r})).sink('out', ps.console())\n"
    )
    (tmp_path / "spark.conf").write_text("spark.master spark://there:7077\n")
    for how in (
        ["--master", "spark://there:7077"],
        ["--conf", "spark.master=spark://there:7077"],
        ["--properties-file", str(tmp_path / "spark.conf")],
    ):
        told = CliRunner().invoke(
            make_app(), ["run", str(tmp_path / "flow.py"), *how, "--checkpoint", str(tmp_path / "c")]
        )
        assert told.exit_code != 0
        assert "On a cluster the log is Kafka" in " ".join(told.output.split())
        assert not (tmp_path / "c" / "spark").exists()


def test_missing_files_of_a_source_and_of_a_join_are_named(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("id,name\n")
    said = refusal(reading(ps.files(tmp_path / "user.csv", "csv", "id bigint, name string")))
    assert "did you mean 'users.csv'" in said
    assert "mkdir -p" in said
    flow = ps.Flow("needs")
    table = ps.files(tmp_path / "gone" / "t.csv", "csv", "id bigint, name string")
    flow.source("in", ps.items([(1,)], "id bigint")).join("names", table, on="id").sink("out", ps.console())
    assert "'names' reads" in refusal(flow)
    check_outside(reading(ps.files(tmp_path / "*.csv", "csv", "id bigint, name string")).graph)
    check_outside(reading(ps.files("s3a://bucket/x", "csv", "id bigint, name string")).graph)


def test_a_directory_that_files_cannot_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("a file")
    for folder, below in ((tmp_path / "taken", ""), (tmp_path / "taken" / "out", f", below {tmp_path}/taken")):
        said = refusal(writing(ps.write_files(folder, "json")))
        assert f"'out' writes files to {folder}{below}, which is a file; name another directory" in said
        with pytest.raises(SetupError, match="which is a file"):
            run_local(writing(ps.write_files(folder, "json")), write=True)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "may not write; name another directory, or change its owner" in refusal(writing(ps.write_files(tmp_path)))
    check_outside(writing(ps.write_files("s3a://bucket/x", "json")).graph)


@pytest.mark.parametrize("make", [ps.postgres, ps.write_postgres])
def test_a_postgres_that_does_not_answer(closed_port: int, make: Any) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://me:geheim@127.0.0.1:{closed_port}/shop"
    made = (
        ps.postgres(url, table="t", schema="n bigint", by="n") if make is ps.postgres else ps.write_postgres(url, "t")
    )
    said = refusal(reading(made) if make is ps.postgres else writing(made))
    assert "penstock postgres start" in said
    assert "geheim" not in said


def test_a_redis_that_does_not_answer(closed_port: int) -> None:
    pytest.importorskip("redis")
    said = refusal(writing(ps.write_redis(f"redis://127.0.0.1:{closed_port}", key="n")))
    assert "which does not answer" in said


@pytest.mark.parametrize("kind", ["postgres", "a table of postgres", "redis"])
def test_the_test_kit_says_which_server_does_not_answer(closed_port: int, kind: str) -> None:
    """In the same words as a run, not in those of the driver."""
    url = f"postgresql://me:geheim@127.0.0.1:{closed_port}/shop"
    if kind == "redis":
        pytest.importorskip("redis")
        flow = reading(ps.redis_stream(f"redis://127.0.0.1:{closed_port}", "s", "n bigint"))
    else:
        pytest.importorskip("psycopg")
        rows = ps.postgres(url, table="t", schema="n bigint, name string", by="n")
        flow = reading(rows if kind == "postgres" else ps.items([1], "n bigint"))
        if kind != "postgres":
            flow.source("more", ps.items([1], "n bigint")).join("named", rows, "n").sink("named-out", ps.console())
    with pytest.raises(SetupError, match="which does not") as refused:
        run_local(flow)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_kafka_that_does_not_answer(closed_port: int, way: str) -> None:
    pytest.importorskip("confluent_kafka")
    servers = f"127.0.0.1:{closed_port}"
    made: Any = ps.kafka("t", "n bigint", servers=servers) if way == "read" else ps.write_kafka("t", servers=servers)
    said = refusal(reading(made) if way == "read" else writing(made))
    assert "penstock kafka start" in said


@pytest.mark.parametrize(
    "package, flow, command",
    [
        ("confluent_kafka", lambda: reading(ps.kafka("t", "n bigint")), "pip install 'penstock[kafka]'"),
        ("psycopg", lambda: writing(ps.write_postgres("postgresql://x/y", "t")), "pip install 'penstock[postgres]'"),
        ("redis", lambda: writing(ps.write_redis("redis://x", key="n")), "pip install 'penstock[redis]'"),
    ],
)
def test_a_package_that_is_missing(package: str, flow: Any, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert command in refusal(flow())


FLOW = """
import penstock as ps
flow = ps.Flow("needs")
flow.source("in", ps.topic("orders", "n bigint", path="log")).sink("out", ps.console())
"""


def test_a_start_that_fails_starts_no_spark_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW)
    done = CliRunner().invoke(make_app(), ["run", "flow.py", "--progress", "plain"], env={"COLUMNS": "300"})
    assert done.exit_code == 1, done.output
    assert "The run could not start" in done.output
    assert f"penstock topics create orders --log {tmp_path}/log" in done.output
    assert "starting Spark" not in done.output
    assert sorted(p.name for p in tmp_path.iterdir()) in (["flow.py"], ["__pycache__", "flow.py"])
