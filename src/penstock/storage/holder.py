"""Processes that hold something, and how it is known on their machine that they are gone."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """A process that may hold a lease: an id of its own, and where it runs."""

    id: str
    host: str = ""
    boot: str = ""
    pid: int = 0
    began: str = ""
    """When the process began, as its machine counts: process ids are used again."""

    @classmethod
    def this_process(cls) -> Holder:
        """The process at hand, with a new id."""
        return cls(uuid.uuid4().hex, socket.gethostname(), _boot(), os.getpid(), began_at(os.getpid()))

    @property
    def has_died(self) -> bool:
        """Whether it ran on this machine, since it was started last, and is gone."""
        return (
            bool(self.boot) and self.boot == _boot() and not _is_hidden(self.pid) and began_at(self.pid) != self.began
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.host else self.id


def _boot() -> str:
    """Identifies the machine since it was started, and the process ids that it gives out."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def began_at(pid: int) -> str:
    """When a process of this machine began, in ticks since the machine did; empty when there is none, or only what is left of one that died."""
    try:
        state, *words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else words[18]


def _is_hidden(pid: int) -> bool:
    """Whether a process runs of which this user is not shown when it began."""
    if Path(f"/proc/{pid}").exists():
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
