"""Files in stores as sinks under test, with the checkpoint in the same store: `s3` and `hdfs`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.connectors.files.manifests import FOLDER, is_link
from penstock.graph.endpoints.basic import write_files
from penstock.graph.nodes import Endpoint
from penstock.storage import NotFound, Storage, delete_under, names_under, storage_at
from penstock.testing.stores import StoreServer, hdfs_server, s3_server
from penstock.testing.verify.targets import FollowingReader, Reader, SinkRow, Target


class StoreTarget(Target):
    """Parquet files of a store, read by their manifests. The flow's checkpoint is there too, so a driver that was killed goes on from nothing else."""

    server = True
    start: ClassVar[Callable[[], AbstractContextManager[StoreServer]]]

    @contextmanager
    def running(self, folder: Path, url: str) -> Iterator[dict[str, Any]]:
        """A prefix of its own, on a server of its own unless there is one."""
        with self._store(url) as at:
            own = f"{at.rstrip('/')}/verify-{uuid.uuid4().hex[:12]}"
            try:
                yield {"path": f"{own}/out", "checkpoint": f"{own}/checkpoint"}
            finally:
                delete_under(storage_at(own), "")

    @contextmanager
    def _store(self, url: str) -> Iterator[str]:
        if url:
            yield url
            return
        with type(self).start() as store, store.as_environment() as own:
            yield own

    def endpoint(self, address: dict[str, Any]) -> Endpoint:
        """The files."""
        return write_files(address["path"], "parquet")

    def reader(self, address: dict[str, Any]) -> Reader:
        """A reader of manifests."""
        return StoredFilesReader(storage_at(address["path"]))


class S3Target(StoreTarget):
    """Files on S3."""

    start = staticmethod(s3_server)


class HdfsTarget(StoreTarget):
    """Files on HDFS."""

    start = staticmethod(hdfs_server)


class StoredFilesReader(FollowingReader):
    """Reads the files of each new manifest."""

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self.storage, self.seen = storage, set[str]()

    def more(self) -> Iterator[tuple[int, list[SinkRow]]]:
        """The rows of the manifests that are new, in the order of their batches."""
        for name in sorted(set(names_under(self.storage, f"{FOLDER}/")) - self.seen):
            self.seen.add(name)
            link = json.loads(self.storage.read(name)) if is_link(name.rpartition("/")[2]) else {}
            if "files" in link:
                yield 0, [row for file in link["files"] for row in self._rows(file)]

    def _rows(self, file: dict[str, Any]) -> list[SinkRow]:
        """The rows of a file, which may be moved there just now."""
        import pyarrow.parquet as pq

        for name in (file["aside"], file["name"], file["aside"]):
            try:
                table = pq.read_table(pa.BufferReader(self.storage.read(name)))
            except NotFound:
                continue
            return [SinkRow.of(row) for row in table.to_pylist()]
        raise NotFound(f"there is no object {file['name']!r}")
