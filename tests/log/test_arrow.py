"""Records as Arrow tables."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from penstock.log import BadRecord, Log
from penstock.log.arrow import SCHEMA
from tests.log.helpers import values


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    plain = table.set_column(2, "timestamp", table.column("timestamp").cast(pa.int64()))
    return [tuple(row.values()) for row in plain.to_pylist()]


def test_a_table_holds_what_the_records_hold(log: Log) -> None:
    log.create_topic("t", segment_bytes=5000)
    with log.producer() as producer:
        for size in (1, 100, 3, 2, 200, 65):
            producer.send_many(
                "t",
                [None if n % 7 == 3 else b"v%d" % n for n in range(size)],
                keys=[None if n % 3 else b"k%d" % n for n in range(size)],
                headers=[[("h", b"%d" % n)] if n % 5 == 1 and size == 100 else [] for n in range(size)],
                timestamps=[1000 + n for n in range(size)],
            )
        producer.send_many("t", [b"plain"] * 70, timestamps=5)
    records = log.read("t", 0, 0)
    expected = [
        (r.partition, r.offset, r.timestamp, r.key, r.value, [{"key": k, "value": v} for k, v in r.headers] or None)
        for r in records
    ]
    table = log.read_arrow("t", 0, 0)
    assert table.schema == SCHEMA
    assert rows(table) == expected
    for first, last in ((0, 1), (1, 2), (50, 60), (99, 305), (371, 441), (7, 7)):
        assert rows(log.read_arrow("t", 0, first, last)) == expected[first:last]
    table.validate(full=True)


def test_values_are_not_copied(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        producer.send_many("t", [b"x" * 100] * 1000)
    before = pa.total_allocated_bytes()
    table = log.read_arrow("t", 0, 0)
    value = table.column("value").chunk(0)
    assert value.buffers()[2].size == 100_000
    assert pa.total_allocated_bytes() - before < 50_000


def test_a_table_is_appended_as_one_batch(log: Log) -> None:
    log.create_topic("t", 2)
    table = pa.table(
        {
            "key": pa.array(["a", None, "c"]),
            "value": pa.array([b"1", b"2", None]),
            "timestamp": pa.array([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)] * 3),
            "headers": pa.array([[{"key": "h", "value": b"x"}], None, []]),
        }
    )
    done = log.append_arrow("t", 1, pa.concat_tables([table, table]).slice(1, 4))
    assert (done.partition, done.offset, done.records) == (1, 0, 4)
    records = log.read("t", 1, 0)
    assert [(r.key, r.value) for r in records] == [(None, b"2"), (b"c", None), (b"a", b"1"), (None, b"2")]
    assert [r.timestamp for r in records] == [1_704_067_200_000] * 4
    assert [r.headers for r in records] == [(), (), (("h", b"x"),), ()]
    again = log.read_arrow("t", 1, 0)
    log.append_arrow("t", 0, again)
    assert [(r.key, r.value, r.headers, r.timestamp) for r in log.read("t", 0, 0)] == [
        (r.key, r.value, r.headers, r.timestamp) for r in records
    ]


def test_a_table_without_values_is_refused(log: Log) -> None:
    log.create_topic("t")
    with pytest.raises(BadRecord, match="has a column 'value'"):
        log.append_arrow("t", 0, pa.table({"body": [b"x"]}))


def test_an_empty_table_appends_nothing(log: Log) -> None:
    log.create_topic("t")
    assert log.append_arrow("t", 0, pa.table({"value": pa.array([], pa.binary())})).records == 0
    assert log.read_arrow("t", 0, 0).num_rows == 0
    assert values(log) == []


def test_numbers_are_refused_as_values(log: Log) -> None:
    log.create_topic("t")
    with pytest.raises((BadRecord, pa.ArrowException)):
        log.append_arrow("t", 0, pa.table({"value": np.arange(3)}))
