"""Topics of the log in a flow: arguments that are refused, how they are described, what a sink promises. No JVM."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any, cast

import pytest

import penstock as ps
from penstock.compiler.describe import describe
from penstock.connectors.base import Batch, SinkContext
from penstock.connectors.delivery import Entry
from penstock.connectors.log.sink import LogSink, StagedRecords
from penstock.connectors.log.source import paced
from penstock.errors import DeliveryError, FlowError, PenstockError, SchemaError
from penstock.graph.schema import schema_of
from penstock.log import Log
from penstock.log.produce.partitioner import partition_for
from penstock.spark.batch.sinks import Sinks

MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: ps.topic("a", format="jsn"), SchemaError, r"topic\('a'\): no format 'jsn'; did you mean 'json'"),
        (
            lambda: ps.topic("a", format="json"),
            SchemaError,
            r"JSON needs a schema: ps\.topic\('a', 'name type, \.\.\.'\)",
        ),
        (lambda: ps.topic("a", "n bigintt"), SchemaError, "unknown type 'bigintt'"),
        (lambda: ps.topic("a", "n int", format="text"), SchemaError, "text records have fields of their own"),
        (lambda: ps.topic("a", "n int", format="raw"), SchemaError, "raw records have fields of their own"),
        (lambda: ps.topic("../a"), FlowError, r"a topic name has 1 to 249 of .*got '\.\./a'"),
        (lambda: ps.topic(""), FlowError, "a topic name has 1 to 249"),
        (lambda: ps.topic("a", start="begin"), FlowError, "start is 'earliest', 'latest', .*got 'begin'"),
        (lambda: ps.topic("a", start=-1), FlowError, "got -1"),
        (lambda: ps.topic("a", start=cast(Any, {0: "x"})), FlowError, "offsets as {partition: offset}, got {0: 'x'}"),
        (lambda: ps.topic("a", start={0: -5}), FlowError, "got {0: -5}"),
        (lambda: ps.write_topic("a", format="avro"), SchemaError, r"write_topic\('a'\): no format 'avro'; there are"),
        (lambda: ps.write_topic("a b"), FlowError, "got 'a b'"),
        (lambda: ps.write_topic("a", partitions=0), FlowError, "at least 1 partition, got partitions=0"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(make: Any, kind: type[PenstockError], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


@pytest.mark.parametrize(
    ("endpoint", "format", "fields"),
    [
        (ps.topic("a"), "raw", ("partition", "offset", "timestamp", "key", "value", "headers")),
        (ps.topic("a", format="text"), "text", ("value",)),
        (ps.topic("a", "n bigint, who string"), "json", ("n", "who")),
    ],
)
def test_the_format_follows_from_the_schema(endpoint: Any, format: str, fields: tuple[str, ...]) -> None:
    assert endpoint.options["format"] == format
    assert endpoint.schema.names == fields


@pytest.mark.parametrize(
    ("start", "kept"),
    [("latest", "latest"), (MOMENT, 1_767_225_600_000), (5, 5), ({0: 7, 1: 0}, {"0": 7, "1": 0})],
)
def test_a_start_is_kept_as_plain_values(start: Any, kept: Any) -> None:
    assert ps.topic("a", start=start).options["start"] == kept


def test_where_the_log_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PENSTOCK_LOG", raising=False)
    assert ps.topic("a").options["path"] == str(Path(".penstock") / "log")
    monkeypatch.setenv("PENSTOCK_LOG", "/var/log/flows")
    assert ps.topic("a").options["path"] == ps.write_topic("a").options["path"] == "/var/log/flows"
    assert ps.topic("a", path=tmp_path).options["path"] == str(tmp_path)


def flow_to(endpoint: Any, delivery: str = "", schema: str = "n bigint, who string") -> ps.Flow:
    flow = ps.Flow("copy")
    source = flow.source("in", ps.topic("from", schema, path="data", group="copiers"))
    source.sink("out", endpoint, delivery=delivery)
    return flow


def test_describe_shows_the_topics() -> None:
    made = describe(flow_to(ps.write_topic("to", key="n", path="data"), "exactly_once").graph)
    steps = {step["name"]: step for step in made["steps"]}
    source, sink = steps["in"]["settings"], steps["out"]["settings"]
    assert (source["from"], source["topic"], source["group"], source["start"]) == ("log", "from", "copiers", "earliest")
    assert (sink["to"], sink["topic"], sink["key"], sink["delivery"]) == ("write_log", "to", "n", "exactly_once")


def test_building_a_flow_touches_no_log(tmp_path: Path) -> None:
    flow = ps.Flow("x")
    flow.source("in", ps.topic("a", path=tmp_path / "log")).sink("out", ps.write_topic("b", path=tmp_path / "log"))
    describe(flow.graph)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "at_most_once", ""])
def test_a_topic_holds_every_delivery_and_the_strongest_unasked(delivery: str) -> None:
    graph = flow_to(ps.write_topic("to", path="data"), delivery).graph
    assert Sinks(graph, "life").contexts["out"].delivery == (delivery or "exactly_once")


def test_a_delivery_that_is_none_is_refused() -> None:
    with pytest.raises(FlowError, match=r"sink 'out' \(.*\): no delivery 'exactly once'; did you mean 'exactly_once'"):
        flow_to(ps.write_topic("to"), "exactly once")


def test_a_topic_that_is_read_is_no_sink() -> None:
    with pytest.raises(FlowError, match="log can only be read"):
        flow_to(ps.topic("to"))


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        (ps.write_topic("to", key="whom", path="data"), "sink 'out': no field 'whom' for the key; did you mean 'who'"),
        (ps.write_topic("to", format="text", path="data"), "text values are the field 'value', or the only field"),
        (ps.write_topic("to", format="raw", path="data"), "raw values are the field 'value', or the only field"),
    ],
)
def test_what_does_not_fit_the_fields_is_refused_before_the_run(endpoint: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        Sinks(flow_to(endpoint).graph, "life")


def test_text_of_the_only_field_or_of_value_is_fine() -> None:
    for schema in ("line string", "value string, other int"):
        Sinks(flow_to(ps.write_topic("to", format="text", path="data"), "", schema).graph, "life")


class Sink:
    """A sink on a log, as a driver has it; its batches come as keys and values."""

    def __init__(self, path: Path, lineage: str = "life") -> None:
        self.options = {"topic": "to", "path": str(path), "format": "json", "key": "k", "partitions": 3}
        self.sink = LogSink()
        self.entry = self.sink.open(
            SinkContext("out", "copy", self.options, schema_of("k string"), lineage, "exactly_once")
        )

    def commit(self, batch: int, keys: list[str], fingerprint: str = "", delivery: str = "exactly_once") -> None:
        about = Batch(batch, "out", self.options, "life", delivery, fingerprint or f"f{batch}", f"offsets {batch}")
        raw: list[bytes | None] = [k.encode() for k in keys]
        StagedRecords(self.sink, raw, [b"%d" % batch] * len(keys), about).commit()


def held(path: Path) -> list[tuple[int, bytes | None, bytes | None]]:
    with Log(path) as log:
        return sorted((p, r.key, r.value) for p in log.offsets("to") for r in log.read("to", p, 0))


def test_a_batch_comes_to_the_partitions_of_its_keys_and_into_the_ledger(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    assert sink.entry is None
    sink.commit(0, list("abcd"))
    assert held(tmp_path) == sorted((partition_for(k, 3), k, b"0") for k in (b"a", b"b", b"c", b"d"))
    again = Sink(tmp_path)
    assert again.entry == Entry(0, "f0", 1, 4, 0, "offsets 0")


def test_a_batch_that_comes_again_is_stored_once_and_weaker_deliveries_store_it_again(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    for _ in range(2):
        sink.commit(0, list("abcd"))
    assert len(held(tmp_path)) == 4
    sink.commit(0, list("abcd"), delivery="at_least_once")
    assert len(held(tmp_path)) == 8


@pytest.mark.parametrize(
    ("batch", "fingerprint", "text"),
    [
        (1, "other", "made of other offsets"),
        (0, "f0", "checkpoint is older than the sink"),
        (3, "f3", "sink is older than the checkpoint"),
    ],
)
def test_a_batch_that_does_not_fit_the_ledger_is_refused(
    tmp_path: Path, batch: int, fingerprint: str, text: str
) -> None:
    sink = Sink(tmp_path)
    sink.commit(0, ["a"])
    sink.commit(1, ["b"])
    with pytest.raises(DeliveryError, match=text):
        sink.commit(batch, ["c"], fingerprint)
    assert len(held(tmp_path)) == 2


def test_a_driver_that_was_replaced_cannot_commit(tmp_path: Path) -> None:
    old = Sink(tmp_path)
    old.commit(0, ["a"])
    new = Sink(tmp_path)
    with pytest.raises(DeliveryError, match="sink 'out': another driver of this flow has taken over"):
        old.commit(1, ["b"])
    new.commit(1, ["b"])
    assert len(held(tmp_path)) == 2


def test_another_life_has_a_ledger_of_its_own(tmp_path: Path) -> None:
    Sink(tmp_path).commit(0, ["a"])
    assert Sink(tmp_path, "other").entry is None


def test_the_ledger_is_one_file_beside_the_topics(tmp_path: Path) -> None:
    Sink(tmp_path).commit(0, ["a"])
    ledger = tmp_path / "sinks" / "copy" / "out" / "life.json"
    assert json.loads(ledger.read_text())["data"]["entry"]["batch"] == 0


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    Sink(tmp_path).commit(0, ["a"])
    ledger = tmp_path / "sinks" / "copy" / "out" / "life.json"
    ledger.write_text(ledger.read_text().replace('"batch": 0', '"batch": 1'))
    with pytest.raises(DeliveryError, match=r"the ledger copy/out/life\.json is damaged"):
        Sink(tmp_path)


class Crash(Exception):
    """Where a driver dies."""


def half_a_batch(path: Path, batch: int = 1) -> None:
    """A driver that dies when one of three partitions has its records."""
    sink = Sink(path)
    send, calls = sink.sink.producer.send_many, []

    def dying(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise Crash
        return send(*args, **kwargs)

    sink.sink.producer.send_many = dying  # type: ignore[method-assign]  # the driver dies in the middle
    with pytest.raises(Crash):
        sink.commit(batch, list("abcdefg"))


def test_a_batch_that_was_written_in_part_is_gone_on_with(tmp_path: Path) -> None:
    Sink(tmp_path).commit(0, ["a"])
    half_a_batch(tmp_path)
    sink = Sink(tmp_path)
    assert sink.entry == Entry(1, "f1", 3, offsets="offsets 1", is_complete=False)
    sink.commit(1, list("abcdefg"))
    assert len(held(tmp_path)) == 8


def test_a_batch_of_other_offsets_does_not_follow_one_that_was_written_in_part(tmp_path: Path) -> None:
    Sink(tmp_path).commit(0, ["a"])
    half_a_batch(tmp_path)
    before = held(tmp_path)
    with pytest.raises(DeliveryError, match="holds records of batch 1, made of other offsets than batch 1 now"):
        Sink(tmp_path).commit(1, list("abc"), "other")
    assert held(tmp_path) == before


def test_a_ledger_that_another_driver_writes_is_left_alone(tmp_path: Path) -> None:
    """The log does not stop the old driver here: it has appended. Its swap of the ledger must fail."""
    old = Sink(tmp_path)
    old.commit(0, ["a"])
    append = StagedRecords._append
    new: list[Sink] = []

    def replaced(self: StagedRecords, begins: Any) -> None:
        patched.undo()
        append(self, begins)
        new.append(Sink(tmp_path))
        new[0].commit(1, ["b"])
        new[0].commit(2, ["c"])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StagedRecords, "_append", replaced)
        with pytest.raises(DeliveryError, match="another driver of this flow has taken over"):
            old.commit(1, ["b"])
    new[0].commit(3, ["d"])
    assert [value for _, _, value in sorted(held(tmp_path), key=lambda r: r[2] or b"")] == [b"0", b"1", b"2", b"3"]


def test_a_pace_takes_from_every_partition_and_loses_none() -> None:
    start, ends = {"0": 10, "1": 0, "2": 5}, {"0": 1010, "1": 0, "2": 6}
    taken = paced(start, ends, 100)
    assert taken["0"] - 10 in (99, 100)
    assert (taken["1"], taken["2"]) == (0, 6)
    assert paced(start, ends, None) == paced(start, ends, 5000) == ends
    assert paced({}, {"0": 3}, 2) == {"0": 2}
