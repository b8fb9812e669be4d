"""`penstock state` and `penstock savepoint`: what a flow keeps, from outside. No JVM."""

from __future__ import annotations

import csv
import datetime
import io
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock.state as ps_state
from penstock.errors import StateError
from penstock.graph.state.layout import Column, Layout
from penstock.state.reader import OpenState, as_array
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.command_line import make_app
from tests.spark.checkpoints import batch, begin, hash_of

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = begin(tmp_path / "shop")
    for number, words in enumerate(({"a": 1}, {"a": 1, "b": 2}, {"c": 3})):
        batch(made, number, words)
    return made


def penstock(*arguments: Any, code: int = 0) -> str:
    done = runner.invoke(make_app(), [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done.output


def entries(folder: Path, *more: Any) -> list[dict[str, Any]]:
    out = penstock("state", "show", folder, "--step", "count", "--format", "json", *more)
    return sorted((json.loads(line) for line in out.splitlines() if line.startswith("{")), key=repr)


def test_list_tells_steps_and_versions(folder: Path) -> None:
    out = penstock("state", "list", folder)
    assert "version 2; 0 to 2 are kept" in out
    assert "count by word" in out
    reported = json.loads(penstock("state", "list", folder, "--format", "json", "--version", 1))
    assert reported["versions"] == [0, 1, 2]
    assert {(s["name"], s["kind"]) for s in reported["steps"]} == {("count", "values"), ("rows", "rows")}


def test_show_gives_keys_and_values_of_any_kept_version(folder: Path) -> None:
    assert entries(folder) == [{"word": "a", "n": 2}, {"word": "b", "n": 2}, {"word": "c", "n": 3}]
    assert entries(folder, "--version", 0) == [{"word": "a", "n": 1}]
    assert entries(folder, "--key", "b") == [{"word": "b", "n": 2}]
    assert len(entries(folder, "--limit", 1)) == 1


def test_show_gives_rows_in_time_with_their_moments(folder: Path) -> None:
    rows = ps_state.read(folder, "rows").to_pylist()
    assert sorted(r["word"] for r in rows) == ["a", "a", "b", "c"]
    assert max(r["__time"] for r in rows) == datetime.datetime(1970, 1, 1, 0, 0, 0, 2, datetime.UTC)
    assert "__key_hash" not in rows[0]


def test_tables_and_csv_are_for_people_and_programs(folder: Path) -> None:
    shown = penstock("state", "show", folder, "--step", "count")
    assert [line.split() for line in shown.splitlines() if line.startswith("b")] == [["b", "2"]]
    lines = csv.DictReader(io.StringIO(penstock("state", "show", folder, "--step", "count", "--format", "csv")))
    assert {(r["word"], r["n"]) for r in lines} == {("a", "2"), ("b", "2"), ("c", "3")}


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_export_writes_a_file(folder: Path, kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"out.{kind}"
    penstock("state", "export", folder, "--step", "count", "--output", file)
    assert file.stat().st_mode & 0o777 == 0o600
    if kind == "parquet":
        assert sorted(pq.read_table(file)["n"].to_pylist()) == [2, 2, 3]
    else:
        assert len(file.read_text().splitlines()) == (3 if kind == "json" else 4)


def test_a_file_that_cannot_be_written_is_told(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "none" / "out.csv"
    said = penstock("state", "export", folder, "--step", "count", "--output", output, code=2)
    assert "No such file or directory" in said


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["show", "FOLDER"], "several steps keep something: count, rows"),
        (["show", "FOLDER", "--step", "cuont"], "did you mean 'count'"),
        (["show", "FOLDER", "--step", "count", "--key", "q"], "key 'q' is not there"),
        (["show", "FOLDER", "--step", "count", "--version", "9"], "version 9 of .* is not there; 0 to 2 are kept"),
        (["list", "FOLDER/.."], "is no checkpoint folder"),
        (["list", "FOLDER", "--checkpoint", "gone"], "gone is no checkpoint folder"),
    ],
)
def test_what_is_not_there_is_named(folder: Path, arguments: list[str], says: str) -> None:
    import re

    out = penstock("state", *(a.replace("FOLDER", str(folder)) for a in arguments), code=1)
    assert re.search(says, " ".join(out.split())), out


def test_a_version_that_is_swept_away_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest is read again as it is then; an older one says that it has gone."""
    store = StateStore(LocalStorage(folder / "state"))
    first = OpenState._read

    def slow(self: OpenState, step: str, version: int) -> Any:
        if version == 2:
            for number in range(3, 8):
                batch(folder, number, {"a": 1}, keep=2)
        return first(self, step, version)

    assert store.versions() == [0, 1, 2]
    monkeypatch.setattr(OpenState, "_read", slow)
    saved = folder.with_name("copy")
    shutil.copytree(folder, saved)
    assert dict(zip(*ps_state.read(folder, "count").to_pydict().values(), strict=True))["a"] == 7
    folder = saved
    with pytest.raises(StateError, match=r"version 2 .* was swept away while it was read"):
        ps_state.read(saved, "count", 2)


def test_damage_is_not_taken_for_sweeping(folder: Path) -> None:
    file = folder / "state" / StateStore(LocalStorage(folder / "state")).read(2)["count"][0].path
    file.write_bytes(b"\0" * file.stat().st_size)
    with pytest.raises(StateError, match=f"{file.name} is damaged"):
        ps_state.read(folder, "count")


class Basket:
    """Something of the user's own."""


def test_process_cells_come_as_they_are(tmp_path: Path) -> None:
    """Typed cells as columns, lists and maps as such, objects as their size, timers as moments."""
    columns = ("seen", pa.int64()), ("items", None), ("prices", None), ("basket", None), ("@event", pa.int64())
    layout = Layout((Column("user", pa.string()),), tuple(Column(n, t) for n, t in columns))
    store = StateStore(LocalStorage(tmp_path / "state"), run="r")
    state = FileState(store.begin(0, {"visits": 1}, -1)["visits"], 0)
    state.describe(layout)
    state.prefetch([("ann",)], [hash_of("ann")])
    state.put(("ann",), (3, ["x", "y"], {"x": 1.5}, Basket(), 1_000_000))
    state.save()
    store.publish(0)
    found = ps_state.read(tmp_path, "visits").to_pylist(maps_as_pydicts="strict")
    assert found == [
        {
            "user": "ann",
            "seen": 3,
            "items": ["x", "y"],
            "prices": {"x": 1.5},
            "basket": f"<pickled, {len(pickle.dumps(Basket(), 5))} bytes>",
            "@event": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC),
        }
    ]


