"""The dead letters of refused rows, of which attempts that died and drivers that were replaced have noted others. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.base import Refusal, StagedBatch
from penstock.graph.endpoints.basic import console
from penstock.graph.nodes import Port, Sink
from penstock.graph.schema import schema_of
from penstock.spark.dead_letters import row_errors
from penstock.spark.dead_letters.row_errors import Refusals
from penstock.storage import LocalStorage


def nothing(_: object) -> StagedBatch:
    raise AssertionError("the sink has told what it refuses")


def attempt(notes: Path, *refused: int, found: str | None = None) -> tuple[StagedBatch, list[str]]:
    """What an attempt at batch 3 makes of refused rows; `found` is what the ledger says when it has the batch already."""
    made = StagedBatch()
    made.through, made.refused = found is not None, found or ""
    sink = Sink("out", (Port("rows"),), console())
    refusals = Refusals(sink, schema_of("id bigint, n bigint"), nothing, LocalStorage(notes), "3")
    told = [Refusal(n, (None, n), f"row {n} has no key") for n in refused]
    return made, [letter.cause for letter in refusals.of_rows(made, told)]


def test_an_attempt_that_died_leaves_no_dead_letter_to_the_next(tmp_path: Path) -> None:
    attempt(tmp_path, 1)
    again, letters = attempt(tmp_path)
    assert letters == []
    assert attempt(tmp_path, found="")[1] == []
    assert attempt(tmp_path, found=again.refused)[1] == []


def test_another_refusal_of_the_next_attempt_takes_the_place_of_the_first(tmp_path: Path) -> None:
    attempt(tmp_path, 1)
    again, letters = attempt(tmp_path, 2)
    assert letters == ["row 2 has no key"]
    for found in ("", again.refused):
        assert attempt(tmp_path, found=found)[1] == letters


@pytest.mark.parametrize("woken", [(), (2,)])
def test_the_ledger_stands_over_what_a_driver_that_was_replaced_notes_later(
    tmp_path: Path, woken: tuple[int, ...]
) -> None:
    written, letters = attempt(tmp_path, 1)
    attempt(tmp_path, *woken)
    assert attempt(tmp_path, found=written.refused)[1] == letters == ["row 1 has no key"]


def test_a_driver_of_another_checkpoint_has_them_from_the_ledger(tmp_path: Path) -> None:
    written, letters = attempt(tmp_path / "mine", 1)
    assert attempt(tmp_path / "from a savepoint", found=written.refused)[1] == letters


def test_more_than_a_ledger_takes_are_in_the_note_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_errors, "LARGEST", 10)
    written, letters = attempt(tmp_path, 1)
    assert written.refused == ""
    assert attempt(tmp_path, found="")[1] == letters
