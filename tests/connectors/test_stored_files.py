"""Files in stores without Spark: what a URL stands for, and what is written and read there."""

from __future__ import annotations

import codecs
import io
import json
import random
import re
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.connectors.base import Batch, SinkContext
from penstock.connectors.files import parts
from penstock.connectors.files.listing import Listing, stored_files
from penstock.connectors.files.local import split_lines
from penstock.connectors.files.parts import WrittenFile
from penstock.connectors.files.sink import FilesSink, StagedFiles
from penstock.connectors.files.store import StoreDisk
from penstock.connectors.files.stored import LISTS, StoredRanges
from penstock.errors import DeliveryError, RunError
from penstock.graph.schema import schema_of
from penstock.storage import MemoryStorage, names_under, storage_at
from penstock.testing import run_local

NAMES = [
    "in/a.json",
    "in/b.csv",
    "in/day=1/c.json",
    "in/day=1/city=x/d.json",
    "in/deep/e.json",
    "in/_aside/f.json",
    "in/_g.json",
    "i.json",
]


@pytest.fixture
def url() -> str:
    made = f"memory://files-{uuid.uuid4().hex}"
    for name in NAMES:
        storage_at(made).write(name, b"{}")
    return made


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/in", ["a.json", "b.csv", "day=1/c.json", "day=1/city=x/d.json"]),
        ("/in/", ["a.json", "b.csv", "day=1/c.json", "day=1/city=x/d.json"]),
        ("/in/*.json", ["a.json"]),
        ("/in/*", ["a.json", "b.csv", "day=1/c.json", "day=1/city=x/d.json", "deep/e.json"]),
        ("/in/*/*.json", ["day=1/c.json", "deep/e.json"]),
        ("/in/[ab].*", ["a.json", "b.csv"]),
        ("/in/a.json", ["a.json"]),
        ("/*", ["i.json", "in/a.json", "in/b.csv", "in/day=1/c.json", "in/day=1/city=x/d.json"]),
        ("/nothing", []),
        ("/in/nothing*", []),
    ],
)
def test_what_a_url_stands_for(url: str, path: str, names: list[str]) -> None:
    assert [file.name for file in stored_files(url + path)] == names
    assert all(file.read() == b"{}" for file in stored_files(url + path))


def copied(source: Any, sink: Any) -> None:
    flow = ps.Flow("copy")
    flow.source("in", source).sink("out", sink)
    run_local(flow, write=True)


def read(url: str, form: str, schema: str | None) -> list[Any]:
    flow = ps.Flow("read")
    flow.source("in", ps.files(url, form, schema)).sink("out", ps.console())
    return sorted(map(tuple, run_local(flow)["out"]))


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_what_is_written_is_read_and_replaced(url: str, form: str) -> None:
    schema, out = "n bigint, s string, k int", f"{url}/out"
    copied(ps.items([(1, "a", 1), (2, "b,c", 2), (3, "d", 2)], schema), ps.write_files(out, form, partition_by="k"))
    assert read(out, form, schema) == [(1, "a", 1), (2, "b,c", 2), (3, "d", 2)]
    copied(ps.items([(4, "e", 2)], schema), ps.write_files(out, form, partition_by="k"))
    assert read(out, form, schema) == [(4, "e", 2)]


def test_text_is_written_to_a_url(url: str) -> None:
    copied(ps.items([("a",), ("b",)], "value string"), ps.write_files(f"{url}/out", "text"))
    assert read(f"{url}/out", "text", None) == [("a",), ("b",)]


def test_nothing_to_read_is_an_error(url: str) -> None:
    with pytest.raises(RunError, match="there is nothing at"):
        read(f"{url}/nowhere", "text", None)


def test_file_urls_are_paths(tmp_path: Any) -> None:
    out = f"file://{tmp_path}/o%20ut"
    copied(ps.items([("a",)], "value string"), ps.write_files(out, "text"))
    assert [p.read_text() for p in (tmp_path / "o ut").iterdir()] == ["a\n"]
    assert read(out, "text", None) == [("a",)]


