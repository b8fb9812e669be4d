"""What goes in comes out, with keys, headers, timestamps and offsets."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log import (
    BadRecord,
    BadSetting,
    Log,
    LogClosed,
    OffsetOutOfRange,
    Record,
    TopicExists,
    UnknownTopic,
)
from penstock.log.storage.batch import body_of, header_of, pack_header, read_batch
from penstock.log.storage.columns import columns
from tests.log.helpers import fill, run_python, segments, values

data = st.one_of(st.none(), st.binary(max_size=40))
header = st.tuples(st.text(max_size=8), data)
row = st.tuples(data, data, st.lists(header, max_size=3).map(tuple), st.integers(-(2**62), 2**62))


@given(st.lists(row, min_size=1, max_size=30), st.integers(0, 2**60))
def test_a_batch_decodes_to_what_was_encoded(
    rows: list[tuple[bytes, bytes, tuple[tuple[str, bytes], ...], int]], base: int
) -> None:
    body = body_of(columns([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows]))
    raw = pack_header(header_of(body, base, stable=base, tag=7)) + body.data
    batch = read_batch(raw, 0, 7, 0)
    assert batch.records("t", 3) == [
        Record("t", 3, base + n, time, key, value, headers) for n, (value, key, headers, time) in enumerate(rows)
    ]
    assert len(raw) % 8 == 0


def test_records_survive_a_reopen(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t")
        with log.producer() as producer:
            first = producer.send("t", b"v", b"k", [("h", b"1"), ("n", None)], timestamp=5).result()
            producer.send_many("t", [None, b""], keys=[b"k", None], timestamps=[7, 6])
        assert (first.offset, first.records) == (0, 1)
    expected = [
        Record("t", 0, 0, 5, b"k", b"v", (("h", b"1"), ("n", None))),
        Record("t", 0, 1, 7, b"k", None),
        Record("t", 0, 2, 6, None, b""),
    ]
    with Log(tmp_path) as log:
        assert log.read("t", 0, 0) == expected
        assert log.read("t", 0, 1, max_records=1) == expected[1:2]
        assert log.read("t", 0, 3) == []


def test_offsets_run_on_over_segments_and_reopens(tmp_path: Path) -> None:
    sent: list[bytes] = []
    for number in range(3):
        with Log(tmp_path) as log:
            if not number:
                log.create_topic("t", segment_bytes=500)
            sent += fill(log, 7, text=f"run {number}")
    assert len(segments(tmp_path)) > 3
    with Log(tmp_path) as log:
        assert values(log) == sent
        for offset in range(len(sent)):
            assert [(r.offset, r.value) for r in log.read("t", 0, offset, max_records=1)] == [(offset, sent[offset])]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_seeking_uses_the_index_and_finds_every_offset(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log")
    sizes = data.draw(st.lists(st.sampled_from([10, 5_000, 70_000]), min_size=1, max_size=12))
    with Log(path) as log:
        log.create_topic("t", segment_bytes=data.draw(st.sampled_from([100_000, 10_000_000])))
        with log.producer() as producer:
            for size in sizes:
                producer.send_many("t", [b"x" * size] * 2)
        for index in path.glob("topics/t/0/*.idx") if data.draw(st.booleans()) else []:
            index.write_bytes(index.read_bytes()[:-5])
        for offset in range(2 * len(sizes)):
            assert [r.offset for r in log.read("t", 0, offset, max_records=1)] == [offset]


def test_offsets_outside_are_refused(log: Log) -> None:
    log.create_topic("t")
    fill(log, 1)
    with pytest.raises(OffsetOutOfRange, match="holds offsets 0 to 2"):
        log.read("t", 0, 3)
    with pytest.raises(OffsetOutOfRange):
        log.read("t", 0, -1)


def test_topics_are_created_described_configured_and_deleted(log: Log) -> None:
    log.create_topic("orders", 3, retention_ms=1000)
    log.create_topic("users")
    assert log.topics() == ["orders", "users"]
    info = log.describe("orders")
    assert (info.config.partitions, info.config.retention_ms, len(info.partitions)) == (3, 1000, 3)
    assert log.configure_topic("orders", retention_ms=5).config.retention_ms == 5
    log.delete_topic("orders")
    assert log.topics() == ["users"]
    with pytest.raises(UnknownTopic, match="did you mean 'users'"):
        log.describe("user")


def test_wrong_topics_and_settings_are_refused(log: Log) -> None:
    log.create_topic("t")
    with pytest.raises(TopicExists):
        log.create_topic("t")
    with pytest.raises(BadSetting, match="did you mean 'retention_ms'"):
        log.create_topic("u", retention=5)
    for name in ("", "a/b", "..", ".x", "ü"):
        with pytest.raises(BadSetting):
            log.create_topic(name)
    for wrong in ({"cleanup": "shred"}, {"partitions": 0}, {"segment_bytes": 1}, {"retention_ms": -1}):
        with pytest.raises(BadSetting):
            log.create_topic("u", **wrong)
    with pytest.raises(BadSetting, match="fixed"):
        log.configure_topic("t", partitions=2)


def test_a_topic_made_anew_under_the_same_name_is_another(tmp_path: Path) -> None:
    with Log(tmp_path) as one, Log(tmp_path) as two:
        one.create_topic("t")
        producer = one.producer()
        producer.send_many("t", [b"old"])
        consumer = one.consumer("g", "t")
        assert [r.value for r in consumer.poll()] == [b"old"]
        consumer.commit()
        two.delete_topic("t")
        with pytest.raises(UnknownTopic):
            producer.send_many("t", [b"lost"])
        with pytest.raises(UnknownTopic):
            consumer.poll()
        two.create_topic("t")
        producer.send_many("t", [b"new"])
        assert values(one) == values(two) == [b"new"]
        assert one.groups.committed("g") == {}
        consumer.close()


def test_records_that_are_not_bytes_are_refused(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        with pytest.raises(BadRecord, match="not str: 'text'"):
            producer.send("t", "text")  # type: ignore[arg-type]
        with pytest.raises(BadRecord, match="not int"):
            producer.send_many("t", [b"a", 3])  # type: ignore[list-item]
        with pytest.raises(BadRecord, match="2 timestamps"):
            producer.send_many("t", [b"a"], timestamps=[1, 2])
        with pytest.raises(BadRecord, match="different lengths"):
            producer.send_many("t", [b"a"], keys=[b"k", b"l"])
    assert values(log) == []


def test_an_empty_send_writes_nothing(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        assert producer.send_many("t", []) == []
    assert log.offsets("t") == {0: (0, 0)}


def test_time_is_found_in_every_segment(log: Log) -> None:
    log.create_topic("t", segment_bytes=1000)
    with log.producer() as producer:
        for number in range(60):
            producer.send_many("t", [b"x" * 50] * 2, timestamps=[number * 10, number * 10 + 5])
    assert len(segments(log.path)) > 5
    for number in range(60):
        assert log.offsets_for_time("t", number * 10) == {0: number * 2}
        assert log.offsets_for_time("t", number * 10 + 1) == {0: number * 2 + 1}
    assert log.offsets_for_time("t", 10_000) == {0: None}


def test_time_that_goes_back_finds_the_first_record_that_is_new_enough(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        for time_ms in (50, 10, 40, 90, 20):
            producer.send_many("t", [b"x" * 70_000], timestamps=time_ms)
    assert [log.offsets_for_time("t", t)[0] for t in (0, 50, 51, 90, 91)] == [0, 0, 3, 3, None]


def test_send_answers_after_the_record_is_readable(log: Log) -> None:
    log.create_topic("t")
    with log.producer(linger_ms=1) as producer:
        acks = [producer.send("t", str(n).encode()) for n in range(500)]
        assert [a.result(300).offset for a in acks] == list(range(500))
        assert all(a.done() for a in acks)
        assert values(log) == [str(n).encode() for n in range(500)]


def test_send_groups_records_and_flush_waits_for_them(log: Log) -> None:
    log.create_topic("t")
    with log.producer(linger_ms=60_000) as producer:
        acks = [producer.send("t", b"x") for _ in range(100)]
        time.sleep(0.05)
        assert not acks[0].done()
        with pytest.raises(TimeoutError):
            acks[0].result(0.01)
        producer.flush()
        assert acks[-1].done()
    assert log.describe("t").partitions[0].bytes < 3000


def test_a_full_pile_does_not_wait_for_its_time(log: Log) -> None:
    log.create_topic("t")
    with log.producer(linger_ms=60_000, max_batch=10) as producer:
        acks = [producer.send("t", b"x") for _ in range(10)]
        acks[9].result(300)


def test_sends_and_batches_keep_their_order(log: Log) -> None:
    log.create_topic("t")
    with log.producer(linger_ms=60_000) as producer:
        producer.send("t", b"1")
        producer.send_many("t", [b"2"])
        producer.send("t", b"3")
    assert values(log) == [b"1", b"2", b"3"]


def test_closed_things_say_so(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.create_topic("t")
    producer, consumer = log.producer(), log.consumer(None, "t")
    consumer.close()
    log.close()
    with pytest.raises(LogClosed):
        producer.send("t", b"x")
    with pytest.raises(LogClosed):
        producer.send_many("t", [b"x"])
    with pytest.raises(LogClosed):
        consumer.poll()


def test_keys_choose_the_partition_and_others_go_round(log: Log) -> None:
    log.create_topic("t", 4)
    with log.producer() as producer:
        producer.send_many("t", [b"v"] * 200, keys=[f"k{n % 40}".encode() for n in range(200)])
        for n in range(40):
            producer.send("t", b"v", f"k{n}".encode())
        producer.flush()
        places: dict[bytes | None, set[int]] = defaultdict(set)
        for p in range(4):
            for r in log.read("t", p, 0):
                places[r.key].add(p)
        assert all(len(where) == 1 for where in places.values())
        assert {p for where in places.values() for p in where} == {0, 1, 2, 3}
        before = log.offsets("t")
        for _ in range(8):
            producer.send_many("t", [b"v"])
        assert {p: end - before[p][1] for p, (_, end) in log.offsets("t").items()} == {0: 2, 1: 2, 2: 2, 3: 2}


def test_a_log_of_another_format_is_refused(tmp_path: Path) -> None:
    from penstock.log import LogError
    from penstock.log.storage.files import write_json

    write_json(tmp_path / "penstock-log.json", {"format": 99})
    with pytest.raises(LogError, match="format 99"):
        Log(tmp_path)


def test_changed_settings_files_are_noticed(tmp_path: Path) -> None:
    from penstock.log import LogError

    with Log(tmp_path) as log:
        log.create_topic("t")
    path = tmp_path / "topics" / "t" / "topic.json"
    path.write_text(path.read_text().replace('"partitions": 1', '"partitions": 2'))
    with Log(tmp_path) as log, pytest.raises(LogError, match="damaged"):
        log.describe("t")


def test_the_log_is_light_to_import() -> None:
    """It stands alone: no Spark, and Arrow only when a table is asked for."""
    code = "import penstock.log, sys; print(sorted({'pyarrow', 'numpy', 'pyspark', 'pandas'} & set(sys.modules)))"
    assert run_python(code, wait=False).communicate()[0] == "[]\n"
