"""Torn tails are cut, damage is found: over every byte length and every bit of a small log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from penstock.log import Log, LogDamaged, LogError
from penstock.log.storage import index
from penstock.log.storage.batch import HEADER_SIZE, body_of, header_of, pack_header
from penstock.log.storage.columns import columns
from tests.log.helpers import fill, read_until_damage, segments, values

FOLDER = Path("topics/t/0")


@pytest.fixture
def made(fast_path: Path) -> tuple[Path, list[bytes]]:
    """A closed log with one segment of three batches of two records."""
    path = fast_path / "made"
    with Log(path) as log:
        log.create_topic("t")
        sent = fill(log, 3)
    return path, sent


def ends(path: Path) -> list[int]:
    """The byte positions after each batch of the last segment."""
    with Log(path) as log:
        found = [
            b.position + b.header.size
            for b in log._topics.get("t").partition(0).batches(0)
            if b.header.base >= int(segments(path)[-1].stem)
        ]
    return found


def copies(path: Path, fast_path: Path, count: int) -> Iterator[tuple[int, Path]]:
    """As many copies of a log, one after the other."""
    for number in range(count):
        copy = fast_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        yield number, copy


def flip(path: Path, bit: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)


def test_a_torn_write_of_any_length_is_cut_and_nothing_else(made: tuple[Path, list[bytes]], fast_path: Path) -> None:
    """Bytes above the committed mark are what a writer left that died in the middle of a write."""
    path, sent = made
    twin = fast_path / "twin"
    shutil.copytree(path, twin)
    with Log(twin) as log, log.producer() as producer:
        producer.send_many("t", [b"torn 1", b"torn 2"])
    whole = segments(twin)[0].read_bytes()
    good = segments(path)[0].stat().st_size
    for extra, copy in copies(path, fast_path, len(whole) - good + 1):
        segments(copy)[0].write_bytes(whole[: good + extra])
        with Log(copy) as log:
            fill(log, 1, text="after")
            kept = [b"torn 1", b"torn 2"] if good + extra == len(whole) else []
            assert values(log) == [*sent, *kept, b"after 0.0", b"after 0.1"]
            assert log.verify() == []


def test_a_long_torn_write_leaves_nothing_behind_a_short_one(made: tuple[Path, list[bytes]]) -> None:
    path, sent = made
    with segments(path)[0].open("ab") as file:
        file.write(b"PSL1" + bytes(5000))
    with Log(path) as log:
        log.configure_topic("t", segment_bytes=500)
        more = fill(log, 6, text="after")
        assert len(segments(path)) > 1
        assert values(log) == sent + more
        assert log.damage("t") == log.verify() == []


def test_a_torn_group_whose_second_batch_is_whole_is_cut(made: tuple[Path, list[bytes]]) -> None:
    """A disk may write the pages of one write in any order; both batches were promised to nobody."""
    path, sent = made
    with Log(path) as log:
        directory = log._topics.get("t").partition(0).directory
    body = body_of(columns([b"lost"], None, None, 0))
    first, second = (pack_header(header_of(body, base, stable=6, tag=directory.tag)) + body.data for base in (6, 7))
    with segments(path)[0].open("ab") as file:
        file.write(bytes(len(first)) + second)
    with Log(path) as log:
        assert values(log) == sent
        more = fill(log, 1, text="after")
        assert values(log) == sent + more
        assert log.damage("t") == log.verify() == []


def test_damage_is_told_from_a_torn_write_when_the_mark_is_lost(
    made: tuple[Path, list[bytes]], fast_path: Path
) -> None:
    """A later batch says what was safe before it, so that only the last batch can be taken for a torn write."""
    path, sent = made
    stops = [0, *ends(path)]
    for bad, copy in copies(path, fast_path, 3):
        (copy / FOLDER / "committed").unlink()
        flip(segments(copy)[0], (stops[bad] + HEADER_SIZE + 4) * 8)
        with Log(copy) as log:
            fill(log, 1, text="after")
            assert [(d.first, d.next) for d in log.verify()] == ([(2 * bad, 2 * bad + 2)] if bad < 2 else [])
            assert values(log, offset=2 * bad + 2)[: 4 - 2 * bad] == sent[2 * bad + 2 :]


def test_a_torn_write_is_cut_when_the_mark_is_lost_too(made: tuple[Path, list[bytes]], fast_path: Path) -> None:
    """Without the mark file the batches themselves say where the log ends."""
    path, sent = made
    stops, raw = ends(path), segments(path)[0].read_bytes()
    for size, copy in copies(path, fast_path, len(raw) + 1):
        (copy / FOLDER / "committed").unlink()
        segments(copy)[0].write_bytes(raw[:size])
        with Log(copy) as log:
            assert values(log) == sent[: 2 * sum(stop <= size for stop in stops)]


def test_a_tail_that_is_lost_after_it_was_promised_is_an_error_and_its_offsets_are_not_reused(
    made: tuple[Path, list[bytes]], fast_path: Path
) -> None:
    path, sent = made
    stops, raw = ends(path), segments(path)[0].read_bytes()
    for size, copy in copies(path, fast_path, len(raw)):
        segments(copy)[0].write_bytes(raw[:size])
        left = 2 * sum(stop <= size for stop in stops)
        with Log(copy) as log:
            records, error = read_until_damage(log)
            assert [r.value for r in records] == sent[:left]
            assert error is not None
            assert (error.damage.first, error.damage.next, error.damage.position) == (left, 6, ([0, *stops])[left // 2])
            fill(log, 1, text="after")
            assert [r.offset for r in log.read("t", 0, log.skip_damage("t", 0, left))] == [6, 7]
            assert [d.first for d in log.verify()] == [left]


def check_flip(log: Log, bit: int, stops: list[int], sent: list[bytes], more: list[bytes]) -> None:
    """The batch with the flipped bit is named, and all others are as they were."""
    records, error = read_until_damage(log)
    assert error is not None, f"bit {bit} was not noticed"
    damage = error.damage
    bad = sum(stop <= bit // 8 for stop in stops) - 1
    assert (damage.first, damage.next) == (2 * bad, 2 * bad + 2)
    assert (damage.position, damage.until) == (stops[bad], stops[bad + 1])
    assert [r.value for r in records] == sent[: 2 * bad]
    assert values(log, offset=damage.next) == sent[2 * bad + 2 :] + more
    assert damage in log.damage("t")


def test_every_single_bit_flip_of_a_segment_is_found_by_readers(made: tuple[Path, list[bytes]]) -> None:
    path, sent = made
    stops, file = [0, *ends(path)], segments(path)[0]
    with Log(path) as log:
        for bit in range(file.stat().st_size * 8):
            flip(file, bit)
            check_flip(log, bit, stops, sent, [])
            flip(file, bit)
            (path / FOLDER / "damage.json").unlink()
        assert values(log) == sent
        assert log.damage("t") == []


def test_bit_flips_of_a_segment_are_found_when_a_writer_opens_it(
    made: tuple[Path, list[bytes]], fast_path: Path
) -> None:
    path, sent = made
    stops = [0, *ends(path)]
    for number, copy in copies(path, fast_path, stops[-1]):
        bit = number * 8 + number % 8
        flip(segments(copy)[0], bit)
        with Log(copy) as log:
            more = fill(log, 1, text="after")
            check_flip(log, bit, stops, sent, more)


def test_a_bit_flip_in_a_closed_segment_is_found(fast_path: Path) -> None:
    with Log(fast_path / "made") as log:
        log.create_topic("t", segment_bytes=256)
        sent = fill(log, 6)
    first = segments(fast_path / "made")[0]
    assert len(segments(fast_path / "made")) == 3
    for number, copy in copies(fast_path / "made", fast_path, first.stat().st_size * 8 // 11):
        flip(segments(copy)[0], number * 11)
        with Log(copy) as log:
            fill(log, 1)
            records, error = read_until_damage(log)
            assert error is not None
            assert error.damage.file == str(segments(copy)[0])
            assert [r.value for r in records] == sent[: error.damage.first]
            assert [r.value for r in log.read("t", 0, error.damage.next)][: len(sent) - error.damage.next] == sent[
                error.damage.next :
            ]


@pytest.mark.parametrize(
    "name", ["committed", "00000000000000000000.producers", "00000000000000000000.idx", "../topic.json"]
)
def test_a_bit_flip_beside_the_records_never_changes_them(fast_path: Path, name: str) -> None:
    with Log(fast_path / "made") as log:
        log.create_topic("t")
        sent = fill(log, 3, text="v" * 40_000)
    side = Path("topics/t/0") / name
    bits = (fast_path / "made" / side).stat().st_size * 8
    for number, copy in copies(fast_path / "made", fast_path, min(bits, 224)):
        flip(copy / side, number * bits // min(bits, 224))
        with Log(copy) as log, suppress(LogError) if name == "../topic.json" else nullcontext():
            assert values(log) == sent
            assert values(log, offset=5) == sent[5:]
            fill(log, 1, text="after")
            assert values(log)[: len(sent)] == sent


def test_a_batch_that_was_cut_out_is_missed(made: tuple[Path, list[bytes]], fast_path: Path) -> None:
    path, sent = made
    stops, raw = [0, *ends(path)], segments(path)[0].read_bytes()
    for bad, copy in copies(path, fast_path, 3):
        segments(copy)[0].write_bytes(raw[: stops[bad]] + raw[stops[bad + 1] :])
        with Log(copy) as log:
            records, error = read_until_damage(log)
            assert [r.value for r in records] == sent[: 2 * bad]
            assert error is not None
            assert (error.damage.first, error.damage.next) == (2 * bad, 2 * bad + 2)
            assert values(log, offset=error.damage.next) == sent[2 * bad + 2 :]


def test_a_batch_that_is_there_twice_is_read_once_and_put_on_record(made: tuple[Path, list[bytes]]) -> None:
    path, sent = made
    stops, raw = [0, *ends(path)], segments(path)[0].read_bytes()
    segments(path)[0].write_bytes(raw[: stops[2]] + raw[stops[1] :])
    with Log(path) as log:
        assert values(log) == sent
        assert values(log, offset=4) == sent[4:]
        assert {(d.first, d.next, d.position, d.until) for d in log.damage("t")} == {(4, 4, stops[2], stops[3])}


def test_an_index_that_lies_is_not_believed(made: tuple[Path, list[bytes]]) -> None:
    path, sent = made
    stops = [0, *ends(path)]
    lies = [index.Entry(0, stops[1], index.NEVER, 1), index.Entry(1, stops[2], index.NEVER, 1), index.Entry(2, 8, 0, 1)]
    for lie in lies:
        index.rewrite(path / FOLDER / f"{0:020d}.idx", [lie])
        with Log(path) as log:
            for offset in range(6):
                assert values(log, offset=offset) == sent[offset:]
            assert log.offsets_for_time("t", 0) == {0: 0}


def test_a_missing_segment_is_found(fast_path: Path) -> None:
    with Log(fast_path / "made") as log:
        log.create_topic("t", segment_bytes=256)
        sent = fill(log, 8)
    files = segments(fast_path / "made")
    assert len(files) == 4
    for number, copy in copies(fast_path / "made", fast_path, len(files)):
        segments(copy)[number].unlink()
        with Log(copy) as log:
            damage = log.verify()
            assert [(d.first, d.next) for d in damage] == [(4 * number, 4 * number + 4)]
            fill(log, 1, text="after")
            assert values(log, offset=damage[0].next) == [*sent[damage[0].next :], b"after 0.0", b"after 0.1"]


def test_a_segment_of_another_partition_is_refused(fast_path: Path) -> None:
    with Log(fast_path) as log:
        log.create_topic("t", 2)
        with log.producer() as producer:
            for partition in (0, 1):
                producer.send_many("t", [b"x"], partition=partition)
    shutil.copy(segments(fast_path, partition=0)[0], segments(fast_path, partition=1)[0])
    with Log(fast_path) as log, pytest.raises(LogDamaged, match="another partition"):
        log.read("t", 1, 0)


def test_two_damaged_places_are_reported_one_after_the_other(made: tuple[Path, list[bytes]]) -> None:
    path, sent = made
    stops = ends(path)
    for at in (0, stops[1]):
        flip(segments(path)[0], (at + HEADER_SIZE) * 8)
    with Log(path) as log:
        assert [(d.first, d.next) for d in log.verify()] == [(0, 2), (4, 6)]
        consumer = log.consumer("g", "t")
        with pytest.raises(LogDamaged, match="offsets 0 to 2"):
            consumer.poll()
        with pytest.raises(LogDamaged, match="offsets 0 to 2"):
            consumer.poll()
        assert consumer.skip_damage("t").next == 2
        assert [r.value for r in consumer.poll()] == sent[2:4]
        with pytest.raises(LogDamaged, match="offsets 4 to 6"):
            consumer.poll()
        consumer.close()
        assert [(s.first, s.next, s.by) for s in log.skips("t")] == [(0, 2, "g")]
        assert [(d.first, d.next) for d in log.damage("t")] == [(0, 2), (4, 6)]


def test_skipping_where_nothing_is_damaged_is_refused(made: tuple[Path, list[bytes]]) -> None:
    with Log(made[0]) as log:
        with pytest.raises(LogError, match="no damage"):
            log.skip_damage("t", 0, 0)
        assert log.skips("t") == []


def test_a_value_that_looks_like_batches_is_no_batch(fast_path: Path) -> None:
    """A log stored inside a log: damage before it must not make its bytes come alive."""
    with Log(fast_path / "one") as one:
        one.create_topic("t")
        fill(one, 3)
    inner = segments(fast_path / "one")[0].read_bytes()
    with Log(fast_path / "two") as two:
        two.create_topic("t")
        with two.producer() as producer:
            producer.send_many("t", [inner])
            producer.send_many("t", [b"next"])
    flip(segments(fast_path / "two")[0], 8 * 20)
    with Log(fast_path / "two") as two:
        assert [(d.first, d.next) for d in two.verify()] == [(0, 1)]
        assert values(two, offset=1) == [b"next"]
