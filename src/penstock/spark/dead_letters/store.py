"""The letter box: dead letters of a flow that has no sink for them, kept beside its state, a file for each batch."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.connectors.base import Staged
from penstock.graph.nodes import DEAD
from penstock.state.file import put_safely


@dataclass(frozen=True)
class LetterBox:
    """A folder of JSON lines. A batch that runs again replaces its own file."""

    folder: Path

    def stage(self, rows: list[Any], batch: int) -> Staged:
        """Keeps the letters of a batch when it is committed."""
        return StagedLetters(self.folder / f"{batch:010d}.jsonl", rows)

    def hand_over(self, place: Path) -> None:
        """Adds the letters of a bounded run to another box, as a file of their own: every such run counts its batches from 0."""
        run = f"run-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        lines = [json.dumps(letter | {"id": f"{run}-{at}"}) for at, letter in enumerate(self.letters())]
        if lines:
            put_safely(place / f"{run}.jsonl", ["\n".join([*lines, ""]).encode()])

    def letters(self) -> Iterator[dict[str, Any]]:
        """All letters, oldest first."""
        for path in sorted(self.folder.glob("*.jsonl")) if self.folder.exists() else []:
            yield from map(json.loads, path.read_text().splitlines())


@dataclass
class StagedLetters(Staged):
    """Letters that wait for the commit of their batch."""

    path: Path
    taken: list[Any]

    def commit(self) -> None:
        """Writes them."""
        if self.taken:
            lines = [json.dumps(plain(dict(zip(DEAD.names, row, strict=True)))) for row in self.taken]
            put_safely(self.path, ["\n".join([*lines, ""]).encode()])


def plain(letter: dict[str, Any]) -> dict[str, Any]:
    """A letter as JSON can hold it: times as text, bytes in base64."""
    return letter | {"time": letter["time"].isoformat(), "payload": base64.b64encode(letter["payload"]).decode()}
