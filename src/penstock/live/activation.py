"""Whether the spouts of a flow emit, as somebody outside has asked for: a note in the checkpoint, which a restart finds too."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.location import Address
from penstock.storage import open_storage, read_if_present

DEACTIVATED = "deactivated"


@dataclass(frozen=True)
class Activation:
    """The note of a flow, in a folder of its checkpoint."""

    folder: Address

    @property
    def is_active(self) -> bool:
        """Whether spouts emit; they do unless there is a note."""
        return read_if_present(open_storage(self.folder), DEACTIVATED) is None

    def ask(self, on: bool) -> bool:
        """Asks that spouts emit, or that they do not; returns whether that is new. A run follows between two batches."""
        if on == self.is_active:
            return False
        storage = open_storage(self.folder)
        if on:
            storage.delete(DEACTIVATED)
        else:
            storage.write(DEACTIVATED, b"")
        return True
