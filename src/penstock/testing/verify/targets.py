"""The sinks that can be verified: how each is set up, written to by the flow, and read as its users read it.

A target of your own is a subclass of `Target`; `penstock verify my_package.my_module:MyTarget` runs it.
"""

from __future__ import annotations

import importlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.files.manifests import manifests_of
from penstock.connectors.redis import wire
from penstock.errors import Impossible, UnknownName, nearest
from penstock.graph.endpoints.basic import write_files
from penstock.graph.endpoints.kafka import write_kafka
from penstock.graph.endpoints.log import write_topic
from penstock.graph.endpoints.servers import write_postgres, write_redis
from penstock.graph.endpoints.sniff_postgres import driver
from penstock.graph.nodes import Endpoint
from penstock.jobs.broker import Broker
from penstock.log import Log
from penstock.testing.servers import postgres_server, redis_server

if TYPE_CHECKING:
    from confluent_kafka import Message

PARTITIONS = 2
"""Of the topics written to."""


@dataclass(frozen=True, order=True)
class SinkRow:
    """A row of the sink."""

    key: str
    nth: int
    id: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SinkRow:
        """A row from its fields, which may be text."""
        return cls(str(row["key"]), int(row["nth"]), int(row["id"]))


@dataclass(frozen=True)
class Glance:
    """What a reader knows of one part of the sink at one moment: how many rows are there, and the sum of their ids."""

    rows: int = 0
    total: int = 0

    def with_rows(self, rows: list[SinkRow]) -> Glance:
        """The same with more rows."""
        return Glance(self.rows + len(rows), self.total + sum(row.id for row in rows))


class Target:
    """A sink under test. `address` is what the flow must know of it, as plain values that go to another process."""

    ordered: ClassVar[bool] = True
    """Whether the sink keeps rows in the order of arrival."""
    server: ClassVar[bool] = False
    """Whether it can be a server of the user's own."""

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """Sets the sink up, in the folder or on the server; returns its address. All is gone afterwards."""
        raise NotImplementedError

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The sink as the flow names it."""
        raise NotImplementedError

    def reader(self, address: dict[str, Any]) -> Reader:
        """Somebody who reads it, as its docs say it must be read."""
        raise NotImplementedError


class Reader:
    """Reads a sink again and again. Parts that cannot be read at one moment (partitions) are kept apart."""

    def glance(self) -> dict[int, Glance]:
        """What is there now, by part."""
        raise NotImplementedError

    def rows(self) -> dict[int, list[SinkRow]]:
        """All rows, by part, in the order of the sink if it has one."""
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of the sink."""


@dataclass
class FollowingReader(Reader):
    """The base of readers that only ever read what is new."""

    found: dict[int, list[SinkRow]] = field(default_factory=dict)
    _glances: dict[int, Glance] = field(default_factory=dict)

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        """The rows that are new since the last time, by part."""
        raise NotImplementedError

    def glance(self) -> dict[int, Glance]:
        """What is there now, by part."""
        for part, rows in self.more():
            self.found.setdefault(part, []).extend(rows)
            self._glances[part] = self._glances.get(part, Glance()).with_rows(rows)
        return dict(self._glances)

    def rows(self) -> dict[int, list[SinkRow]]:
        """All rows so far."""
        self.glance()
        return self.found


class LogTarget(Target):
    """A topic of the embedded log. A batch is complete within each partition."""

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A log beside the one that is read from."""
        with Log(folder / "out") as log:
            log.create_topic("out", PARTITIONS)
        yield {"path": str(folder / "out")}

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The topic."""
        return write_topic("out", key="key", path=address["path"], partitions=PARTITIONS)

    def reader(self, address: dict[str, Any]) -> Reader:
        """A reader of all partitions."""
        return LogReader(address["path"])


