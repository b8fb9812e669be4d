"""The folder a live flow keeps its place in: Spark's checkpoint, the state, and a note of whose it is."""

from __future__ import annotations

import fcntl
import json
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError
from penstock.spark.statefile import put_safely


@dataclass
class Checkpoint:
    """One folder per flow. One driver at a time may have it open."""

    folder: Path
    flow: str
    sources: list[list[str]]
    lock: Any = field(default=None, repr=False)

    @property
    def spark(self) -> Path:
        """Spark's own part."""
        return self.folder / "spark"

    def open(self, *, fresh: bool = False) -> str:
        """Locks the folder, checks that it is this flow's, and gives the id of its lineage."""
        self._make()
        self._lock()
        if fresh:
            self._clear()
        note = self.folder / "flow.json"
        if note.exists():
            return self._check(json.loads(note.read_text()))
        lineage = uuid.uuid4().hex[:12]
        body = json.dumps({"flow": self.flow, "lineage": lineage, "sources": self.sources}, indent=1)
        put_safely(note, [body.encode()])
        return lineage

    def _make(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint folder {self.folder} cannot be made ({error}); choose one with --checkpoint"
            ) from None

    def _lock(self) -> None:
        self.lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CheckpointError(
                f"flow {self.flow!r} runs already: another process has {self.folder} open. Stop it first, or give "
                f"this run a folder of its own with --checkpoint"
            ) from None

    def _clear(self) -> None:
        """Spark's own part goes first: what it has noted must not outlive what it was about."""
        for part in sorted(self.folder.iterdir(), key=lambda p: p.name != "spark"):
            if part.name != "lock":
                shutil.rmtree(part) if part.is_dir() else part.unlink()

    def _check(self, note: dict[str, Any]) -> str:
        if note["flow"] != self.flow:
            raise CheckpointError(
                f"{self.folder} belongs to the flow {note['flow']!r}, not to {self.flow!r}; choose another folder"
            )
        if note["sources"] != self.sources:
            was = ", ".join(f"{n} ({k})" for n, k in note["sources"])
            now = ", ".join(f"{n} ({k})" for n, k in self.sources)
            raise CheckpointError(
                f"the sources of flow {self.flow!r} have changed since {self.folder} was made: they were {was}; "
                f"they are {now}. Start afresh with --fresh, or choose another folder"
            )
        return str(note["lineage"])

    def close(self) -> None:
        """Lets go of the folder."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None
