"""The logs and Kafka clusters that jobs read and write: topics, offsets, sizes and groups; records to look at, and to put there.

A log is known by what its jobs said of it, and by a short name that is made of its path: no path comes from a request. So is a cluster, by its addresses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from penstock.errors import UnknownName, nearest
from penstock.jobs.manager.insight.clusters import ClusterLooks, KafkaUse, topic_of_kafka
from penstock.log import Log, LogDamaged, Record, predicate

MOST_SCANNED = 20_000
"""How many records a filter looks at."""
LARGEST_VALUE = 10_000
"""Of a longer value the beginning is shown."""
MARK = "penstock-log.json"


@dataclass(frozen=True)
class JobLog:
    """A log, and the jobs that use it."""

    path: Path
    jobs: tuple[str, ...]

    @property
    def id(self) -> str:
        """Its short name."""
        return hashlib.sha256(str(self.path).encode()).hexdigest()[:12]


def is_log(path: Path) -> bool:
    """Whether a directory is that of a log, which this user may look at."""
    try:
        return (path / MARK).is_file()
    except OSError:
        return False


@dataclass(frozen=True)
class JobCluster:
    """A Kafka cluster, the topics of it that jobs use, and the jobs."""

    servers: str
    jobs: tuple[str, ...]
    uses: tuple[KafkaUse, ...]
    looks: ClusterLooks = field(compare=False)

    @property
    def id(self) -> str:
        """Its short name."""
        return hashlib.sha256(f"kafka {self.servers}".encode()).hexdigest()[:12]


def clusters_of(plans: Iterable[tuple[str, dict[str, object]]], looks: ClusterLooks) -> dict[str, JobCluster]:
    """The Kafka clusters that jobs name in their plans, by their short names."""
    users: dict[str, list[tuple[str, KafkaUse]]] = {}
    for job, plan in plans:
        named = plan.get("kafka")
        for each in named if isinstance(named, list) else ():
            use = KafkaUse.of(each)
            if use is not None:
                users.setdefault(use.servers, []).append((job, use))
    found = [
        JobCluster(servers, tuple(dict.fromkeys(job for job, _ in used)), tuple(use for _, use in used), looks)
        for servers, used in users.items()
    ]
    return {cluster.id: cluster for cluster in found}


def logs_of(plans: Iterable[tuple[str, dict[str, object]]]) -> dict[str, JobLog]:
    """The logs that jobs name in their plans, where they are there, by their short names."""
    users: dict[Path, list[str]] = {}
    for job, plan in plans:
        named = plan.get("logs")
        for path in named if isinstance(named, list) else ():
            if isinstance(path, str) and Path(path).is_absolute() and is_log(Path(path)):
                users.setdefault(Path(path), []).append(job)
    found = [JobLog(path, tuple(jobs)) for path, jobs in users.items()]
    return {log.id: log for log in found}


def describe_log(log: JobLog | JobCluster) -> dict[str, Any]:
    """The topics of a log, and the groups that read them; of a cluster as they were at the last look."""
    if isinstance(log, JobCluster):
        about = {"log": log.id, "kind": "kafka", "name": log.servers, "jobs": list(log.jobs)}
        return {**about, **log.looks.last(log.servers, log.uses)}
    with Log(log.path) as found:
        topics = [_topic(found, name) for name in found.topics()]
        groups = [found.groups.describe(name) for name in found.groups.names()]
    lags = [
        {"group": group.name, "members": len(group.members), "lag": offset.lag, **asdict(offset)}
        for group in groups
        for offset in group.offsets
    ]
    for topic in topics:
        topic["groups"] = [
            {k: v for k, v in lag.items() if k != "topic"} for lag in lags if lag["topic"] == topic["topic"]
        ]
    return {"log": log.id, "kind": "log", "name": "", "jobs": list(log.jobs), "topics": topics, "error": ""}


def _topic(found: Log, name: str) -> dict[str, Any]:
    info = found.describe(name)
    partitions = [{k: v for k, v in asdict(p).items() if k != "damage"} for p in info.partitions]
    kept = {"retention_ms": info.config.retention_ms, "retention_bytes": info.config.retention_bytes}
    return {
        "topic": name,
        "cleanup": info.config.cleanup,
        **kept,
        "records": sum(p.end - p.start for p in info.partitions),
        "bytes": sum(p.bytes for p in info.partitions),
        "damage": sum(len(p.damage) for p in info.partitions),
        "partitions": partitions,
    }


def peek(
    log: JobLog | JobCluster, topic: str, most: int, where: str = "", partition: int | None = None
) -> list[dict[str, Any]]:
    """The newest records of a topic, the newest first, those that a filter lets through; the filter is a predicate of the log, never code."""
    wants = predicate(where) if where else None
    if isinstance(log, JobCluster):
        newest = topic_of_kafka(log.servers, log.uses, topic).newest(MOST_SCANNED if wants else most, partition)
        return _newest([r for r in newest if wants is None or wants(r)], most)
    with Log(log.path) as found:
        check_topic(found, topic)
        chosen = {p: ends for p, ends in found.offsets(topic).items() if partition in (None, p)}
        records: list[Record] = []
        for p, (start, end) in chosen.items():
            scanned = max(start, end - (MOST_SCANNED if wants else most))
            read = found.read(topic, p, scanned, MOST_SCANNED)
            matched = [r for r in read if wants is None or wants(r)]
            records += matched[-most:]
    return _newest(records, most)


def _newest(records: list[Record], most: int) -> list[dict[str, Any]]:
    records.sort(key=lambda r: (r.timestamp, r.partition, r.offset), reverse=True)
    return [_record(record) for record in islice(records, most)]


def produce(log: JobLog | JobCluster, topic: str, value: str, key: str | None = None) -> dict[str, int]:
    """Puts a record into a topic; where it is."""
    if isinstance(log, JobCluster):
        made = topic_of_kafka(log.servers, log.uses, topic).put(value.encode(), None if key is None else key.encode())
        return {"partition": made[0], "offset": made[1]}
    with Log(log.path) as found:
        check_topic(found, topic)
        with found.producer() as producer:
            sent = producer.send(topic, value.encode(), None if key is None else key.encode()).result()
    return {"partition": sent.partition, "offset": sent.offset}


def read_on(path: Path, topic: str, partition: int, offset: int, most: int) -> tuple[list[dict[str, Any]], int]:
    """Records of a partition from an offset on, and the offset after them; what is not there any more, or is damaged, is passed over."""
    with Log(path) as found:
        check_topic(found, topic)
        ends = found.offsets(topic)
        if partition not in ends:
            raise UnknownName(f"topic {topic!r} has the partitions 0 to {len(ends) - 1}, got {partition}")
        start, end = ends[partition]
        at = max(offset, start)
        records: list[Record] = []
        while at < end and not records:
            try:
                records = found.read(topic, partition, at, most)
                at = records[-1].offset + 1 if records else end
            except LogDamaged as error:
                at = error.damage.next
    return [_record(record) for record in records], at


def check_topic(found: Log, topic: str) -> None:
    """Raises UnknownName for a topic that is not there."""
    if topic not in (known := found.topics()):
        raise UnknownName(f"there is no topic {topic!r}; {nearest(topic, known)}")


def _record(record: Record) -> dict[str, Any]:
    value = None if record.value is None else record.value[:LARGEST_VALUE].decode(errors="backslashreplace")
    key = None if record.key is None else record.key[:1_000].decode(errors="backslashreplace")
    headers = [
        [name, None if raw is None else raw[:1_000].decode(errors="backslashreplace")] for name, raw in record.headers
    ]
    place = {"partition": record.partition, "offset": record.offset, "timestamp": record.timestamp}
    return {**place, "key": key, "value": value, "headers": headers}