def test_a_disk_of_a_store_does_what_a_sink_needs() -> None:
    storage = MemoryStorage()
    disk = StoreDisk(storage)
    assert disk.create("/_penstock/m/0.json", b"1")
    assert not disk.create("/_penstock/m/0.json", b"2")
    storage.write("_penstock/out-0/a=1/part-1.json", b"123")
    assert disk.names("/_penstock", "out-") == ["out-0"]
    assert disk.names("/_penstock/out-0", "part-", 1) == ["a=1/part-1.json"]
    assert disk.settle("/_penstock/out-0/a=1/part-1.json") == (3, "")
    disk.move("/_penstock/out-0/a=1/part-1.json", "/a=1/out-1.json")
    assert disk.names("", "out-", 1) == ["a=1/out-1.json"]
    assert disk.exists("/a=1/out-1.json")
    disk.remove("/a=1")
    assert names_under(storage, "") == ["_penstock/m/0.json"]


def ranges(url: str, kept: MemoryStorage | None, most: int | None = None) -> StoredRanges:
    return StoredRanges(Listing.of(url), "text", schema_of("value string"), True, kept, most)


def names_of(made: StoredRanges, low: int, high: int) -> list[str]:
    return [file.name for part in made.stretches({"lists": low}, {"lists": high}) for file in part.high]


def test_a_live_source_reads_each_file_once_and_the_same_ones_again(url: str) -> None:
    kept, live = MemoryStorage(), f"{url}/live"
    for name in ("b", "d"):
        storage_at(live).write(name, b"1")
    first = ranges(live, kept)
    assert first.latest(first.first(), None) == {"lists": 1}
    storage_at(live).write("a", b"1")
    assert first.latest({"lists": 1}, None) == {"lists": 2}
    assert first.latest({"lists": 2}, None) == {"lists": 2}
    later = ranges(live, kept)
    assert names_of(later, 0, 1) == ["b", "d"]
    assert names_of(later, 1, 2) == ["a"]
    assert later.target() == {"lists": 2}


def test_a_list_of_a_driver_that_died_is_taken_as_it_is(url: str) -> None:
    kept, live = MemoryStorage(), f"{url}/live"
    storage_at(live).write("a", b"1")
    slow = ranges(live, kept)
    slow._load()
    ranges(live, kept).target()
    storage_at(live).write("b", b"1")
    slow._note([f"{live}/a", f"{live}/b"])
    assert slow.lists == [[f"{live}/a"]]
    assert slow.target() == {"lists": 2}
    assert [json.loads(kept.read(name)) for name in names_under(kept, LISTS)] == [[f"{live}/a"], [f"{live}/b"]]


def test_files_per_batch_cuts_lists(url: str) -> None:
    live = f"{url}/live"
    for number in range(5):
        storage_at(live).write(str(number), b"1")
    made = ranges(live, MemoryStorage(), 2)
    assert made.target() == {"lists": 3}
    assert made.latest({"lists": 0}, None) == {"lists": 1}
    assert made.within({"lists": 4}, {"lists": 3}) == {"lists": 3}
    assert [names_of(made, n, n + 1) for n in range(3)] == [["0", "1"], ["2", "3"], ["4"]]


class NewestHidden(MemoryStorage):
    """Lists are written by another driver after they were looked for."""

    def list(self, prefix: str = "") -> Any:
        return iter([])


def test_a_file_is_in_one_list_although_a_driver_that_was_replaced_notes_lists_too(url: str) -> None:
    live, kept = f"{url}/live", NewestHidden()
    for name in "ab":
        storage_at(live).write(name, b"1")
    kept.write(f"{LISTS}00000000.json", json.dumps([f"{live}/b"]).encode())
    made = ranges(live, kept, 1)
    assert made.target() == {"lists": 2}
    assert [names_of(made, n, n + 1) for n in range(2)] == [["b"], ["a"]]


def test_a_list_of_another_life_counts_when_it_is_its_turn_and_for_files_that_are_new(url: str) -> None:
    """A driver was paused, another has started over, and the first notes a list under a number of its own."""
    live, kept = f"{url}/live", MemoryStorage()
    kept.write(f"{LISTS}00000001.json", json.dumps([f"{live}/a", f"{live}/b"]).encode())
    for name in "ac":
        storage_at(live).write(name, b"1")
    made = ranges(live, kept)
    assert made.latest(made.first(), None) == {"lists": 1}
    assert names_of(made, 0, 1) == ["a", "c"]
    storage_at(live).write("b", b"1")
    later = ranges(live, kept)
    assert later.latest({"lists": 1}, None) == {"lists": 2}
    assert names_of(later, 1, 2) == ["b"]


