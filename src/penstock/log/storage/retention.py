"""Retention: old segments go, whole, when they are too old or the partition is too large.

The new first offset is on record before a file is deleted, so that a reader gets "removed" and not "damaged". A
reader that has a deleted file open reads it to its end.
"""

from __future__ import annotations

from itertools import pairwise

from penstock.log.partition import Partition
from penstock.log.storage.batch import BadBatch
from penstock.log.storage.files import File, FileLock, sync_dir
from penstock.log.storage.index import NEVER
from penstock.log.storage.position import PartitionDirectory
from penstock.log.storage.segment import walk
from penstock.log.topic import TopicConfig


def newest(directory: PartitionDirectory, base: int) -> int:
    """The newest timestamp of a segment, but not later than the segment was written: a clock that ran ahead keeps nothing."""
    with File(directory.segment(base)) as file:
        written = directory.segment(base).stat().st_mtime_ns // 1_000_000
        try:
            headers = walk(file, 0, file.size(), directory.tag)
            return min(max((h.max_time for _, h in headers if h.records), default=NEVER), written)
        except BadBatch:
            return written


def expire(partition: Partition, config: TopicConfig, now_ms: int, *, roll: bool = True) -> list[int]:
    """Delete the segments that retention does not keep; their first offsets.

    With `roll`, a last segment whose records are all too old is closed first, so that it can go too.
    """
    if config.cleanup != "delete" or (config.retention_ms is None and config.retention_bytes is None):
        return []
    directory = partition.directory
    lock = FileLock(directory.clean_lock)
    if not lock.acquire(wait=roll):
        return []
    try:
        bases = directory.bases()
        if roll and bases and partition.end() > bases[-1] and _too_old(directory, bases[-1], config, now_ms):
            partition.writer.roll()
        return _drop(directory, _doomed(directory, config, now_ms))
    finally:
        lock.release()


def _too_old(directory: PartitionDirectory, base: int, config: TopicConfig, now_ms: int) -> bool:
    return config.retention_ms is not None and newest(directory, base) < now_ms - config.retention_ms


def _doomed(directory: PartitionDirectory, config: TopicConfig, now_ms: int) -> list[int]:
    """The oldest segments, as many as have to go; never the last."""
    bases = directory.bases()
    sizes = {base: directory.segment(base).stat().st_size for base in bases}
    total = sum(sizes.values())
    start = directory.start()
    doomed: list[int] = []
    for base, after in pairwise(bases):
        too_much = config.retention_bytes is not None and total - sizes[base] >= config.retention_bytes
        if after > start and not too_much and not _too_old(directory, base, config, now_ms):
            break
        total -= sizes[base]
        doomed.append(base)
    return doomed


def _drop(directory: PartitionDirectory, doomed: list[int]) -> list[int]:
    if doomed:
        bases = directory.bases()
        directory.set_start(bases[bases.index(doomed[-1]) + 1])
        for base in doomed:
            directory.drop(base)
        sync_dir(directory.path)
    return doomed
