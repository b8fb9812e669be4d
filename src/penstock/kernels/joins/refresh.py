"""When a static table must be read again."""

from __future__ import annotations

from pathlib import Path

from penstock.graph.endpoints.basic import matching_files
from penstock.graph.nodes import JoinStatic
from penstock.graph.nodes.join import CHANGED


class Freshness:
    """Knows when the table of a join was read, and of what state it was."""

    def __init__(self, node: JoinStatic) -> None:
        self.node, self.read = node, False
        self.at = 0
        self.version: object = None

    def stale(self, now: int) -> bool:
        """Whether the table is to be read, at a processing time; then it counts as read."""
        version = self._version()
        every = self.node.refresh
        old = isinstance(every, int) and now - self.at >= every
        if self.read and not old and version == self.version:
            return False
        self.read, self.at, self.version = True, now, version
        return True

    def _version(self) -> object:
        """What changes when the table does: the names, times and sizes of its files, or what the user's function says."""
        if callable(self.node.refresh):
            return self.node.refresh()
        return _files(self.node.table.options["path"]) if self.node.refresh == CHANGED else None


def _files(path: str) -> list[tuple[str, int, int]]:
    found = []
    for name in matching_files(path):
        try:
            about = Path(name).stat()
        except FileNotFoundError:  # gone since it was listed
            continue
        found.append((name, about.st_mtime_ns, about.st_size))
    return found