def test_files_in_folders_that_were_not_there_at_the_start_are_refused_by_name(url: str) -> None:
    storage_at(f"{url}/live").write("day=1/a", b"1")
    made = StoredRanges(Listing.of(f"{url}/live"), "csv", schema_of("n int, day int"), False, None)
    with pytest.raises(
        RunError, match=r"day=1/a lies in folders that name day, .* name no field\. Start the flow again"
    ):
        [batch for part in made.stretches(made.first(), made.target()) for batch in made.read(part)]
    made.folders = ("day",)
    found = [batch for part in made.stretches(made.first(), made.target()) for batch in made.read(part)]
    assert [batch.column("day").to_pylist() for batch in found] == [[1]]


@pytest.mark.parametrize(
    ("schema", "content", "message"),
    [
        ("m bigint", None, "x.parquet has no field 'm'; did you mean 'n'|x.parquet has no field 'm'; there are: 'n'"),
        ("n int", None, r"x.parquet does not fit the schema \(n int\): Integer value 8589934592 not in range"),
        ("n bigint", b"not parquet at all", "x.parquet cannot be read as Parquet: "),
    ],
)
def test_parquet_that_does_not_fit_is_refused_by_name(
    url: str, schema: str, content: bytes | None, message: str
) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"n": [2**33]}), file)
    storage_at(f"{url}/p").write("x.parquet", content or file.getvalue())
    with pytest.raises(RunError, match=message):
        read(f"{url}/p", "parquet", schema)
    made = StoredRanges(Listing.of(f"{url}/p"), "parquet", schema_of(schema), False)
    with pytest.raises(RunError, match=message):
        [batch for part in made.stretches(made.first(), made.target()) for batch in made.read(part)]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_task_whose_rows_belong_into_many_folders_has_few_files_open(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "OPEN", 3)
    storage, opened, counts = MemoryStorage(), list[io.BytesIO](), list[int]()

    def temporary() -> io.BytesIO:
        opened.append(io.BytesIO())
        counts.append(sum(not file.closed for file in opened))
        return opened[-1]

    monkeypatch.setattr("tempfile.TemporaryFile", temporary)
    task = parts.PartTask(storage, "aside", form, ("k",))
    batch = pa.RecordBatch.from_pydict(
        {"__folder_0": [str(n % 10) for n in range(40)], "n": [str(n) for n in range(40)]}
    )
    made = [row for each in task([batch, batch]) for row in each.to_pylist()]
    assert max(counts) <= 3
    assert sum(row["rows"] for row in made) == 80
    assert sorted(f"aside/{row['name']}" for row in made) == names_under(storage, "")


def test_a_folder_whose_value_is_none_of_its_field_is_refused_by_name(url: str) -> None:
    storage_at(f"{url}/f").write("day=x/a.json", b"{}")
    with pytest.raises(
        RunError, match=r"the folders of .*/day=x/a.json name a value that does not fit .*'x' cannot be cast"
    ):
        read(f"{url}/f", "json", "n int, day int")


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_the_same_however_a_file_is_cut(seed: int) -> None:
    rolled = random.Random(seed)
    for _ in range(50):
        content = b"".join(
            rolled.choices([b"a", b"bc", b"\n", b"\r", b"\r\n", codecs.BOM_UTF8], k=rolled.randint(0, 12))
        )
        whole = re.split(rb"\r\n|\n|\r", content.removeprefix(codecs.BOM_UTF8))
        cuts = sorted(rolled.choices(range(3, max(4, len(content))), k=rolled.randint(0, 4)))
        pieces = [content[begin:end] for begin, end in zip([0, *cuts], [*cuts, None], strict=True)]
        assert list(split_lines(pieces)) == (whole if whole[-1] else whole[:-1])


def test_a_large_file_is_read_in_parts_and_handed_on_in_batches_of_bytes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.files.listing.AT_ONCE", 100)
    monkeypatch.setattr("penstock.storage.objects.PART", 64)
    monkeypatch.setattr("penstock.connectors.files.stored._LINE_BYTES", 300)
    lines = [b"x" * n for n in (0, 10, 299, 700, 1, 50)]
    storage_at(f"{url}/live").write("a", b"\n".join(lines))
    made = ranges(f"{url}/live", None)
    found = [batch for part in made.stretches(made.first(), made.target()) for batch in made.read(part)]
    assert [line for batch in found for line in batch.column("value").to_pylist()] == lines
    assert [batch.num_rows for batch in found] == [2, 1, 1, 2]


