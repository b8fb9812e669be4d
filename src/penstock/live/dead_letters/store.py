"""Dead letters of a flow that has no sink for them: kept in its checkpoint directory as JSON lines, a file for each batch."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.connectors.base import StagedBatch
from penstock.graph.nodes import DEAD
from penstock.kernels.errors.payload import read_payload
from penstock.live.dead_letters.damage import read_letters
from penstock.location import Address
from penstock.storage import Conflict, NotFound, Storage, names_under, open_storage

DEAD_LETTERS = "dead-letters"
"""Where they are in a checkpoint directory."""


@dataclass(frozen=True)
class DeadLetterStore:
    """A folder of JSON lines. A batch that runs again replaces its own file."""

    folder: Address

    @property
    def storage(self) -> Storage:
        """What keeps it."""
        return open_storage(self.folder)

    def stage(self, rows: list[Any], batch: int) -> StagedBatch:
        """Keeps the dead letters of a batch when it is committed."""
        return StagedDeadLetters(self.storage, f"{batch:010d}.jsonl", rows)

    def hand_over(self, directory: Address) -> None:
        """Adds the dead letters of a bounded run to another store, as a file of their own: every such run counts its batches from 0."""
        run = f"run-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        dead_letters = [dead_letter | {"id": f"{run}-{at}"} for at, dead_letter in enumerate(self.dead_letters())]
        if dead_letters:
            _write(open_storage(directory), f"{run}.jsonl", dead_letters)

    def dead_letters(self) -> Iterator[dict[str, Any]]:
        """All dead letters, oldest first."""
        for name in self._files():
            with suppress(NotFound):  # dropped since its name was read
                yield from read_letters(self.storage.read(name), self.folder / name)

    def edit(self, dead_letter: str, payload: Mapping[str, object]) -> None:
        """Replaces the payload of a dead letter; raises BadPayload for one that cannot be replayed."""
        read_payload(payload)
        edited = {"payload": payload, "edited": datetime.now(UTC).isoformat(timespec="seconds")}
        self._rewrite(lambda made: made | edited if made["id"] == dead_letter else made)

    def drop(self, dead_letters: Collection[str]) -> int:
        """Removes dead letters for good; returns how many there were."""
        gone: set[str] = set()

        def kept(made: dict[str, Any]) -> dict[str, Any] | None:
            if made["id"] in dead_letters:
                gone.add(made["id"])
                return None
            return made

        self._rewrite(kept)
        return len(gone)

    def _rewrite(self, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        for name in self._files():
            with suppress(NotFound):  # dropped since its name was read
                while not self._has_rewritten(name, change):
                    pass

    def _has_rewritten(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> bool:
        """Changes a file; false where another has changed it meanwhile, whose change stays."""
        content, version = self.storage.read_versioned(name)
        before = read_letters(content, self.folder / name)
        after = [made for made in map(change, before) if made is not None]
        if after != before:
            try:
                self.storage.compare_and_swap(name, version, _lines(after))
            except Conflict:
                return False
        if not after:
            self.storage.delete(name)
        return True

    def _files(self) -> list[str]:
        return [name for name in names_under(self.storage, "") if name.endswith(".jsonl")]


@dataclass
class StagedDeadLetters(StagedBatch):
    """Letters that wait for the commit of their batch."""

    storage: Storage
    name: str
    taken: list[Any]

    def commit(self) -> None:
        """Writes them."""
        if self.taken:
            _write(self.storage, self.name, [plain(dict(zip(DEAD.names, row, strict=True))) for row in self.taken])


def plain(dead_letter: dict[str, Any]) -> dict[str, Any]:
    """A dead letter as JSON can hold it: its time as text, its payload as an object."""
    return dead_letter | {"time": dead_letter["time"].isoformat(), "payload": json.loads(dead_letter["payload"])}


def _write(storage: Storage, name: str, dead_letters: list[dict[str, Any]]) -> None:
    storage.write(name, _lines(dead_letters))


def _lines(dead_letters: list[dict[str, Any]]) -> bytes:
    return "\n".join([*map(json.dumps, dead_letters), ""]).encode()
