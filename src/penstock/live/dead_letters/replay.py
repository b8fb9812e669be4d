"""Replay of dead letters: records go back to the step that failed on them, with the next batch.

`penstock dlq replay` puts requests under `pending`. A batch claims what is there by putting it into one object of its own number, so that it has
the same records when it runs again; what it has claimed waits no more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.kernels.errors.payload import read_payload
from penstock.live.dead_letters.damage import read_requests
from penstock.location import Address
from penstock.storage import Conflict, NotFound, Storage, names_under, open_storage

Replayed = dict[tuple[str, int], list[Any]]
"""Records, their values by name, by the step that takes them and the number of its input."""
RAW = -1
"""The input at which a source takes records again that it could not read."""
PENDING = "pending/"
CLAIMED = "claimed/"


@dataclass(frozen=True)
class Replays:
    """The requests of a flow, in a folder."""

    folder: Address

    @property
    def storage(self) -> Storage:
        """What keeps them."""
        return open_storage(self.folder)

    def ask(self, dead_letters: Iterable[dict[str, Any]]) -> int:
        """Asks for dead letters to be replayed, but for those that wait already; returns how many wait more."""
        waiting = self.waiting()
        wanted = [
            {"id": m["id"], "step": m["step"], "input_index": 0, "payload": m["payload"]}
            for m in dead_letters
            if m["id"] not in waiting
        ]
        if wanted:
            self.storage.put_if_absent(f"{PENDING}{uuid.uuid4().hex}.json", json.dumps(wanted).encode())
        return len(wanted)

    def withdraw(self, ids: Collection[str]) -> None:
        """Takes back requests that still wait for a batch: their dead letters have been changed or dropped."""
        for name in names_under(self.storage, PENDING):
            try:
                self._withdraw(name, ids)
            except (NotFound, Conflict):  # a batch has taken them meanwhile
                continue

    def _withdraw(self, name: str, ids: Collection[str]) -> None:
        content, version = self.storage.read_versioned(name)
        asked = json.loads(content)
        kept = [each for each in asked if each["id"] not in ids]
        if not kept:
            self.storage.delete(name)
        elif kept != asked:
            self.storage.compare_and_swap(name, version, json.dumps(kept).encode())

    def claim(self, batch: int, *, again: bool = True) -> Replayed:
        """The records that a batch replays: those that it has claimed before, if it may run `again`, else all that wait."""
        claimed = self._claimed(batch, again=again)
        made: Replayed = {}
        for each in claimed["requests"]:
            found = read_payload(each["payload"])
            if found.raw is None:
                made.setdefault((each["step"], each["input_index"]), []).append(found.values)
            else:
                made.setdefault((each["step"], RAW), []).append({"value": found.raw, **found.values})
        return made

    def _claimed(self, batch: int, *, again: bool = True) -> dict[str, Any]:
        """What a batch has claimed, with the names of what waited. To wait no more comes last: a crash before that finds the claim."""
        name = f"{CLAIMED}{batch}.json"
        waiting = names_under(self.storage, PENDING)
        if waiting:
            requests = [each for found in waiting for each in self._requests(found)]
            self.storage.put_if_absent(name, json.dumps({"names": waiting, "requests": requests}).encode())
        elif not again:
            return {"names": [], "requests": []}
        try:
            claimed: dict[str, Any] = read_requests(self.folder, name)
        except NotFound:
            return {"names": [], "requests": []}
        self.storage.delete(*claimed["names"])
        return claimed

    def _requests(self, name: str) -> list[dict[str, Any]]:
        """The requests of an object; none when it was withdrawn or claimed since its name was read."""
        try:
            found = read_requests(self.folder, name)
        except NotFound:
            return []
        made: list[dict[str, Any]] = found if isinstance(found, list) else found["requests"]
        return made

    def give_back(self, batch: int, steps: set[str]) -> None:
        """Takes the requests for some steps out of what a batch has claimed; their dead letters can be asked for again."""
        claimed = self._claimed(batch)
        left = [each for each in claimed["requests"] if each["step"] not in steps]
        if left != claimed["requests"]:
            self.storage.write(f"{CLAIMED}{batch}.json", json.dumps({**claimed, "requests": left}).encode())

    @property
    def has_pending(self) -> bool:
        """Whether requests wait for a batch."""
        return bool(self.storage.children(PENDING))

    def done(self) -> set[str]:
        """The ids of all dead letters that a batch has taken; what still waits for one is not among them."""
        return self._ids(CLAIMED)

    def waiting(self) -> set[str]:
        """The ids of all dead letters that wait for a batch to take them."""
        return self._ids(PENDING)

    def _ids(self, prefix: str) -> set[str]:
        names = names_under(self.storage, prefix)
        return {each["id"] for name in names for each in self._requests(name)}
