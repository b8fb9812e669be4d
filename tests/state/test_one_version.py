"""A version of the state from outside: keys are looked up without reading the rest, and what is too much is refused. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock.state as ps_state
from penstock.errors import StateError
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.state.file import OpenFile
from penstock.state.one_version import ReadLimits, Snapshot
from tests.state.kept import KeptStep, keep

COUNT = KeptStep("count", ("word string",), ("n bigint count(*)",))


def looked_up(snapshot: Snapshot, *words: str) -> dict[str, int]:
    keys = pa.record_batch({"word": pa.array(words)})
    found = snapshot.lookup("count", keys, key_hashes(keys.columns, len(words)))
    return {row["word"]: row["n"] for row in found.to_pylist()}


def test_keys_are_found_in_the_newest_file_that_has_them(tmp_path: Path) -> None:
    keep(tmp_path, 0, {COUNT: {(f"w{n}",): (n,) for n in range(3000)}})
    keep(tmp_path, 1, {COUNT: {("w1",): (100,), ("w2",): None, ("new",): (7,)}})
    snapshot = ps_state.snapshot(tmp_path)
    assert looked_up(snapshot, "w1", "w2", "w3", "new", "missing") == {"w1": 100, "w3": 3, "new": 7}
    assert looked_up(snapshot, "missing") == {}
    assert looked_up(ps_state.snapshot(tmp_path, 0), "w1", "w2", "new") == {"w1": 1, "w2": 2}
    assert snapshot.keys("count") == ("word",)


def test_a_lookup_reads_no_more_than_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, 0, {COUNT: {(f"word number {n}",): (n,) for n in range(200_000)}})
    touched: list[int] = []
    check = OpenFile._check

    def counting(self: OpenFile, region: int) -> None:
        touched.append(region)
        check(self, region)

    monkeypatch.setattr(OpenFile, "_check", counting)
    assert looked_up(ps_state.snapshot(tmp_path), "word number 77777") == {"word number 77777": 77777}
    few = len(touched)
    touched.clear()
    assert ps_state.snapshot(tmp_path).read("count").num_rows == 200_000
    assert few < len(touched) / 4


def test_a_snapshot_stays_where_it_is_while_the_flow_goes_on(tmp_path: Path) -> None:
    other = KeptStep("total", ("kind string",), ("n bigint count(*)",))
    keep(tmp_path, 0, {COUNT: {("a",): (1,)}, other: {("all",): (1,)}})
    snapshot = ps_state.snapshot(tmp_path)
    assert snapshot.read("count").to_pylist() == [{"word": "a", "n": 1}]
    keep(tmp_path, 1, {COUNT: {("a",): (2,)}, other: {("all",): (2,)}})
    assert snapshot.read("total").to_pylist() == [{"kind": "all", "n": 1}]
    assert ps_state.snapshot(tmp_path).version == 1


def test_more_than_the_limits_allow_is_refused_with_the_way_out(tmp_path: Path) -> None:
    keep(tmp_path, 0, {COUNT: {(f"w{n}",): (n,) for n in range(100)}})
    snapshot = ps_state.snapshot(tmp_path)
    with pytest.raises(StateError, match=r"'count' keeps 100 entries .* look up keys"):
        snapshot.read("count", ReadLimits(entries=99))
    with pytest.raises(StateError, match="may be read"):
        snapshot.read("count", ReadLimits(bytes=1000))
    assert snapshot.read("count", ReadLimits(entries=100)).num_rows == 100
    with pytest.raises(StateError, match="did you mean 'count'"):
        snapshot.read("cuont")
