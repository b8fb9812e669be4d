"""Who of a consumer group reads which partition, settled with file locks.

Each member holds a lock on a file of its own: it lives as long as its process. All members see the same list and work out the
same shares, and a member reads a partition only while it holds that partition's lock, so that no two ever read the same one.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from penstock.log.record import TopicPartition
from penstock.log.storage.files import FileLock, make_dir

_STALE = 60.0


def live_members(group: Path) -> dict[str, list[str]]:
    """The members whose processes live, with the topics they read; files of the dead are removed."""
    found: dict[str, list[str]] = {}
    folder = group / "members"
    for path in sorted(folder.glob("*.member")) if folder.is_dir() else []:
        try:
            if not _dead(path):
                found[path.stem] = json.loads(path.read_text())
        except FileNotFoundError:
            continue
    return found


def _dead(path: Path) -> bool:
    lock = FileLock(path)
    if not path.exists() or not lock.acquire(wait=False):
        return not path.exists()
    try:
        path.unlink(missing_ok=True)
    finally:
        lock.release()
    return True


def owner(group: Path, tp: TopicPartition) -> str | None:
    """The member that holds a partition now."""
    path = group / "claims" / f"{tp}.lock"
    if not path.exists():
        return None
    lock = FileLock(path)
    if not lock.acquire(wait=False):
        return path.read_text() or None
    lock.release()
    return None


def shares(members: dict[str, list[str]], partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
    """Who is to read what: the partitions of all topics dealt out in turn to the members that read the topic.

    >>> partitions = [TopicPartition("t", n) for n in range(3)]
    >>> [shares({"a": ["t"], "b": ["t"]}, partitions)[p] for p in partitions]
    ['a', 'b', 'a']
    """
    dealt: dict[TopicPartition, str] = {}
    for number, tp in enumerate(sorted(partitions)):
        readers = sorted(m for m, topics in members.items() if tp.topic in topics)
        if readers:
            dealt[tp] = readers[number % len(readers)]
    return dealt


class Member:
    """A member of a group, from joining to leaving."""

    def __init__(self, group: Path, topics: list[str]) -> None:
        self.group = group
        self.ident = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._claims: dict[TopicPartition, FileLock] = {}
        make_dir(group / "members")
        make_dir(group / "claims")
        self._path = group / "members" / f"{self.ident}.member"
        self._alive = FileLock(self._path.with_suffix(".new"))
        self._alive.acquire()
        self._alive.path.write_text(json.dumps(topics))
        self._alive.path.rename(self._path)
        self._sweep()

    def _sweep(self) -> None:
        for path in (self.group / "members").glob("*.new"):
            try:
                if time.time() - path.stat().st_mtime > _STALE:
                    _dead(path)
            except FileNotFoundError:
                continue

    @property
    def held(self) -> set[TopicPartition]:
        """The partitions this member may read."""
        return set(self._claims)

    def wanted(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """The partitions that are this member's share."""
        dealt = shares(live_members(self.group), partitions)
        return {tp for tp, member in dealt.items() if member == self.ident}

    def claim(self, tp: TopicPartition) -> bool:
        """Take a partition; False while another member still holds it."""
        lock = FileLock(self.group / "claims" / f"{tp}.lock")
        if not lock.acquire(wait=False):
            return False
        lock.path.write_text(self.ident)
        self._claims[tp] = lock
        return True

    def release(self, tp: TopicPartition) -> None:
        """Let others have a partition."""
        self._claims.pop(tp).release()

    def leave(self) -> None:
        """Let others have everything."""
        for tp in self.held:
            self.release(tp)
        self._path.unlink(missing_ok=True)
        self._alive.release()
