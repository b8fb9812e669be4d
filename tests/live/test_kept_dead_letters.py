"""Dead letters in a checkpoint, which several edit and drop at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.live.dead_letters.store import DeadLetterStore
from penstock.storage import LocalStorage

ROW = {"schema": "n int", "values": {"n": 1}}


def kept(folder: Path, *ids: str) -> DeadLetterStore:
    """A store with dead letters of one batch."""
    store = DeadLetterStore(folder)
    lines = "".join(json.dumps({"id": each, "step": "parse", "payload": ROW}) + "\n" for each in ids)
    store.storage.write("0000000001.jsonl", lines.encode())
    return store


def shown(store: DeadLetterStore) -> dict[str, Any]:
    """The payloads by id."""
    return {made["id"]: made["payload"] for made in store.dead_letters()}


def test_what_another_drops_meanwhile_stays_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, others, read = kept(tmp_path, "a", "b", "c"), ["b", "c"], LocalStorage.read_versioned

    def interrupted(storage: LocalStorage, name: str) -> Any:
        found = read(storage, name)
        if others:
            assert store.drop([others.pop(0)]) == 1
        return found

    monkeypatch.setattr(LocalStorage, "read_versioned", interrupted)
    assert store.drop(["a"]) == 1
    assert shown(store) == {}
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_a_file_that_is_gone_when_its_turn_comes_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = kept(tmp_path, "a")
    monkeypatch.setattr(DeadLetterStore, "_files", lambda _: ["0000000000.jsonl", "0000000001.jsonl"])
    assert store.drop(["a", "b"]) == 1
