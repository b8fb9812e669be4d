"""The dead letters of a job: to look at, to send back, to drop."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import OptionError, UnknownName
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.kernels.errors.payload import BadPayload
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore

LARGEST_TEXT = 20_000
"""Of a longer text the beginning is shown."""


@dataclass(frozen=True)
class JobDeadLetters:
    """What the steps of a job have put aside into its checkpoint."""

    directory: JobDirectory

    @property
    def _store(self) -> DeadLetterStore:
        return DeadLetterStore(self.directory.checkpoint / DEAD_LETTERS)

    @property
    def _replays(self) -> Replays:
        return Replays(self.directory.checkpoint / "replay")

    def newest(self, most: int, step: str = "") -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The newest dead letters, the newest first, and how many there are of each step."""
        counts: Counter[str] = Counter()
        kept: deque[dict[str, Any]] = deque(maxlen=most)
        for found in self._store.dead_letters():
            counts[found["step"]] += 1
            if step in ("", found["step"]):
                kept.append(found)
        done = self._replays.done() if kept else set()
        return [_shown(each) | {"replayed": each["id"] in done} for each in reversed(kept)], dict(counts)

    def replay(self, ids: Collection[str]) -> int:
        """Sends dead letters back to their steps, with the next batch; how many will go that did not wait already."""
        return self._replays.ask(self._chosen(ids))

    def edit(self, id: str, payload: Mapping[str, object]) -> None:
        """Changes the record of a dead letter before it is sent back; a request that still waits is taken back."""
        self._chosen([id])
        try:
            self._store.edit(id, payload)
        except BadPayload as error:
            raise OptionError(f"dead letter {id!r} stays as it was: {error}") from None
        self._replays.withdraw({id})

    def drop(self, ids: Collection[str]) -> int:
        """Removes dead letters for good; how many there were."""
        gone = {found["id"] for found in self._chosen(ids)}
        self._replays.withdraw(gone)
        return self._store.drop(gone)

    def _chosen(self, ids: Collection[str]) -> list[dict[str, Any]]:
        wanted = set(ids)
        chosen = [found for found in self._store.dead_letters() if found["id"] in wanted]
        missing = wanted - {found["id"] for found in chosen}
        if missing:
            raise UnknownName(f"there is no dead letter {min(missing)!r}; look at the list again")
        return chosen


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value[:LARGEST_TEXT] if isinstance(value, str) else value for name, value in found.items()}