def test_objects_of_several_kinds_become_text() -> None:
    assert as_array([1, "x", None, [2]]).to_pylist() == ["1", "x", None, "[2]"]


FLOW = """
import penstock as ps
flow = ps.Flow("shop")
lines = flow.source("one", ps.files("in", "text"))
lines.key_by("value").count("tally").sink("out", ps.console())
"""


@pytest.mark.parametrize("how", ["restart", "savepoint"])
def test_a_changed_flow_is_refused_before_spark_starts(folder: Path, tmp_path: Path, how: str) -> None:
    """The steps that keep something and the sources that have been read are named, with the flags that give them up."""
    (tmp_path / "flow.py").write_text(FLOW)
    hash_of = folder
    more: list[Any] = []
    if how == "savepoint":
        penstock("savepoint", folder, tmp_path / "sp")
        hash_of, more = tmp_path / "new", ["--from", tmp_path / "sp"]
    out = penstock("run", tmp_path / "flow.py", "--once", "--checkpoint", hash_of, *more, code=1)
    assert "starting Spark" not in out
    said = " ".join(out.split())
    assert "step 'count' is gone, and keeps state (3 entries" in said
    assert "--drop-state count --drop-state rows --drop-state two" in said
    assert not (tmp_path / "new").exists()


def test_a_run_over_bounded_data_begins_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    out = runner.invoke(make_app(), ["run", str(tmp_path / "flow.py"), "--batch", "--from", "x"])
    assert out.exit_code == 2
    assert "--from" in out.output


def test_savepoint_and_state_of_a_savepoint(folder: Path) -> None:
    assert "version 2 of shop" in penstock("savepoint", folder, "before")
    hash_of = folder.parent / "savepoints" / "shop" / "before"
    assert [s["savepoint"] for s in json.loads(penstock("savepoint", folder, "--list", "--json"))] == [str(hash_of)]
    assert entries(hash_of) == entries(folder)
    assert "is there already" in " ".join(penstock("savepoint", folder, "before", code=1).split())
    made = json.loads(penstock("savepoint", folder, "--version", 0, "--json"))
    assert made["version"] == 0
    assert Path(made["savepoint"]).name.startswith("v0-")
