"""The ledger of a sink of files: a chain of small files that only grows.

A link of the chain is either a manifest, which makes a batch real and names its files, or the note of a driver that has taken over. Each has a
position, and no two can have the same, so whoever adds one has seen all before it: a driver that was replaced while it was paused
finds its position taken, and looks again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.connectors.delivery import Entry
from penstock.connectors.files.disk import Disk, plain_path
from penstock.errors import RunError

FOLDER = "_penstock/manifests"


@dataclass(frozen=True)
class BatchFile:
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

    def take_over(self) -> int:
        """Raises the fence; of two drivers that try at once each gets its own."""
        while True:
            tail = self.tail()
            if self._add(tail, {"fence": tail.fence + 1}):
                return tail.fence + 1

    def tail(self) -> Tail:
        """The end of the chain: the next position, the highest fence, and the manifest of the last batch."""
        names = sorted((n for n in self.disk.names(self.folder, "") if is_link(n)), reverse=True)
        position = int(names[0].removesuffix(".json")) + 1 if names else 0
        fence = 0
        for name in names:
            link = self._read(name)
            fence = max(fence, link["fence"])
            if "files" in link:
                return Tail(position, fence, link)
        return Tail(position, fence)

    def put(self, tail: Tail, entry: Entry, files: list[BatchFile]) -> bool:
        """Makes a batch real; false when another link was added after the tail meanwhile."""
        return self._add(tail, link_of(entry, files))

    def _add(self, tail: Tail, link: Link) -> bool:
        return self.disk.create(f"{self.folder}/{tail.position:08d}.json", json.dumps(link).encode())

    def _read(self, name: str) -> Link:
        made: Link = json.loads(self.disk.read(f"{self.folder}/{name}"))
        return made

    def settle(self, manifest: Link) -> None:
        """Moves the files of a batch that are not at their final paths yet; another driver may do the same just now."""
        for file in (BatchFile(**f) for f in manifest["files"]):
            final, aside = f"{self.path}/{file.name}", f"{self.path}/{file.aside}"
            if not self.disk.exists(final) and self.disk.exists(aside):
                self._move(aside, final)

    def _move(self, aside: str, final: str) -> None:
        try:
            self.disk.move(aside, final)
        except (OSError, RunError):
            if not self.disk.exists(final):
                raise


Link = dict[str, Any]
"""A link as JSON has it."""


@dataclass(frozen=True)
class Tail:
    """The end of a chain: the position of the next link, the highest fence, and the last manifest."""

    position: int
    fence: int
    manifest: Link | None = None

    def after(self, link: Link) -> Tail:
        """The end of the chain when this link has been added."""
        return Tail(self.position + 1, max(self.fence, link["fence"]), link)


@dataclass
class SeenTail:
    """The end of a chain as this driver has seen it last, so that it need not list the chain for each batch.

    It may be believed until a link is added: one that another driver has added since has taken its position.
    """

    tail: Tail | None = None


def link_of(entry: Entry, files: list[BatchFile]) -> Link:
    """The manifest of a batch."""
    return asdict(entry) | {"files": [asdict(f) for f in files]}


def is_link(name: str) -> bool:
    """Whether a file is a link of a chain, by its name."""
    return name.removesuffix(".json").isdigit()


def entry_of(manifest: Link | None) -> Entry | None:
    """What the manifest says of its batch."""
    return None if manifest is None else Entry.from_json(json.dumps(manifest))


def manifests_of(folder: Path) -> Iterator[tuple[str, Link]]:
    """The manifests of all sinks and lineages in a folder of this machine, each with its path, in the order of their batches."""
    for path in sorted((folder / FOLDER).glob("*/*/*.json")):
        link: Link = json.loads(path.read_text()) if is_link(path.name) else {}
        if "files" in link:
            yield str(path), link


def committed_files(path: str) -> list[str]:
    """The files of all complete batches in a folder of this machine; none when no sink has kept manifests there."""
    return [file for files in committed_by_folder(path).values() for file in files]


def committed_by_folder(path: str) -> dict[str, list[str]]:
    """The same by the folder below which folders are named by values: files that wait aside have one of their own."""
    folder = Path(plain_path(path))
    made: dict[str, list[str]] = {}
    for _, manifest in manifests_of(folder) if "://" not in str(folder) else ():
        for file in (BatchFile(**f) for f in manifest["files"]):
            final = folder / file.name
            found = final if final.exists() else folder / file.aside
            made.setdefault(str(found.parents[file.name.count("/")]), []).append(str(found))
    return made