def sinks_batch(name: str, url: str, batch: int) -> Batch:
    return Batch(batch, name, {"path": url, "format": "json"}, delivery="exactly_once", lineage="life", fingerprint="f")


def test_a_sink_leaves_what_another_has_staged_whose_name_begins_as_its_own(url: str) -> None:
    out = f"{url}/out"
    staged = []
    for name in ("out", "out-2"):
        made = StagedFiles(
            out, f"_penstock/{name}-5-1-{'ab' * 4}", sinks_batch(name, out, 5), 1 if name == "out-2" else 7
        )
        storage_at(out).write(f"{made.folder}/part-1.json", b"{}")
        made.take([WrittenFile("part-1.json", 1)])
        staged.append(made)
    for made in staged:
        made.commit()
    assert [file.name for file in stored_files(out)] == [f"{n}-00000005-life-00000.json" for n in ("out", "out-2")]


class CountedStorage(MemoryStorage):
    """Counts how often the manifests are listed."""

    listed = 0

    def children(self, prefix: str = "") -> list[str]:
        self.listed += "manifests" in prefix
        return super().children(prefix)


def staged_batch(sink: FilesSink, storage: MemoryStorage, number: int) -> StagedFiles:
    made = StagedFiles(
        "memory://counted",
        f"_penstock/out-{number}-{sink.fence}-{'ab' * 4}",
        sinks_batch("out", "memory://counted", number),
        sink.fence,
        sink.seen,
    )
    storage.write(f"{made.folder}/part-1.json", b"{}")
    made.take([WrittenFile("part-1.json", 1)])
    return made


def opened_sink() -> FilesSink:
    sink = FilesSink()
    options = {"path": "memory://counted", "format": "json"}
    sink.open(SinkContext("out", "flow", options, schema_of("n int"), "life", "exactly_once"))
    return sink


def test_manifests_are_not_listed_for_each_batch_and_a_driver_that_was_replaced_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether its files are still there or were removed by the other."""
    storage = CountedStorage()
    monkeypatch.setattr("penstock.connectors.files.disk.store_of", lambda path: storage)
    sink = opened_sink()
    before = storage.listed
    for number in range(5):
        staged_batch(sink, storage, number).commit()
    assert storage.listed == before
    left, removed = staged_batch(sink, storage, 5), staged_batch(sink, storage, 5)
    other = opened_sink()
    with pytest.raises(DeliveryError, match="another driver of this flow has taken over"):
        left.commit()
    sink.seen.tail = None
    staged_batch(other, storage, 5).commit()
    with pytest.raises(DeliveryError, match="another driver of this flow has taken over"):
        removed.commit()
    assert len([name for name in names_under(storage, "") if name.startswith("out-")]) == 6


def test_files_of_another_sink_whose_name_begins_as_this_one_are_not_of_another_life(url: str) -> None:
    out = f"{url}/out"
    storage_at(out).write("out-2-00000000-other-00000.json", b"{}")
    StagedFiles(out, "_penstock/out-0-1-x", sinks_batch("out", out, 0)).check_folder()
    storage_at(out).write("out-00000000-other-00000.json", b"{}")
    with pytest.raises(RunError, match="another life of this flow, such as out-00000000-other"):
        StagedFiles(out, "_penstock/out-0-1-x", sinks_batch("out", out, 0)).check_folder()


def test_a_file_that_is_gone_stops_the_batch_that_needs_it(url: str) -> None:
    kept, live = MemoryStorage(), f"{url}/live"
    storage_at(live).write("a", b"1")
    assert ranges(live, kept).target() == {"lists": 1}
    storage_at(live).delete("a")
    with pytest.raises(RunError, match="is gone"):
        names_of(ranges(live, kept), 0, 1)


def test_lists_that_are_missing_stop_the_source(url: str) -> None:
    with pytest.raises(RunError, match="expected 3"):
        ranges(f"{url}/live", MemoryStorage()).latest({"lists": 3}, None)


def test_many_files_are_shared_out_to_tasks(url: str) -> None:
    live = f"{url}/live"
    for number in range(40):
        storage_at(live).write(f"{number:03d}", b"1")
    assert list(ranges(live, None).stretches({"lists": 0}, {"lists": 0})) == []
    made = ranges(live, None)
    assert [len(part.high) for part in made.stretches(made.first(), made.target())] == [16, 16, 8]
