"""Requests to replay dead letters, beside a batch that claims them and a person who withdraws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.live.dead_letters.replay import PENDING, Replays
from penstock.storage import MemoryStorage, mounted, names_under


def dead_letter(number: int) -> dict[str, Any]:
    return {"id": str(number), "step": "parse", "payload": {"schema": "n int", "record": {"n": number}}}


class Withdrawn(MemoryStorage):
    """Whoever reads a request finds that it was withdrawn since its name was read."""

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        if name.startswith(PENDING):
            self.delete(name)
        return super().read(name, begin, length)


@pytest.mark.parametrize("storage", [MemoryStorage, Withdrawn])
def test_a_request_that_is_withdrawn_meanwhile_does_not_fail_the_batch(storage: Any, tmp_path: Path) -> None:
    kept = storage()
    with mounted(tmp_path, kept):
        replays = Replays(tmp_path)
        assert replays.ask([dead_letter(1)]) == 1
        found = replays.claim(0)
        assert found == ({("parse", 0): [{"n": 1}]} if storage is MemoryStorage else {})
        assert names_under(kept, PENDING) == []
