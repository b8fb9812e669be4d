"""Files: text lines, JSON lines, CSV and Parquet, written to object stores and to any file system Spark knows."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from penstock.connectors.base import REFUSED, Batch, SinkContext, StagedBatch
from penstock.connectors.delivery import WRITE, Entry, LedgerSink, fenced, verdict
from penstock.connectors.files.disk import disk_of
from penstock.connectors.files.manifests import BatchFile, Manifests, SeenTail, entry_of, link_of
from penstock.connectors.files.parts import write_parts
from penstock.connectors.files.store import StoreDisk, check_conditions, check_shared
from penstock.errors import RunError
from penstock.faults import passing
from penstock.graph.endpoints.delivery import EXACTLY_ONCE
from penstock.graph.endpoints.hive import ESCAPED, LONGEST, RULE, escaped
from penstock.graph.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.connectors.files.parts import WrittenFile

_ASIDE = re.compile(r"(\d+)-(\d+)-[0-9a-f]{8}")
"""What follows the sink in the name of a folder aside: the batch, the fence and a random part. The name of another sink may begin as this one's does."""
BOUNDED = "bounded"
"""The lineage of bounded runs: one replaces what the last has written."""


class FilesSink(LedgerSink):
    """A set of files for each batch, named after it.

    They are written aside. The manifest of the batch is what makes it real: it appears as a whole or not at all, only if no other
    driver has taken over, and names every file. Then the files are moved to their final paths; a driver that dies in between finds the manifest when it starts again, and
    moves the rest. So whoever lists the folder sees no file twice and none that does not count, and whoever reads by the manifests
    sees complete batches.
    """

    def __init__(self) -> None:
        self.seen = SeenTail()

    def open(self, context: SinkContext) -> Entry | None:
        """Takes over, finishes what an earlier driver has begun, and returns its last entry."""
        if context.delivery != EXACTLY_ONCE or context.lineage == BOUNDED:
            return None
        disk, path = disk_of(context.options["path"])
        if isinstance(disk, StoreDisk):
            check_conditions(disk.storage, context.options["path"])
        manifests = Manifests(disk, path, context.sink, context.lineage)
        self.fence, self.seen.tail = manifests.take_over(), manifests.tail()
        last = self.seen.tail.manifest
        if last is not None:
            manifests.settle(last)
        return entry_of(last)

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Writes the files aside."""
        path = batch.options["path"].rstrip("/")
        check_shared(path, f"sink {batch.sink!r}")
        aside = f"_penstock/{batch.sink}-{batch.id}-{self.fence}-{uuid.uuid4().hex[:8]}"
        staged = StagedFiles(path, aside, batch, self.fence, self.seen)
        staged.check_folder()
        kind, by = batch.options["format"], partitions(batch)
        frame = _nameable(frame, by, batch.sink)
        if isinstance(staged.disk, StoreDisk):
            staged.take(write_parts(frame, kind, by, staged.disk.storage, aside))
        else:
            staged.rows = _write(frame, kind, by, f"{path}/{aside}")
        return staged


def partitions(batch: Batch) -> tuple[str, ...]:
    """The fields by whose values the files of a batch are put into folders."""
    return tuple(batch.options.get("partition_by") or ())


def _nameable(frame: DataFrame, by: tuple[str, ...], sink: str) -> DataFrame:
    """A frame that refuses a row whose text cannot name a folder, instead of what the file system would say."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType

    texts = [each.name for each in frame.schema.fields if isinstance(each.dataType, StringType)] if by else []
    for name in (n for n in texts if n in by):
        value, room = f.col(quote(name)), LONGEST - len(f"{escaped(name)}=".encode())
        is_long = (f.octet_length(value) > room // 3) & (f.octet_length(f.regexp_replace(value, ESCAPED, "%00")) > room)
        said = f.concat(
            f.lit(f"sink {sink!r} {REFUSED} field {name!r} names a folder, and no folder is named '"),
            f.regexp_replace(f.substring(value, 1, 40), "\0", "%00"),
            f.lit(f"': {RULE}"),
        )
        checked = f.when(is_long | f.contains(value, f.lit("\0")), f.raise_error(said)).otherwise(value)
        frame = frame.withColumn(name, checked)
    return frame


def _write(frame: DataFrame, kind: str, by: tuple[str, ...], aside: str) -> int:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    counted = Observation()
    writer = frame.observe(counted, f.count(f.lit(1)).alias("rows")).write.mode("overwrite").format(kind)
    options = {"escape": '"'} if kind == "csv" else {}
    writer.options(header=True, **options).partitionBy(*by).save(aside)
    return int(counted.get["rows"])


class StagedFiles(StagedBatch):
    """Files that wait aside."""

    def __init__(self, path: str, aside: str, batch: Batch, fence: int = 0, seen: SeenTail | None = None) -> None:
        self.disk, self.path = disk_of(path)
        self.seen = seen or SeenTail()
        self.folder, self.batch, self.fence = aside, batch, fence
        self.depth = len(partitions(batch))
        self.aside = f"{self.path}/{aside}"
        self.written: list[str] | None = None

    def take(self, written: list[WrittenFile]) -> None:
        """Counts the files that tasks have written; what else lies aside is of attempts that failed."""
        self.rows, self.written = sum(each.rows for each in written), [each.name for each in written]

    def check_folder(self) -> None:
        """A sink that begins must not add to what another life of the flow has written: readers would see all twice."""
        if self.batch.id > 0:
            return
        found = [n for deep in {0, self.depth} for n in self.disk.names(self.path, f"{self.batch.sink}-", deep)]
        shown = re.compile(rf"{re.escape(self.batch.sink)}-\d{{8,}}-(.+)-\d{{5,}}\.")
        lives = {n: life[1] for n in found if (life := shown.match(_last(n)))}
        others = [n for n, life in lives.items() if life != self.batch.lineage]
        if others:
            raise RunError(
                f"sink {self.batch.sink!r}: {self.batch.options['path']} holds files of another life of this flow, such as {others[0]} (it was "
                f"started with --fresh, or as --batch). Move them away or write to another folder, then start again"
            )

    def commit(self) -> None:
        """Shows the batch: by its manifest when it must arrive exactly once, else by moving its files to their final paths."""
        if self.batch.delivery == EXACTLY_ONCE and self.batch.lineage != BOUNDED:
            self._commit_once()
        else:
            self._replace()
        self._clear_aside()

    def _commit_once(self) -> None:
        manifests = Manifests(self.disk, self.path, self.batch.sink, self.batch.lineage)
        files: list[BatchFile] | None = None
        while True:
            tail, self.seen.tail = self.seen.tail or manifests.tail(), None
            if tail.fence > self.fence:
                raise fenced(self.batch, tail.fence, self.fence)
            if verdict(entry_of(tail.manifest), self.batch, self.fence) != WRITE:
                break
            files = self._files(manifests) if files is None else files
            passing("ledger checked", self.batch.id)
            entry = Entry.of(self.batch, self.fence, self.rows or 0)
            if manifests.put(tail, entry, files):
                self.seen.tail = tail.after(link_of(entry, files))
                passing("after sink commit", self.batch.id)
        manifests.settle(tail.manifest or {"files": []})
        self.seen.tail = tail

    def _files(self, manifests: Manifests) -> list[BatchFile]:
        """The files of the batch; a driver that has taken over may have removed them."""
        try:
            return [self._named(name, final) for name, final in self._moves()]
        except (OSError, RunError):
            tail = manifests.tail()
            if tail.fence > self.fence:
                raise fenced(self.batch, tail.fence, self.fence) from None
            raise

    def _named(self, name: str, final: str) -> BatchFile:
        return BatchFile(final, f"{self.folder}/{name}", *self.disk.settle(f"{self.aside}/{name}"))

    def _moves(self) -> list[tuple[str, str]]:
        """The files aside and the names they get."""
        made = self._made() if self.rows else []
        if self.rows and not made:
            raise RunError(
                f"sink {self.batch.sink!r}: {self.rows} rows were written to {self.aside}, but no file is there. Workers that do not see this "
                f"directory have written to their own: give a URL that all machines reach, such as s3://bucket/folder"
            )
        return [(n, self._final(n, at)) for at, n in enumerate(sorted(made))]

    def _made(self) -> list[str]:
        return self.disk.names(self.aside, "part-", self.depth) if self.written is None else self.written

    def _final(self, name: str, at: int) -> str:
        """The name that a file gets, in the folder of its values."""
        folder, _, own = name.rpartition("/")
        return f"{folder}{'/' if folder else ''}{self._prefix}{at:05d}.{own.split('.', 1)[-1]}"

    @property
    def _prefix(self) -> str:
        return f"{self.batch.sink}-{self.batch.id:08d}-{self.batch.lineage}-"

    def _replace(self) -> None:
        """Removes what an earlier run of this batch left, and moves the files to their final paths."""
        for name in self.disk.names(self.path, self._prefix, self.depth):
            self.disk.remove(f"{self.path}/{name}")
        for name, final in self._moves():
            self.disk.move(f"{self.aside}/{name}", f"{self.path}/{final}")

    def _clear_aside(self) -> None:
        """Removes this batch's folder, and those that earlier batches left when they were killed."""
        folder = self.aside.rsplit("/", 1)[0]
        for name in self.disk.names(folder, f"{self.batch.sink}-"):
            own = _ASIDE.fullmatch(name.removeprefix(f"{self.batch.sink}-"))
            if own and int(own[1]) <= self.batch.id and int(own[2]) <= self.fence:
                self.disk.remove(f"{folder}/{name}")

    def abort(self) -> None:
        """Removes the files aside."""
        self.disk.remove(self.aside)


def _last(name: str) -> str:
    return name.rpartition("/")[2]