class LogReader(FollowingReader):
    """Reads to the end of each partition."""

    def __init__(self, path: str) -> None:

        super().__init__()
        self.log, self.at = Log(path), dict.fromkeys(range(PARTITIONS), 0)

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        """The records between the last end and this one."""
        for part, (_, end) in self.log.offsets("out").items():
            if end > self.at[part]:
                values = self.log.read_arrow("out", part, self.at[part], end).column("value").to_pylist()
                self.at[part] = end
                yield part, [SinkRow.of(json.loads(v)) for v in values]

    def close(self) -> None:
        """Closes the log."""
        self.log.close()


class FilesTarget(Target):
    """Parquet files, read by their manifests."""

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A folder."""
        yield {"path": str(folder / "out")}

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The folder."""
        return write_files(address["path"], "parquet")

    def reader(self, address: dict[str, Any]) -> Reader:
        """A reader of manifests."""
        return FilesReader(Path(address["path"]))


class FilesReader(FollowingReader):
    """Reads the files of each new manifest."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.read = folder, set[str]()

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        """The rows of the manifests that are new."""
        for path, manifest in manifests_of(self.folder):
            if path not in self.read:
                self.read.add(path)
                yield 0, [row for f in manifest["files"] for row in self._rows(f)]

    def _rows(self, file: dict[str, Any]) -> list[SinkRow]:
        """The rows of a file, which may be moved there just now."""
        import pyarrow.parquet as pq

        for name in (file["aside"], file["name"], file["aside"]):
            try:
                return [SinkRow.of(row) for row in pq.read_table(self.folder / name, partitioning=None).to_pylist()]
            except FileNotFoundError:
                continue
        raise FileNotFoundError(self.folder / file["name"])


class PostgresTarget(Target):
    """A table."""

    ordered = False
    server = True

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A table of its own, on a server of its own unless there is one."""
        psycopg = driver()
        with _server(postgres_server, url) as at, psycopg.connect(at, autocommit=True) as db:
            table, workspace = _fresh_name(), _fresh_name()
            db.execute(f"create table {table} (key text, nth bigint, id bigint)")
            try:
                yield {"url": at, "table": table, "workspace": workspace}
            finally:
                db.execute(f"drop table {table}; drop schema if exists {workspace} cascade")

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The table."""
        return write_postgres(address["url"], address["table"], workspace=address["workspace"])

    def reader(self, address: dict[str, Any]) -> Reader:
        """A reader of the table."""
        return PostgresReader(address["url"], address["table"])


class PostgresReader(Reader):
    """Asks for the number of rows and the sum of their ids."""

    def __init__(self, url: str, table: str) -> None:
        import psycopg

        self.db, self.table = psycopg.connect(url, autocommit=True), table

    def _ask(self, what: str) -> list[Any]:
        return self.db.execute(f"select {what} from {self.table}").fetchall()

    def glance(self) -> dict[int, Glance]:
        """What is there now; a table is one part."""
        [(rows, total)] = self._ask("count(*), coalesce(sum(id), 0)")
        return {0: Glance(rows, int(total))}

    def rows(self) -> dict[int, list[SinkRow]]:
        """All rows."""
        return {0: [SinkRow(*row) for row in self._ask("key, nth, id")]}

    def close(self) -> None:
        """Ends the connection."""
        self.db.close()


class RedisTarget(Target):
    """A stream."""

    server = True

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A stream of its own, on a server of its own unless there is one."""
        redis = wire.driver()
        with _server(redis_server, url) as at, redis.Redis.from_url(at) as client:
            name = _fresh_name()
            try:
                yield {"url": at, "name": name}
            finally:
                client.delete(name)

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The stream."""
        return write_redis(address["url"], "stream", name=address["name"])

    def reader(self, address: dict[str, Any]) -> Reader:
        """A reader of the stream."""
        return RedisReader(address["url"], address["name"])


class RedisReader(FollowingReader):
    """Reads what stands after the last entry seen, in one command."""

    def __init__(self, url: str, name: str) -> None:
        import redis

        super().__init__()
        self.client, self.name, self.last = redis.Redis.from_url(url, decode_responses=True), name, "-"

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        """The entries since the last one."""
        entries: Any = self.client.xrange(self.name, min=self.last)
        if entries:
            self.last = f"({entries[-1][0]}"
            yield 0, [SinkRow.of(fields) for _, fields in entries]

    def close(self) -> None:
        """Ends the connection."""
        self.client.close()


class KafkaTarget(Target):
    """A topic of Kafka, read with `read_committed`."""

    server = True

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A topic of its own, on a broker of its own unless there is one."""
        from confluent_kafka.admin import AdminClient, NewTopic

        with _broker(folder, url) as servers:
            admin, name = AdminClient({"bootstrap.servers": servers, "log_level": 2}), _fresh_name()
            admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(60)
            try:
                yield {"servers": servers, "topic": name}
            finally:
                known = admin.list_topics(timeout=60).topics
                for gone in admin.delete_topics([n for n in (name, f"{name}-ledger") if n in known]).values():
                    gone.result(60)

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The topic."""
        return write_kafka(address["topic"], servers=address["servers"], key="key", ledger=f"{address['topic']}-ledger")

    def reader(self, address: dict[str, Any]) -> Reader:
        """A reader of all partitions."""
        return KafkaReader(address["servers"], address["topic"])


class KafkaReader(FollowingReader):
    """Reads to the last stable offset of each partition."""

    def __init__(self, servers: str, topic: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        super().__init__()
        settings = {
            "bootstrap.servers": servers,
            "group.id": topic,
            "isolation.level": "read_committed",
            "log_level": 2,
        }
        self.consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
        self.partitions = [TopicPartition(topic, p, 0) for p in range(PARTITIONS)]
        self.at = dict.fromkeys(range(PARTITIONS), 0)
        self.waiting: dict[int, list[Any]] = {p: [] for p in range(PARTITIONS)}
        self.consumer.assign(self.partitions)

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        """The records up to the ends as they are now; what comes later waits for the next time."""
        wanted = {p.partition: self.consumer.get_watermark_offsets(p, timeout=30)[1] for p in self.partitions}
        while any(self.at[part] < end for part, end in wanted.items()):
            for message in self.consumer.consume(10_000, 0.2):
                self._take(message)
        for part, end in wanted.items():
            now = [m for m in self.waiting[part] if m.offset() < end]
            self.waiting[part] = self.waiting[part][len(now) :]
            yield part, [SinkRow.of(json.loads(m.value())) for m in now]

    def _take(self, message: Message) -> None:
        part, record = message.partition(), message.error() is None
        self.at[part] = max(self.at[part], message.offset() + record)
        if record:
            self.waiting[part].append(message)

    def close(self) -> None:
        """Leaves the broker."""
        self.consumer.close()


TARGETS: dict[str, type[Target]] = {
    "log": LogTarget,
    "files": FilesTarget,
    "postgres": PostgresTarget,
    "redis": RedisTarget,
    "kafka": KafkaTarget,
}
STORES = {name: f"penstock.testing.verify.store_targets:{name.title()}Target" for name in ("s3", "hdfs")}
"""Targets that need the libraries of stores."""


def target_of(name: str) -> Target:
    """A target by its name, or of the user's own by `module:Class`."""
    name = STORES.get(name, name)
    if ":" not in name:
        if name not in TARGETS:
            known = [*TARGETS, *STORES]
            raise UnknownName(f"no sink {name!r} to verify; {nearest(name, known)}. Your own is module:Class")
        return TARGETS[name]()
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"{name!r} cannot be found: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Target)):
        raise Impossible(f"{name!r} must be a subclass of penstock.testing.verify.Target")
    return found()


def _fresh_name() -> str:
    return f"verify_{uuid.uuid4().hex[:12]}"


@contextmanager
def _server(start: Callable[[], Any], url: str) -> Iterator[str]:
    if url:
        yield url
        return
    with start() as server:
        yield server.url


@contextmanager
def _broker(folder: Path, url: str) -> Iterator[str]:
    if url:
        yield url
        return
    broker = Broker(folder / "broker").start()
    try:
        yield broker.address
    finally:
        broker.stop()
