"""The manifests of a sink of files: one for each batch, which makes it real and names its files."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.connectors.delivery import Entry
from penstock.connectors.files.disk import Disk, plain_path

FOLDER = "_penstock/manifests"


@dataclass(frozen=True)
class Named:
    """A file of a batch: its name in the folder, where it waits until it is there, its size and checksum."""

    name: str
    aside: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifests:
    """The manifests of one sink and one lineage, in the folder the sink writes to."""

    disk: Disk
    path: str
    sink: str
    lineage: str

    @property
    def folder(self) -> str:
        """Where they are."""
        return f"{self.path.rstrip('/')}/{FOLDER}/{self.sink}/{self.lineage}"

    def fence(self) -> int:
        """The fence of the last driver that took over; 0 when none has."""
        return max((int(n.removeprefix("fence-")) for n in self.disk.names(self.folder, "fence-")), default=0)

    def take_over(self) -> int:
        """Raises the fence; of two drivers that try at once each gets its own."""
        while True:
            mine = self.fence() + 1
            if self.disk.create(f"{self.folder}/fence-{mine:08d}", b""):
                return mine

    def last(self) -> dict[str, Any] | None:
        """The manifest of the last batch."""
        names = [n for n in self.disk.names(self.folder, "batch-") if n.endswith(".json")]
        return self._read(max(names)) if names else None

    def _read(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.disk.read(f"{self.folder}/{name}"))
        return made

    def put(self, entry: Entry, files: list[Named]) -> bool:
        """Makes a batch real; false when it was already."""
        body = asdict(entry) | {"files": [asdict(f) for f in files]}
        return self.disk.create(f"{self.folder}/batch-{entry.batch:08d}.json", json.dumps(body).encode())

    def settle(self, manifest: dict[str, Any]) -> None:
        """Moves the files of a batch that are not in their places yet."""
        for file in (Named(**f) for f in manifest["files"]):
            here, there = f"{self.path}/{file.name}", f"{self.path}/{file.aside}"
            if not self.disk.exists(here) and self.disk.exists(there):
                self.disk.move(there, here)


def entry_of(manifest: dict[str, Any] | None) -> Entry | None:
    """What the manifest says of its batch."""
    return None if manifest is None else Entry.from_json(json.dumps(manifest))


def committed_files(path: str) -> list[str]:
    """The files of all whole batches in a folder of this machine; none when no sink has kept manifests there."""
    folder = Path(plain_path(path))
    made: list[str] = []
    for manifest in sorted((folder / FOLDER).glob("*/*/batch-*.json")) if "://" not in str(folder) else []:
        for file in (Named(**f) for f in json.loads(manifest.read_text())["files"]):
            place = folder / file.name
            made.append(str(place if place.exists() else folder / file.aside))
    return made
