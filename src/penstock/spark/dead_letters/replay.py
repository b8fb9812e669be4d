"""Replay of dead letters: records go back to the step that failed on them, with the next batch.

`penstock dlq replay` puts requests into a folder. A batch claims what is there by moving it under its own number, so that it has
the same records when it runs again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.kernels.errors.payload import read_payload
from penstock.state.file import put_safely

Replayed = dict[tuple[str, int], list[Any]]
"""Records by the step that takes them and the number of its input."""
RAW = -1
"""The input at which a source takes records again that it could not read."""


@dataclass(frozen=True)
class Replays:
    """The folder of requests."""

    folder: Path

    @property
    def pending(self) -> Path:
        """Where requests wait."""
        return self.folder / "pending"

    def ask(self, letters: Iterable[dict[str, Any]]) -> int:
        """Asks for dead letters to be replayed, but for those that wait already; returns how many wait more."""
        waiting = self._ids(self.pending.glob("*.json"))
        wanted = [
            {"id": m["id"], "step": m["step"], "place": 0, "payload": m["payload"]}
            for m in letters
            if m["id"] not in waiting
        ]
        if wanted:
            put_safely(self.pending / f"{uuid.uuid4().hex}.json", [json.dumps(wanted).encode()])
        return len(wanted)

    def withdraw(self, ids: Collection[str]) -> None:
        """Takes back requests that still wait for a batch: their dead letters have been changed or dropped."""
        for path in sorted(self.pending.glob("*.json")):
            asked = json.loads(path.read_text())
            kept = [each for each in asked if each["id"] not in ids]
            if not kept:
                path.unlink()
            elif kept != asked:
                put_safely(path, [json.dumps(kept).encode()])

    def claim(self, batch: int) -> Replayed:
        """The records that a batch replays."""
        mine = self.folder / str(batch)
        if not mine.exists() and self.pending.exists() and any(self.pending.glob("*.json")):
            self.pending.rename(mine)
        made: Replayed = {}
        for path in sorted(mine.glob("*.json")) if mine.exists() else []:
            for each in json.loads(path.read_text()):
                found = read_payload(each["payload"])
                if found.raw is None:
                    made.setdefault((each["step"], each["place"]), []).append(found.row)
                else:
                    made.setdefault((each["step"], RAW), []).append({"value": found.raw, **found.values})
        return made

    def give_back(self, batch: int, steps: set[str]) -> None:
        """Takes the requests for some steps out of what a batch has claimed; their letters can be asked for again."""
        for path in sorted((self.folder / str(batch)).glob("*.json")) if steps else []:
            asked = json.loads(path.read_text())
            put_safely(path, [json.dumps([each for each in asked if each["step"] not in steps]).encode()])

    @property
    def has_pending(self) -> bool:
        """Whether requests wait for a batch."""
        return self.pending.exists() and any(self.pending.glob("*.json"))

    def done(self) -> set[str]:
        """The ids of all letters that a batch has taken; what still waits for one is not among them."""
        return self._ids(path for path in self.folder.glob("*/*.json") if path.parent != self.pending)

    @staticmethod
    def _ids(files: Iterable[Path]) -> set[str]:
        return {each["id"] for path in files for each in json.loads(path.read_text())}
