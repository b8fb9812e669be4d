"""What a ledger keeps of a batch lets another checkpoint go on with it: its offsets, and the files that file sources took. No JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import CheckpointError
from penstock.spark.checkpoint.offsets import MOST_NOTED, OffsetLog

HEAD = 'v1\n{"batchWatermarkMs":0}'


def noted(*entries: tuple[int, str]) -> str:
    lines = [json.dumps({"path": f"file:///in/{name}", "timestamp": 1, "batchId": batch}) for batch, name in entries]
    return "\n".join(["v1", *lines])


def log_at(folder: Path, files: dict[str, str]) -> OffsetLog:
    made = OffsetLog(folder)
    for name, text in files.items():
        made.storage.write(name, text.encode())
    return made


def test_the_files_of_a_batch_go_along_with_its_offsets(tmp_path: Path) -> None:
    offsets = f'{HEAD}\n{{"logOffset":1}}\n-\n{{"topic":{{"0":7}}}}'
    first = log_at(tmp_path / "a", {"offsets/1": offsets, "sources/0/1": noted((1, "b.txt"))})
    other = log_at(tmp_path / "b", {"offsets/0": HEAD, "sources/0/0": noted((0, "a.txt"))})
    other.restore(1, first.recorded(1))
    assert other.text(1) == offsets
    assert other.storage.read("sources/0/1").decode() == noted((1, "b.txt"))
    assert other.fingerprint(1) != log_at(tmp_path / "c", {"offsets/1": offsets}).fingerprint(1)


def test_a_tenth_entry_has_all_files_before_it(tmp_path: Path) -> None:
    offsets = f'{HEAD}\n{{"logOffset":9}}'
    entries = [(n, f"{n}.txt") for n in range(10)]
    first = log_at(tmp_path / "a", {"offsets/9": offsets, "sources/0/9.compact": noted(*entries)})
    other = log_at(tmp_path / "b", {f"sources/0/{n}": noted((n, name)) for n, name in entries[:9]})
    other.restore(9, first.recorded(9))
    assert other.storage.read("sources/0/9.compact").decode() == noted(*entries)


def test_what_is_there_stays_and_what_nobody_has_is_said(tmp_path: Path) -> None:
    offsets = f'{HEAD}\n{{"logOffset":1}}'
    log = log_at(tmp_path / "a", {"offsets/1": offsets, "sources/0/1": noted((1, "b.txt"))})
    other = log_at(tmp_path / "b", {"sources/0/1": noted((1, "mine.txt"))})
    other.restore(1, log.recorded(1))
    assert other.storage.read("sources/0/1").decode() == noted((1, "mine.txt"))
    other.restore(2, f'{HEAD}\n{{"topic":{{"0":7}}}}')  # as ledgers were before
    assert other.text(2).endswith('{"topic":{"0":7}}')
    with pytest.raises(CheckpointError, match="no ledger has them"):
        other.restore(3, "")


def test_a_ledger_keeps_no_names_without_end(tmp_path: Path) -> None:
    offsets = f'{HEAD}\n{{"logOffset":1}}'
    many = noted(*((1, f"{n:050d}.txt") for n in range(2_000)))
    log = log_at(tmp_path / "a", {"offsets/1": offsets, "sources/0/1": many})
    assert len(many) > MOST_NOTED
    assert log.recorded(1) == offsets
