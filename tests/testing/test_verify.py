"""The oracle of `penstock verify` finds what is wrong; and the sinks pass a cut-down form of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.connectors.base import Batch, StagedBatch
from penstock.connectors.delivery import LedgerSink
from penstock.errors import Impossible, UnknownName
from penstock.graph.nodes import Endpoint
from penstock.storage import MemoryStorage
from penstock.testing import run_local
from penstock.testing.verify import (
    WINDOWS,
    FollowingReader,
    Glance,
    Plan,
    Reader,
    Sent,
    SinkRow,
    Tally,
    Target,
    schedule,
    tally,
    target_of,
    verify,
)
from penstock.testing.verify.program import PATTERN, SPACING, checkpoint_of, flow_of
from penstock.testing.verify.store_targets import StoredFilesReader, StoreTarget
from penstock.testing.verify.tally import merge
from tests.command_line import make_app

SENT = Sent([[0, 2, 4], [1, 3, 5]], {i: "even" if i % 2 == 0 else "odd" for i in range(6)})
ENDS = [[1, 1], [2, 2], [3, 3]]
ROWS = [SinkRow("even" if i % 2 == 0 else "odd", i // 2 + 1, i) for i in range(6)]
GLANCES = [{0: Glance()}, {0: Glance(2, 1)}, {0: Glance(4, 6)}, {0: Glance(6, 15)}]


def judged(rows: list[SinkRow] = ROWS, glances: list[dict[int, Glance]] = GLANCES, *, ordered: bool = True) -> Tally:
    return tally(SENT, ENDS, {0: rows}, glances, ordered=ordered)


def test_what_is_right_is_called_right() -> None:
    found = judged()
    assert found.ok
    assert (found.records, found.batches, found.reads) == (6, 3, 4)


def test_a_lost_row_is_found() -> None:
    assert judged(ROWS[:-1]).wrong["lost"] == 1


def test_a_doubled_row_is_found() -> None:
    assert judged([*ROWS, ROWS[-1]]).wrong["duplicate"] == 1


def test_a_row_nobody_sent_is_found() -> None:
    assert judged([*ROWS, SinkRow("odd", 4, 7)]).wrong["strange"] == 1


def test_rows_out_of_order_are_found() -> None:
    swapped = [ROWS[2], ROWS[1], ROWS[0], *ROWS[3:]]
    assert judged(swapped).wrong["reordered"] == 1
    assert judged(swapped, ordered=False).ok


def test_a_state_that_went_back_is_found_where_the_sink_has_no_order() -> None:
    again = [*ROWS[:4], SinkRow("even", 2, 4), ROWS[5]]
    assert judged(again, ordered=False).wrong["reordered"] == 1


def test_a_part_of_a_batch_is_found() -> None:
    assert judged(glances=[*GLANCES, {0: Glance(3, 3)}]).wrong["torn"] == 1
    assert judged(glances=[*GLANCES[:3], {0: Glance(6, 14)}]).wrong["torn"] == 1


def test_a_reader_that_sees_less_than_before_is_found() -> None:
    assert judged(glances=[*GLANCES, GLANCES[1]]).wrong["backward"] == 1


def test_without_a_reader_nothing_is_proved() -> None:
    assert not judged(glances=[]).ok


def test_what_is_wrong_with_one_of_several_sinks_is_wrong_with_all() -> None:
    assert merge([judged(), judged()]).ok
    found = merge([judged(), judged(ROWS[:-1]), judged([*ROWS, ROWS[-1]], GLANCES[:2])])
    assert (found.lost, found.duplicate, found.reads) == (1, 1, 2)
    assert not merge([judged(), judged(glances=[])]).ok


def test_every_window_is_hit_before_any_is_hit_again() -> None:
    names = [kill.window for kill in schedule(22, seed=3)]
    assert set(names[:11]) == set(names[11:]) == {window.name for window in WINDOWS}
    assert schedule(9, seed=3) == schedule(9, seed=3) != schedule(9, seed=4)
    assert {kill.window for kill in schedule(6, 1, ["F4", "F5"])} == {"F4", "F5"}


def test_what_cannot_be_verified_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"'postgre'.*postgres"):
        target_of("postgre")
    with pytest.raises(UnknownName, match="F12"):
        schedule(1, 0, ["F12"])
    with pytest.raises(Impossible, match="no server"):
        verify(Plan("files", url="postgresql://nowhere"))
    with pytest.raises(Impossible, match="subclass"):
        target_of("pathlib:Path")
    with pytest.raises(UnknownName, match="cannot be found"):
        target_of("pathlib:Pathh")
    with pytest.raises(Impossible, match="at least 1 record"):
        Plan("files", records=0)


class ForgetfulSink(LedgerSink):
    """A sink that says it delivers exactly once, and appends whatever comes."""

    def open(self, context: Any) -> None:
        """Looks at nothing."""

    def stage(self, frame: Any, batch: Batch) -> StagedBatch:
        """Takes the rows."""
        rows = [row.asDict() for row in frame.collect()]
        return _Append(Path(batch.options["path"]), rows, batch.id)


class _Append(StagedBatch):
    def __init__(self, path: Path, rows: list[Any], number: int) -> None:
        self.path, self.rows_, self.number = path, rows, number

    def commit(self) -> None:
        from penstock.faults import passing

        with self.path.open("a") as out:
            out.writelines(json.dumps(row) + "\n" for row in self.rows_)
        passing("after sink commit", self.number)


class ForgetfulTarget(Target):
    """The same, to be verified."""

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A file."""
        (folder / "rows").touch()
        yield {"path": str(folder / "rows")}

    def endpoint(self, options: dict[str, Any]) -> Endpoint:
        """The sink."""
        return ps.connector(ForgetfulSink(), **options)

    def reader(self, options: dict[str, Any]) -> Reader:
        """Reads lines."""
        return _Lines(Path(options["path"]))


