"""A disk that loses power: from the system calls of a run, what could be left on disk at any moment of it.

Content is safe once its file was synced, and a name once its directory was. Whatever came after may be there or not, a write
also in part, in any combination that keeps each file's own writes in order.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from penstock.log.storage.files import Call


@dataclass
class Inode:
    """A file: what is safe, and the changes after that."""

    safe: bytes = b""
    pending: list[Call] = field(default_factory=list)

    def now(self) -> bytes:
        return apply(self.safe, self.pending)

    def after_power_loss(self, chance: random.Random) -> bytes:
        kept = [call for call in self.pending if chance.random() < 0.6]
        if kept and kept[-1].op == "write" and chance.random() < 0.5:
            last = kept.pop()
            kept.append(last._replace(data=last.data[: chance.randrange(len(last.data) + 1)]))
        return apply(self.safe, kept)


def apply(content: bytes, calls: list[Call]) -> bytes:
    raw = bytearray(content)
    for call in calls:
        if call.op == "truncate":
            raw = raw[: call.offset] + bytes(max(call.offset - len(raw), 0))
        else:
            raw += bytes(max(call.offset - len(raw), 0))
            raw[call.offset : call.offset + len(call.data)] = call.data
    return bytes(raw)


class Disk:
    """The files below a directory, call by call."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = {str(p) for p in root.rglob("*") if p.is_dir()} | {str(root)}
        self.names = {str(p): Inode(p.read_bytes()) for p in root.rglob("*") if p.is_file()}
        self.safe_names = dict(self.names)
        self.calls: list[Call] = []

    def note(self, call: Call) -> None:
        self.calls.append(call)

    def perform(self, call: Call) -> None:
        """Take over one call."""
        if call.op == "create":
            inode = self.names.setdefault(call.path, Inode())
            if call.path.endswith((".tmp", ".new")):
                inode.pending.append(Call("truncate", call.path, 0))
        elif call.op in ("write", "truncate"):
            self.names[call.path].pending.append(call)
        elif call.op == "sync":
            inode = self.names[call.path]
            inode.safe, inode.pending = inode.now(), []
        elif call.op == "mkdir":
            self.folders.add(call.path)
        elif call.op == "unlink":
            self.names.pop(call.path, None)
        elif call.op == "rename":
            self.names[call.target] = self.names.pop(call.path)
        elif call.op == "sync_dir":
            self._sync_names(call.path)

    def _sync_names(self, folder: str) -> None:
        for path in {*self.names, *self.safe_names}:
            if str(Path(path).parent) == folder:
                if path in self.names:
                    self.safe_names[path] = self.names[path]
                else:
                    self.safe_names.pop(path, None)

    def lose_power(self, target: Path, chance: random.Random) -> None:
        """Write what could be left to another directory."""
        shutil.rmtree(target, ignore_errors=True)
        for folder in self.folders:
            (target / os.path.relpath(folder, self.root)).mkdir(parents=True, exist_ok=True)
        for path in sorted({*self.names, *self.safe_names}):
            choices = [self.names.get(path), self.safe_names.get(path)]
            inode = chance.choice(choices)
            if inode is not None:
                (target / os.path.relpath(path, self.root)).write_bytes(inode.after_power_loss(chance))