class _Lines(FollowingReader):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.lines = path.open()

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        yield 0, [SinkRow.of(json.loads(line)) for line in self.lines.readlines() if line.endswith("\n")]

    def close(self) -> None:
        self.lines.close()


def test_files_of_a_store_are_read_by_their_manifests_wherever_they_are_just_then() -> None:
    storage = MemoryStorage()
    for at, name in enumerate(("aside/a", "b")):
        pq.write_table(pa.table({"key": ["k"], "nth": [at + 1], "id": [at]}), content := pa.BufferOutputStream())
        storage.write(name, content.getvalue().to_pybytes())
    files = [{"name": "a", "aside": "aside/a"}, {"name": "b", "aside": "aside/b"}]
    link = {"fence": 1, "files": files}
    reader = StoredFilesReader(storage)
    assert reader.rows() == {}
    storage.write("_penstock/manifests/out/life/00000000.json", json.dumps({"fence": 1}).encode())
    storage.write("_penstock/manifests/out/life/00000001.json", json.dumps(link).encode())
    assert reader.rows() == reader.rows() == {0: [SinkRow("k", 1, 0), SinkRow("k", 2, 1)]}


def test_stores_are_targets_by_name_whose_checkpoint_is_there_too(tmp_path: Path) -> None:
    for name in ("s3", "hdfs"):
        assert isinstance(target_of(name), StoreTarget)
    with target_of("s3").running(tmp_path, "memory://verify") as address:
        assert str(checkpoint_of(tmp_path, [{}, address])) == address["checkpoint"]
        assert address["checkpoint"].startswith("memory://verify/")
    assert checkpoint_of(tmp_path, [{}]) == tmp_path / "checkpoint"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["lag"], "no sink 'lag' to verify"),
        (["log", "--url", "x"], "takes no url"),
        (["redis,postgres", "--url", "x"], "takes no url"),
        (["log,lag"], "no sink 'lag' to verify"),
        (["log", "--window", "F12"], "no crash window 'F12'"),
    ],
)
def test_a_wrong_word_is_told_before_anything_starts(given: list[str], said: str) -> None:
    result = CliRunner().invoke(make_app(), ["verify", *given], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(("found", "code"), [(judged(), 0), (judged([*ROWS, ROWS[-1]]), 1)])
def test_the_command_ends_with_1_when_anything_is_wrong(
    monkeypatch: pytest.MonkeyPatch, found: Tally, code: int
) -> None:
    monkeypatch.setattr("penstock.testing.verify.verify", lambda plan: found)
    result = CliRunner().invoke(make_app(), ["verify", "log", "--json"])
    assert result.exit_code == code, result.output
    assert json.loads(result.stdout.splitlines()[-1])["duplicate"] == code
    assert f"exactly once: {'NO' if code else 'yes'}" in result.output


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_sink_that_only_says_so_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__)
    monkeypatch.setenv("PYTHONPATH", str(here.parent))
    monkeypatch.syspath_prepend(here.parent)
    result = CliRunner().invoke(
        make_app(),
        ["verify", f"{here.stem}:ForgetfulTarget", "--records", "600", "--kills", "1", "--window", "F5", "--json"],
    )
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["duplicate"] > 0
    assert (found["lost"], found["kills"]) == (0, {"F5": 1})
    assert "exactly once: NO" in result.output


SINKS = ("log", "files", "postgres", "redis")
"""Tried in every run, in one flow: starting a driver is what costs. Kafka has a test of its own, and the slow tier tries each by itself in all windows."""
CUT = ("F3", "F5")
"""When one sink is in a window the next has still to come to it: that is F4 for those after it."""


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_sinks_of_one_flow_deliver_exactly_once() -> None:
    found = verify(Plan(",".join(SINKS), records=2_000, kills=len(CUT), windows=CUT))
    assert found.ok, found
    assert set(found.kills) == set(CUT)


def test_every_record_of_the_pattern_flow_is_matched_or_times_out_once(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, ps.write_files(tmp_path / "out"), kind=PATTERN)
    records = [(f"k{i * 7919 % SPACING}", i, 0) for i in range(1_000)]
    out = run_local(flow, {"numbers": records})["out"]
    assert sorted(row.id for row in out) == list(range(1_000))


def test_a_flow_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Impossible, match="'numbers' or 'pattern', got 'windows'"):
        Plan("log", flow="windows")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_matches_and_timed_out_runs_are_delivered_exactly_once() -> None:
    found = verify(Plan("log", records=5_000, kills=11, flow=PATTERN))
    assert found.ok, found
    assert sum(found.kills.values()) >= 8


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sink", [*SINKS, "kafka", "s3", "hdfs"])
def test_a_sink_delivers_exactly_once_at_full_length(sink: str) -> None:
    found = verify(Plan(sink, seed=7))
    assert found.ok, found
    assert sum(found.kills.values()) == 20
